// SPDX-License-Identifier: MIT
#include "engram/task/what_then_where.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "../io/temporary.hpp"

using namespace engram;

namespace {

task_options at(const std::string& fidelity) {
    task_options options;
    options.fidelity = fidelity;
    return options;
}

const stimulus_set& digits(const std::string& fidelity) {
    static const stimulus_set small = fixed_digits(at("small")), paper = fixed_digits(at("paper"));
    return fidelity == "paper" ? paper : small;
}

what_then_where fresh(const std::string& level, const std::string& fidelity, std::uint64_t seed = 1) {
    what_then_where made = what_then_where::make(level, at(fidelity), &digits(fidelity));
    made.random = philox(seed, 7);
    made.reset();
    return made;
}

std::vector<float> look(const what_then_where& task) {
    const bool paper = task.rules().paper;
    std::vector<float> pixels(paper ? 72 * 96 * 3 : 16 * 16 * 3);
    task.observe(digits(paper ? "paper" : "small").pixels().data(), pixels.data());
    return pixels;
}

bool about(double count, double total, double share) {
    return std::abs(count - share * total) < 5 * std::sqrt(total * share * (1 - share));
}

constexpr int nothing = static_cast<int>(looking::nothing);

/// Whether the card of an edge lies at (left, top) of a small panel, but for the corners that neighbours share.
bool lies_at(const std::vector<float>& panel, const what_then_where& task, int edge, int left, int top) {
    const auto image = digits("small").image(task.level.base.first + task.digit[edge]);
    const colour paint = from_hue(task.hue[edge], 0, 255);
    const float light[] = {static_cast<float>(paint.r) / 255, static_cast<float>(paint.g) / 255,
                           static_cast<float>(paint.b) / 255};
    for (int y = 0; y < 6; ++y)
        for (int x = 0; x < 6; ++x) {
            if ((x == 0 || x == 5) && (y == 0 || y == 5)) continue;
            for (int c = 0; c < 3; ++c) {
                const float expected = light[c] * (1 - 0.6f * image[static_cast<std::size_t>((y * 6 + x) * 3 + c)]);
                if (std::abs(panel[static_cast<std::size_t>(((top + y) * 16 + left + x) * 3 + c)] - expected) > 1e-6f)
                    return false;
            }
        }
    return true;
}

}  // namespace

TEST_CASE("at paper fidelity both showings and both delays keep their frames") {
    for (const char* level : {"train", "holdout_interpolate", "holdout_extrapolate"}) {
        what_then_where task = fresh(level, "paper");
        std::set<int> seen;
        for (int trial = 0; trial < 30; ++trial) {
            std::map<int, int> frames;  // of own phases
            const int delays[] = {task.delay[0], task.delay[1]};
            seen.insert({delays[0], delays[1]});
            while (task.clock.kind != phase_kind::respond) {
                task.clock.eye = {0, 0};
                if (task.clock.kind != phase_kind::gap && task.clock.kind != phase_kind::fixate)
                    ++frames[task.clock.index];
                psychlab_frame(task, nothing);
            }
            CHECK(frames == std::map<int, int>{{0, 25}, {1, delays[0]}, {2, 25}, {3, delays[1]}, {4, 1}});
            task.clock.eye = {6000, 0};
            psychlab_frame(task, nothing);
            CHECK(task.clock.kind == phase_kind::feedback);
            task.clock.eye = {0, 0};
            const float expected = task.answer() == 1 ? 1.0f : 0.0f;
            CHECK(psychlab_frame(task, nothing).reward == expected);
        }
        const std::string name = level;
        CHECK(seen == (name == "train"                 ? std::set{4, 8, 32, 128}
                       : name == "holdout_interpolate" ? std::set{16, 64}
                                                       : std::set{132, 156, 200, 256}));
    }
}

TEST_CASE("at small fidelity the digit, then four, then nothing tells but memory") {
    constexpr int place[4][2] = {{0, 5}, {10, 5}, {5, 0}, {5, 10}};
    for (const char* level : {"train", "holdout_interpolate"}) {
        what_then_where task = fresh(level, "small");
        std::vector<float> last;
        for (int trial = 0; trial < 49; ++trial) {
            const int first = std::string(level) == "train" ? 0 : 5, shown = first + task.digit[task.where];
            CHECK(lies_at(look(task), task, task.where, 5, 5));
            for (const auto& at : place) CHECK_FALSE(lies_at(look(task), task, task.where, at[0], at[1]));
            CHECK(task.step(0).reward == 0);
            int waited = 0;
            for (; task.clock.kind == phase_kind::wait; ++waited) {
                CHECK(look(task) == std::vector<float>(768, 0.0f));
                task.step(1);
            }
            CHECK(waited == std::max(1, (task.delay[0] + 15) / 16));
            std::set<int> others;
            for (int edge = 0; edge < 4; ++edge) {
                CHECK(lies_at(look(task), task, edge, place[edge][0], place[edge][1]));
                others.insert(task.digit[edge]);
            }
            CHECK(others.size() == 4);
            task.step(2);
            for (waited = 0; task.clock.kind == phase_kind::wait; ++waited) task.step(3);
            CHECK(waited == std::max(1, (task.delay[1] + 15) / 16));
            CHECK(task.event()->answer == task.where);
            CHECK(task.event()->stimulus == shown);
            if (trial > 0) CHECK(look(task) == last);
            last = look(task);
            CHECK(task.step(trial % 2 ? task.where : (task.where + 1) % 4).reward == (trial % 2 ? 1 : 0));
        }
    }
}

TEST_CASE("digits, edges and delays are drawn evenly, the two delays independently") {
    constexpr int count = 20000;
    std::map<int, int> what, where, pairs;
    what_then_where task = fresh("train", "small");
    for (int i = 0; i < count; ++i, task.reset()) {
        ++what[task.digit[task.where]], ++where[task.where];
        ++pairs[task.delay[0] * 1000 + task.delay[1]];
    }
    CHECK(what.size() == 5);
    CHECK(where.size() == 4);
    CHECK(pairs.size() == 16);
    for (const auto& [digit, n] : what) CHECK(about(n, count, 0.2));
    for (const auto& [edge, n] : where) CHECK(about(n, count, 0.25));
    for (const auto& [pair, n] : pairs) CHECK(about(n, count, 1 / 16.0));
}

TEST_CASE("the cards of a trial have hues a quarter apart, drawn anew; at paper fidelity there are none") {
    for (const char* level : {"train", "holdout_extrapolate"}) {
        what_then_where task = fresh(level, "small");
        std::map<int, int> eighths, right;
        constexpr int count = 4000;
        for (int i = 0; i < count; ++i, task.reset()) {
            std::set<int> quarters, within;
            for (const int h : task.hue) {
                REQUIRE((h >= 0 && h < 1536));
                quarters.insert(h / 384), within.insert(h % 384);
            }
            REQUIRE(quarters.size() == 4);
            REQUIRE(within.size() == 1);
            ++eighths[*within.begin() / 48], ++right[task.hue[task.where] / 384];
        }
        CHECK(eighths.size() == 8);
        for (const auto& [k, n] : eighths) CHECK(about(n, count, 1 / 8.0));
        for (const auto& [k, n] : right) CHECK(about(n, count, 0.25));
    }
    const what_then_where paper = fresh("train", "paper");
    for (const int h : paper.hue) CHECK(h == 0);
    what_then_where damaged = fresh("train", "small");
    CHECK(damaged.valid());
    damaged.hue[2] = 1536;
    CHECK_FALSE(damaged.valid());
    damaged = fresh("train", "paper");
    damaged.hue[2] = 1;
    CHECK_FALSE(damaged.valid());
}

TEST_CASE("a white dot and white buttons on black") {
    what_then_where task = fresh("train", "paper");
    while (task.clock.kind != phase_kind::centre) {
        task.clock.eye = {0, 0};
        psychlab_frame(task, nothing);
    }
    auto seen = look(task);
    CHECK(seen[(36 * 96 + 48) * 3] == 1);
    CHECK(seen[(36 * 96 + 60) * 3] == 0);
    psychlab_frame(task, nothing);
    seen = look(task);
    CHECK(seen[(36 * 96 + 48) * 3] == 0);
    for (const int i : {36 * 96 + 15, 36 * 96 + 80, 3 * 96 + 48, 68 * 96 + 48})
        CHECK(seen[static_cast<std::size_t>(i) * 3] == 1);
}

TEST_CASE("ten different digits are built in, of the side of the fidelity") {
    for (const char* fidelity : {"small", "paper"}) {
        const stimulus_set& set = digits(fidelity);
        CHECK(set.source() == "builtin");
        CHECK(set.side() == (std::string(fidelity) == "small" ? 6 : 20));
        CHECK(set.count(split::train) == 5);
        CHECK(set.count(split::holdout) == 5);
        for (int a = 0; a < 10; ++a) {
            const auto image = set.image(a);
            CHECK(*std::max_element(image.begin(), image.end()) == 1);
            for (int b = 0; b < a; ++b) {
                float apart = 0;
                for (std::size_t i = 0; i < image.size(); i += 3) apart += std::abs(image[i] - set.image(b)[i]);
                CHECK(apart > 0.06f * static_cast<float>(set.side() * set.side()));
            }
        }
    }
}

TEST_CASE("MNIST gives the ten images of the source") {
    // Sixty thousand images whose pixels tell the number of the image.
    const temporary_folder place;
    const std::string folder = place.path;
    std::filesystem::create_directories(folder + "/mnist");
    {
        std::ofstream file(folder + "/mnist/train-images-idx3-ubyte", std::ios::binary);
        const auto big = [&](unsigned x) {
            for (int shift = 24; shift >= 0; shift -= 8) file.put(static_cast<char>(x >> shift));
        };
        big(2051), big(60000), big(28), big(28);
        std::string image(28 * 28, '\0');
        for (unsigned i = 0; i < 60000; ++i) {
            // Bits of the number as blocks of 7 x 7.
            for (unsigned bit = 0; bit < 16; ++bit)
                for (unsigned y = 0; y < 7; ++y)
                    for (unsigned x = 0; x < 7; ++x)
                        image[(bit / 4 * 7 + y) * 28 + bit % 4 * 7 + x] = (i >> bit) & 1 ? '\xff' : '\0';
            file.write(image.data(), static_cast<std::streamsize>(image.size()));
        }
    }
    task_options options = at("paper");
    options.data = folder;
    const stimulus_set set = fixed_digits(options);
    CHECK(set.source() == "mnist");
    constexpr int numbers[] = {39824, 41968, 1439, 40746, 56827, 3454, 42499, 57610, 41348, 43831};
    for (int digit = 0; digit < 10; ++digit) {
        int found = 0;
        for (int bit = 0; bit < 16; ++bit)  // blocks of 5 x 5 at side 20
            found |= (set.image(digit)[static_cast<std::size_t>(((bit / 4 * 5 + 2) * 20 + bit % 4 * 5 + 2) * 3)] > 0.5f)
                     << bit;
        CHECK(found + 1 == numbers[digit]);
    }
    options.stimuli = "builtin";
    CHECK(fixed_digits(options).source() == "builtin");
    std::filesystem::remove_all(folder + "/mnist");
    options.stimuli = "mnist";
    CHECK_THROWS_WITH_AS((void)fixed_digits(options),
                         "what_then_where: stimuli 'mnist' need a data folder that holds mnist/", error);
    options.stimuli = "omniglot";
    CHECK_THROWS_WITH_AS((void)fixed_digits(options),
                         "what_then_where: stimuli 'omniglot' do not serve, the task shows digits; expected builtin or "
                         "mnist",
                         error);
    options.stimuli = "auto";
    options.data = "/nonexistent";
    CHECK_THROWS_WITH_AS((void)fixed_digits(options), "what_then_where: data folder '/nonexistent' does not exist",
                         error);
}
