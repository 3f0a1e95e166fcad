// SPDX-License-Identifier: MIT
#include "engram/task/change_detection.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace engram;

namespace {

change_detection fresh(const std::string& level, const std::string& fidelity, std::uint64_t seed = 1) {
    task_options options;
    options.fidelity = fidelity;
    change_detection made = change_detection::make(level, options, nullptr);
    made.random = philox(seed, 7);
    made.reset();
    return made;
}

constexpr int nothing = static_cast<int>(looking::nothing);

/// Trials of a level, without playing them.
template <class F>
void trials(const std::string& level, int count, F f) {
    change_detection task = fresh(level, "small");
    for (int i = 0; i < count; ++i, task.reset()) f(task);
}

bool about(double count, double total, double share) {
    return std::abs(count - share * total) < 5 * std::sqrt(total * share * (1 - share));
}

std::vector<float> look(const change_detection& task) {
    std::vector<float> pixels(task.rules().paper ? 72 * 96 * 3 : 16 * 16 * 3);
    task.observe(nullptr, pixels.data());
    return pixels;
}

std::set<std::array<int, 3>> colours(const std::vector<float>& pixels) {
    std::set<std::array<int, 3>> found;
    for (std::size_t i = 0; i < pixels.size(); i += 3)
        found.insert({static_cast<int>(pixels[i] * 255 + 0.5f), static_cast<int>(pixels[i + 1] * 255 + 0.5f),
                      static_cast<int>(pixels[i + 2] * 255 + 0.5f)});
    return found;
}

}  // namespace

TEST_CASE("at paper fidelity study, delay and buttons keep their frames") {
    for (const char* level : {"train", "holdout_interpolate", "holdout_extrapolate"}) {
        change_detection task = fresh(level, "paper");
        std::set<int> seen;
        for (int trial = 0; trial < 40; ++trial) {
            std::map<phase_kind, int> frames;
            int without_buttons = 0;
            seen.insert(task.delay);
            const int delay = task.delay;
            while (task.clock.trial == trial) {
                ++frames[task.clock.kind];
                if (task.clock.kind == phase_kind::respond) {
                    task.clock.eye = {0, 0};  // a look at the middle shows both buttons
                    const auto now = look(task);
                    without_buttons += !colours(now).contains({0, 0, 0});
                    if (frames[phase_kind::respond] == 12) task.clock.eye = {-6000, 0};
                } else {
                    task.clock.eye = {0, 0};
                }
                REQUIRE(psychlab_frame(task, nothing).done == false);
            }
            CHECK(frames[phase_kind::gap] == (trial > 0));
            CHECK(frames[phase_kind::fixate] == 1);
            CHECK(frames[phase_kind::show] == 25);
            CHECK(frames[phase_kind::wait] == delay);
            CHECK(frames[phase_kind::centre] == 1);
            CHECK(frames[phase_kind::respond] == 12);
            CHECK(without_buttons == 8);
        }
        const std::string name = level;
        CHECK(seen == (name == "train"                 ? std::set{2, 4, 8, 64, 128}
                       : name == "holdout_interpolate" ? std::set{16, 32}
                                                       : std::set{130, 150, 200, 250}));
    }
}

TEST_CASE("a button that is gazed at before it appears counts once it is there") {
    change_detection task = fresh("train", "paper");
    task.clock.eye = {0, 0};
    while (task.clock.kind != phase_kind::respond) psychlab_frame(task, nothing);
    task.clock.eye = {6000, 0};
    int frames = 0;
    for (; task.clock.kind == phase_kind::respond; ++frames) psychlab_frame(task, nothing);
    CHECK(frames == 9);
    CHECK(task.clock.response == 1);
}

TEST_CASE("at small fidelity a trial is the study, the delay, the answer") {
    change_detection task = fresh("holdout_extrapolate", "small");
    for (int trial = 0; trial < 49; ++trial) {
        const int delay = task.delay;
        const auto study = look(task);
        CHECK_FALSE(task.event());
        CHECK(task.step(1).reward == 0);
        int waited = 0;
        for (; !task.event(); ++waited) {
            CHECK(colours(look(task)) == std::set<std::array<int, 3>>{{255, 255, 255}});
            CHECK(task.step(trial % 2).reward == 0);
        }
        CHECK(waited == (delay + 15) / 16);
        auto test = look(task);
        CHECK(colours(test).contains({0, 0, 0}));
        for (std::size_t i = 0; i < test.size(); i += 3)
            if (test[i] == 0 && test[i + 1] == 0 && test[i + 2] == 0) test[i] = test[i + 1] = test[i + 2] = 1;
        CHECK((test == study) == (task.answer() == 1));
        CHECK(task.event()->answer == task.answer());
        CHECK(task.step(trial % 2).reward == (trial % 2 == (test == study ? 1 : 0) ? 1 : 0));
    }
}

TEST_CASE("set sizes, domains, changes and delays are drawn evenly") {
    constexpr int count = 20000;
    std::map<int, int> sizes, domains, delays;
    int different = 0;
    trials("train", count, [&](const change_detection& task) {
        ++sizes[task.objects], ++domains[task.domain], ++delays[task.delay];
        different += task.different;
    });
    CHECK(about(different, count, 0.5));
    CHECK(sizes.size() == 4);
    CHECK(domains.size() == 5);
    CHECK(delays.size() == 5);
    for (const auto& [size, n] : sizes) CHECK(about(n, count, 0.25));
    for (const auto& [domain, n] : domains) CHECK(about(n, count, 0.2));
    for (const auto& [delay, n] : delays) CHECK(about(n, count, 0.2));
}

TEST_CASE("one object changes in one way that its domain allows, and cells stay apart") {
    enum { position, colour, opening, form };
    std::map<int, std::map<int, int>> kinds;  // of a domain
    trials("train", 20000, [&](const change_detection& task) {
        std::set<int> study_cells, test_cells;
        int changed = 0;
        for (int i = 0; i < task.objects; ++i) {
            const auto &a = task.study[i], &b = task.test[i];
            study_cells.insert(a.cell), test_cells.insert(b.cell);
            if (a == b) continue;
            ++changed;
            const int ways =
                (a.cell != b.cell) + (a.colour != b.colour) + (a.opening != b.opening) + (a.square != b.square);
            REQUIRE(ways == 1);
            if (a.opening != b.opening) REQUIRE_FALSE(a.square);
            if (a.cell != b.cell) REQUIRE_FALSE(study_cells.contains(b.cell));
            ++kinds[task.domain][a.cell != b.cell         ? position
                                 : a.colour != b.colour   ? colour
                                 : a.opening != b.opening ? opening
                                                          : form];
        }
        REQUIRE(changed == task.different);
        REQUIRE(static_cast<int>(study_cells.size()) == task.objects);
        REQUIRE(static_cast<int>(test_cells.size()) == task.objects);
        for (int i = 0; i < task.objects; ++i) {
            if (task.domain < 3) REQUIRE_FALSE(task.study[i].square);
            if (task.domain == 3) REQUIRE(task.study[i].square);
            if (task.domain == 1) REQUIRE(task.study[i].opening == task.study[0].opening);
            if (task.domain == 2) REQUIRE(task.study[i].colour == task.study[0].colour);
        }
    });
    const auto ways = [&](int domain) {
        std::set<int> found;
        for (const auto& [kind, n] : kinds[domain]) found.insert(kind);
        return found;
    };
    CHECK(ways(0) == std::set<int>{position, colour, opening});
    CHECK(ways(1) == std::set<int>{position, colour});
    CHECK(ways(2) == std::set<int>{position, opening});
    CHECK(ways(3) == std::set<int>{position, colour});
    CHECK(ways(4) == std::set<int>{position, colour, opening, form});
}

TEST_CASE("nine cells in a cross") {
    std::set<std::array<int, 2>> places;
    for (int cell = 0; cell < 9; ++cell) {
        const change_object at{cell, 0, 0, 0};
        CHECK((at.row() == 2 || at.column() == 2));
        CHECK((at.row() >= 0 && at.row() < 5 && at.column() >= 0 && at.column() < 5));
        places.insert({at.row(), at.column()});
    }
    CHECK(places.size() == 9);
}

TEST_CASE("an E opens to its side, and a square is full, in every cell") {
    change_detection task = fresh("train", "small");
    task.objects = 1;
    for (int cell = 0; cell < 9; ++cell)
        for (int opening = 0; opening < 4; ++opening)
            for (int square = 0; square < 2; ++square) {
                task.study[0] = {cell, 1, opening, square};
                const auto pixels = look(task);
                const int left = 3 * task.study[0].column(), top = 3 * task.study[0].row();
                const auto inked = [&](int x, int y) {
                    return pixels[static_cast<std::size_t>(((top + y) * 16 + left + x) * 3 + 1)] == 0;
                };
                int ink = 0;
                for (std::size_t i = 1; i < pixels.size(); i += 3) ink += pixels[i] == 0;
                CHECK(ink == (square ? 9 : 7));
                constexpr int edge[4][2] = {{2, 1}, {1, 2}, {0, 1}, {1, 0}};
                for (int side = 0; side < 4; ++side)
                    CHECK(inked(edge[side][0], edge[side][1]) == (square || side != opening));
            }
}

TEST_CASE("colours are those of the split") {
    const std::set<std::array<int, 3>> train{{240, 163, 255}, {194, 0, 136},   {148, 255, 181},
                                             {153, 63, 0},    {255, 204, 153}, {255, 255, 255}},
        held{{116, 10, 255}, {157, 204, 0}, {255, 164, 5}, {94, 241, 242}, {255, 255, 0}, {255, 255, 255}};
    for (const char* level : {"train", "holdout_interpolate", "holdout_extrapolate"}) {
        std::set<std::array<int, 3>> ever;
        trials(level, 200, [&](const change_detection& task) { ever.merge(colours(look(task))); });
        CHECK(ever == (std::string(level) == "train" ? train : held));
    }
}

TEST_CASE("a black dot asks for a look at the middle") {
    change_detection task = fresh("train", "paper");
    task.clock.eye = {0, 0};
    while (task.clock.kind != phase_kind::wait) psychlab_frame(task, nothing);
    task.clock.eye = {2000, 0};
    while (task.clock.kind != phase_kind::centre) psychlab_frame(task, nothing);
    for (int i = 0; i < 50; ++i) psychlab_frame(task, nothing);
    CHECK(task.clock.kind == phase_kind::centre);
    task.clock.eye = {0, 0};
    const auto seen = look(task);
    CHECK(seen[(36 * 96 + 48) * 3] == 0);
    CHECK(seen[(36 * 96 + 56) * 3] == 1);
    psychlab_frame(task, nothing);
    CHECK(task.clock.kind == phase_kind::respond);
}
