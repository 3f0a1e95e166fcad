// SPDX-License-Identifier: MIT
#include "engram/task/continuous_recognition.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <set>
#include <vector>

using namespace engram;
using recognition = batch_of<continuous_recognition>;

namespace {

const std::shared_ptr<const stimulus_set>& images() {
    static const auto set = std::make_shared<const stimulus_set>(builtin_stimuli(300));
    return set;
}

std::vector<float> look(const batch_environment& batch) {
    std::vector<float> pixels(static_cast<std::size_t>(batch.info().observation.size()));
    batch.observe(0, pixels.data());
    return pixels;
}

}  // namespace

TEST_CASE("remembering every panel earns every trial") {
    for (const auto& [level, trials] : std::vector<std::pair<std::string, int>>{
             {"train", 50}, {"holdout_interpolate", 40}, {"holdout_extrapolate", 75}}) {
        recognition batch(level, 1, 11, 0, {}, images());
        for (int episode = 0; episode < 30; ++episode) {
            std::set<std::vector<float>> memory;
            float total = 0;
            int steps = 0;
            for (bool done = false; !done; ++steps) {
                const auto got = batch.step(0, memory.insert(look(batch)).second ? 0 : 1);
                total += got.reward;
                done = got.done;
            }
            const std::string where = level;  // clang before 16 captures no binding
            CAPTURE(where);
            CHECK(total == trials);
            CHECK(steps == trials);
        }
    }
}

TEST_CASE("the first trial is new, later ones with probability one half, repeats uniform over what was shown") {
    recognition batch("train", 1, 5, 0, {}, images());
    int later = 0, fresh = 0, second_of_two = 0, of_two = 0;
    std::vector<int> shown;
    for (int t = 0; t < 100000; ++t) {
        const auto now = *batch.event(0);
        if (now.trial == 0) {
            shown.clear();
            REQUIRE_FALSE(now.repeat);
        } else {
            ++later;
            fresh += !now.repeat;
            if (now.repeat && shown.size() == 2) {
                ++of_two;
                second_of_two += now.stimulus == shown[1];
            }
        }
        CHECK(now.answer == (now.repeat ? 1 : 0));
        if (!now.repeat) shown.push_back(now.stimulus);
        batch.step(0, 0);
    }
    // five standard errors of a proportion of one half
    CHECK(std::abs(fresh / double(later) - 0.5) < 2.5 / std::sqrt(later));
    REQUIRE(of_two > 500);
    CHECK(std::abs(second_of_two / double(of_two) - 0.5) < 2.5 / std::sqrt(of_two));
}

TEST_CASE("nothing but the image differs between a first and a later showing") {
    recognition batch("train", 1, 5, 0, {}, images());
    std::vector<float> edge;
    for (int t = 0; t < 50; ++t) {
        auto pixels = look(batch);
        for (int y = 2; y < 14; ++y)
            for (int i = 6; i < 42; ++i) pixels[static_cast<std::size_t>(y * 48 + i)] = 0;
        if (t == 0) edge = pixels;
        CHECK(pixels == edge);
        batch.step(0, 0);
    }
    int black = 0;
    for (int p = 0; p < 256; ++p) {
        const int y = p / 16, x = p % 16;
        black += (y < 2 || y >= 14 || x < 2 || x >= 14) && edge[static_cast<std::size_t>(p) * 3] == 0;
    }
    CHECK(black == 16);
}

TEST_CASE("train and holdout levels draw their images from their own split") {
    for (const char* level : {"train", "holdout_interpolate", "holdout_extrapolate"}) {
        recognition batch(level, 1, 3, 0, {}, images());
        std::set<int> ever;
        for (int t = 0; t < 6000; ++t) {
            ever.insert(batch.event(0)->stimulus);
            batch.step(0, 0);
        }
        const bool train = std::string(level) == "train";
        CHECK(*ever.begin() >= (train ? 0 : 300));
        CHECK(*ever.rbegin() < (train ? 300 : 600));
    }
}

TEST_CASE("an episode of more trials is the same game for longer") {
    task_options longer;
    longer.trials = 120;
    CHECK(continuous_recognition::describe(longer).level("train").longest_episode ==
          continuous_recognition::describe({}).level("train").longest_episode * 120 / 50);
    CHECK(continuous_recognition::describe(longer).maximum_reward("holdout_interpolate") == 120);
    recognition batch("train", 1, 11, 0, longer, images());
    std::set<std::vector<float>> memory;
    float total = 0;
    for (bool done = false; !done;) {
        const auto got = batch.step(0, memory.insert(look(batch)).second ? 0 : 1);
        total += got.reward, done = got.done;
    }
    CHECK(total == 120);
    longer.trials = 801;
    CHECK_THROWS_WITH_AS(
        continuous_recognition::describe(longer),
        "continuous_recognition: 801 trials were asked for; expected 1 to 800, or 0 for as many as the "
        "level has",
        error);
    longer.trials = 400;
    CHECK_THROWS_AS(recognition("train", 1, 11, 0, longer, images()), error);  // the set has 300
}
