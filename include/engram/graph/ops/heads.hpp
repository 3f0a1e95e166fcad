#pragma once
// SPDX-License-Identifier: MIT

// What the heads of a memory do side by side: head h of H has columns [h N, (h + 1) N) of a row.
//
//   mixture      shares [., H * K], K values [., H * N]     -> [., H * N]: sum over k of share h, k times value k of h
//   fold_heads   start [., N], values [., H * N]            -> [., N]: one head after the other changes what is there
//
// Softmax and sums take heads as groups of columns (graph/ops/rows.hpp), maps as spread inputs (graph/ops/map.hpp).

#include <algorithm>
#include <vector>

#include <engram/graph/ops/map.hpp>
#include <engram/graph/ops/matrix_memory.hpp>

namespace engram {

namespace detail {

/// Throws where two inputs share columns: the gradients of heads are given in no order of inputs.
template <class Backend>
void require_apart(const graph<Backend>& g, const std::string& name, const std::vector<view>& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
        for (std::size_t k = 0; k < i; ++k) {
            const view &a = inputs[i], &b = inputs[k];
            const bool shared = a.value == b.value && a.offset < b.offset + b.width && b.offset < a.offset + a.width;
            require(!shared || a.detached || b.detached, g.full_name(name),
                    ": two inputs share columns; give one of them as a copy");
        }
}

}  // namespace detail

// --- mixture ---

template <class Backend>
struct mixture_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    mixture_kernel(const binder<Backend>& b, int columns)
        : batch(b.batch()), slots(columns), shares(b.in(0)), out(b.out(0)), d_out(b.d_out(0)) {
        for (std::size_t k = 1; k < b.op().inputs.size(); ++k) values.push_back(b.in(k));
        if (!b.needs_backward()) return;
        d_shares = {b.d_in(0), shares.width, false};
        for (std::size_t k = 1; k < b.op().inputs.size(); ++k) d_values.push_back(b.d_in(k));
    }
    void forward(int t, int steps) override {
        using lanes = pack<real>;
        const int K = static_cast<int>(values.size()), heads = out.width / slots;
        for (int r = 0; r < steps * batch; ++r)
            for (int h = 0; h < heads; ++h) {
                const real* share = shares.at(t) + r * shares.stride + h * K;
                real* to = out.at(t) + r * out.stride + h * slots;
                for (int n = 0; n < slots; n += lanes::width) {
                    const int count = std::min(slots - n, lanes::width);
                    lanes sum(real(0));
                    for (int k = 0; k < K; ++k)
                        sum = multiply_add(lanes(share[k]), lanes::load(row(k, t, r) + h * slots + n, count), sum);
                    sum.store(to + n, count);
                }
            }
    }
    void backward(int t, int steps) override {
        using lanes = pack<real>;
        if (!d_out) return;
        const int K = static_cast<int>(values.size()), heads = out.width / slots;
        for (int r = 0; r < steps * batch; ++r) {
            const real* dy = d_out.at(t) + r * d_out.stride;
            const real* share = shares.at(t) + r * shares.stride;
            real* const d_share = d_shares.begin(t, r);
            for (int h = 0; h < heads; ++h)
                for (int k = 0; k < K; ++k) d_share[h * K + k] = dot(dy + h * slots, row(k, t, r) + h * slots, slots);
            d_shares.end(t, r);
            for (int k = 0; k < K; ++k) {
                const operand<real>& d = d_values[static_cast<std::size_t>(k)];
                if (!d) continue;
                real* const dx = d.at(t) + r * d.stride;
                for (int h = 0; h < heads; ++h)
                    for (int n = h * slots; n < (h + 1) * slots; n += lanes::width) {
                        const int count = std::min((h + 1) * slots - n, lanes::width);
                        const lanes before = d.accumulate ? lanes::load(dx + n, count) : lanes(real(0));
                        multiply_add(lanes(share[h * K + k]), lanes::load(dy + n, count), before).store(dx + n, count);
                    }
            }
        }
    }

private:
    const real* row(int k, int t, int r) const {
        const operand<real>& v = values[static_cast<std::size_t>(k)];
        return v.at(t) + r * v.stride;
    }

    int batch, slots;
    operand<real> shares, out, d_out;
    gradient_row<real> d_shares;
    std::vector<operand<real>> values, d_values;
};

/// [., H * N]: of every head the values [., H * N], mixed by its shares [., H * K], one for each of the K values.
template <class Backend>
var<Backend> mixture(const std::string& name, const var<Backend>& shares, const std::vector<var<Backend>>& values,
                     int slots) {
    require(!values.empty(), name, ": nothing to mix");
    graph<Backend>& g = *shares.owner;
    const int width = values[0].width, K = static_cast<int>(values.size());
    for (const auto& v : values)
        require(v.width == width && width % slots == 0, g.full_name(name), ": values of ", width, " and ", v.width,
                " columns, expected the same for every value, a multiple of the ", slots, " columns of a head");
    require(shares.width == width / slots * K, g.full_name(name), ": ", width / slots, " heads of ", K, " values need ",
            width / slots * K, " shares, not ", shares.width);
    std::vector<var<Backend>> inputs{shares};
    inputs.insert(inputs.end(), values.begin(), values.end());
    auto op = make_operation<mixture_kernel>(g, name, inputs, slots);
    detail::require_apart(g, name, op->inputs);
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {width}, rows)[0];
}

// --- fold ---

template <class Backend, class Functor, int N>
struct fold_heads_kernel final : kernel<Backend> {
    using real = typename Backend::real;
    using lanes = pack<real>;

    fold_heads_kernel(const binder<Backend>& b, Functor f, int h)
        : functor(f), batch(b.batch()), heads(h), width(b.out(0).width), out(b.out(0)), d_out(b.d_out(0)) {
        for (int i = 0; i < N; ++i) {
            in[i] = b.in(static_cast<std::size_t>(i));
            d_in[i] = b.d_in(static_cast<std::size_t>(i));
            single[i] = i > 0 && in[i].width == heads && width > 1;
        }
        if (!b.needs_backward()) return;
        before.resize(static_cast<std::size_t>(heads * lanes::width));
        totals.resize(static_cast<std::size_t>(heads * lanes::width * N));
    }
    void forward(int t, int steps) override {
        for (int r = 0; r < steps * batch; ++r)
            for (int n = 0; n < width; n += lanes::width) {
                const int count = std::min(width - n, lanes::width);
                lanes y = lanes::load(at(0, t, r, 0, n), count);
                for (int h = 0; h < heads; ++h) y = follow(y, t, r, h, n, count, std::make_index_sequence<N - 1>{});
                y.store(out.at(t) + r * out.stride + n, count);
            }
    }
    void backward(int t, int steps) override {
        if (!d_out) return;
        for (int r = 0; r < steps * batch; ++r) {
            std::fill(totals.begin(), totals.end(), real(0));
            for (int n = 0; n < width; n += lanes::width)
                send(t, r, n, std::min(width - n, lanes::width), std::make_index_sequence<N - 1>{});
            for (int i = 1; i < N; ++i)
                for (int h = 0; single[i] && d_in[i] && h < heads; ++h) {
                    real& to = d_in[i].at(t)[r * d_in[i].stride + h];
                    const real sum = lanes::load(total(i, h)).sum();
                    to = d_in[i].accumulate ? to + sum : sum;
                }
        }
    }

private:
    const real* at(int i, int t, int r, int h, int n) const {
        return in[i].at(t) + r * in[i].stride + (i == 0 ? n : single[i] ? h : h * width + n);
    }
    real* total(int i, int h) { return totals.data() + (i * heads + h) * lanes::width; }
    lanes value_of(int i, int t, int r, int h, int n, int count) const {
        const real* x = at(i, t, r, h, n);
        return single[i] ? lanes(*x) : lanes::load(x, count);
    }
    template <std::size_t... I>
    lanes follow(const lanes& y, int t, int r, int h, int n, int count, std::index_sequence<I...>) const {
        return lanes(functor(y, value_of(static_cast<int>(I) + 1, t, r, h, n, count)...));
    }

    template <std::size_t... I>
    void send(int t, int r, int n, int count, std::index_sequence<I...> others) {
        lanes y = lanes::load(at(0, t, r, 0, n), count);
        for (int h = 0; h < heads; ++h) {
            y.store(before.data() + h * lanes::width);
            y = follow(y, t, r, h, n, count, others);
        }
        lanes g = lanes::load(d_out.at(t) + r * d_out.stride + n, count);
        for (int h = heads; h-- > 0;) {
            const auto result =
                functor(make_input<0>(lanes::load(before.data() + h * lanes::width)),
                        make_input<static_cast<int>(I) + 1>(value_of(static_cast<int>(I) + 1, t, r, h, n, count))...);
            (give(static_cast<int>(I) + 1, lanes(derivative<static_cast<int>(I) + 1>(result)) * g, t, r, h, n, count),
             ...);
            g = lanes(derivative<0>(result)) * g;
        }
        give(0, g, t, r, 0, n, count);
    }
    void give(int i, const lanes& s, int t, int r, int h, int n, int count) {
        if (!d_in[i]) return;
        if (single[i]) {
            // Lanes beyond the row hold arbitrary numbers.
            real* const sum = total(i, h);
            (lanes::load(sum, count) + s).store(sum, count);
            return;
        }
        real* const to = d_in[i].at(t) + r * d_in[i].stride + (i == 0 ? n : h * width + n);
        (d_in[i].accumulate ? s + lanes::load(to, count) : s).store(to, count);
    }

    Functor functor;
    int batch, heads, width;
    operand<real> in[N], d_in[N], out, d_out;
    bool single[N];                       // one number a head
    aligned_vector<real> before, totals;  // [H, lanes], [N, H, lanes]
};

template <class Backend, class Functor, int N>
struct fold_heads_operation final : operation<Backend> {
    Functor functor;
    int heads;
    fold_heads_operation(Functor f, int h) : functor(f), heads(h) {}
    std::unique_ptr<kernel<Backend>> bind(const binder<Backend>& b) const override {
        return bind_kernel<fold_heads_kernel<Backend, Functor, N>>(b, functor, heads);
    }
};

/// [., N]: y <- f(y, x_h...) for one head after the other, from `start` [., N]; an x is [., H * N], or [., H] with one
/// number a head. `f` is a functor as map() takes it, of one number.
template <class Functor, class Backend, class... More>
var<Backend> fold_heads(const std::string& name, Functor f, int heads, const var<Backend>& start, const More&... each) {
    constexpr int N = 1 + static_cast<int>(sizeof...(More));
    graph<Backend>& g = *start.owner;
    require(heads > 0, g.full_name(name), ": ", heads, " heads; at least one is needed");
    auto op = std::make_unique<fold_heads_operation<Backend, Functor, N>>(f, heads);
    op->name = name;
    op->inputs = {g.own(name, start), g.own(name, each)...};
    for (std::size_t i = 1; i < op->inputs.size(); ++i) {
        const int width = op->inputs[i].width;
        require(width == heads || width == heads * start.width, g.full_name(name), ": ", width, " columns for ", heads,
                " heads; expected one a head, or ", start.width, " a head as there are in what they change");
    }
    detail::require_apart(g, name, op->inputs);
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {start.width}, rows)[0];
}

}  // namespace engram
