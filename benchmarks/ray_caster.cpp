// SPDX-License-Identifier: MIT

// Frames per second of the ray caster on one thread, over 64 random rooms seen all around, and sequences per second of
// the rotation task.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "engram/task/rotation.hpp"

#include "flags.hpp"

namespace {

using namespace engram;

/// The best of five runs, in seconds.
template <class F>
double best_seconds(F run) {
    double best = 1e30;
    for (int i = 0; i < 5; ++i) {
        const auto start = std::chrono::steady_clock::now();
        run();
        best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
}

}  // namespace

int main(int argc, char** argv) {
    const flags nothing(argc, argv);
    constexpr int rooms = 64;
    task_options options;
    options.fidelity = "paper";
    const rotation_task task(options);
    std::vector<rotation_task::scene> scenes;
    for (std::uint64_t i = 0; i < rooms; ++i) scenes.push_back(task.draw_scene("train", 1, i));

    for (const auto& [height, width, samples] :
         {std::array{72, 96, 1}, {72, 96, 2}, {32, 32, 1}, {32, 32, 2}, {16, 16, 1}, {16, 16, 2}}) {
        const lens through{.height = height, .width = width, .samples = samples};
        std::vector<float> pixels(static_cast<std::size_t>(height * width * 3));
        const double took = best_seconds([&] {
            for (const auto& scene : scenes)
                for (int t = 0; t < rotation_task::period; ++t)
                    render(scene.place, rotation_task::looking(scene.start, t), through, {}, pixels.data());
        });
        const double frames = rooms * rotation_task::period;
        std::printf("%2d x %2d, %d x %d samples a pixel: %9.0f frames/s  %6.1f ns a sample\n", height, width, samples,
                    samples, frames / took, took * 1e9 / (frames * height * width * samples * samples));
    }
    std::vector<float> sequence(static_cast<std::size_t>(task.info().steps * task.info().observation.size()));
    sequence_place to;
    to.observation = sequence.data();
    const double took = best_seconds([&] {
        for (std::uint64_t i = 0; i < rooms; ++i) task.draw("train", 1, i, to);
    });
    std::printf("rotation: %.0f sequences/s of 30 frames 32 x 32 x 3\n", rooms / took);
}
