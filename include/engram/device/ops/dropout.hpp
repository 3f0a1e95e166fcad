#pragma once
// SPDX-License-Identifier: MIT

// dropout on a device: a thread four numbers of a row, which share a Philox block, dropped as on the host.

#include <engram/device/kernel.hpp>
#include <engram/operations/dropout.hpp>

namespace engram {

namespace internal {

/// to (+)= what is kept of from, scaled.
template <class Real>
struct drop_numbers {
    step_rows<Real> from, to;
    const std::uint64_t* replay;
    std::uint32_t key, threshold;
    Real scale;
    int batch, first_row, step;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const int groups = (to.width + 3) / 4, group = static_cast<int>(i % groups);
        const std::ptrdiff_t row = i / groups;
        const philox_block bits = philox4x32(
            {{static_cast<std::uint32_t>(step + row / batch), static_cast<std::uint32_t>(first_row + row % batch),
              static_cast<std::uint32_t>(group), static_cast<std::uint32_t>(*replay)}},
            key, static_cast<std::uint32_t>(*replay >> 32));
        for (int k = 0; k < 4 && 4 * group + k < to.width; ++k) {
            const int column = 4 * group + k;
            to.put(row, column, bits.word[k] >= threshold ? from.row(row)[column] * scale : Real(0));
        }
    }
};

}  // namespace internal

template <device_backend Backend>
struct dropout_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    dropout_kernel(const binder<Backend>& b, double rate)
        : device_kernel<Backend>(b),
          first_step(b.first_step()),
          first_row(b.first_row()),
          replay(b.replay_count()),
          key(static_cast<std::uint32_t>(stream_id(b.op().name, 0) >> 32)),
          // Without gradients nothing is dropped.
          threshold(b.needs_backward() ? static_cast<std::uint32_t>(rate * 4294967296.0) : 0),
          scale(b.needs_backward() ? static_cast<real>(1 / (1 - rate)) : real(1)),
          in(b.in(0)),
          d_in(b.d_in(0)),
          out(b.out(0)),
          d_out(b.d_out(0)) {}
    void forward(int t, int steps) override { drop(in, out, t, steps); }
    void backward(int t, int steps) override {
        if (d_in) drop(d_out, d_in, t, steps);
    }

private:
    void drop(const operand<real>& from, const operand<real>& to, int t, int steps) {
        this->launch(steps, (to.width + 3) / 4,
                     internal::drop_numbers<real>{
                         {from, t}, {to, t}, replay, key, threshold, scale, this->batch, first_row, first_step + t});
    }
    int first_step, first_row;
    const std::uint64_t* replay;
    std::uint32_t key, threshold;
    real scale;
    operand<real> in, d_in, out, d_out;
};

}  // namespace engram
