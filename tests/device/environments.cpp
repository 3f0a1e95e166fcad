// Environments in the memory of an emulated device: the host's episodes and the host's frames, to the bit.

#include "environments.hpp"

TEST_CASE("environments on a device walk as on the host") {
    device_test::environments_walk_as_on_the_host<engram::emulated<float>>(0, 0);
}

TEST_CASE("an action that does not exist is named by the device") {
    using namespace engram;
    executor<emulated<float>> on;
    device_environments<emulated<float>, t_maze> mazes(on, "train", 2, 1, 0, {}, nullptr);
    const int actions[2] = {1, 2};
    outcome outcomes[2];
    mazes.step(actions, outcomes);
    CHECK_THROWS_WITH(on.wait(), "t_maze: an action is out of range");
}
