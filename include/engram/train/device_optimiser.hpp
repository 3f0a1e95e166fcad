#pragma once
// SPDX-License-Identifier: MIT

// The optimiser's step on a device: norm of the gradient, clipping and update without a word from the host.
//
// Equations: kernels/optimiser.hpp. The norm is summed in two launches; the update reads it and the step's rates from
// device memory, so a step is always the same three launches and is replayed like a sweep. A gradient that is not
// finite changes no number; norm() tells. Between processes the gradient is summed in the order of the shards, from
// device to device within the replayed step where there are links (train/device_links.hpp), through the host's memory
// elsewhere, to the same bits (docs/decisions/0023). Weights are those that the plans over the store read on the
// device; fetch() of device/weights.hpp brings them to the host. Moments are copied to the host when a checkpoint asks
// for them.

#include <cmath>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include <engram/device/kernel.hpp>
#include <engram/train/device_links.hpp>
#include <engram/train/optimiser.hpp>
#include <engram/train/processes.hpp>
#include <engram/train/shards.hpp>

namespace engram {

/// What one step depends on besides the gradient: rates and, for Adam, the corrections of the moments' bias.
template <class Real>
struct update_rates {
    Real rate, unbias, beta1, beta2, fresh1, fresh2, epsilon, clip;
};

namespace internal {

/// Block i: the sum of squares of numbers [i * span, (i + 1) * span).
template <class Real>
struct square_sums {
    static constexpr int lanes = 128, span = 8192;
    const Real* gradient;
    std::ptrdiff_t count;
    Real* partial;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int i) const {
        const std::ptrdiff_t left = count - std::ptrdiff_t{i} * span;
        const Real* const from = gradient + std::ptrdiff_t{i} * span;
        Real* const to = partial + i;
        const Real sum =
            block_sum(block, left < span ? static_cast<int>(left) : span, [=](int k) { return from[k] * from[k]; });
        block_for(block, 1, [=](int) { *to = sum; });
    }
};

/// The norm of the gradient and the factor that clips it; a factor of zero stands for "change nothing".
template <class Real>
struct clip_factor {
    static constexpr int lanes = 128;
    const Real* partial;
    int count;
    const update_rates<Real>* rates;
    Real* result;  // norm, factor
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int) const {
        const Real* const from = partial;
        const Real norm = sqrt(block_sum(block, count, [=](int i) { return from[i]; })), clip = rates->clip;
        Real* const to = result;
        block_for(block, 1, [=](int) {
            to[0] = norm;
            const bool finite = norm - norm == Real(0);
            to[1] = !finite ? Real(0) : clip > 0 && norm > clip ? clip / norm : Real(1);
        });
    }
};

template <class Real, bool Adam>
struct update_number {
    Real* weight;
    const Real* gradient;
    Real *first, *second;
    const update_rates<Real>* rates;
    const Real* norm_and_factor;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const Real factor = norm_and_factor[1];
        if (factor == Real(0)) return;
        const update_rates<Real> s = *rates;
        const Real g = factor * gradient[i];
        if constexpr (Adam) {
            first[i] = s.beta1 * first[i] + s.fresh1 * g;
            second[i] = s.beta2 * second[i] + s.fresh2 * (g * g);
            weight[i] -= s.rate * first[i] / (sqrt(second[i] * s.unbias) + s.epsilon);
        } else {
            // beta1: the mean square's decay; beta2: the momentum.
            first[i] = s.beta1 * first[i] + s.fresh1 * (g * g);
            second[i] = s.beta2 * second[i] + s.rate * g / sqrt(first[i] + s.epsilon);
            weight[i] -= second[i];
        }
    }
};

}  // namespace internal

template <device_backend Backend>
class device_optimiser {
public:
    using real = typename Backend::real;

    device_optimiser(const optimiser_settings& s, const parameters<real>& store)
        : settings_(s),
          schedule_(s, parameters<real>(1)),
          count_(store.flat_size()),
          blocks_(
              static_cast<int>((count_ + internal::square_sums<real>::span - 1) / internal::square_sums<real>::span)),
          first_(static_cast<std::size_t>(count_)),
          second_(first_.size()),
          partial_(static_cast<std::size_t>(blocks_)),
          result_(2),
          rates_(1) {}

    /// One update by the gradient that `learner` holds; `progress` in [0, 1] places it on the schedule. Does not wait.
    void update(program<Backend>& learner, double progress) { update(std::vector{&learner}, 1, progress); }
    /// The same by the sum of the gradients of programs that share a store, `each` neighbouring ones a shard, in the
    /// first one's place. They are the shards `mine` of those that `others` carry together, if there are others.
    void update(const std::vector<program<Backend>*>& learners, int each, double progress, const shard_range& mine = {},
                processes* others = nullptr) {
        program<Backend>& learner = *learners.front();
        auto& on = learner.executor();
        on_ = &on;
        while (done_.size() < learners.size()) done_.emplace_back();
        for (std::size_t i = 1; i < learners.size(); ++i) {
            done_[i].record(learners[i]->executor());
            done_[i].await(on);
        }
        if (std::exchange(host_is_newer_, false)) {
            on.upload(host_first_.data(), first_.data(), count_);
            on.upload(host_second_.data(), second_.data(), count_);
        }
        ++updates_;
        sent_ = rates(progress);
        on.upload(reinterpret_cast<const real*>(&sent_), reinterpret_cast<real*>(rates_.data()),
                  static_cast<std::ptrdiff_t>(sizeof(sent_) / sizeof(real)));
        real* const weights = learner.device_weights_in_use().data();
        real* const gradient = learner.device_gradient();
        // Another optimiser may step other weights on the same executor by turns: what it recorded is not this one's.
        const std::vector<std::shared_ptr<void>> own{{std::shared_ptr<void>(), rates_.data()}};
        const bool whole = !others || in_even_subtrees(others->count(), mine.all);
        const auto of = [&](int i) { return learners[static_cast<std::size_t>(i)]->device_gradient(); };
        const auto add = [&] {
            const int places = static_cast<int>(learners.size()), together = whole ? places : each;
            for (int first = 0; first < places; first += together)
                add_in_order(together, each, [&](int to, int from) {
                    on.launch("sum", count_, add_number<real>{of(first + to), of(first + from)});
                });
        };
        const auto step_by_sum = [&] {
            on.launch_blocks("norm", blocks_, internal::square_sums<real>::lanes,
                             internal::square_sums<real>{gradient, count_, partial_.data()});
            on.launch_blocks("clip", 1, internal::clip_factor<real>::lanes,
                             internal::clip_factor<real>{partial_.data(), blocks_, rates_.data(), result_.data()});
            if (settings_.kind == "adam")
                step<true>(on, weights, gradient);
            else
                step<false>(on, weights, gradient);
        };
        auto* const links = others ? dynamic_cast<device_links<Backend>*>(others->devices.get()) : nullptr;
        if (!others || links) {
            if (links) {
                if (between_.empty()) between_ = typename executor<Backend>::buffer(static_cast<std::size_t>(count_));
                on.watch([links](bool begins) { links->look(begins); });
            }
            on.replay(2, own, [&] {
                add();
                if (links && whole) sum_by_halves(*others, *links, on, gradient, count_, between_.data());
                if (links && !whole) {
                    std::vector<real*> shards;
                    for (int s = 0; s < mine.count(); ++s) shards.push_back(of(s * each));
                    sum_from_shards(*others, *links, on, mine, shards, count_, between_.data());
                }
                step_by_sum();
            });
        } else {
            if (learners.size() > 1) on.replay(4, own, add);
            std::vector<const real*> shards;
            for (int s = 0; s < (whole ? 1 : mine.count()); ++s) shards.push_back(of(s * each));
            sum_with(*others, mine, on, shards, gradient);
            on.replay(2, own, step_by_sum);
        }
        learner.device_weights_in_use().changed(on);
    }
    /// Norm of the last update's gradient before clipping; waits for it.
    double norm(executor<Backend>& on) {
        real value[2];
        on.download(result_.data(), value, 2);
        return static_cast<double>(value[0]);
    }
    /// They are whole everywhere.
    void collect_moments() {}
    double learning_rate(double progress) const { return schedule_.learning_rate(progress); }
    std::int64_t& updates() { return updates_; }
    std::int64_t updates() const { return updates_; }
    /// The host's copies of the moments, in the layout of the store. What the caller writes there is sent with the next
    /// update.
    std::span<real> first_moment() { return fetch(), host_first_; }
    std::span<real> second_moment() { return fetch(), host_second_; }

private:
    /// The sum over the shards of all processes; `parts` hold this one's, or the sum of all of them.
    void sum_with(processes& others, const shard_range& mine, executor<Backend>& on,
                  const std::vector<const real*>& parts, real* to) {
        const auto n = static_cast<std::size_t>(count_);
        host_parts_.resize(parts.size() * n);
        std::vector<std::span<real>> here;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            here.push_back(std::span(host_parts_).subspan(i * n, n));
            on.download(parts[i], here[i].data(), count_);
        }
        if (in_even_subtrees(others.count(), mine.all))
            sum_by_halves(others, here[0], room_);
        else
            sum_from_shards(others, mine, here, room_);
        on.upload(here[0].data(), to, count_);
    }

    void fetch() {
        if (std::exchange(host_is_newer_, true)) return;
        host_first_.resize(first_.size());
        host_second_.resize(second_.size());
        if (!on_) return;  // zero, as before any update
        on_->download(first_.data(), host_first_.data(), count_);
        on_->download(second_.data(), host_second_.data(), count_);
    }
    template <bool Adam>
    void step(executor<Backend>& on, real* weights, const real* gradient) {
        on.launch("update", count_,
                  internal::update_number<real, Adam>{weights, gradient, first_.data(), second_.data(), rates_.data(),
                                                      result_.data()});
    }
    update_rates<real> rates(double progress) const {
        const optimiser_settings& s = settings_;
        const double rate = static_cast<double>(static_cast<real>(schedule_.learning_rate(progress)));
        const auto as_real = [](double x) { return static_cast<real>(x); };
        if (s.kind != "adam")
            return {as_real(rate),
                    0,
                    as_real(s.decay),
                    as_real(s.momentum),
                    as_real(1 - as_double(s.decay)),
                    0,
                    as_real(s.epsilon),
                    as_real(s.clip)};
        // In double: 1 - 0.999 in float has lost three digits before the moments have even begun.
        const double b1 = as_double(s.beta1), b2 = as_double(s.beta2), count = static_cast<double>(updates_);
        return {as_real(rate / (1 - std::pow(b1, count))),
                as_real(1 / (1 - std::pow(b2, count))),
                as_real(b1),
                as_real(b2),
                as_real(1 - b1),
                as_real(1 - b2),
                as_real(s.epsilon),
                as_real(s.clip)};
    }
    static double as_double(double x) { return static_cast<double>(static_cast<real>(x)); }

    optimiser_settings settings_;
    optimiser<real> schedule_;
    std::ptrdiff_t count_;
    int blocks_;
    typename executor<Backend>::buffer first_, second_, partial_, result_;
    typename executor<Backend>::template array<update_rates<real>> rates_;
    update_rates<real> sent_{};
    std::deque<typename executor<Backend>::fence> done_;  // what the other learners were given
    executor<Backend>* on_ = nullptr;                     // of the last update
    std::vector<real> host_first_, host_second_;
    std::vector<real> host_parts_, room_;           // of other processes' sums
    typename executor<Backend>::buffer between_{};  // what another device has sent
    bool host_is_newer_ = false;
    std::int64_t updates_ = 0;
};

}  // namespace engram
