#pragma once
// SPDX-License-Identifier: MIT

// dropout: y = x / (1 - rate) with probability 1 - rate and 0 otherwise, in plans that have gradients; y = x in all
// others, so that what is evaluated is never thinned.
//
// Like noise (operations/noise.hpp), whether a number is dropped is a pure function of the operation's full name, the
// replay count, the step, the row of the whole batch and the column: resumed and sharded runs drop the same ones, and
// the backward sweep asks again instead of storing a mask. Bits are drawn for many columns at once.

#include <cstdint>

#include <engram/graph/simple_operation.hpp>
#include <engram/kernels/philox_words.hpp>

namespace engram {

template <class Backend>
struct dropout_kernel final : kernel<Backend> {
    using real = typename Backend::real;
    using P = pack<real>;

    dropout_kernel(const binder<Backend>& b, double rate)
        : batch(b.batch()),
          first_row(b.first_row()),
          first_step(b.first_step()),
          drops(b.needs_backward()),
          replay(b.replay_count()),
          threshold(static_cast<std::uint32_t>(rate * 4294967296.0)),
          scale(static_cast<real>(1 / (1 - rate))),
          in(b.in(0)),
          d_in(b.d_in(0)),
          out(b.out(0)),
          d_out(b.d_out(0)) {
        const std::uint64_t id = stream_id(b.op().name, 0);
        key = static_cast<std::uint32_t>(id >> 32);
    }
    void forward(int t, int steps) override {
        each_row(t, steps, [&](int s, int b) {
            const real* x = in.at(s) + b * in.stride;
            real* y = out.at(s) + b * out.stride;
            if (!drops) {
                std::copy_n(x, in.width, y);
                return;
            }
            each_pack(s, b, [&](int f, int n, P by) { put(thin(part(x + f, n), by), y + f, n); });
        });
    }
    void backward(int t, int steps) override {
        if (!d_in) return;
        each_row(t, steps, [&](int s, int b) {
            const real* dy = d_out.at(s) + b * d_out.stride;
            real* dx = d_in.at(s) + b * d_in.stride;
            each_pack(s, b, [&](int f, int n, P by) {
                const P d = thin(part(dy + f, n), by);
                put(d_in.accumulate ? part(dx + f, n) + d : d, dx + f, n);
            });
        });
    }

private:
    // Zero also where x is not finite.
    static P thin(P x, P by) { return select(P(0) < by, x * by, P(0)); }
    // Whole packs are not counted out lane by lane.
    static P part(const real* from, int n) { return n == P::width ? P::load(from) : P::load(from, n); }
    static void put(P v, real* to, int n) { n == P::width ? v.store(to) : v.store(to, n); }

    template <class Body>
    void each_row(int t, int steps, Body body) const {
        for (int s = t; s < t + steps; ++s)
            for (int b = 0; b < batch; ++b) body(s, b);
    }
    /// body(first column, columns, what each is multiplied by) over a row.
    template <class Body>
    void each_pack(int t, int b, Body body) const {
        constexpr int columns = 4 * philox_lanes;
        std::uint32_t bits[columns];
        real by[columns];
        for (int f = 0; f < in.width; f += columns) {
            philox_words({{static_cast<std::uint32_t>(first_step + t), static_cast<std::uint32_t>(first_row + b),
                           static_cast<std::uint32_t>(f / 4), static_cast<std::uint32_t>(*replay)}},
                         key, static_cast<std::uint32_t>(*replay >> 32), bits);
            // A product and no choice: g++ would branch on every bit, and guess wrong at the rate of dropping.
            for (int i = 0; i < columns; ++i) by[i] = scale * static_cast<real>(bits[i] >= threshold);
            for (int i = 0; i < std::min(columns, in.width - f); i += P::width)
                body(f + i, std::min(P::width, in.width - f - i), P::load(by + i));
        }
    }

    int batch, first_row, first_step;
    bool drops;
    const std::uint64_t* replay;
    std::uint32_t threshold, key;
    real scale;
    operand<real> in, d_in, out, d_out;
};

/// x thinned by `rate` in [0, 1); x itself, and no operation, for a rate of 0.
template <class Backend>
var<Backend> dropout(const std::string& name, const var<Backend>& x, double rate) {
    graph<Backend>& g = *x.owner;
    require(rate >= 0 && rate < 1, g.full_name(name), ": the rate of dropout is ", rate, ", expected one in [0, 1)");
    if (rate == 0) return x;
    auto op = make_operation<dropout_kernel>(g, name, {x}, rate);
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {x.width}, rows)[0];
}

}  // namespace engram
