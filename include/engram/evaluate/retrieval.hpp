#pragma once
// SPDX-License-Identifier: MIT

// retrieval.json: one evaluation episode of an agent with a memory, trial by trial: what was shown, what the agent did,
// and which earlier trials its memory gave back with which weight.
//
//   {"level", "ablation", "trials": [{"trial", "stimulus", "repeat", "answer", "action", "correct",
//     "image": PNG in base64, "read": [{"when": trial, "weight"}, ...]}, ...]}
//
// At paper fidelity no action is the answer, and "action" is null.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <engram/core/error.hpp>
#include <engram/io/json.hpp>

namespace engram {

/// The number under `key`; nothing when it is absent or null; an error for another type.
inline std::optional<double> json_number(const json& object, const char* key, const std::string& source) {
    const auto at = object.find(key);
    if (at == object.end() || at->is_null()) return {};
    require(at->is_number(), source, ": '", key, "' must be a number, got ",
            at->dump(-1, ' ', false, json::error_handler_t::replace));
    return at->get<double>();
}

/// The text under `key`, numbers and booleans as they are written; empty when it is absent or null.
inline std::string json_string(const json& object, const char* key, const std::string& source) {
    const auto at = object.find(key);
    if (at == object.end() || at->is_null()) return {};
    if (at->is_string()) return at->get<std::string>();
    require(at->is_number() || at->is_boolean(), source, ": '", key, "' must be a text, got ", at->type_name());
    return at->dump();
}

struct retrieval_read {
    int position;  // in `trials`
    double weight;
};

struct retrieval_trial {
    std::string trial, stimulus, answer, action;
    bool repeat = false, correct = false;
    std::string image;          // base64, checked to be nothing else; empty without a picture
    int width = 1, height = 1;  // of the picture
    std::vector<retrieval_read>
        read;  // one entry per recalled trial, the largest weight first; weights sum to 1 at most
};

struct retrieval_episode {
    std::string level, ablation;
    std::vector<retrieval_trial> trials;
};

/// What an episode says in four figures. Shares are means over the repeat trials that read anything.
struct retrieval_figures {
    int first = 0, first_correct = 0, repeats = 0, repeats_correct = 0;
    std::optional<double> share;  // of the read weight on earlier showings of the same stimulus
    double uniform = 0;           // that share if all earlier trials were read alike
};

/// Width and height of a PNG in base64 from its first 24 bytes; nothing if it does not start as a PNG does.
inline std::optional<std::pair<int, int>> base64_png_size(std::string_view text) {
    static constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (text.size() < 32) return {};
    unsigned char head[24];
    for (int group = 0; group < 8; ++group) {
        unsigned bits = 0;
        for (int i = 0; i < 4; ++i) {
            const auto digit = alphabet.find(text[static_cast<std::size_t>(4 * group + i)]);
            if (digit == alphabet.npos) return {};
            bits = bits << 6 | static_cast<unsigned>(digit);
        }
        for (int i = 0; i < 3; ++i) head[3 * group + i] = static_cast<unsigned char>(bits >> (16 - 8 * i));
    }
    static constexpr unsigned char signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    if (!std::equal(std::begin(signature), std::end(signature), head)) return {};
    const auto big = [&](int at) { return head[at] << 24 | head[at + 1] << 16 | head[at + 2] << 8 | head[at + 3]; };
    if (big(16) < 1 || big(20) < 1 || big(16) > 65536 || big(20) > 65536) return {};
    return std::pair{big(16), big(20)};
}

/// An episode from the content of retrieval.json; `source` names the file in errors.
inline retrieval_episode parse_retrieval(const json& content, const std::string& source) {
    require(content.is_object(), source, ": expected an object");
    retrieval_episode episode{json_string(content, "level", source), json_string(content, "ablation", source), {}};
    const auto trials = content.find("trials");
    require(trials != content.end() && trials->is_array(), source, ": 'trials' must be an array");

    std::map<std::string, int> position;
    for (const auto& trial : *trials) {
        const std::string where = source + ": trial number " + std::to_string(episode.trials.size());
        require(trial.is_object(), where, " must be an object");
        retrieval_trial t;
        t.trial = json_string(trial, "trial", where);
        if (t.trial.empty()) t.trial = std::to_string(episode.trials.size());
        t.stimulus = json_string(trial, "stimulus", where);
        t.answer = json_string(trial, "answer", where);
        t.action = json_string(trial, "action", where);
        const auto truth = [&](const char* key) {
            const std::string value = json_string(trial, key, where);
            return !value.empty() && value != "false" && value != "0";
        };
        t.repeat = truth("repeat");
        t.correct = truth("correct");
        t.image = json_string(trial, "image", where);
        if (const auto comma = t.image.find("base64,"); comma != std::string::npos) t.image.erase(0, comma + 7);
        if (!t.image.empty()) {
            const bool clean =
                t.image.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") ==
                std::string::npos;
            const auto size = base64_png_size(t.image);
            require(clean && size, where, ": 'image' is not a PNG file in base64");
            std::tie(t.width, t.height) = *size;
        }
        require(position.emplace(t.trial, static_cast<int>(episode.trials.size())).second, where, ": the trial ",
                t.trial, " occurs twice");
        episode.trials.push_back(std::move(t));
    }

    // Several heads or steps may recall one trial: their weights add up. What was recalled from outside the episode
    // counts in the total alone, so that shares are shares of everything that was read.
    for (std::size_t i = 0; i < episode.trials.size(); ++i) {
        const auto reads = (*trials)[i].find("read");
        if (reads == (*trials)[i].end() || reads->is_null()) continue;
        const std::string where = source + ": trial " + episode.trials[i].trial;
        require(reads->is_array(), where, ": 'read' must be an array");
        std::map<int, double> weights;
        double total = 0;
        for (const auto& read : *reads) {
            require(read.is_object(), where, ": an entry of 'read' must be an object");
            const double weight = json_number(read, "weight", where).value_or(0);
            require(weight >= 0 && std::isfinite(weight), where, ": a read weight of ", weight,
                    ", expected at least 0");
            total += weight;
            if (const auto at = position.find(json_string(read, "when", where)); at != position.end())
                weights[at->second] += weight;
        }
        if (total <= 0) continue;
        auto& list = episode.trials[i].read;
        for (const auto& [at, weight] : weights)
            if (weight > 0) list.push_back({at, weight / total});
        std::stable_sort(list.begin(), list.end(), [](auto& a, auto& b) { return a.weight > b.weight; });
    }
    return episode;
}

/// How many trials were new, how many repeated, how many right, and how much read weight fell on the same image.
inline retrieval_figures retrieval_summary(const retrieval_episode& episode) {
    retrieval_figures out;
    double share = 0, uniform = 0;
    int reading = 0;
    for (std::size_t i = 0; i < episode.trials.size(); ++i) {
        const auto& trial = episode.trials[i];
        ++(trial.repeat ? out.repeats : out.first);
        if (trial.correct) ++(trial.repeat ? out.repeats_correct : out.first_correct);
        if (!trial.repeat || trial.read.empty()) continue;
        ++reading;
        // A trial of several steps reads what it wrote itself, too.
        for (const auto& read : trial.read) {
            const auto at = static_cast<std::size_t>(read.position);
            if (at < i && episode.trials[at].stimulus == trial.stimulus) share += read.weight;
        }
        const auto same = std::count_if(episode.trials.begin(), episode.trials.begin() + static_cast<std::ptrdiff_t>(i),
                                        [&](const auto& earlier) { return earlier.stimulus == trial.stimulus; });
        if (i > 0) uniform += static_cast<double>(same) / static_cast<double>(i);
    }
    if (reading > 0) {
        out.share = share / reading;
        out.uniform = uniform / reading;
    }
    return out;
}

}  // namespace engram
