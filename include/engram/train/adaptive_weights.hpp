#pragma once
// SPDX-License-Identifier: MIT

// Weights of losses that follow what the losses come to (graph.adaptive_weight): after an iteration in which
// they were more than twice what is wanted, in the mean of its updates, a weight is half as much again, and half as
// much after one with less than half of it (Schulman et al. 2017, section 4, with RLlib's factor; popgym.md 3.2).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <engram/core/error.hpp>
#include <engram/graph/program.hpp>
#include <engram/io/safetensors.hpp>
#include <engram/train/training_loop.hpp>

namespace engram {

template <class Backend>
class adaptive_weights {
public:
    explicit adaptive_weights(const graph<Backend>& g) : described_(g.adaptive_weights()), came_to_(described_.size()) {
        for (const auto& w : described_) weights_.push_back(w.first);
    }

    /// Before an iteration.
    void fill(program<Backend>& learner) const {
        for (std::size_t k = 0; k < weights_.size(); ++k)
            std::ranges::fill(learner.input(described_[k].input), static_cast<typename Backend::real>(weights_[k]));
    }
    /// What an update's loss came to, `share` of the iteration's; its learners are those of all shards.
    void see(training_context<Backend>& by, const std::vector<program<Backend>*>& learners, double share) {
        if (described_.empty()) return;
        std::vector<std::vector<double>> rows;
        for (auto* p : learners) {
            rows.emplace_back();
            for (const auto& w : described_)
                for (const auto& [name, value] : p->losses())
                    if (name == w.loss) rows.back().push_back(value);
        }
        const auto total = by.sum(rows);
        for (std::size_t k = 0; k < came_to_.size(); ++k) came_to_[k] += share * total[k] / weights_[k];
    }
    /// After the iteration.
    void adapt() {
        for (std::size_t k = 0; k < weights_.size(); ++k) {
            const double came_to = std::exchange(came_to_[k], 0.0), target = described_[k].target;
            if (came_to > 2 * target) weights_[k] *= 1.5;
            if (came_to < target / 2) weights_[k] = std::max(smallest, weights_[k] / 2);
        }
    }

    void save(safetensors& file) const {
        if (!weights_.empty()) file.add("adaptive_weights", {static_cast<std::int64_t>(weights_.size())}, weights_);
    }
    void check(const safetensors& file) const { (void)saved(file); }
    void load(const safetensors& file) { weights_ = saved(file); }

private:
    static constexpr double smallest = 1e-6;  // below it a loss in single precision says nothing of what it weighs

    std::vector<double> saved(const safetensors& file) const {
        if (weights_.empty()) return {};
        auto values = file.values<double>("adaptive_weights", {static_cast<std::int64_t>(weights_.size())});
        for (const double w : values)
            require(w > 0 && std::isfinite(w), file.source(), ": an adaptive weight is ", w,
                    "; expected more than zero");
        return {values.begin(), values.end()};
    }

    std::vector<adaptive_weight_description> described_;
    std::vector<double> weights_, came_to_;
};

}  // namespace engram
