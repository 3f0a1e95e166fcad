// Training that never leaves an emulated device: the host's episodes, updates and weights.

#include "training.hpp"

#include <numeric>

#include <engram/train/acting_update.hpp>

using namespace training_test;
using device = engram::emulated<float>;

namespace {

history trained_on_the_host() {
    const auto agent = traced<cpu<float>>();
    history told;
    told.first.assign(agent.store->flat().begin(), agent.store->flat().end());
    const environment_maker make = [](int count, int first_row) {
        return std::make_unique<batch_of<t_maze>>("train", count, seed, static_cast<std::uint32_t>(first_row),
                                                  corridor(), nullptr);
    };
    training_loop<acting_update<cpu<float>>> host({seed, 1, iterations * environments * unroll}, agent, make,
                                                  settings());
    for (int i = 0; i < iterations; ++i) {
        host.iterate();
        const auto now = host.take_window();
        const auto count = static_cast<int>(now.episodes.size());
        told.episodes.push_back(count);
        told.reward.push_back(count > 0 ? std::accumulate(now.episodes.begin(), now.episodes.end(), 0.0) / count : 0);
        told.loss.push_back(now.loss);
        told.norm.push_back(now.gradient_norm);
    }
    told.weights.assign(agent.store->flat().begin(), agent.store->flat().end());
    return told;
}

}  // namespace

TEST_CASE("training on the device is the host's training") {
    are_the_same(trained_on<device>(), trained_on_the_host());
}

TEST_CASE("an agent learns a T-Maze without leaving the device") {
    an_agent_learns<device>();
}

TEST_CASE("several passes over an unroll are refused on the device") {
    acting_settings s;
    s.rollout.environments = 2;
    s.rollout.epochs = 3;
    const auto agent = traced<device>();
    using trainer_on_device = device_trainer<device, t_maze>;
    CHECK_THROWS_WITH(trainer_on_device(agent, "train", s, 1, 0, corridor()), doctest::Contains("rollout.epochs is 3"));
}
