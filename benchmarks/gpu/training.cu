// SPDX-License-Identifier: MIT

// Whole training iterations on a CUDA device, environments included: T steps of acting, then one update of V-trace.
// Steps of experience a second over all environments.

#include "timing.cuh"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/encoder/small_conv.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/task/goal_arena.hpp>
#include <engram/task/t_maze.hpp>
#include <engram/train/acting_update.hpp>
#include <engram/train/rows_on_device.hpp>

namespace {

using namespace engram;
using backend = cuda<float>;

template <class Agent, class Environment>
void time_training(const char* name, const task_options& options, int B, int T) {
    const task_info info = Environment::describe(options);
    const auto agent = Agent::template trace<backend>({}, shape_of(info), 1);
    acting_settings s;
    s.rollout.environments = B;
    s.rollout.unroll = T;
    const resident_maker<backend> make = [&](executor<backend>& on, int count, int first_row) {
        return std::make_unique<device_environments<backend, Environment>>(
            on, info.levels.front(), count, 1, static_cast<std::uint32_t>(first_row), options, nullptr);
    };
    training_loop<acting_update<backend>> loop({1, 1, 0}, agent, on_device(agent, make, 1), s);
    auto& shard = loop->shard(0);
    shard.rows->acting().executor().precision = tensor_core_rounding::tf32;
    shard.learner.executor().precision = tensor_core_rounding::tf32;
    const double us = gpu_benchmark::microseconds(
        3, [&] { loop.take_window(); }, [&] { loop.iterate(); });
    gpu_benchmark::line(message(name, ", B ", B, ", T ", T), 1e6 * B * T / us, "steps/s");
}

}  // namespace

int main() {
    return gpu_benchmark::run([] {
        task_options corridor, paper;
        paper.fidelity = "paper";
        using blind = agent<mlp, lstm, no_memory, no_auxiliary, vtrace>;
        using remembering = agent<mlp, lstm, fifo_knn, no_auxiliary, vtrace>;
        using seeing = agent<small_conv, lstm, no_memory, no_auxiliary, vtrace>;
        time_training<blind, t_maze>("T-Maze, MLP + LSTM", corridor, 256, 20);
        time_training<remembering, t_maze>("T-Maze, MLP + LSTM + MEM", corridor, 64, 20);
        time_training<seeing, visible_goal_with_buildings>("goal arena 72 x 96, small conv + LSTM", paper, 256, 20);
    });
}
