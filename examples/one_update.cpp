// The least program that learns: an LSTM agent with an episodic memory acts for ten steps in 16 T-Mazes, learns once
// from them, and says what it did. It needs the headers alone, no other file of the library:
//
//   g++ -std=c++20 -O3 -march=native -Iinclude examples/one_update.cpp -lz -pthread -o one_update && ./one_update

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/model/agent.hpp>
#include <engram/task/t_maze.hpp>
#include <engram/train/acting_update.hpp>

int main() {
    using namespace engram;
    using model = agent<mlp, lstm, fifo_knn, no_auxiliary, vtrace>;

    model::settings settings;
    settings.controller.hidden = 32;
    settings.memory.slots = 64;

    const task_options options{.length = 10};
    const auto small = model::trace<cpu<float>>(settings, shape_of(t_maze::describe(options)), 1);
    const auto mazes = [&](int count, int first_row) -> std::unique_ptr<batch_environment> {
        return std::make_unique<batch_of<t_maze>>("train", count, 1, static_cast<std::uint32_t>(first_row), options,
                                                  nullptr);
    };
    training_loop<acting_update<cpu<float>>> training(
        {1, 1, 1000}, small, mazes, acting_settings{.rollout = {.environments = 16, .unroll = 10}, .optimiser = {}});

    const std::vector<float> before(small.store->flat().begin(), small.store->flat().end());
    training.iterate();
    const auto window = training.take_window();
    std::printf("one update of %lld parameters: loss %.3f, gradient norm %.3f\n",
                static_cast<long long>(small.store->total()), window.loss, window.gradient_norm);

    const bool learnt = !std::ranges::equal(before, small.store->flat());
    return learnt && std::isfinite(window.loss) ? 0 : 1;
}
