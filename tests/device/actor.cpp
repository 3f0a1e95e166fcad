// Environments on a device play the episodes that they play on the host.

#include <doctest/doctest.h>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/gru.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/device/operations.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/task/t_maze.hpp>
#include <engram/train/actor.hpp>
#include <engram/train/device_actor.hpp>

using namespace engram;

namespace {

template <class Controller>
void an_actor_on_the_device_takes_the_hosts_actions() {
    using model = agent<mlp, Controller, no_memory, no_auxiliary, vtrace>;
    task_options options;
    options.length = 3;
    options.length_spread = 2;
    const task_info info = t_maze::describe(options);
    const task_shape shape = shape_of(info);
    typename model::settings s;
    s.encoder.layers = {6, 4};
    s.controller.hidden = 5;
    const auto here = model::template trace<cpu<float>>(s, shape, 5);
    const auto there = model::template trace<emulated<float>>(s, shape, 5);
    const int B = 4;
    const std::string level = info.levels.front();
    actor<cpu<float>> host(here, here.store, std::make_unique<batch_of<t_maze>>(level, B, 9, 2, options, nullptr), 9,
                           2);
    const resident_maker<emulated<float>> make = [&](executor<emulated<float>>& on, int count, int first_row) {
        return std::make_unique<device_environments<emulated<float>, t_maze>>(
            on, level, count, 9, static_cast<std::uint32_t>(first_row), options, nullptr);
    };
    device_actor<emulated<float>> device(there, there.store, make, B, 9, 2);
    int finished = 0, several = 0;
    for (int t = 0; t < 200; ++t) {
        host.step();
        device.step();
        const auto steps = device.fetch();
        for (int b = 0; b < B; ++b) {
            const auto i = static_cast<std::size_t>(b);
            REQUIRE(steps[i].action == host.action()[i]);
            CHECK(steps[i].reward == host.reward()[i]);
            CHECK((steps[i].done != 0) == (host.done()[i] != 0));
            CHECK(steps[i].log_probability == doctest::Approx(host.log_probability()[i]).epsilon(1e-4));
            CHECK(steps[i].value == doctest::Approx(host.value()[i]).epsilon(1e-4));
            if (steps[i].done) {
                CHECK(steps[i].episode_reward == doctest::Approx(host.finished()[static_cast<std::size_t>(finished)]));
                ++finished;
            }
            several += steps[i].action != steps[0].action;
        }
    }
    CHECK(finished > 5);
    CHECK(several > 20);
}

}  // namespace

TEST_CASE("an actor on the device takes the host's actions and sees its rewards") {
    an_actor_on_the_device_takes_the_hosts_actions<lstm>();
    an_actor_on_the_device_takes_the_hosts_actions<gru>();
}
