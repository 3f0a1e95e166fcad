#pragma once
// SPDX-License-Identifier: MIT

// Batch normalisation per feature, or per channel of [H, W, C] images, over all T * B rows of a plan.
//
//   y = scale (x - mean) / sqrt(variance + epsilon) + offset
//
// A plan in which the operation has a gradient takes mean and (biased) variance of its own rows, differentiates through
// them, and moves the running ones: running += max(rate, 1 / updates) (batch - running). Any other plan (actors,
// evaluation, a branch that no loss reaches) and frozen settings use the running ones, row by row. The running ones are
// a resource, shared by all plans of a graph and kept in checkpoints. Statistics mix the rows of a batch: such a plan
// cannot be split over threads, nor stand in a scan.

#include <atomic>

#include <engram/graph/simple_operation.hpp>

namespace engram {

struct batch_norm_settings {
    double epsilon = 1e-5;
    double rate = 0.01;   // of the running statistics
    bool frozen = false;  // running statistics in all plans
};

/// Running mean and variance. Actors may read them while a learner moves them: each number is whole, the set may
/// not be. In memory of the kind that Array is.
template <class Real, template <class> class Array = aligned_vector>
struct running_statistics final : resource {
    Array<Real> mean, variance;
    Array<std::uint64_t> counter = Array<std::uint64_t>(1);
    std::uint64_t& updates = counter[0];

    explicit running_statistics(int channels)
        : mean(static_cast<std::size_t>(channels), Real(0)), variance(static_cast<std::size_t>(channels), Real(1)) {}
    std::vector<std::span<std::byte>> bytes() override {
        return {std::as_writable_bytes(std::span(mean.data(), mean.size())),
                std::as_writable_bytes(std::span(variance.data(), variance.size())),
                std::as_writable_bytes(std::span(&updates, 1))};
    }
};

/// The statistics of a backend; a device with a memory of its own has others.
template <class Backend>
struct running_statistics_of {
    using type = running_statistics<typename Backend::real>;
};

struct batch_norm_weights {
    parameter scale, offset;
    int statistics = -1;
    int channels = 0;
};

/// Scale 1, offset 0 and running statistics of `channels` features.
template <class Backend>
batch_norm_weights declare_batch_norm(graph<Backend>& g, const std::string& name, int channels) {
    using real = typename Backend::real;
    batch_norm_weights w;
    w.scale = g.declare(name + ".scale", 1, channels, initial::constant<real>(1));
    w.offset = g.declare(name + ".offset", 1, channels, initial::zero<real>());
    w.channels = channels;
    using statistics = typename running_statistics_of<Backend>::type;
    w.statistics =
        g.add_resource(name + ".statistics", [all = std::make_shared<statistics>(channels)](int) { return all; });
    return w;
}

struct batch_norm_description {
    batch_norm_settings settings;
    batch_norm_weights weights;
};

template <class Backend>
struct batch_norm_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    batch_norm_kernel(const binder<Backend>& b, const batch_norm_description& d)
        : settings(d.settings),
          weights(d.weights),
          channels(d.weights.channels),
          batch(b.batch()),
          all(b.steps()),
          stepwise(b.stepwise()),
          training(b.needs_backward() && !d.settings.frozen),
          store(&b.store()),
          statistics(b.bound_resource(d.weights.statistics)),
          x(b.in(0)),
          dx(b.d_in(0)),
          y(b.out(0)),
          dy(b.d_out(0)),
          d_scale(b.d_parameter(weights.scale)),
          d_offset(b.d_parameter(weights.offset)),
          mean(size()),
          inverse(size()),
          first(size()),
          second(size()) {}

    void forward(int t, int steps) override {
        training ? measure(t, steps) : recall();
        const real *scale = store->values(weights.scale), *offset = store->values(weights.offset);
        each_pixel(t, steps, [&](const real* in, std::ptrdiff_t at) {
            real* out = y.at(t) + at;
            for (int c = 0; c < channels; ++c) out[c] = (in[c] - mean[c]) * (inverse[c] * scale[c]) + offset[c];
        });
    }
    void backward(int t, int steps) override {
        if (!dy) return;
        if (!stepwise) parameter_gradients(steps);
        if (!dx) return;
        // The mean slopes that batch statistics take away; running ones are constants.
        const double share = training ? 1.0 / pixels(steps) : 0;
        const real* scale = store->values(weights.scale);
        each_pixel(t, steps, [&](const real* in, std::ptrdiff_t at) {
            const real* slope = dy.at(t) + at;
            const std::ptrdiff_t row = at / y.stride;
            real* to = dx.at(t) + row * dx.stride + (at - row * y.stride);
            for (int c = 0; c < channels; ++c) {
                const real normal = (in[c] - mean[c]) * inverse[c];
                const real part =
                    inverse[c] * scale[c] *
                    (slope[c] - static_cast<real>(first[c] * share) - normal * static_cast<real>(second[c] * share));
                to[c] = dx.accumulate ? to[c] + part : part;
            }
        });
    }
    void after() override {
        if (dy) parameter_gradients(all);
    }

private:
    std::size_t size() const { return static_cast<std::size_t>(channels); }
    int rows(int steps) const { return (y.step ? steps : 1) * batch; }
    double pixels(int steps) const { return double(rows(steps)) * (x.width / channels); }

    // body(channels of the input, their offset in the output from step t on)
    template <class Body>
    void each_pixel(int t, int steps, Body body) {
        for (int r = 0; r < rows(steps); ++r)
            for (int i = 0; i < x.width; i += channels) body(x.at(t) + r * x.stride + i, r * y.stride + i);
    }

    void measure(int t, int steps) {
        const double n = pixels(steps);
        std::fill(first.begin(), first.end(), 0.0);
        std::fill(second.begin(), second.end(), 0.0);
        each_pixel(t, steps, [&](const real* in, std::ptrdiff_t) {
            for (int c = 0; c < channels; ++c) first[c] += static_cast<double>(in[c]);
        });
        for (double& v : first) v /= n;
        each_pixel(t, steps, [&](const real* in, std::ptrdiff_t) {
            for (int c = 0; c < channels; ++c) {
                const double off = static_cast<double>(in[c]) - first[c];
                second[c] += off * off;
            }
        });
        auto& running = static_cast<running_statistics<real>&>(**statistics);
        const double rate = std::max(settings.rate, 1.0 / static_cast<double>(++running.updates));
        const auto move = [rate](real& old, double now) {
            std::atomic_ref<real> shared(old);
            const double before = static_cast<double>(shared.load(std::memory_order_relaxed));
            shared.store(static_cast<real>(before + rate * (now - before)), std::memory_order_relaxed);
        };
        for (std::size_t c = 0; c < size(); ++c) {
            const double variance = second[c] / n;
            mean[c] = static_cast<real>(first[c]);
            inverse[c] = static_cast<real>(1 / std::sqrt(variance + settings.epsilon));
            move(running.mean[c], first[c]);
            move(running.variance[c], variance);
        }
    }
    void recall() {
        auto& running = static_cast<running_statistics<real>&>(**statistics);
        for (std::size_t c = 0; c < size(); ++c) {
            mean[c] = std::atomic_ref<real>(running.mean[c]).load(std::memory_order_relaxed);
            const real variance = std::atomic_ref<real>(running.variance[c]).load(std::memory_order_relaxed);
            inverse[c] = static_cast<real>(1 / std::sqrt(static_cast<double>(variance) + settings.epsilon));
        }
    }

    void parameter_gradients(int steps) {
        std::fill(first.begin(), first.end(), 0.0);
        std::fill(second.begin(), second.end(), 0.0);
        // One step at a time: an input without time has the same row in all of them.
        for (int t = 0; t < (y.step ? steps : 1); ++t)
            each_pixel(t, 1, [&](const real* in, std::ptrdiff_t at) {
                const real* slope = dy.at(t) + at;
                for (int c = 0; c < channels; ++c) {
                    first[c] += static_cast<double>(slope[c]);
                    second[c] += static_cast<double>(slope[c] * ((in[c] - mean[c]) * inverse[c]));
                }
            });
        const auto give = [&](const operand<real>& to, const std::vector<double>& sums) {
            for (int c = 0; to && c < channels; ++c)
                to.data[c] =
                    (to.accumulate ? to.data[c] : real(0)) + static_cast<real>(sums[static_cast<std::size_t>(c)]);
        };
        give(d_scale, second);
        give(d_offset, first);
    }

    batch_norm_settings settings;
    batch_norm_weights weights;
    int channels, batch, all;
    bool stepwise, training;
    parameters<real>* store;
    std::shared_ptr<resource>* statistics;
    operand<real> x, dx, y, dy, d_scale, d_offset;
    std::vector<real> mean, inverse;    // of the last forward sweep
    std::vector<double> first, second;  // sums: of x and its square, then of dy and dy times the normalised x
};

/// x [., positions * channels] normalised per channel.
template <class Backend>
var<Backend> batch_norm(const std::string& name, const var<Backend>& x, batch_norm_weights weights,
                        batch_norm_settings settings = {}) {
    graph<Backend>& g = *x.owner;
    auto op = make_operation<batch_norm_kernel>(g, name, {x}, batch_norm_description{settings, weights});
    require(weights.channels > 0 && x.width % weights.channels == 0, g.full_name(name), ": ", x.width,
            " columns do not divide into images of ", weights.channels, " channels, those of '",
            g.store()[weights.scale].name, "'");
    require(settings.epsilon > 0 && settings.rate > 0 && settings.rate <= 1, g.full_name(name), ": epsilon ",
            settings.epsilon, " must be positive, rate ", settings.rate, " in (0, 1]");
    require(settings.frozen || g.common_rows({}) == extent::batch, g.full_name(name),
            ": statistics of a batch need all its steps at once; normalise outside the scan or freeze them");
    op->parameters = {weights.scale.id, weights.offset.id};
    op->resources = {weights.statistics};
    op->row_wise = settings.frozen;
    op->mixes_batch = !settings.frozen;
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {x.width}, rows)[0];
}

}  // namespace engram
