// FF with the PPO learner on a device.

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/ppo.hpp>
#include <engram/memory/no_memory.hpp>

#include "compare.hpp"

using namespace engram;

TEST_CASE("ten updates of FF with PPO on a device equal those on the host") {
    using line = agent<mlp, feed_forward, no_memory, no_auxiliary, ppo>;
    line::settings s;
    s.encoder.layers = {6, 4};
    device_test::device_equals_host<line>(s);
}
