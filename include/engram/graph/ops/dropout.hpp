#pragma once
// SPDX-License-Identifier: MIT

// dropout: y = x / (1 - rate) with probability 1 - rate and 0 otherwise, in plans that have gradients; y = x in all
// others, so that what is evaluated is never thinned.
//
// Like noise (graph/ops/noise.hpp), whether a number is dropped is a pure function of the operation's full name, the
// replay count, the step, the row of the whole batch and the column: resumed and sharded runs drop the same ones, and
// the backward sweep asks again instead of storing a mask. Bits are drawn for many columns at once.

#include <cstdint>

#include <engram/graph/ops/rows.hpp>
#include <engram/kernels/philox_words.hpp>

namespace engram {

template <class Backend>
struct dropout_kernel final : kernel<Backend> {
    using real = typename Backend::real;

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
            each_block(s, b, [&](int first, int n, const std::uint32_t* bits) {
                for (int i = 0; i < n; ++i) y[first + i] = kept(bits[i], x[first + i]);
            });
        });
    }
    void backward(int t, int steps) override {
        if (!d_in) return;
        each_row(t, steps, [&](int s, int b) {
            const real* dy = d_out.at(s) + b * d_out.stride;
            real* dx = d_in.at(s) + b * d_in.stride;
            each_block(s, b, [&](int first, int n, const std::uint32_t* bits) {
                if (d_in.accumulate)
                    for (int i = 0; i < n; ++i) dx[first + i] += kept(bits[i], dy[first + i]);
                else
                    for (int i = 0; i < n; ++i) dx[first + i] = kept(bits[i], dy[first + i]);
            });
        });
    }

private:
    real kept(std::uint32_t bits, real x) const { return bits >= threshold ? x * scale : real(0); }

    template <class Body>
    void each_row(int t, int steps, Body body) const {
        for (int s = t; s < t + steps; ++s)
            for (int b = 0; b < batch; ++b) body(s, b);
    }
    /// body(first column, columns, 32 bits of each) over a row.
    template <class Body>
    void each_block(int t, int b, Body body) const {
        constexpr int columns = 4 * philox_lanes;
        std::uint32_t bits[columns];
        for (int f = 0; f < in.width; f += columns) {
            philox_words({{static_cast<std::uint32_t>(first_step + t), static_cast<std::uint32_t>(first_row + b),
                           static_cast<std::uint32_t>(f / 4), static_cast<std::uint32_t>(*replay)}},
                         key, static_cast<std::uint32_t>(*replay >> 32), bits);
            // Whole blocks have a constant length, which is what lets them be vectorised.
            if (in.width - f >= columns)
                body(f, columns, bits);
            else
                body(f, in.width - f, bits);
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
