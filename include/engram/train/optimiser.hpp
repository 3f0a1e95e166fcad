#pragma once
// SPDX-License-Identifier: MIT

// Adam and RMSProp over the flat parameter buffer, with global-norm clipping and a linear schedule (facts 1.8).

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <engram/core/aligned.hpp>
#include <engram/core/choice.hpp>
#include <engram/core/error.hpp>
#include <engram/core/reflection.hpp>
#include <engram/graph/parameters.hpp>
#include <engram/kernels/optimiser.hpp>

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
    /// before clipping; when it is not finite nothing changes.
    double update(parameters<Real>& store, std::span<const Real> gradient, double progress) {
        const auto n = static_cast<std::ptrdiff_t>(gradient.size());
        const double norm = std::sqrt(static_cast<double>(squared_norm(gradient.data(), n)));
        if (!std::isfinite(norm)) return norm;
        const Real scale =
            settings_.clip > 0 && norm > settings_.clip ? static_cast<Real>(settings_.clip / norm) : Real(1);
        const Real rate = static_cast<Real>(learning_rate(progress));
        auto edit = store.edit();
        Real* w = edit.flat().data();
        ++updates_;
        if (settings_.kind == "adam")
            adam_update(w, gradient.data(), first_.data(), second_.data(), n, rate, static_cast<Real>(settings_.beta1),
                        static_cast<Real>(settings_.beta2), static_cast<Real>(settings_.epsilon), updates_, scale);
        else
            rmsprop_update(w, gradient.data(), first_.data(), second_.data(), n, rate,
                           static_cast<Real>(settings_.decay), static_cast<Real>(settings_.epsilon),
                           static_cast<Real>(settings_.momentum), scale);
        return norm;
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
    optimiser_settings settings_;
    aligned_vector<Real> first_, second_;
    std::int64_t updates_ = 0;
};

}  // namespace engram

ENGRAM_REFLECT(engram::optimiser_settings, kind, learning_rate, final_fraction, epsilon, beta1, beta2, decay, momentum,
               clip);
