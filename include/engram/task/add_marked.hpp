#pragma once
// SPDX-License-Identifier: MIT

// Adding (facts 3.3, errata U25): every step shows a number u uniform in [0, 1) and a flag. Three steps are flagged; at
// the third one the sum of the u of the first two is asked for.
//
//   observation [u, flag], target [sum at the third flag, 0 elsewhere], weight 1 everywhere
//
// The three steps are a uniform choice of three of the T = `steps` (100 by default; the paper: 100, 500, 1000, 5000).
// The answer is judged at the third flag alone, by its squared error; who always says 1 has 1/6 = 0.167.

#include <algorithm>
#include <array>
#include <string>

#include "engram/core/error.hpp"
#include "engram/core/philox.hpp"
#include "engram/task/environment.hpp"
#include "engram/task/sequence.hpp"
#include "engram/task/sequence_stream.hpp"

namespace engram {

class add_marked final : public sequence_source {
public:
    static constexpr std::array reads{"steps"};
    static sequence_info describe(const task_options& options) {
        const int T = options.steps == 0 ? 100 : options.steps;
        require(T >= 3 && T <= 10'000'000, "add: ", T, " steps were asked for; expected at least 3");
        sequence_info info{.name = "add", .steps = T, .observation = {1, 2, 1}, .targets = 1};
        info.numbers = true;
        return info;
    }

    explicit add_marked(const task_options& options) : info_(describe(options)) {}

    const sequence_info& info() const override { return info_; }

    void draw(const std::string& level, std::uint64_t seed, std::uint64_t index,
              const sequence_place& to) const override {
        require_known("add level", level, info_.levels);
        philox random = sequence_stream(info_.name, level, seed, index);
        std::array<int, 3> flagged{};
        for (int found = 0, t = 0; found < 3; ++t)
            if (random.below(info_.steps - t) < 3 - found) flagged[static_cast<std::size_t>(found++)] = t;
        float sum = 0;
        for (int t = 0; t < info_.steps; ++t) {
            const auto at = std::find(flagged.begin(), flagged.end(), t);
            const bool flag = at != flagged.end(), asks = t == flagged[2];
            const float u = random.uniform();
            if (flag && !asks) sum += u;
            if (to.observation) {
                to.observation[t * to.rows * 2] = u;
                to.observation[t * to.rows * 2 + 1] = flag ? 1.0f : 0.0f;
            }
            if (to.target) to.target[t * to.rows] = asks ? sum : 0.0f;
            if (to.weight) to.weight[t * to.rows] = 1;
            if (to.origin) to.origin[t] = -1;
            if (to.label) to.label[t] = -1;
            if (to.query) to.query[t] = asks;
        }
    }

private:
    sequence_info info_;
};

}  // namespace engram
