// SPDX-License-Identifier: MIT

#include <algorithm>
#include <map>

#include <engram/io/json.hpp>
#include <engram/program/episode.hpp>
#include <engram/program/run_files.hpp>

namespace engram {

std::vector<recorded_step> play_episode(const prepared_run& run, const std::string& level, std::uint64_t seed,
                                        int longest) {
    const std::uint64_t own = evaluation_seed(seed, level);
    actor<cpu<float>> player(run.agent, run.agent.store, run.maker()(level, 1, own), own, 0);
    std::vector<recorded_step> steps;
    for (bool done = false; !done && static_cast<int>(steps.size()) < longest;) {
        recorded_step now;
        now.observation.resize(static_cast<std::size_t>(run.info.observation.size()));
        player.environment().observe(0, now.observation.data());
        now.event = player.event(0);
        player.step();
        done = player.done()[0] != 0;
        now.action = static_cast<int>(player.action()[0]);
        now.reward = player.reward()[0];
        if (run.agent.read_weight) {
            const auto weight = player.program().output(*run.agent.read_weight),
                       when = player.program().output(*run.agent.read_when);
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

namespace {

std::string base64(const bytes& data) {
    static constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t i = 0; i < data.size(); i += 3) {
        const std::size_t n = std::min<std::size_t>(3, data.size() - i);
        std::uint32_t word = 0;
        for (std::size_t j = 0; j < 3; ++j) word = word << 8 | (j < n ? data[i + j] : 0u);
        for (std::size_t j = 0; j < 4; ++j) text += j <= n ? digits[word >> (18 - 6 * j) & 63] : '=';
    }
    return text;
}

}  // namespace

bool record_retrieval(const prepared_run& run, const std::string& ablation, std::uint64_t seed,
                      const std::string& path) {
    if (!run.agent.read_weight) return false;
    const auto& levels = run.info.levels;
    const bool held_out = std::find(levels.begin(), levels.end(), "holdout_interpolate") != levels.end();
    const std::string level = held_out ? "holdout_interpolate" : levels.front();
    const auto steps = play_episode(run, level, seed);
    if (steps.empty() || !steps.front().event) return false;
    json trials = json::array();
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const auto& step = steps[i];
        // The last step of a trial stands for it; reads name the trials of the steps that they recall.
        if (!step.event ||
            (i + 1 < steps.size() && steps[i + 1].event && steps[i + 1].event->trial == step.event->trial))
            continue;
        std::map<int, double> weights;
        for (const auto& read : step.reads)
            if (const auto& event = steps[static_cast<std::size_t>(read.when)].event)
                weights[event->trial] += static_cast<double>(read.weight);
        json reads = json::array();
        for (const auto& [when, weight] : weights) reads.push_back({{"when", when}, {"weight", weight}});
        const trial_event event = step.event->answered(step.action);
        trials.push_back({{"trial", event.trial},
                          {"stimulus", event.stimulus},
                          {"repeat", event.repeat},
                          {"answer", event.answer},
                          {"action", event.action},
                          {"correct", event.correct},
                          {"image", base64(encode_png(observation_picture(run.info, step.observation)))},
                          {"read", reads}});
    }
    write_json(path, {{"level", level}, {"ablation", ablation}, {"trials", trials}});
    return true;
}

}  // namespace engram
