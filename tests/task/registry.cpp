// SPDX-License-Identifier: MIT
#include "engram/task/registry.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

using namespace engram;

namespace {

/// A task's images, 100 a split, loaded once.
std::shared_ptr<const stimulus_set> images(const std::string& task) {
    static std::map<std::string, std::shared_ptr<const stimulus_set>> loaded;
    const auto names = task_names();
    if (std::find(names.begin(), names.end(), task) == names.end()) return nullptr;
    task_options few;
    few.stimulus_count = 100;
    if (!loaded.contains(task)) loaded[task] = task_stimuli(task, few);
    return loaded[task];
}

std::unique_ptr<batch_environment> make(const std::string& task, const std::string& level, int count,
                                        std::uint64_t seed, std::uint32_t first = 0, const task_options& options = {}) {
    return make_environment(task, level, count, seed, first, options, images(task));
}

std::vector<float> look(const batch_environment& batch, int row) {
    std::vector<float> pixels(static_cast<std::size_t>(batch.info().observation.size()));
    batch.observe(row, pixels.data());
    return pixels;
}

/// Everything a row shows and pays in `steps` steps of a fixed, seemingly random policy.
std::vector<float> play(batch_environment& batch, int row, int steps) {
    std::vector<float> log;
    philox policy(99, 0);
    for (int t = 0; t < steps; ++t) {
        const auto pixels = look(batch, row);
        log.insert(log.end(), pixels.begin(), pixels.end());
        const auto got = batch.step(row, policy.below(batch.info().actions));
        log.push_back(got.reward);
        log.push_back(got.done);
    }
    return log;
}

template <class F>
std::string sentence(F f) {
    try {
        f();
    } catch (const error& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("every task and level: the same seed gives the same episodes, however rows are split") {
    task_options options;
    options.length = 7;
    constexpr int steps = 450;  // two of the longest episodes: a single one in a small arena may look like another
    for (const auto& info : all_tasks(options))
        for (const auto& level : info.levels) {
            CAPTURE(info.name);
            CAPTURE(level);
            auto whole = make(info.name, level, 4, 5, 0, options);
            auto half = make(info.name, level, 2, 5, 2, options);
            auto other = make(info.name, level, 1, 6, 2, options);
            const auto expected = play(*whole, 2, steps);
            CHECK(play(*half, 0, steps) == expected);
            CHECK(play(*other, 0, steps) != expected);
            CHECK(play(*half, 1, steps) != expected);
        }
}

TEST_CASE("every task and level: a saved state continues as the original, and fits only its own level") {
    for (const auto& info : all_tasks())
        for (const auto& level : info.levels) {
            CAPTURE(info.name);
            CAPTURE(level);
            auto batch = make(info.name, level, 2, 5);
            play(*batch, 0, 33);
            const auto view = batch->state(0);
            const std::vector<std::byte> saved(view.begin(), view.end());
            const auto ahead = play(*batch, 0, 120);
            auto resumed = make(info.name, level, 1, 77);
            resumed->restore(0, saved);
            CHECK(play(*resumed, 0, 120) == ahead);

            // What has one level has other difficulties.
            task_options medium;
            medium.difficulty = "medium";
            auto elsewhere = info.levels.size() > 1
                                 ? make(info.name, info.levels[level == info.levels[0] ? 1 : 0], 1, 5)
                                 : make(info.name, level, 1, 5, 0, medium);
            CHECK(sentence([&] { elsewhere->restore(0, saved); }).find("another level") != std::string::npos);
            CHECK(sentence([&] { resumed->restore(0, std::span(saved).first(8)); }).find("8 bytes") !=
                  std::string::npos);
        }
}

TEST_CASE("damaged state bytes are refused or harmless") {
    for (const auto& info : all_tasks()) {
        CAPTURE(info.name);
        auto batch = make(info.name, "train", 1, 5);
        play(*batch, 0, 20);
        const auto view = batch->state(0);
        const std::vector<std::byte> good(view.begin(), view.end());
        int refused = 0;
        for (std::size_t i = 0; i < good.size(); ++i) {
            auto bad = good;
            bad[i] ^= std::byte{0x80};
            if (sentence([&] { batch->restore(0, bad); }).empty())
                look(*batch, 0);
            else
                ++refused;
        }
        CHECK(refused > 0);
        CHECK(look(*batch, 0).size() > 0);
    }
}

TEST_CASE("observations stay in the stated range, and rewards within the maximum") {
    task_options options;
    options.length = 9;
    for (const auto& info : all_tasks(options))
        for (const auto& level : info.levels) {
            CAPTURE(info.name);
            CAPTURE(level);
            auto batch = make(info.name, level, 1, 3, 0, options);
            float total = 0;
            int steps = 0, episodes = 0;
            philox policy(1, 1);
            for (int t = 0; t < 400; ++t) {
                const auto pixels = look(*batch, 0);
                const auto [low, high] = std::minmax_element(pixels.begin(), pixels.end());
                REQUIRE(*low >= info.lowest);
                REQUIRE(*high <= info.highest);
                const auto got = batch->step(0, policy.below(info.actions));
                total += got.reward;
                ++steps;
                if (got.done) {
                    if (info.maximum_reward(level) > 0) CHECK(total <= info.maximum_reward(level));
                    CHECK(steps <= info.level(level).longest_episode);
                    total = 0;
                    steps = 0;
                    ++episodes;
                }
            }
            CHECK(episodes >= 400 / info.level(level).longest_episode);
        }
}

TEST_CASE("random actions earn the stated random reward") {
    task_options options;
    options.length = 4;
    for (const auto& info : all_tasks(options))
        for (const auto& level : info.levels) {
            CAPTURE(info.name);
            CAPTURE(level);
            const double stated = static_cast<double>(info.level(level).random_reward);
            if (std::isnan(stated)) continue;  // only a measurement can tell
            auto batch = make(info.name, level, 1, 3, 0, options);
            philox policy(1, 1);
            double sum = 0, squares = 0, total = 0;
            constexpr int episodes = 2000;
            for (int e = 0; e < episodes;) {
                const auto got = batch->step(0, policy.below(info.actions));
                total += got.reward;
                if (!got.done) continue;
                sum += total;
                squares += total * total;
                total = 0;
                ++e;
            }
            const double mean = sum / episodes, spread = std::sqrt(squares / episodes - mean * mean);
            CHECK(std::abs(mean - stated) < 5 * spread / std::sqrt(episodes));
        }
}

TEST_CASE("reset starts new episodes in the rows named, and only there") {
    auto batch = make("arbitrary_visuomotor_mapping", "train", 3, 1);
    for (int row = 0; row < 3; ++row) play(*batch, row, 5);
    batch->reset(1, 1);
    CHECK(batch->event(0)->trial == 5);
    CHECK(batch->event(1)->trial == 0);
    CHECK(batch->event(2)->trial == 5);
    CHECK(sentence([&] { batch->reset(2, 2); }) ==
          "arbitrary_visuomotor_mapping: rows 2 to 3 were to be reset, but the batch has 3");
}

TEST_CASE("mistakes are sentences") {
    CHECK(sentence([] { make("arbitrary_visuomotor_maping", "train", 1, 0); }) ==
          "unknown task 'arbitrary_visuomotor_maping'; did you mean 'arbitrary_visuomotor_mapping'?");
    CHECK(sentence([] { make("t_maze", "trian", 1, 0); }) == "unknown t_maze level 'trian'; did you mean 'train'?");
    CHECK(sentence([] { make("t_maze", "train", 0, 0); }) == "t_maze: a batch needs at least one environment, not 0");
    auto batch = make("continuous_recognition", "train", 1, 0);
    CHECK(sentence([&] { batch->step(0, 2); }) == "continuous_recognition: action 2 is out of range; expected 0 to 1");
    CHECK(sentence([&] { batch->step(0, -1); }) ==
          "continuous_recognition: action -1 is out of range; expected 0 to 1");
    task_options options;
    options.fidelity = "papr";
    CHECK(sentence([&] { make("continuous_recognition", "train", 1, 0, 0, options); }) ==
          "unknown fidelity 'papr'; did you mean 'paper'?");
    options = {};
    options.stimuli = "omniglott";
    CHECK(sentence([&] { load_stimuli(options); }) == "unknown stimuli 'omniglott'; did you mean 'omniglot'?");
    options.stimuli = "mnist";
    CHECK(sentence([&] { load_stimuli(options); }) == "stimuli 'mnist' need a data folder that holds mnist/");
    options.data = "/nonexistent";
    options.stimuli = "auto";
    CHECK(sentence([&] { load_stimuli(options); }).find("neither a folder mnist") != std::string::npos);
    options = {};
    options.stimulus_count = 20;
    CHECK(sentence([&] { make_environment("continuous_recognition", "train", 1, 0, 0, options); }) ==
          "continuous_recognition: the builtin set has 20 images for level 'train', expected at least 75");
}

TEST_CASE("stimuli: a task's own, the general ones, or none") {
    task_options options;
    options.stimulus_count = 2;
    CHECK(task_stimuli("t_maze", options) == nullptr);
    const auto general = task_stimuli("continuous_recognition", options);
    const auto today = builtin_stimuli(2, 12);
    CHECK(std::equal(general->pixels().begin(), general->pixels().end(), today.pixels().begin(), today.pixels().end()));
    options.fidelity = "paper";
    CHECK(load_stimuli(options)->side() == 32);
    options.fidelity = "papr";
    CHECK(sentence([&] { load_stimuli(options); }) == "unknown fidelity 'papr'; did you mean 'paper'?");
    CHECK(sentence([] { task_stimuli("t_mace"); }) == "unknown task 't_mace'; did you mean 't_maze'?");
}

namespace {

/// Shows a number once, asks for it two steps later. A short and a float: padding, and no unique representation.
struct number_recall {
    static constexpr own_task specification{
        .name = "number_recall", .observation = {1, 1, 2}, .actions = 3, .longest_episode = 3, .maximum_reward = 1};
    static constexpr std::array levels{"train", "holdout_extrapolate"};
    short time;
    float number;

    void reset(philox& random, int level) {
        time = 0;
        number = level == 1 ? 2.0f : static_cast<float>(random.below(2));
    }
    outcome step(int action) {
        ++time;
        return {time == 3 && action == oracle() ? 1.0f : 0.0f, time == 3};
    }
    void observe(float* numbers) const {
        numbers[0] = time == 0 ? number / 2 : 0.0f;
        numbers[1] = static_cast<float>(time) / 3;
    }
    int oracle() const { return static_cast<int>(number); }
    bool valid() const { return time >= 0 && time < 3; }
};
static_assert(!environment<number_recall> && environment<plugged<number_recall>>);

/// The least that is an environment: no levels, no oracle, no event, no valid; it draws while it steps.
struct coin {
    static constexpr own_task specification{.name = "coin", .observation = {1, 1, 1}, .actions = 2};
    int side;
    void reset(philox& random) { side = random.below(2); }
    outcome step(int action, philox& random) {
        const bool right = action == side;
        side = random.below(2);
        return {right ? 1.0f : 0.0f, random.below(4) == 0};
    }
    void observe(float* numbers) const { numbers[0] = static_cast<float>(side); }
};

}  // namespace

TEST_CASE("a task of one's own is known by its name") {
    const auto before = task_names().size();
    add_task<number_recall>();
    add_task<plugged<coin>>();
    CHECK(task_names().size() == before + 2);
    const auto info = describe_task("number_recall");
    CHECK(info.levels == std::vector<std::string>{"train", "holdout_extrapolate"});
    CHECK(info.maximum_reward("holdout_extrapolate") == 1);
    CHECK(std::isnan(info.level("train").random_reward));
    CHECK(task_stimuli("number_recall") == nullptr);

    auto held_out = make("number_recall", "holdout_extrapolate", 2, 1);
    CHECK(held_out->oracle(1) == 2);
    for (const char* task : {"number_recall", "coin"}) {
        auto whole = make(task, "train", 3, 5);
        auto part = make(task, "train", 1, 5, 2);
        CHECK(play(*whole, 2, 30) == play(*part, 0, 30));
        auto resumed = make(task, "train", 1, 9);
        resumed->restore(0, whole->state(2));
        CHECK(play(*resumed, 0, 30) == play(*whole, 2, 30));
    }
    auto recall = make("number_recall", "train", 1, 5);
    float total = 0;
    for (int t = 0; t < 30; ++t) total += recall->step(0, recall->oracle(0)).reward;
    CHECK(total == 10);
    CHECK(!recall->event(0));
    CHECK(make("coin", "train", 1, 5)->oracle(0) == 0);

    const auto view = recall->state(0);
    std::vector<std::byte> bad(view.begin(), view.end());
    const short late = 3;
    std::memcpy(bad.data() + bad.size() - 8, &late, sizeof late);
    CHECK(sentence([&] { recall->restore(0, bad); }) == "number_recall: the saved state is corrupt");

    CHECK(sentence([] { add_task<coin>(); }) == "add_task: there is already a task 'coin'");
    CHECK(sentence([] { make("coin", "holdout", 1, 1); }) == "unknown coin level 'holdout'; expected train");
}
