// SPDX-License-Identifier: MIT
#include "engram/task/rotation.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

using namespace engram;

namespace {

constexpr int T = rotation_task::steps, period = rotation_task::period;

rotation_task task(const std::string& frame = "small") {
    task_options options;
    options.fidelity = frame;
    return rotation_task(options);
}

std::vector<float> frames(const rotation_task& of, const std::string& level, std::uint64_t seed, std::uint64_t index) {
    std::vector<float> pixels(static_cast<std::size_t>(T * of.info().observation.size()), -1);
    sequence_place to;
    to.observation = pixels.data();
    of.draw(level, seed, index, to);
    return pixels;
}

/// The mean distance between two frames.
double apart(const float* a, const float* b, int size) {
    double sum = 0;
    for (int i = 0; i < size; ++i) sum += std::fabs(a[i] - b[i]);
    return sum / size;
}

}  // namespace

TEST_CASE("the description gives both frame sizes, and the step from which all is a repetition") {
    const sequence_info small = task("small").info(), paper = task("paper").info();
    CHECK(small.name == "rotation");
    CHECK(small.steps == 30);
    CHECK(small.recall == 15);
    CHECK(small.actions == 0);
    CHECK(small.targets == 0);
    CHECK(small.observation == observation_shape{16, 16, 3});
    CHECK(paper.observation == observation_shape{32, 32, 3});
    CHECK(small.levels == std::vector<std::string>{"train", "holdout_interpolate"});
    CHECK_THROWS_WITH(task("papr"), "unknown fidelity 'papr'; did you mean 'paper'?");
    const rotation_task made = task();
    CHECK_THROWS_WITH(made.draw("trian", 0, 0, {}), "unknown rotation level 'trian'; did you mean 'train'?");
}

TEST_CASE("the camera turns once around in fifteen steps, each larger than the one before") {
    const pose start{100, 200, 60000};
    const auto turn = [&](int step) {
        const int from = rotation_task::looking(start, step).heading,
                  to = rotation_task::looking(start, step + 1).heading;
        return (to - from + full_turn) % full_turn;
    };
    int total = 0;
    for (int step = 0; step < period; ++step) {
        total += turn(step);
        CHECK(rotation_task::looking(start, step).heading < full_turn);
        if (step > 0) CHECK(turn(step) > turn(step - 1));
        CHECK(std::abs(turn(step) - full_turn * (step + 1) / 120) <= 1);  // (k + 1) / 120 turns, rounded
        CHECK(rotation_task::looking(start, step + period) == rotation_task::looking(start, step));
    }
    CHECK(total == full_turn);
    CHECK(rotation_task::looking(start, 0) == start);
}

TEST_CASE("frame t + 15 equals frame t bit for bit, and no two frames of a period are alike") {
    for (const char* frame : {"small", "paper"}) {
        const rotation_task of = task(frame);
        const int size = of.info().observation.size();
        for (std::uint64_t index = 0; index < 40; ++index) {
            const std::vector<float> seen = frames(of, "train", 1, index);
            for (const float p : seen) REQUIRE((p >= 0 && p <= 1));
            for (int t = 0; t < period; ++t) {
                for (int i = 0; i < size; ++i) REQUIRE(seen[t * size + i] == seen[(t + period) * size + i]);
                // Three degrees and more: no less than a percent of the brightness on average.
                for (int s = 0; s < t; ++s) CHECK(apart(&seen[t * size], &seen[s * size], size) > 0.01);
            }
        }
    }
}

// What the draw of frames copies: the second turn, drawn, has the same bits too.
TEST_CASE("drawing the second turn gives the same frames as copying the first") {
    const rotation_task of = task();
    const int size = of.info().observation.size();
    const auto scene = of.draw_scene("train", 3, 4);
    std::vector<float> first(static_cast<std::size_t>(size)), second = first;
    const lens through{.height = 16, .width = 16, .samples = 2};
    for (int t = 0; t < period; ++t)
        for (auto* to : {&first, &second}) {
            render(scene.place, rotation_task::looking(scene.start, to == &first ? t : t + period), through, {},
                   to->data());
            if (to == &second) CHECK(first == second);
        }
}

TEST_CASE("a sequence is a pure function of seed, level and index") {
    const rotation_task of = task(), other = task();
    const auto first = frames(of, "train", 5, 0), second = frames(of, "train", 5, 1);
    CHECK(frames(other, "train", 5, 1) == second);  // in another order, by another task
    CHECK(frames(other, "train", 5, 0) == first);
    std::set<std::vector<float>> distinct{first, second, frames(of, "holdout_interpolate", 5, 0),
                                          frames(of, "train", 6, 0), frames(of, "train", 5, std::uint64_t{1} << 32)};
    CHECK(distinct.size() == 5);
}

TEST_CASE("rooms are valid, furnished, and leave the camera free") {
    const rotation_task of = task();
    int pictures = 0, objects = 0;
    for (const char* level : {"train", "holdout_interpolate"})
        for (std::uint64_t index = 0; index < 500; ++index) {
            const auto scene = of.draw_scene(level, 7, index);
            REQUIRE(scene.place.valid());
            REQUIRE_FALSE(collides(scene.place, scene.start.x, scene.start.y, cell_length / 4));
            for (int i = 0; i < scene.place.width; ++i)
                for (const auto& [x, y] :
                     {std::pair{i, 0}, {i, scene.place.height - 1}, {0, i}, {scene.place.width - 1, i}})
                    REQUIRE(scene.place.at(x, y).kind == cell_kind::wall);  // closed
            CHECK(int{scene.place.pictures_used} >= 1);
            CHECK(int{scene.place.pictures_used} <= 4);
            CHECK(int{scene.place.objects_used} >= 2);
            CHECK(int{scene.place.objects_used} <= 5);
            for (int i = 0; i < scene.place.pictures_used; ++i) {
                const wall_picture& hung = scene.place.pictures[i];
                const int x = hung.x + (hung.side == face::east) - (hung.side == face::west);
                const int y = hung.y + (hung.side == face::south) - (hung.side == face::north);
                CHECK(scene.place.at(hung.x, hung.y).solid());
                CHECK_FALSE(scene.place.at(x, y).solid());  // to be seen
            }
            pictures += scene.place.pictures_used, objects += scene.place.objects_used;
        }
    // Means 2.5 and 3.5 of 1000 rooms, each uniform over four numbers: a standard error of 0.035.
    CHECK(std::fabs(pictures / 1000.0 - 2.5) < 0.15);
    CHECK(std::fabs(objects / 1000.0 - 3.5) < 0.15);
}

TEST_CASE("a sequence is written into its own row of a batch, and null leaves an input out") {
    const rotation_task of = task();
    const int size = of.info().observation.size(), rows = 3;
    const auto alone = frames(of, "train", 9, 2);
    std::vector<float> batch(static_cast<std::size_t>(T * rows * size), -1), weight(T * rows, -1);
    std::vector<int> origin(T, -7), label(T, -7);
    sequence_place to;
    to.observation = batch.data() + size;  // row 1
    to.weight = weight.data() + 1;
    to.origin = origin.data(), to.label = label.data(), to.rows = rows;
    of.draw("train", 9, 2, to);
    for (int t = 0; t < T; ++t)
        for (int row = 0; row < rows; ++row) {
            CHECK(weight[t * rows + row] == (row == 1 ? 0 : -1));
            for (int i = 0; i < size; ++i)
                REQUIRE(batch[(t * rows + row) * size + i] == (row == 1 ? alone[t * size + i] : -1));
        }
    for (int t = 0; t < T; ++t) {
        CHECK(origin[t] == (t < 15 ? -1 : t - 15));
        CHECK(label[t] == -1);
    }
    CHECK_NOTHROW(of.draw("train", 9, 2, {}));
}
