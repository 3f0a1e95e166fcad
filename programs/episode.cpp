// SPDX-License-Identifier: MIT

#include <algorithm>
#include <map>

#include <engram/io/json.hpp>
#include <engram/program/episode.hpp>
#include <engram/program/run_files.hpp>

namespace engram {

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
    if (!run.tells_reads()) return false;
    const auto& levels = run.info.levels;
    const bool held_out = std::find(levels.begin(), levels.end(), "holdout_interpolate") != levels.end();
    const std::string level = held_out ? "holdout_interpolate" : levels.front();
    const auto steps = run.play(level, seed);
    // Of tasks whose images come again from the first trial on. A panel at paper fidelity begins with a cross, which is
    // no trial yet; what other tasks show first is no image that comes again.
    const bool panel = run.info.name == "continuous_recognition" || run.info.name == "arbitrary_visuomotor_mapping";
    if (steps.empty() || !(panel || steps.front().event)) return false;
    // There an action turns the eye, and the reward of a trial comes once the eye has left the button.
    const bool looks = run.options.fidelity == "paper";
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
        trial_event event = step.event->answered(step.action);
        if (looks) {
            float reward = step.reward;
            for (std::size_t j = i + 1; j < steps.size() && !steps[j].event; ++j) reward += steps[j].reward;
            event.correct = reward > 0;
        }
        trials.push_back({{"trial", event.trial},
                          {"stimulus", event.stimulus},
                          {"repeat", event.repeat},
                          {"answer", event.answer},
                          {"action", looks ? json() : json(event.action)},
                          {"correct", event.correct},
                          {"image", base64(encode_png(observation_picture(run.info, step.observation)))},
                          {"read", reads}});
    }
    write_json(path, {{"level", level}, {"ablation", ablation}, {"trials", trials}});
    return true;
}

}  // namespace engram
