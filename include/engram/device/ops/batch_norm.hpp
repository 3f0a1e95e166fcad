#pragma once
// SPDX-License-Identifier: MIT

// Batch normalisation on a device (equations and running statistics: operations/batch_norm.hpp). Channels lie beside
// each other in memory, so sums go by slices of the pixels, a block each, whose lanes read neighbouring channels; a
// block a channel then joins the slices. The rest is a thread a number.

#include <algorithm>
#include <cstdint>

#include <engram/device/kernel.hpp>
#include <engram/operations/batch_norm.hpp>

namespace engram {

/// Numbers [rows, pixels, channels] of a batch, and the channels' statistics.
template <class Real>
struct channel_numbers {
    step_rows<Real> x;
    int channels, rows;
    Real *mean, *inverse;

    ENGRAM_HD int pixels() const { return x.width / channels; }
    ENGRAM_HD int count() const { return rows * pixels(); }
};

/// Equal parts of the pixels of a batch, and groups of neighbouring channels: a block each.
struct channel_slices {
    static constexpr int lanes = 256, each_lane = 16, most = 128;
    int channels, pixels, count;  // pixels of a row, and of all of them
    int groups, slices;

    channel_slices(int c, int p, int n)
        : channels(c),
          pixels(p),
          count(n),
          groups((c + lanes - 1) / lanes),
          slices(static_cast<int>(
              std::clamp<std::int64_t>(std::int64_t{n} * c / (lanes * each_lane), 1, std::clamp(n, 1, most)))) {}
    ENGRAM_HD int begin(int slice) const { return static_cast<int>(std::int64_t{count} * slice / slices); }
    ENGRAM_HD int size(int slice) const { return begin(slice + 1) - begin(slice); }

    /// to(channel, the sum of term(row, number) over a slice) for every channel of the group of this block; term is
    /// given where the channel's number lies. Uses scratch [lanes].
    template <class Block, class Term, class To>
    ENGRAM_HD void add_up(Block& block, int index, Term term, To to) const {
        using real = typename Block::real;
        const int slice = index / groups, first = index % groups * lanes;
        const int wide = channels - first < lanes ? channels - first : lanes, parts = lanes / wide;
        const int from = begin(slice), until = begin(slice + 1);
        real* const partial = block.scratch;
        const channel_slices of = *this;
        block.each([=](int lane) {
            const int c = first + lane % wide;
            real sum = 0;
            if (lane / wide < parts)
                for (int i = from + lane / wide; i < until; i += parts)
                    sum += term(i / of.pixels, i % of.pixels * of.channels + c, c);
            partial[lane] = sum;
        });
        block.each([=](int lane) {
            if (lane >= wide) return;
            real sum = 0;
            for (int part = 0; part < parts; ++part) sum += partial[part * wide + lane];
            to(first + lane, sum);
        });
    }
};

namespace internal {

/// Mean and squared deviation from it of every channel in a slice, [2, slices, C].
template <class Real>
struct measure_slice {
    static constexpr int lanes = channel_slices::lanes;
    channel_numbers<Real> all;
    channel_slices of;
    Real* found;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const int slice = index / of.groups;
        const Real n = static_cast<Real>(of.size(slice));
        const step_rows<Real> x = all.x;
        Real *const mean = found + std::ptrdiff_t{slice} * of.channels, *const spread =
                                                                            mean +
                                                                            std::ptrdiff_t{of.slices} * of.channels;
        of.add_up(
            block, index, [=](int row, int at, int) { return x.row(row)[at]; },
            [=](int c, Real sum) { mean[c] = sum / n; });
        of.add_up(
            block, index,
            [=](int row, int at, int c) {
                const Real gap = x.row(row)[at] - mean[c];
                return gap * gap;
            },
            [=](int c, Real sum) { spread[c] = sum; });
    }
};

/// Mean and deviation of a batch from those of its slices, and the running ones moved towards them.
template <class Real>
struct measure_channel {
    static constexpr int lanes = 64;
    channel_numbers<Real> all;
    channel_slices of;
    const Real* found;
    Real *running_mean, *running_variance;
    const std::uint64_t* updates;
    double epsilon, rate;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int c) const {
        const channel_slices s = of;
        const Real n = static_cast<Real>(s.count);
        const Real *const means = found + c, *const spread = means + std::ptrdiff_t{s.slices} * s.channels;
        const Real mean =
            block_sum(block, s.slices,
                      [=](int k) { return static_cast<Real>(s.size(k)) * means[std::ptrdiff_t{k} * s.channels]; }) /
            n;
        const Real variance = block_sum(block, s.slices,
                                        [=](int k) {
                                            const std::ptrdiff_t at = std::ptrdiff_t{k} * s.channels;
                                            const Real gap = means[at] - mean;
                                            return spread[at] + static_cast<Real>(s.size(k)) * gap * gap;
                                        }) /
                              n;
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

/// Sums of every channel's slopes in a slice, alone and times its normalised numbers, [2, slices, C].
template <class Real>
struct slopes_of_slice {
    static constexpr int lanes = channel_slices::lanes;
    channel_numbers<Real> all;
    channel_slices of;
    step_rows<Real> dy;
    Real* found;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const step_rows<Real> x = all.x, slope = dy;
        const Real *const mean = all.mean, *const inverse = all.inverse;
        Real *const alone = found + std::ptrdiff_t{index / of.groups} * of.channels, *const along =
                                                                                         alone +
                                                                                         std::ptrdiff_t{of.slices} *
                                                                                             of.channels;
        of.add_up(
            block, index, [=](int row, int at, int) { return slope.row(row)[at]; },
            [=](int c, Real sum) { alone[c] = sum; });
        of.add_up(
            block, index,
            [=](int row, int at, int c) { return slope.row(row)[at] * ((x.row(row)[at] - mean[c]) * inverse[c]); },
            [=](int c, Real sum) { along[c] = sum; });
    }
};

/// Their sums over all slices (first, second), which are the gradients of offset and scale.
template <class Real>
struct channel_slopes {
    static constexpr int lanes = 64;
    channel_slices of;
    const Real* found;
    Real *first, *second;
    operand<Real> d_scale, d_offset;
    bool add;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int c) const {
        const channel_slices s = of;
        const Real *const alones = found + c, *const alongs = alones + std::ptrdiff_t{s.slices} * s.channels;
        const Real alone = block_sum(block, s.slices, [=](int k) { return alones[std::ptrdiff_t{k} * s.channels]; });
        const Real along = block_sum(block, s.slices, [=](int k) { return alongs[std::ptrdiff_t{k} * s.channels]; });
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
          kept(4 * static_cast<std::size_t>(d.weights.channels)),
          found(2 * static_cast<std::size_t>(std::max(slices_of(1).slices, slices_of(this->all_steps).slices)) *
                static_cast<std::size_t>(d.weights.channels)) {}

    void forward(int t, int steps) override {
        auto& running = static_cast<typename running_statistics_of<Backend>::type&>(**statistics);
        if (training) {
            const channel_slices of = slices_of(steps);
            this->on->launch_blocks(this->name, std::ptrdiff_t{of.slices} * of.groups, channel_slices::lanes,
                                    internal::measure_slice<real>{numbers_of(t, steps), of, found.data()});
            this->on->launch_blocks(
                this->name, channels, internal::measure_channel<real>::lanes,
                internal::measure_channel<real>{numbers_of(t, steps), of, found.data(), running.mean.data(),
                                                running.variance.data(), running.counter.data(), settings.epsilon,
                                                settings.rate});
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
    channel_slices slices_of(int steps) const {
        return {channels, x.width / channels, steps * this->batch * (x.width / channels)};
    }
    void slopes(int t, int steps, bool add) {
        const channel_slices of = slices_of(steps);
        this->on->launch_blocks(this->name, std::ptrdiff_t{of.slices} * of.groups, channel_slices::lanes,
                                internal::slopes_of_slice<real>{numbers_of(t, steps), of, {dy, t}, found.data()});
        this->on->launch_blocks(this->name, channels, internal::channel_slopes<real>::lanes,
                                internal::channel_slopes<real>{of, found.data(), kept.data() + 2 * channels,
                                                               kept.data() + 3 * channels, d_scale, d_offset, add});
    }

    batch_norm_settings settings;
    int channels;
    bool stepwise, training;
    std::shared_ptr<resource>* statistics;
    operand<real> x, dx, y, dy;
    const real *scale, *offset;
    operand<real> d_scale, d_offset;
    typename executor<Backend>::buffer kept;   // [4, C]: mean, 1 / deviation, sums of slopes
    typename executor<Backend>::buffer found;  // [2, slices, C]
};

}  // namespace engram
