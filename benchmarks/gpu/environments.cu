// SPDX-License-Identifier: MIT

// Environments on a CUDA device beside one host thread: steps a second of a T-Maze and of a 3D task with its frames,
// and frames a second of the ray caster at 72 x 96.

#include "timing.cuh"

#include <engram/task/goal_arena.hpp>
#include <engram/task/rotation.hpp>
#include <engram/task/t_maze.hpp>
#include <engram/train/device_environments.hpp>

namespace {

using namespace engram;
using gpu_benchmark::line;

constexpr int steps = 50;  // in a graph

/// Steps a second with what is seen after each; B environments.
template <class E>
double on_the_device(int B, const task_options& options) {
    executor<cuda<float>> on;
    device_environments<cuda<float>, E> rows(on, "train", B, 1, 0, options, nullptr);
    device_array<int> actions(static_cast<std::size_t>(B));
    device_array<outcome> outcomes(static_cast<std::size_t>(B));
    std::vector<int> chosen(static_cast<std::size_t>(B));
    philox random(1, 1);
    for (auto& a : chosen) a = random.below(rows.info().actions);
    on.upload_bytes(chosen.data(), actions.data(), sizeof(int) * chosen.size());
    const double us = gpu_benchmark::microseconds(
        5, [&] { on.wait(); },
        [&] {
            on.replay(3, std::vector<std::shared_ptr<void>>{}, [&] {
                for (int t = 0; t < steps; ++t) {
                    rows.step(actions.data(), outcomes.data());
                    rows.observe();
                }
            });
        });
    return 1e6 * B * steps / us;
}

template <class E>
double on_the_host(int B, int turns, const task_options& options) {
    batch_of<E> rows("train", B, 1, 0, options, nullptr);
    std::vector<float> seen(static_cast<std::size_t>(rows.info().observation.size()));
    philox random(1, 1);
    double best = 0;
    for (int run = 0; run < 3; ++run) {
        const auto start = std::chrono::steady_clock::now();
        for (int t = 0; t < turns; ++t)
            for (int b = 0; b < B; ++b) {
                rows.step(b, b % rows.info().actions);
                rows.observe(b, seen.data());
            }
        best = std::max(best, 1e6 * B * turns / gpu_benchmark::microseconds_since(start));
    }
    return best;
}

void frames() {
    constexpr int rooms = 4096;
    const lens through;
    task_options options;
    options.fidelity = "paper";
    const rotation_task task(options);
    executor<cuda<float>> on;
    const int size = through.height * through.width * 3;
    std::vector<room> places;
    std::vector<room_view> wanted;
    device_array<room> there(rooms);
    device_array<room_view> views(rooms);
    device_array<float> pixels(static_cast<std::size_t>(rooms) * static_cast<std::size_t>(size));
    std::vector<rotation_task::scene> scenes;
    for (std::uint64_t i = 0; i < 64; ++i) scenes.push_back(task.draw_scene("train", 1, i));
    for (int i = 0; i < rooms; ++i) {
        const auto& scene = scenes[static_cast<std::size_t>(i % 64)];
        places.push_back(scene.place);
        wanted.push_back(
            {there.data() + i, rotation_task::looking(scene.start, i / 64 % rotation_task::period), through});
    }
    on.upload_bytes(places.data(), there.data(), sizeof(room) * places.size());
    on.upload_bytes(wanted.data(), views.data(), sizeof(room_view) * wanted.size());
    const double us = gpu_benchmark::microseconds(
        5, [&] { on.wait(); },
        [&] {
            on.launch("draw", std::ptrdiff_t{rooms} * through.width,
                      internal::draw_view_column{views.data(), pixels.data(), size, through.width});
        });
    line("ray caster 72 x 96, device", 1e6 * rooms / us, "frames/s");
    std::vector<float> seen(static_cast<std::size_t>(size));
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 640; ++i)
        draw_frame(places[static_cast<std::size_t>(i % 64)], wanted[static_cast<std::size_t>(i)].from, through, {},
                   seen.data());
    line("ray caster 72 x 96, one host thread", 1e6 * 640 / gpu_benchmark::microseconds_since(start), "frames/s");
}

}  // namespace

int main() {
    return gpu_benchmark::run([] {
        task_options corridor;
        for (const int B : {4096, 65536, 1048576})
            line(message("T-Maze, ", B, " on the device"), on_the_device<t_maze>(B, corridor), "steps/s");
        line("T-Maze, one host thread", on_the_host<t_maze>(1024, 500, corridor), "steps/s");
        task_options paper;
        paper.fidelity = "paper";
        using arena = visible_goal_with_buildings;
        for (const int B : {256, 4096})
            line(message("goal arena with frames 72 x 96, ", B, " on the device"), on_the_device<arena>(B, paper),
                 "steps/s");
        line("goal arena with frames 72 x 96, one host thread", on_the_host<arena>(16, 20, paper), "steps/s");
        frames();
    });
}
