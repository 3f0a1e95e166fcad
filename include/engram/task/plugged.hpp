#pragma once
// SPDX-License-Identifier: MIT

// An environment of one's own from the least that says what it is: one trivially copyable struct.
//
//     struct my_task {
//         static constexpr engram::own_task specification{.name = "my_task", .observation = {1, 1, 3}, .actions = 2,
//                                                         .longest_episode = 4, .maximum_reward = 1};
//         void reset(engram::philox& random);
//         engram::outcome step(int action);            // or step(int action, engram::philox& random)
//         void observe(float* numbers) const;          // specification.observation.size() of them
//         ...                                          // the state of an episode: plain members, no pointers
//     };
//
// `plugged<my_task>` is then a whole `environment`, and `add_task<my_task>()` makes it known by its name. It has one
// level, `train`, unless the struct lists others:
//
//         static constexpr std::array levels{"train", "holdout_extrapolate"};
//         void reset(engram::philox& random, int level);
//
// What it may give besides: `int oracle() const` (otherwise only random actions can be scored),
// `std::optional<trial_event> event() const` (otherwise none), `bool valid() const` (otherwise every saved state is
// taken for one: give it if a member is ever an index). The struct is kept as its bytes, so it may have padding and
// floating-point members; where the same episodes on every device matter, count in integers. For stimuli or task
// options write a whole `environment` instead.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "engram/core/device.hpp"
#include "engram/core/error.hpp"
#include "engram/core/philox.hpp"
#include "engram/task/environment.hpp"

namespace engram {

/// What an environment is called and what it looks like. Names and meanings are those of `task_info` and `level_info`;
/// they hold for all of its levels.
struct own_task {
    const char* name = "";
    observation_shape observation{};
    int actions = 0;
    int longest_episode = 0;   // steps
    float maximum_reward = 0;  // of an episode; 0: no limit but time
    float random_reward = std::numeric_limits<float>::quiet_NaN();
    float lowest = 0, highest = 1;
};

template <class S>
struct plugged {
    static constexpr bool has_levels = requires {
        S::levels.size();
        S::levels[0];
    };

    static_assert(std::is_trivially_copyable_v<S>,
                  "own environment: it must be trivially copyable (numbers and arrays; no pointers, no containers), "
                  "because its bytes are its checkpoint");
    static_assert(
        requires { own_task(S::specification); },
        "own environment: it needs `static constexpr engram::own_task specification`");
    static_assert(
        has_levels || requires(S s, philox& random) { s.reset(random); },
        "own environment: it needs `void reset(engram::philox& random)`, which starts an episode");
    static_assert(
        !has_levels || requires(S s, philox& random) { s.reset(random, 0); },
        "own environment: with `levels` it needs `void reset(engram::philox& random, int level)`");
    static_assert(
        requires(S s) { outcome(s.step(0)); } || requires(S s, philox& random) { outcome(s.step(0, random)); },
        "own environment: it needs `engram::outcome step(int action)`, the reward and whether it was the last");
    static_assert(
        requires(const S s, float* numbers) { s.observe(numbers); },
        "own environment: it needs `void observe(float* numbers) const`");

    static constexpr bool uses_stimuli = false;
    static constexpr bool knows_the_way = requires(const S& s) { s.oracle(); };

    philox random;
    std::int64_t level;
    // The bytes of S, rounded up: no padding, whatever S has.
    std::array<std::byte, (sizeof(S) + 7) / 8 * 8> kept;

    static task_info describe(const task_options&) {
        constexpr own_task own = S::specification;
        task_info info{.name = own.name,
                       .observation = own.observation,
                       .lowest = own.lowest,
                       .highest = own.highest,
                       .actions = own.actions,
                       .has_oracle = knows_the_way};
        const auto add = [&](const char* called) {
            info.add_level({called, own.maximum_reward, own.random_reward, own.longest_episode});
        };
        if constexpr (has_levels)
            for (const char* name : S::levels) add(name);
        else
            add("train");
        return info;
    }

    static plugged make(const std::string& name, const task_options& options, const stimulus_set*) {
        const task_info info = describe(options);
        require_known(info.name + " level", name, info.levels);
        plugged fresh{};
        while (info.levels[static_cast<std::size_t>(fresh.level)] != name) ++fresh.level;
        fresh.keep(S{});
        return fresh;
    }

    ENGRAM_HD void reset() {
        S now = own();
        if constexpr (has_levels)
            now.reset(random, static_cast<int>(level));
        else
            now.reset(random);
        keep(now);
    }

    ENGRAM_HD outcome step(int action) {
        S now = own();
        outcome result;
        if constexpr (requires { now.step(action, random); })
            result = now.step(action, random);
        else
            result = now.step(action);
        keep(now);
        return result;
    }

    ENGRAM_HD void observe(const float*, float* numbers) const { own().observe(numbers); }

    std::optional<trial_event> event() const {
        if constexpr (requires(const S& s) { s.event(); })
            return own().event();
        else
            return std::nullopt;
    }

    int oracle() const {
        if constexpr (knows_the_way)
            return own().oracle();
        else
            return 0;
    }

    bool valid() const {
        if constexpr (requires(const S& s) { s.valid(); })
            return own().valid();
        else
            return true;
    }

private:
    ENGRAM_HD S own() const {
        S now;
        std::memcpy(static_cast<void*>(&now), kept.data(), sizeof(S));
        return now;
    }
    ENGRAM_HD void keep(const S& now) { std::memcpy(kept.data(), static_cast<const void*>(&now), sizeof(S)); }
};

}  // namespace engram
