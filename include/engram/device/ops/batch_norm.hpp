#pragma once
// SPDX-License-Identifier: MIT

// Batch normalisation on a device: a block a channel for its sums, a thread a number for the rest (equations and
// running statistics: operations/batch_norm.hpp).

#include <engram/device/kernel.hpp>
#include <engram/operations/batch_norm.hpp>

namespace engram {

/// Numbers of one channel over all pixels of all rows, and the channel's statistics.
template <class Real>
struct channel_numbers {
    step_rows<Real> x;
    int channels, rows;
    Real *mean, *inverse;

    ENGRAM_HD int pixels() const { return x.width / channels; }
    ENGRAM_HD int count() const { return rows * pixels(); }
    static ENGRAM_HD Real at(const step_rows<Real>& of, int i, int pixels, int channels, int c) {
        return of.row(i / pixels)[i % pixels * channels + c];
    }
};

namespace internal {

/// Mean and deviation of a batch, and the running ones moved towards them.
template <class Real>
struct measure_channel {
    static constexpr int lanes = 128;
    channel_numbers<Real> all;
    Real *running_mean, *running_variance;
    const std::uint64_t* updates;
    double epsilon, rate;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int c) const {
        const int n = all.count(), pixels = all.pixels(), channels = all.channels;
        const step_rows<Real> x = all.x;
        const auto at = [=](int i) { return channel_numbers<Real>::at(x, i, pixels, channels, c); };
        const Real mean = block_sum(block, n, at) / Real(n);
        const Real variance = block_sum(block, n, [=](int i) { return (at(i) - mean) * (at(i) - mean); }) / Real(n);
        const double first = 1.0 / static_cast<double>(*updates + 1), moved = rate < first ? first : rate, e = epsilon;
        Real *const to_mean = all.mean + c, *const to_inverse = all.inverse + c, *const old_mean = running_mean + c,
                    *const old_variance = running_variance + c;
        block_for(block, 1, [=](int) {
            *to_mean = mean;
            *to_inverse = static_cast<Real>(1 / std::sqrt(static_cast<double>(variance) + e));
            *old_mean += static_cast<Real>(moved * static_cast<double>(mean - *old_mean));
            *old_variance += static_cast<Real>(moved * static_cast<double>(variance - *old_variance));
        });
    }
};

struct count_update {
    std::uint64_t* updates;
    ENGRAM_HD void operator()(std::ptrdiff_t) const { ++*updates; }
};

template <class Real>
struct recall_channel {
    channel_numbers<Real> all;
    const Real *running_mean, *running_variance;
    double epsilon;
    ENGRAM_HD void operator()(std::ptrdiff_t c) const {
        all.mean[c] = running_mean[c];
        all.inverse[c] = static_cast<Real>(1 / std::sqrt(static_cast<double>(running_variance[c]) + epsilon));
    }
};

template <class Real>
struct normalise_channels {
    channel_numbers<Real> all;
    const Real *scale, *offset;
    step_rows<Real> y;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / y.width, column = i % y.width, c = column % all.channels;
        y.row(row)[column] = (all.x.row(row)[column] - all.mean[c]) * (all.inverse[c] * scale[c]) + offset[c];
    }
};

/// Sums of a channel's slopes, alone (first) and times its normalised numbers (second).
template <class Real>
struct channel_slopes {
    static constexpr int lanes = 128;
    channel_numbers<Real> all;
    step_rows<Real> dy;
    Real *first, *second;
    operand<Real> d_scale, d_offset;
    bool add;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int c) const {
        const int n = all.count(), pixels = all.pixels(), channels = all.channels;
        const step_rows<Real> x = all.x, slope = dy;
        const Real mean = all.mean[c], inverse = all.inverse[c];
        const auto at = [=](const step_rows<Real>& of, int i) {
            return channel_numbers<Real>::at(of, i, pixels, channels, c);
        };
        const Real alone = block_sum(block, n, [=](int i) { return at(slope, i); });
        const Real along = block_sum(block, n, [=](int i) { return at(slope, i) * ((at(x, i) - mean) * inverse); });
        Real *const to_first = first + c, *const to_second = second + c;
        const operand<Real> scale = d_scale, offset = d_offset;
        const bool more = add;
        block_for(block, 1, [=](int) {
            *to_first = alone;
            *to_second = along;
            if (scale) give(scale.data[c], scale.accumulate || more, along);
            if (offset) give(offset.data[c], offset.accumulate || more, alone);
        });
    }
};

template <class Real>
struct normalise_channels_gradient {
    channel_numbers<Real> all;
    const Real *scale, *first, *second;
    Real share;  // 1 / numbers of a channel, or zero where the statistics are constants
    step_rows<Real> dy, dx;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / dx.width, column = i % dx.width, c = column % all.channels;
        const Real normal = (all.x.row(row)[column] - all.mean[c]) * all.inverse[c];
        const Real slope = dy.row(row)[column] - first[c] * share - normal * (second[c] * share);
        dx.put(row, column, all.inverse[c] * scale[c] * slope);
    }
};

}  // namespace internal

template <device_backend Backend>
struct batch_norm_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    batch_norm_kernel(const binder<Backend>& b, const batch_norm_description& d)
        : device_kernel<Backend>(b),
          settings(d.settings),
          channels(d.weights.channels),
          stepwise(b.stepwise()),
          training(b.needs_backward() && !d.settings.frozen),
          statistics(b.bound_resource(d.weights.statistics)),
          x(b.in(0)),
          dx(b.d_in(0)),
          y(b.out(0)),
          dy(b.d_out(0)),
          scale(b.weights(d.weights.scale)),
          offset(b.weights(d.weights.offset)),
          d_scale(b.d_parameter(d.weights.scale)),
          d_offset(b.d_parameter(d.weights.offset)),
          kept(4 * static_cast<std::size_t>(d.weights.channels)) {}

    void forward(int t, int steps) override {
        auto& running = static_cast<typename running_statistics_of<Backend>::type&>(**statistics);
        if (training) {
            this->on->launch_blocks(
                this->name, channels, internal::measure_channel<real>::lanes,
                internal::measure_channel<real>{numbers_of(t, steps), running.mean.data(), running.variance.data(),
                                                running.counter.data(), settings.epsilon, settings.rate});
            this->on->launch(this->name, 1, internal::count_update{running.counter.data()});
        } else {
            this->on->launch(this->name, channels,
                             internal::recall_channel<real>{numbers_of(t, steps), running.mean.data(),
                                                            running.variance.data(), settings.epsilon});
        }
        this->launch(steps, x.width, internal::normalise_channels<real>{numbers_of(t, steps), scale, offset, {y, t}});
    }
    void backward(int t, int steps) override {
        if (!dy) return;
        if (!stepwise) slopes(0, steps, false);
        if (dx)
            this->launch(steps, x.width,
                         internal::normalise_channels_gradient<real>{
                             numbers_of(t, steps),
                             scale,
                             kept.data() + 2 * channels,
                             kept.data() + 3 * channels,
                             training ? real(1) / static_cast<real>(numbers_of(t, steps).count()) : real(0),
                             {dy, t},
                             {dx, t}});
    }
    void after() override {
        if (!dy) return;
        // One step at a time: an input without time has the same row in all of them.
        for (int t = 0; t < this->all_steps; ++t) slopes(t, 1, t > 0);
    }

private:
    channel_numbers<real> numbers_of(int t, int steps) {
        return {{x, t}, channels, steps * this->batch, kept.data(), kept.data() + channels};
    }
    void slopes(int t, int steps, bool add) {
        this->on->launch_blocks(this->name, channels, internal::channel_slopes<real>::lanes,
                                internal::channel_slopes<real>{numbers_of(t, steps),
                                                               {dy, t},
                                                               kept.data() + 2 * channels,
                                                               kept.data() + 3 * channels,
                                                               d_scale,
                                                               d_offset,
                                                               add});
    }

    batch_norm_settings settings;
    int channels;
    bool stepwise, training;
    std::shared_ptr<resource>* statistics;
    operand<real> x, dx, y, dy;
    const real *scale, *offset;
    operand<real> d_scale, d_offset;
    typename executor<Backend>::buffer kept;  // [4, C]: mean, 1 / deviation, sums of slopes
};

}  // namespace engram
