// Training that never leaves an emulated device.

#include "training.hpp"

using namespace training_test;
using device = engram::emulated<float>;

TEST_CASE("training on the device is the host's training") {
    training_is_the_hosts<device>();
}

TEST_CASE("an agent learns a T-Maze without leaving the device") {
    an_agent_learns<device>();
}

TEST_CASE("several passes over an unroll are refused on the device") {
    trainer_settings s;
    s.rollout.environments = 2;
    s.rollout.epochs = 3;
    const auto agent = traced<device>();
    using trainer_on_device = device_trainer<device, t_maze>;
    CHECK_THROWS_WITH(trainer_on_device(agent, "train", s, 1, 0, corridor()), doctest::Contains("rollout.epochs is 3"));
}
