// SPDX-License-Identifier: MIT
#include "engram/task/environment.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>

using namespace engram;

namespace {

/// The least environment: counts to three.
struct archetype {
    static constexpr bool uses_stimuli = false;
    struct parameters {
        int length = 3, unused = 0;
        bool operator==(const parameters&) const = default;
    } level;
    philox random;
    int time = 0, unused = 0;

    static task_info describe(const task_options&) {
        task_info info{.name = "count", .actions = 1};
        info.add_level({"train", 3, 3, 3});
        return info;
    }
    static archetype make(const std::string&, const task_options&, const stimulus_set*) { return {}; }
    void reset() { time = 0; }
    outcome step(int) { return {1, ++time == level.length}; }
    void observe(const float*, float* out) const { *out = static_cast<float>(time); }
    int oracle() const { return 0; }
    std::optional<trial_event> event() const { return std::nullopt; }
    bool valid() const { return time >= 0 && time < level.length; }
};
static_assert(environment<archetype>);

struct with_a_pointer_to_heap : archetype {
    std::string text;
    static with_a_pointer_to_heap make(const std::string&, const task_options&, const stimulus_set*) { return {}; }
};
static_assert(!environment<with_a_pointer_to_heap>);

struct with_padding : archetype {
    char letter = 0;
    static with_padding make(const std::string&, const task_options&, const stimulus_set*) { return {}; }
};
static_assert(!environment<with_padding>);

struct without_done : archetype {
    static without_done make(const std::string&, const task_options&, const stimulus_set*) { return {}; }
    float step(int) { return 1; }
};
static_assert(!environment<without_done>);

}  // namespace

TEST_CASE("a finished episode is followed by a fresh one within the step") {
    batch_of<archetype> batch("train", 2, 0, 0, {}, nullptr);
    float seen = -1;
    for (int t = 0; t < 7; ++t) {
        batch.observe(1, &seen);
        CHECK(seen == static_cast<float>(t % 3));
        CHECK(batch.step(1, 0).done == (t % 3 == 2));
    }
    batch.observe(0, &seen);
    CHECK(seen == 0);
}

TEST_CASE("saved bytes that cannot be an episode are refused") {
    batch_of<archetype> batch("train", 1, 0, 0, {}, nullptr);
    archetype broken{};
    broken.time = 3;
    CHECK_THROWS_WITH_AS(batch.restore(0, std::as_bytes(std::span(&broken, 1))), "count: the saved state is corrupt",
                         error);
    broken.time = 2;
    batch.restore(0, std::as_bytes(std::span(&broken, 1)));
    CHECK(batch.step(0, 0).done);
}

TEST_CASE("a description knows its levels") {
    const auto info = archetype::describe({});
    CHECK(info.maximum_reward("train") == 3);
    CHECK(info.observation.size() == 1);
    CHECK_THROWS_WITH_AS((void)info.level("tran"), "unknown count level 'tran'; did you mean 'train'?", error);
    CHECK(trial_event{1, 2, true, 3}.answered(3).correct);
    CHECK_FALSE(trial_event{1, 2, true, 3}.answered(0).correct);
}
