#pragma once
// SPDX-License-Identifier: MIT

// A prepared run whose agent is on one backend.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <engram/program/episode.hpp>

namespace engram {

template <class Backend>
struct prepared_agent final : prepared_run {
    explicit prepared_agent(const configuration& config)
        : prepared_run(config), agent(traced<Backend>(config, shape_of(info))) {}

    parameters<float>& store() const override { return *agent.store; }
    bool tells_reads() const override { return agent.read_weight.has_value(); }
    level_score score(const std::string& level, int episodes, std::uint64_t seed, const std::function<bool()>& stop,
                      processes* others) const override {
        return evaluate_level(agent, agent.store, maker(), level, episodes, seed, rows, stop, others);
    }
    std::vector<recorded_step> play(const std::string& level, std::uint64_t seed, int longest) const override {
        const std::uint64_t own = evaluation_seed(seed, level);
        actor<Backend> player(agent, agent.store, maker()(level, 1, own, 0), own, 0);
        std::vector<recorded_step> steps;
        for (bool done = false; !done && static_cast<int>(steps.size()) < longest;) {
            recorded_step now;
            now.observation.resize(static_cast<std::size_t>(info.observation.size()));
            player.environment().observe(0, now.observation.data());
            now.event = player.event(0);
            player.step();
            done = player.done()[0] != 0;
            now.action = static_cast<int>(player.action()[0]);
            now.reward = player.reward()[0];
            if (agent.read_weight) {
                const auto weight = player.program().output(*agent.read_weight),
                           when = player.program().output(*agent.read_when);
                for (int i = 0; i < weight.width; ++i) {
                    const int written = static_cast<int>(when.data[i]);
                    if (written >= 0 && written < static_cast<int>(steps.size()))
                        now.reads.push_back({written, weight.data[i]});
                }
            }
            steps.push_back(std::move(now));
        }
        return steps;
    }

    traced_agent<Backend> agent;
};

}  // namespace engram
