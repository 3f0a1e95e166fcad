#pragma once
// SPDX-License-Identifier: MIT

// What the environments of POPGym (Morad et al. 2023) share: difficulty, rules, and what an agent sees.
//
// Every observation is the original's, wrapped as in its published runs: the observation as one-hots or numbers, then
// the previous action likewise, then a one-hot of two that tells the first observation of an episode. There the
// previous action is the first one of all (or no torque). Rewards of an episode lie in [-1, 1] but where a header says
// otherwise. A limit of time ends an episode as any other end, as in the published runs.
//
//   task.difficulty   easy, medium, hard: sizes, and with them the width of observations and the number of actions
//   task.rules        package: those of popgym 1.0.7; paper: those of the published runs, where they differ

#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engram/task/environment.hpp"

namespace engram::popgym {

struct setting {
    std::int32_t difficulty = 0, paper = 0;  // easy, medium, hard; 1: rules of the paper
    std::int32_t decks = 0, unused = 0;      // 0: as many as the difficulty has
    bool operator==(const setting&) const = default;

    /// One of three numbers, by the difficulty.
    ENGRAM_HD constexpr int of(int easy, int medium, int hard) const {
        return difficulty == 0 ? easy : difficulty == 1 ? medium : hard;
    }
};

inline setting setting_of(const task_options& options) {
    const std::vector<std::string> difficulties{"easy", "medium", "hard"}, rules{"package", "paper"};
    require_known("difficulty", options.difficulty, difficulties);
    require_known("rules", options.rules, rules);
    return {options.difficulty == "easy"     ? 0
            : options.difficulty == "medium" ? 1
                                             : 2,
            options.rules == "paper", options.decks, 0};
}

/// What a game is at one setting. `echoed` are the numbers that show the previous action.
struct sheet {
    const char* name = "";
    int shown = 0, echoed = 0, actions = 0, longest = 0;
    float maximum = 1, random = std::numeric_limits<float>::quiet_NaN();
    float lowest = 0, highest = 1;
};

/// Writes an observation from left to right, into zeros.
struct writer {
    float* at;
    ENGRAM_HD void one_hot(int value, int count) {
        at[value] = 1;
        at += count;
    }
    ENGRAM_HD void number(float x) { *at++ = x; }
};

/// A number that is kept as its bits: an environment's bytes are its checkpoint.
template <class Real, class Word>
struct kept_number {
    Word bits;
    ENGRAM_HD Real value() const {
        Real x;
        std::memcpy(&x, &bits, sizeof x);
        return x;
    }
    ENGRAM_HD kept_number& operator=(Real x) {
        std::memcpy(&bits, &x, sizeof x);
        return *this;
    }
};
using kept_double = kept_number<double, std::uint64_t>;
using kept_float = kept_number<float, std::uint32_t>;

/// What every game begins with; a game gives `describe_at(setting)`.
template <class Game>
struct game {
    static constexpr bool uses_stimuli = false;
    static constexpr std::array reads{"difficulty"};

    setting level;
    philox random;
    std::int32_t time, last;  // steps so far, and the action of the last one

    static task_info describe(const task_options& options) {
        const sheet s = Game::describe_at(setting_of(options));
        task_info info{.name = s.name,
                       .observation = {1, 1, s.shown + s.echoed + 2},
                       .lowest = s.lowest,
                       .highest = s.highest,
                       .actions = s.actions};
        return info.add_level({"train", s.maximum, s.random, s.longest});
    }

    static Game make(const std::string&, const task_options& options, const stimulus_set*) {
        Game fresh{};
        fresh.level = setting_of(options);
        return fresh;
    }

    std::optional<trial_event> event() const { return std::nullopt; }

protected:
    ENGRAM_HD void begin() { time = last = 0; }
    ENGRAM_HD void take(int action) { ++time, last = action; }

    /// The beginning of every observation, and the end.
    ENGRAM_HD writer clear(float* numbers) const {
        const sheet s = Game::describe_at(level);
        std::memset(numbers, 0, static_cast<std::size_t>(s.shown + s.echoed + 2) * sizeof(float));
        return {numbers};
    }
    ENGRAM_HD void echo(writer out, int actions) const {
        out.one_hot(last, actions);
        mark(out);
    }
    /// The same of an action that is a row and a column.
    ENGRAM_HD void echo_cell(writer out, int side) const {
        out.one_hot(last / side, side);
        out.one_hot(last % side, side);
        mark(out);
    }
    ENGRAM_HD void mark(writer out) const { out.one_hot(time == 0 ? 1 : 0, 2); }

    /// Whether time and the last action can be those of an episode.
    bool runs() const {
        const sheet s = Game::describe_at(level);
        return time >= 0 && time < s.longest && last >= 0 && last < s.actions && (time > 0 || last == 0);
    }
};

}  // namespace engram::popgym
