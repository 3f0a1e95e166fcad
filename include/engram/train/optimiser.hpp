#pragma once
// SPDX-License-Identifier: MIT

// Adam and RMSProp over the flat parameter buffer, with global-norm clipping and a linear schedule (facts 1.8).
//
// Threads share an update, and so may processes: each then steps its own part of the weights (`recursive_halving` of
// train/processes.hpp), of which alone it needs the gradient's sum, and collects the others'. The bits are those of one
// thread.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <engram/core/aligned.hpp>
#include <engram/core/choice.hpp>
#include <engram/core/error.hpp>
#include <engram/core/reflection.hpp>
#include <engram/core/thread_pool.hpp>
#include <engram/graph/parameters.hpp>
#include <engram/kernels/optimiser.hpp>
#include <engram/train/processes.hpp>

namespace engram {

struct optimiser_settings {
    choice<"adam", "rmsprop"> kind = "adam";  // adam or rmsprop
    double learning_rate = 3e-4;              // at the first step
    double final_fraction = 1;                // of the learning rate at the last step; linear in between
    double epsilon = 1e-4;                    // adam: added to the root of the second moment; rmsprop: under the root
    double beta1 = 0.9, beta2 = 0.999;        // adam
    double decay = 0.99, momentum = 0;        // rmsprop
    double clip = 40;                         // global norm of the gradient; 0: off

    void check() const {
        require(learning_rate >= 0, "optimiser.learning_rate: expected zero or more, got ", learning_rate);
        require(final_fraction >= 0 && final_fraction <= 1, "optimiser.final_fraction: expected a number in 0..1, got ",
                final_fraction);
        require(epsilon > 0, "optimiser.epsilon: expected a positive number, got ", epsilon);
        const auto fraction = [](const char* name, auto value) {
            require(value >= 0 && value < 1, "optimiser.", name, ": expected a number in [0, 1), got ", value);
        };
        fraction("beta1", beta1);
        fraction("beta2", beta2);
        fraction("decay", decay);
        fraction("momentum", momentum);
        require(clip >= 0, "optimiser.clip: expected zero or more, got ", clip);
    }
};

template <class Real>
class optimiser {
public:
    optimiser(const optimiser_settings& s, const parameters<Real>& store)
        : settings_(s), first_(static_cast<std::size_t>(store.flat_size())), second_(first_.size()) {}

    /// One update; `progress` in [0, 1] places the step on the learning-rate schedule. Returns the norm of the gradient
    /// before clipping; when it is not finite nothing changes. With `others`, the gradient is the sum in this process's
    /// part alone (add_up_halves), and the weights become whole everywhere.
    double update(parameters<Real>& store, std::span<const Real> gradient, double progress, thread_pool* pool = nullptr,
                  processes* others = nullptr) {
        std::size_t first = 0, count = gradient.size();
        if (others) {
            const recursive_halving part(others->rank(), others->count(), gradient.size());
            first = part.first(), count = part.count();
        }
        thread_pool* const sharing = count < few ? nullptr : pool;
        Real squares = sum_of_squares(gradient.subspan(first, count), sharing);
        if (others) squares = over_all(*others, squares);
        const double norm = std::sqrt(static_cast<double>(squares));
        if (!std::isfinite(norm)) return norm;
        const Real scale =
            settings_.clip > 0 && norm > settings_.clip ? static_cast<Real>(settings_.clip / norm) : Real(1);
        ++updates_;
        auto edit = store.edit(pool);
        by_threads(sharing, [&](std::size_t thread, std::size_t threads) {
            const std::size_t from = count * thread / threads, to = count * (thread + 1) / threads;
            step(edit.flat().data(), gradient.data(), first + from, static_cast<std::ptrdiff_t>(to - from), progress,
                 scale);
        });
        if (others) collect_halves(*others, edit.flat());
        in_parts_ = others;
        return norm;
    }

    /// Makes the moments whole everywhere, of which each process has had its own part; all processes call it.
    void collect_moments() {
        if (!in_parts_) return;
        collect_halves(*in_parts_, first_moment());
        collect_halves(*in_parts_, second_moment());
        in_parts_ = nullptr;
    }

    double learning_rate(double progress) const {
        const double p = std::clamp(progress, 0.0, 1.0);
        return settings_.learning_rate * (1 - p + p * settings_.final_fraction);
    }
    std::int64_t& updates() { return updates_; }
    std::int64_t updates() const { return updates_; }
    /// First and second moments (mean square and momentum for RMSProp), in the layout of the store.
    std::span<Real> first_moment() { return first_; }
    std::span<Real> second_moment() { return second_; }

private:
    /// Waking threads costs as much as stepping some hundred thousand numbers.
    static constexpr std::size_t few = 1 << 19;

    template <class Body>
    static void by_threads(thread_pool* pool, Body body) {
        if (!pool) return body(0, 1);
        pool->run([&](int thread) { body(static_cast<std::size_t>(thread), static_cast<std::size_t>(pool->size())); });
    }

    /// squared_norm() of x; threads take neighbouring subtrees.
    static Real sum_of_squares(std::span<const Real> x, thread_pool* pool) {
        const auto n = static_cast<std::ptrdiff_t>(x.size());
        if (!pool) return squared_norm(x.data(), n);
        int depth = 0;
        while ((1 << depth) < pool->size()) ++depth;
        std::vector<std::span<const Real>> below;
        auto find = [&](const Real* from, std::ptrdiff_t count) {
            below.emplace_back(from, static_cast<std::size_t>(count));
            return Real(0);
        };
        (void)tree_of_squares(x.data(), n, depth, find);
        std::vector<Real> sums(below.size());
        by_threads(pool, [&](std::size_t thread, std::size_t threads) {
            for (std::size_t i = below.size() * thread / threads; i < below.size() * (thread + 1) / threads; ++i)
                sums[i] = squared_norm(below[i].data(), static_cast<std::ptrdiff_t>(below[i].size()));
        });
        auto next = sums.begin();
        auto take = [&](const Real*, std::ptrdiff_t) { return *next++; };
        return tree_of_squares(x.data(), n, depth, take);
    }

    /// The sum over every process's part.
    static Real over_all(processes& others, Real mine) {
        std::vector<Real> sums;
        for (const auto& sent : others.gather(std::as_bytes(std::span(&mine, 1))))
            std::memcpy(&sums.emplace_back(), sent.data(), sizeof(Real));
        return recursive_halving::sum_of_parts(std::move(sums));
    }

    void step(Real* weights, const Real* gradient, std::size_t first, std::ptrdiff_t n, double progress, Real scale) {
        const Real rate = static_cast<Real>(learning_rate(progress));
        const auto real = [](double x) { return static_cast<Real>(x); };
        if (settings_.kind == "adam")
            adam_update(weights + first, gradient + first, first_.data() + first, second_.data() + first, n, rate,
                        real(settings_.beta1), real(settings_.beta2), real(settings_.epsilon), updates_, scale);
        else
            rmsprop_update(weights + first, gradient + first, first_.data() + first, second_.data() + first, n, rate,
                           real(settings_.decay), real(settings_.epsilon), real(settings_.momentum), scale);
    }

    optimiser_settings settings_;
    aligned_vector<Real> first_, second_;
    std::int64_t updates_ = 0;
    processes* in_parts_ = nullptr;  // who have the moments, each its own part
};

}  // namespace engram

ENGRAM_REFLECT(engram::optimiser_settings, kind, learning_rate, final_fraction, epsilon, beta1, beta2, decay, momentum,
               clip);
