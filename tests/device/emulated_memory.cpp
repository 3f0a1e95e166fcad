// SPDX-License-Identifier: MIT
// A device with too little memory says in one sentence what was asked for and what is free, whatever asks for it, and
// gives back what it had begun to take. Here it is the emulated one with a limit; CUDA's says the same.

#include <doctest/doctest.h>

#include <engram/device/operations.hpp>
#include <engram/train/acting_update.hpp>
#include <engram/train/device_environments.hpp>

#include "../train/small_agent.hpp"

using namespace small;

namespace {

using device = emulated<float>;
constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

/// Memory of which `bytes` are free.
struct limited {
    explicit limited(std::size_t bytes) { emulated_memory::limit = emulated_memory::used + bytes; }
    ~limited() { emulated_memory::limit = unlimited; }
};

template <class Body>
std::string refusal(Body body) {
    try {
        body();
    } catch (const engram::error& problem) {
        return problem.what();
    }
    return "";
}

/// What `make` takes at once at most, and all in all.
template <class Make>
void refuses(Make make) {
    const std::size_t before = emulated_memory::used;
    std::size_t needs = 0;
    {
        const auto made = make();
        needs = emulated_memory::used - before;
    }
    REQUIRE(needs > 0);
    CHECK(emulated_memory::used == before);
    // Nothing is free; or all but a byte of what is needed.
    for (const std::size_t free : {std::size_t{0}, needs / 2, needs - 1}) {
        CAPTURE(free);
        const limited to(free);
        const std::string said = refusal([&] { (void)make(); });
        CHECK(said.starts_with("device 'emulated': "));
        CHECK(said.find(" MiB were asked for, of ") != said.npos);
        CHECK(said.ends_with(" MiB are free; use a smaller batch, a shorter unroll or fewer memory slots"));
        CHECK(emulated_memory::used == before);
    }
    const limited enough(needs);
    CHECK_NOTHROW((void)make());
}

traced_agent<device> traced() {
    model::settings s;
    s.encoder.layers = {64};
    s.controller.hidden = 32;
    s.memory.slots = 16, s.memory.key = 6, s.memory.neighbours = 3;
    return model::trace<device>(s, shape_of(task::describe(options())), 1);
}

}  // namespace

TEST_CASE("the sentence names what was asked for and what is free") {
    const limited to(std::size_t{3} << 20);
    const auto before = emulated_memory::used.load();
    const std::string said = refusal([] { emulated_vector<double> numbers((std::size_t{5} << 20) / sizeof(double)); });
    CHECK(said == message("device 'emulated': 6 MiB were asked for, of ", emulated_memory::limit >> 20,
                          " MiB 3 MiB are free; use a smaller batch, a shorter unroll or fewer memory slots"));
    CHECK(emulated_memory::used == before);
}

TEST_CASE("weights, the arena and gradients, the optimiser's moments, environments and a whole training are refused") {
    auto a = traced();
    refuses([&] { return std::make_unique<device_weights<device>>(a.store->flat_size()); });
    const auto kept = device_weights<device>::of(*a.store);
    refuses([&] {
        return std::make_unique<program<device>>(
            *a.g, a.store, plan_options{.steps = 10, .batch = 8, .gradients = true, .replay = true, .total_batch = 8});
    });
    refuses([&] { return std::make_unique<device_optimiser<device>>(optimiser_settings{}, *a.store); });
    executor<device> on;
    refuses([&] {
        return std::make_unique<device_environments<device, task>>(on, "train", 8, 1, 0u, options(), images().get());
    });
    acting_settings s;
    s.rollout = {.environments = 6, .unroll = 7};
    refuses([&] {
        return std::make_unique<training_loop<acting_update<device>>>(loop_settings{3, 2, 1000}, a, maker(), s);
    });
}
