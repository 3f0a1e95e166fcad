// SPDX-License-Identifier: MIT
#include "engram/task/arbitrary_visuomotor_mapping.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <vector>

using namespace engram;
using avm = batch_of<arbitrary_visuomotor_mapping>;

namespace {

const std::shared_ptr<const stimulus_set>& images() {
    static const auto set = std::make_shared<const stimulus_set>(builtin_stimuli(300));
    return set;
}

using pixel_vector = std::vector<float>;

pixel_vector look(const batch_environment& batch) {
    pixel_vector pixels(static_cast<std::size_t>(batch.info().observation.size()));
    batch.observe(0, pixels.data());
    return pixels;
}

/// Knows the task only by what the panel shows: reads green buttons, and remembers images by their pixels.
struct oracle {
    std::map<pixel_vector, int> memory;

    static std::array<float, 3> at(const pixel_vector& p, int y, int x) {
        const auto i = static_cast<std::size_t>((y * 16 + x) * 3);
        return {p[i], p[i + 1], p[i + 2]};
    }
    static std::array<float, 3> button_of(const pixel_vector& p, int d) {
        constexpr int place[4][2] = {{7, 0}, {7, 15}, {0, 7}, {15, 7}};
        return at(p, place[d][0], place[d][1]);
    }
    int act(const pixel_vector& p) {
        pixel_vector inner;
        for (int y = 2; y < 14; ++y)
            for (int x = 2; x < 14; ++x)
                for (const float c : at(p, y, x)) inner.push_back(c);
        for (int d = 0; d < 4; ++d)
            if (button_of(p, d)[1] > 0.5f) memory[inner] = d;
        return memory.count(inner) ? memory[inner] : 0;
    }
};

}  // namespace

TEST_CASE("remembering what was revealed earns every trial, in both schemes and all levels") {
    for (const char* scheme : {"pool", "staircase"})
        for (const auto& [level, trials] : std::vector<std::pair<std::string, int>>{
                 {"train", 50}, {"holdout_interpolate", 40}, {"holdout_extrapolate", 75}}) {
            CAPTURE(scheme);
            const std::string where = level;  // clang before 16 captures no binding
            CAPTURE(where);
            task_options options;
            options.scheme = scheme;
            avm batch(level, 1, 11, 0, options, images());
            for (int episode = 0; episode < 20; ++episode) {
                oracle player;
                float total = 0;
                int steps = 0;
                for (bool done = false; !done; ++steps) {
                    const auto got = batch.step(0, player.act(look(batch)));
                    total += got.reward;
                    done = got.done;
                }
                CHECK(total == trials);
                CHECK(steps == trials);
            }
        }
}

// n (1 - (1 - 1/n)^T) first showings F, and a quarter of the rest; five standard errors of 4000 episodes, whose
// variance 3/16 (T - E F) + 9/16 Var F is below T / 4.
TEST_CASE("without memory the floor is the first showings and a quarter of the rest") {
    for (const auto& [level, n, trials] : std::vector<std::tuple<std::string, double, double>>{
             {"train", 16, 50}, {"holdout_interpolate", 12, 40}, {"holdout_extrapolate", 24, 75}}) {
        avm batch(level, 1, 3, 0, {}, images());
        double total = 0;
        constexpr int episodes = 4000;
        for (int e = 0; e < episodes;) {
            const auto shown = *batch.event(0);
            const auto got = batch.step(0, shown.repeat ? 0 : shown.answer);
            total += got.reward;
            e += got.done;
        }
        const double first = n * (1 - std::pow(1 - 1 / n, trials));
        const double expected = first + (trials - first) / 4;
        const std::string where = level;  // clang before 16 captures no binding
        CAPTURE(where);
        CHECK(std::abs(total / episodes - expected) < 5 * std::sqrt(trials / 4 / episodes));
    }
}

TEST_CASE("the panel shows the image inside and the buttons at the edges") {
    avm batch("train", 1, 3, 0, {}, images());
    for (int t = 0; t < 50; ++t) {
        const auto shown = *batch.event(0);
        const auto pixels = look(batch);
        const auto image = images()->image(shown.stimulus);
        for (int y = 0; y < 12; ++y)
            for (int i = 0; i < 36; ++i)
                REQUIRE(pixels[static_cast<std::size_t>((y + 2) * 48 + 6 + i)] ==
                        image[static_cast<std::size_t>(y * 36 + i)]);
        int green = 0, red = 0, black = 0, white = 0;
        for (int y = 0; y < 16; ++y)
            for (int x = 0; x < 16; ++x) {
                if (y >= 2 && y < 14 && x >= 2 && x < 14) continue;
                const auto c = oracle::at(pixels, y, x);
                green += c == std::array{0.0f, 0.75f, 0.0f};
                red += c == std::array{0.75f, 0.0f, 0.0f};
                black += c == std::array{0.0f, 0.0f, 0.0f};
                white += c == std::array{1.0f, 1.0f, 1.0f};
            }
        CHECK(green == (shown.repeat ? 0 : 8));
        CHECK(red == (shown.repeat ? 0 : 24));
        CHECK(black == (shown.repeat ? 32 : 0));
        CHECK(white == 256 - 144 - 32);
        if (!shown.repeat) CHECK(oracle::button_of(pixels, shown.answer)[1] == 0.75f);
        batch.step(0, 0);
    }
}

TEST_CASE("at paper fidelity the first showing reveals the direction, a later one does not") {
    task_options options;
    options.fidelity = "paper";
    const auto large = std::make_shared<const stimulus_set>(builtin_stimuli(80, 30));
    avm batch("train", 1, 3, 0, options, large);
    CHECK(batch.info().observation == observation_shape{72, 96, 3});
    CHECK(batch.info().actions == 5);
    int revealed = 0, hidden = 0;
    for (bool done = false; !done;) {
        const auto shown = batch.event(0);
        if (shown) {
            const auto pixels = look(batch);
            int green = 0, red = 0;
            for (std::size_t i = 0; i < pixels.size(); i += 3) {
                green += pixels[i] == 0 && pixels[i + 1] == 0.75f && pixels[i + 2] == 0;
                red += pixels[i] == 0.75f && pixels[i + 1] == 0 && pixels[i + 2] == 0;
            }
            CHECK((green > 0 || red > 0) == !shown->repeat);
            (shown->repeat ? hidden : revealed) += 1;
        }
        done = batch.step(0, batch.oracle(0)).done;
    }
    CHECK(revealed > 30);
    CHECK(hidden > 60);
}

TEST_CASE("train and holdout levels draw their images from their own split, without repeats in an episode") {
    for (const char* level : {"train", "holdout_interpolate", "holdout_extrapolate"}) {
        avm batch(level, 1, 3, 0, {}, images());
        std::set<int> first_shown, ever;
        for (int t = 0; t < 4000; ++t) {
            const auto shown = *batch.event(0);
            if (shown.trial == 0) first_shown.clear();
            if (!shown.repeat) CHECK(first_shown.insert(shown.stimulus).second);
            ever.insert(shown.stimulus);
            batch.step(0, 0);
        }
        const bool train = std::string(level) == "train";
        CHECK(*ever.begin() >= (train ? 0 : 300));
        CHECK(*ever.rbegin() < (train ? 300 : 600));
        CHECK(ever.size() > 250);
    }
}

TEST_CASE("the staircase adds an association after a flawless round only") {
    task_options options;
    options.scheme = "staircase";
    avm right("train", 1, 3, 0, options, images()), wrong("train", 1, 3, 0, options, images());
    std::set<int> seen_right, seen_wrong;
    std::vector<int> rounds;
    for (int t = 0; t < 45; ++t) {
        const auto a = *right.event(0), b = *wrong.event(0);
        seen_right.insert(a.stimulus);
        seen_wrong.insert(b.stimulus);
        rounds.push_back(a.stimulus);
        right.step(0, a.answer);
        wrong.step(0, (b.answer + 1) % 4);
    }
    CHECK(seen_wrong.size() == 1);
    CHECK(seen_right.size() == 9);  // rounds of 1, 2, ..., 9 make 45 trials
    std::set<int> third(rounds.begin() + 3, rounds.begin() + 6);
    CHECK(third.size() == 3);
}
