#pragma once
// SPDX-License-Identifier: MIT

// What an environment is, and the face that the runtime sees.
//
// An environment is a trivially copyable struct without padding: its level, its own Philox stream, its episode. It
// allocates nothing and points at nothing, so a CPU thread or a CUDA block runs the same code, and its bytes are its
// checkpoint. Images are handed to `observe`; they are not part of the state. `valid` says whether saved bytes can be
// an episode at all: what a damaged file holds must never become an index. `oracle` is the action of somebody who knows
// the whole state and plays well: what a task can give, and a test of it.
//
// `batch_environment` holds many of one kind behind the only virtual interface of the library. Row i draws from stream
// first_stream + i of the seed, so splitting rows over batches or threads changes no episode. A finished episode is
// followed by a fresh one within `step`: what is observed after `done` is the first observation of the next episode.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engram/core/device.hpp"
#include "engram/core/error.hpp"
#include "engram/core/philox.hpp"
#include "engram/task/stimulus.hpp"

namespace engram {

/// What one step gave: the reward of the action, whether it ended the episode, and whether that end was a cut from
/// without (a limit of time that the agent is not told of; only together with `done`). To the last reward of a cut
/// episode training adds the discounted value of what was seen last (batch_environment::observe_last).
struct outcome {
    float reward = 0;
    bool done = false;
    bool interrupted = false;
};

/// [height, width, channels], row-major, channels last.
struct observation_shape {
    int height = 1, width = 1, channels = 1;
    constexpr int size() const { return height * width * channels; }
    bool operator==(const observation_shape&) const = default;
};

/// What the current observation shows, for reports: the answer is the action that would be rewarded.
struct trial_event {
    int trial = 0;
    int stimulus = 0;
    bool repeat = false;
    int answer = 0;
    int action = -1;
    bool correct = false;

    /// The same event with the action that was taken.
    constexpr trial_event answered(int taken) const {
        return {trial, stimulus, repeat, answer, taken, taken == answer};
    }
};

/// One level of a task. `maximum_reward` 0: there is no limit but time. `random_reward` is the expected episode reward
/// of uniformly random actions, NaN where only a measurement can tell; `longest_episode` is in agent steps. A further
/// level is evaluated only when it is named.
struct level_info {
    std::string name;
    float maximum_reward = 0, random_reward = 0;
    int longest_episode = 0;
    bool further = false;
};

/// A task, its sizes, and its levels; the level trained on comes first.
struct task_info {
    std::string name;
    observation_shape observation{};
    float lowest = 0, highest = 1;  // range of every observed number
    int actions = 0;
    std::vector<std::string> levels{};
    std::vector<level_info> level_details{};
    std::string unit = "episode reward";
    bool has_oracle = true;
    bool has_explorer = false;  // who plays without being told what is hidden (explorer.hpp)
    bool seeks_goal = false;    // a reward above zero is a goal that was reached, and that stays for the episode
    int revision = 1;           // of what an episode is; a checkpoint is of one revision

    task_info& add_level(level_info level) {
        levels.push_back(level.name);
        level_details.push_back(std::move(level));
        return *this;
    }
    const level_info& level(const std::string& wanted) const {
        require_known(name + " level", wanted, levels);
        for (const auto& found : level_details)
            if (found.name == wanted) return found;
        fail(name, ": level '", wanted, "' has no description");
    }
    float maximum_reward(const std::string& wanted) const { return level(wanted).maximum_reward; }
    /// The levels that a run is judged by.
    std::vector<std::string> judged_levels() const {
        std::vector<std::string> names;
        for (const auto& each : level_details)
            if (!each.further) names.push_back(each.name);
        return names;
    }
};

/// Settings of all tasks; a task reads what concerns it, and says which in a member such as
///
///     static constexpr std::array reads{"length", "length_spread"};
///
/// so that another one, asked for by its name, is refused. A task that does not say is given whatever is asked for.
struct task_options {
    std::string data{};            // folder with mnist/ and omniglot/; empty: built-in stimuli
    std::string stimuli = "auto";  // auto, builtin, mnist, omniglot (auto: what the data folder has)
    int stimulus_count = 1200;     // images of each split, train and holdout; 0: all (data sets only)
    // What the agent sees and how time passes: `small` (16 x 16 panels, 12 x 16 views, glyphs 14 x 14, an agent step a
    // phase, short episodes) or `paper` (72 x 96 x 3, glyphs 28 x 28, frames of 1/60 s, four of them an agent step).
    std::string fidelity = "small";
    std::string scheme = "pool";      // visuomotor mapping: pool or staircase
    int length = 100;                 // T-Maze: shortest corridor
    int length_spread = 10;           // T-Maze: the length is length + uniform {0, ..., spread}
    bool backward = true;             // Two Colors: the three actions that go backward are there too
    int items = 0;                    // sequence tasks: items before the recall (l); 0: the task's own
    int recalled = 0;                 // sequence tasks: items to recall (k); 0: the task's own
    int steps = 0;                    // copy, scattered_copy, add, permuted_mnist: T; 0: the task's own
    int glyph_side = 0;               // sequence tasks of glyphs: pixels a side, 14, 28 or 32; 0: the fidelity's
    std::string markers = "one";      // copy, scattered_copy: `one` query token, or `distinct`: one for every query
    std::string difficulty = "easy";  // popgym: `easy`, `medium` or `hard`, as the original has them
    int trials = 0;                   // continuous recognition: images shown in an episode; 0: the level's own
    int decks = 0;                    // popgym_repeat_previous: decks that are dealt; 0: the difficulty's own
    std::string rules = "package";    // popgym: those of the `package` 1.0.7, or of the runs of the `paper`
};

/// The options that a task says it reads; none where it does not say.
template <class Task>
std::optional<std::vector<std::string>> options_read() {
    if constexpr (requires { Task::reads; })
        return std::vector<std::string>(Task::reads.begin(), Task::reads.end());
    else
        return {};
}

/// Whether equal values have equal bytes: an environment's bytes are its checkpoint. The compiler of the host decides:
/// nvcc 13 denies it of the first class with a base that it is asked of, and of no other.
#ifdef __CUDACC__
template <class E>
inline constexpr bool equal_in_bytes = true;
#else
template <class E>
inline constexpr bool equal_in_bytes = std::has_unique_object_representations_v<E>;
#endif

template <class E>
concept environment = std::is_trivially_copyable_v<E> && equal_in_bytes<E> &&
    requires(E e, const E seen, const float* images, float* pixels, int action, const std::string& level,
             const task_options& options, const stimulus_set* stimuli) {
    { E::uses_stimuli } -> std::convertible_to<bool>;
    { E::describe(options) } -> std::same_as<task_info>;
    { E::make(level, options, stimuli) } -> std::same_as<E>;
    { e.random } -> std::same_as<philox&>;
    { e.reset() } -> std::same_as<void>;
    { e.step(action) } -> std::same_as<outcome>;
    { seen.observe(images, pixels) } -> std::same_as<void>;
    { seen.event() } -> std::same_as<std::optional<trial_event>>;
    { seen.oracle() } -> std::same_as<int>;
    { seen.level == seen.level } -> std::same_as<bool>;
    { seen.valid() } -> std::same_as<bool>;
};

struct explored;

/// Many environments of one task and level, wherever they are.
struct environment_rows {
    virtual ~environment_rows() = default;
    virtual int size() const = 0;
    virtual const task_info& info() const = 0;
    /// The bytes that a checkpoint keeps, and their way back; they fit only the same task and level.
    virtual std::span<const std::byte> state(int row) const = 0;
    virtual void restore(int row, std::span<const std::byte> saved) = 0;
};

/// The environment whose bytes were saved, in the place of `now`; throws where it is another task's or level's.
template <environment E>
E restored_environment(const task_info& info, const E& now, std::span<const std::byte> saved) {
    require(saved.size() == sizeof(E), info.name, ": the saved state has ", saved.size(), " bytes, expected ",
            sizeof(E));
    E found;
    std::memcpy(static_cast<void*>(&found), saved.data(), sizeof(E));
    require(found.level == now.level, info.name,
            ": the saved state belongs to another level or to other task settings");
    require(found.valid(), info.name, ": the saved state is corrupt");
    return found;
}

/// Environments that the host steps. Different rows may be stepped by different threads.
class batch_environment : public environment_rows {
public:
    /// Starts new episodes in rows [first, first + count); a fresh batch has already done so.
    virtual void reset(int first, int count) = 0;
    /// Writes observation.size() numbers.
    virtual void observe(int row, float* pixels) const = 0;
    virtual outcome step(int row, int action) = 0;
    /// Says ahead which action step() will be called with; a world that is elsewhere sets to work.
    virtual void announce(int, int) {}
    /// Writes what was seen last of an episode that the last step of the row interrupted; false where that is unknown:
    /// then the reward of that step is replaced by the value expected before it, and teaches nothing.
    virtual bool observe_last(int, float*) const { return false; }
    /// Whether state() is all that an episode goes on from. Otherwise a run that is resumed begins new ones.
    virtual bool resumes() const { return true; }
    virtual std::optional<trial_event> event(int row) const = 0;
    /// A good action, chosen with knowledge of the state.
    virtual int oracle(int row) const = 0;
    /// The next action of somebody who knows of the episode what `all` has of it.
    virtual int explore(int, explored&) const {
        fail(info().name, ": nobody explores this environment (it would give `int explore(explored&) const`)");
    }
};

/// The batch of an environment type.
template <environment E>
class batch_of final : public batch_environment {
public:
    batch_of(const std::string& level, int count, std::uint64_t seed, std::uint32_t first_stream,
             const task_options& options, std::shared_ptr<const stimulus_set> stimuli)
        : info_(E::describe(options)), stimuli_(std::move(stimuli)) {
        require(count > 0, info_.name, ": a batch needs at least one environment, not ", count);
        const E fresh = E::make(info_.level(level).name, options, stimuli_.get());
        rows_.assign(static_cast<std::size_t>(count), fresh);
        last_.resize(rows_.size());
        for (int i = 0; i < count; ++i)
            row(i).random = philox(seed, stream_id("environment", first_stream + static_cast<std::uint32_t>(i)));
        reset(0, count);
    }

    int size() const override { return static_cast<int>(rows_.size()); }
    const task_info& info() const override { return info_; }

    void reset(int first, int count) override {
        require(first >= 0 && count >= 0 && first + count <= size(), info_.name, ": rows ", first, " to ",
                first + count - 1, " were to be reset, but the batch has ", size());
        for (int i = first; i < first + count; ++i) row(i).reset();
    }

    void observe(int i, float* pixels) const override {
        row(i).observe(stimuli_ ? stimuli_->pixels().data() : nullptr, pixels);
    }

    outcome step(int i, int action) override {
        require(action >= 0 && action < info_.actions, info_.name, ": action ", action,
                " is out of range; expected 0 to ", info_.actions - 1);
        const outcome result = row(i).step(action);
        auto& last = last_[static_cast<std::size_t>(i)];
        last.clear();
        if (!result.done) return result;
        if (result.interrupted) {
            last.resize(static_cast<std::size_t>(info_.observation.size()));
            observe(i, last.data());
        }
        row(i).reset();
        return result;
    }

    bool observe_last(int i, float* pixels) const override {
        const auto& last = last_[static_cast<std::size_t>(i)];
        std::copy(last.begin(), last.end(), pixels);
        return !last.empty();
    }

    std::optional<trial_event> event(int i) const override { return row(i).event(); }
    int oracle(int i) const override { return row(i).oracle(); }
    int explore(int i, explored& all) const override {
        if constexpr (requires { row(i).explore(all); })
            return row(i).explore(all);
        else
            return batch_environment::explore(i, all);
    }

    std::span<const std::byte> state(int i) const override { return std::as_bytes(std::span(&row(i), 1)); }

    void restore(int i, std::span<const std::byte> saved) override {
        row(i) = restored_environment(info_, row(i), saved);
    }

private:
    E& row(int i) { return rows_[static_cast<std::size_t>(i)]; }
    const E& row(int i) const { return rows_[static_cast<std::size_t>(i)]; }

    task_info info_;
    std::shared_ptr<const stimulus_set> stimuli_;
    std::vector<E> rows_;
    std::vector<std::vector<float>> last_;  // seen last of an episode that was just interrupted
};

}  // namespace engram
