#pragma once
// SPDX-License-Identifier: MIT

// Products, controllers, convolutions, attention and dropout.

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <engram/controller/lstm.hpp>
#include <engram/graph/scan.hpp>
#include <engram/kernels/attention.hpp>
#include <engram/kernels/convolution.hpp>
#include <engram/operations/dropout.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/softmax.hpp>

#include "path.hpp"

namespace benchmarks {

inline path skinny_product(const sizes& z) {
    const int m = z.B, k = 512, n = 2048;
    auto packed = std::make_shared<packed_weights<float>>(k, n);
    packed->pack(draw(std::ptrdiff_t{k} * n).data(), n);
    return {by({m, k}) + " times " + by({k, n}), 2.0 * m * k * n, 4.0 * (m * k + k * n + m * n),
            [=, x = draw(m * k), y = numbers(static_cast<std::size_t>(m * n))]() mutable {
                const product_part<float> part{x.data(), k, packed.get(), 0, k};
                multiply(&part, 1, static_cast<const float*>(nullptr), false, y.data(), n, m);
            }};
}
inline path weight_gradient(const sizes& z) {
    const int m = z.T * z.B, k = 512, n = 2048;
    return {by({k, m}) + " times " + by({m, n}), 2.0 * m * k * n, 4.0 * (m * k + k * n + m * n),
            [=, x = draw(m * k), dy = draw(m * n), dw = numbers(static_cast<std::size_t>(k * n)),
             work = numbers(static_cast<std::size_t>(transposed_workspace<float>(k, n, m)))]() mutable {
                multiply_transposed(x.data(), k, k, dy.data(), n, n, m, dw.data(), n, false, work.data());
            }};
}

/// A graph that outlives its program.
struct planned {
    std::shared_ptr<parameters<float>> store = std::make_shared<parameters<float>>();
    graph<cpu<float>> g{store};
    std::unique_ptr<program<cpu<float>>> p;

    void plan(int steps, int batch, const var<cpu<float>>& out) {
        p = std::make_unique<program<cpu<float>>>(
            g, store, plan_options{.steps = steps, .batch = batch, .gradients = true}, std::vector{out});
    }
    void fill(const std::string& name) {
        const auto to = p->input(name);
        const numbers from = draw(static_cast<std::ptrdiff_t>(to.size()));
        std::copy(from.begin(), from.end(), to.begin());
    }
    /// One sweep of the operation called `name` alone.
    void sweep(const std::string& name, bool backward) {
        const auto alone = [&](const operation<cpu<float>>& o, auto call) {
            if (o.name == name) call();
        };
        backward ? p->backward_around(alone) : p->forward_around(alone);
    }
};

inline path lstm_unroll(const sizes& z, bool backward) {
    constexpr int X = 256, H = 512;
    auto all = std::make_shared<planned>();
    const auto x = all->g.input("x", X);
    const auto w = lstm::declare(all->g, {.hidden = H}, X);
    const auto h = scan(all->g, lstm::begin(all->g, {.hidden = H}),
                        [&](auto& s) { return lstm::step<cpu<float>>({}, w, {x}, s); });
    add_loss("loss", sum_columns("sum", h));
    all->plan(z.T, z.B, h);
    all->fill("x");
    all->p->forward();
    // Backward: the products towards the state and the weights; x needs no gradient here.
    const double rows = double(z.T) * z.B, forward = 2 * rows * (X + H) * 4 * H;
    return {"T " + std::to_string(z.T) + ", B " + std::to_string(z.B) + ", " + by({X, H}),
            backward ? forward + 2 * rows * H * 4 * H : forward, 0, [all, backward] {
                if (backward)
                    all->p->backward();
                else
                    all->p->forward();
            }};
}

/// The pointwise part of one step, as it lies in an unroll: the gates side by side, row by row.
inline path cell(const sizes& z, bool backward) {
    constexpr int H = 512;
    auto all = std::make_shared<planned>();
    const auto gates = split_columns<4>(all->g.input("gates", 4 * H, extent::sequence, true));
    const auto before = all->g.input("before", H, extent::sequence, true);
    const auto [next, h] = map("cell", lstm_cell{}, gates[0], gates[1], gates[2], gates[3], before);
    add_loss("loss", sum_columns("sum", map("both", std::plus<>{}, next, h)));
    all->plan(1, z.B, h);
    all->fill("gates");
    all->fill("before");
    all->p->forward();
    all->p->backward();
    return {by({z.B, H}), 0, 4.0 * z.B * H * (backward ? 12 : 7), [all, backward] { all->sweep("cell", backward); }};
}

inline path dropped(const sizes& z, bool backward) {
    constexpr int F = 512;
    auto all = std::make_shared<planned>();
    const auto y = dropout("dropout", all->g.input("x", F, extent::sequence, true), 0.1);
    add_loss("loss", sum_columns("sum", y));
    all->plan(z.T, z.B, y);
    all->fill("x");
    all->p->forward();
    all->p->backward();
    return {by({z.T, z.B, F}), 0, 8.0 * z.T * z.B * F, [all, backward] { all->sweep("dropout", backward); }};
}

inline path convolved(int which) {
    const convolution_shape s{36, 48, 16, 32, 3, 1};
    const int images = 4;
    numbers x = draw(images * s.inputs()), dy = draw(images * s.outputs()), w = draw(s.weight_rows() * s.filters);
    packed_weights<float> flipped;
    auto packed = std::make_shared<packed_weights<float>>(s.weight_rows(), s.filters);
    if (which == 1) {
        pack_flipped(s, w.data(), flipped);
        *packed = std::move(flipped);
    } else {
        packed->pack(w.data(), s.filters);
    }
    const double area = double(images) * s.out_height() * s.out_width();
    return {std::to_string(images) + " images " + by({s.height, s.width, s.channels}) + ", 32 of 3 x 3",
            2 * area * s.weight_rows() * s.filters, 4.0 * double(x.size() + dy.size() + w.size()),
            [=, db = numbers(static_cast<std::size_t>(s.filters)),
             scratch = numbers(static_cast<std::size_t>(convolution_scratch(s)))]() mutable {
                if (which == 0)
                    convolution_forward(s, *packed, static_cast<const float*>(nullptr), x.data(), s.inputs(), dy.data(),
                                        s.outputs(), images, scratch.data());
                else if (which == 1)
                    convolution_data_gradient(s, *packed, dy.data(), s.outputs(), x.data(), s.inputs(), false, images,
                                              scratch.data());
                else
                    convolution_weight_gradient(s, x.data(), dy.data(), images, w.data(), db.data(), false,
                                                scratch.data());
            }};
}

inline path attended(const sizes& z, bool backward) {
    constexpr int d = 32;
    attention_head<float> head({z.T, d}, true);
    numbers q = draw(z.T * d), y(q.size()), log_sum(static_cast<std::size_t>(z.T));
    std::vector<int> segment(static_cast<std::size_t>(z.T), 0);
    head.forward(q.data(), d, q.data(), d, q.data(), d, segment.data(), y.data(), d, log_sum.data());
    return {"T " + std::to_string(z.T) + ", one head of " + std::to_string(d), (backward ? 5.0 : 2.0) * d * z.T * z.T,
            4.0 * d * z.T * (backward ? 8 : 4),
            [=, k = draw(z.T * d + 1), v = draw(z.T * d + 2), d_y = draw(z.T * d + 3), d_q = q, d_k = q,
             d_v = q]() mutable {
                if (!backward)
                    head.forward(q.data(), d, k.data(), d, v.data(), d, segment.data(), y.data(), d, log_sum.data());
                else
                    head.backward(q.data(), d, k.data(), d, v.data(), d, segment.data(), y.data(), d, log_sum.data(),
                                  d_y.data(), d, d_q.data(), d, false, d_k.data(), d, false, d_v.data(), d, false);
            }};
}

}  // namespace benchmarks
