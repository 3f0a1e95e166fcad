// SPDX-License-Identifier: MIT
// MemUP's phases on a device, here an emulated one: detector, memory and a policy that acts on it do what they do on
// the host, resume with the same bits, and move between host and device in any phase.

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include <engram/device/operations.hpp>

#include "../train/same_file.hpp"
#include "../train/small_phases.hpp"

using namespace small_phases;

namespace {

using here = phase_run<cpu<float>>;
using there = phase_run<emulated<float>>;

double worst_of(const parameters<float>& a, const parameters<float>& b) {
    double worst = 0;
    for (std::size_t i = 0; i < a.flat().size(); ++i)
        worst = std::max(worst, std::abs(static_cast<double>(a.flat()[i]) - static_cast<double>(b.flat()[i])));
    return worst;
}
/// Of detector, averages of the memory, and policy.
template <class A, class B>
double difference(A& a, B& b) {
    a.trainer->sync_weights();
    b.trainer->sync_weights();
    return std::max({worst_of(*a.trainer->detector().store, *b.trainer->detector().store),
                     worst_of(*a.trainer->memory().store, *b.trainer->memory().store),
                     worst_of(*a.policy.store, *b.policy.store)});
}
template <class Run>
void finish(Run& r) {
    while (r.trainer->steps() < r.trainer->total_steps()) r.trainer->iterate();
}

const sizes few{.units = 8, .detector = 160, .memory = 320, .policy = 160};
const sizes all_at_once{.units = 8, .detector = 160, .policy = 320, .uncertainty = "quantiles", .joint = true};

}  // namespace

// In float, and actions are drawn from policies that differ by rounding: 1e-4, as for agents without phases.
TEST_CASE("three phases on a device are the host's, one after the other and all at once") {
    for (const bool joint : {false, true})
        for (const int threads : {1, 2}) {
            CAPTURE(joint);
            CAPTURE(threads);
            sizes z = joint ? all_at_once : few;
            z.threads = threads;
            here host(z);
            there device(z), begun(z);
            finish(host);
            finish(device);
            CHECK(device.trainer->steps() == host.trainer->steps());
            CHECK(difference(host, device) < 1e-4);
            CHECK(worst_of(*begun.trainer->detector().store, *device.trainer->detector().store) > 1e-3);
            CHECK(worst_of(*begun.trainer->memory().store, *device.trainer->memory().store) > 1e-3);
            CHECK(worst_of(*begun.policy.store, *device.policy.store) > 1e-3);
            CHECK(host.score(8) == device.score(8));
        }
}

TEST_CASE("phases that are resumed on a device end like those that were not, and move to the host and back") {
    for (const bool joint : {false, true}) {
        CAPTURE(joint);
        const sizes z = joint ? all_at_once : few;
        there whole(z);
        std::vector<safetensors> on_the_way;
        const int every = 3;
        for (int i = 1; whole.trainer->steps() < whole.trainer->total_steps(); ++i) {
            whole.trainer->iterate();
            if (i % every != 0) continue;
            on_the_way.emplace_back();
            whole.trainer->save(on_the_way.back());
        }
        const auto end = whole.saved();
        std::set<std::string> modes;
        for (const auto& file : on_the_way) {
            modes.insert(file.metadata.at("training_mode"));
            there resumed(z);
            resumed.trainer->iterate();  // what it did before leaves no trace
            resumed.trainer->load(file);
            CHECK(same(resumed.saved(), file));
            here host(z);
            host.trainer->load(file);
            CHECK(same(host.saved(), file));
            finish(resumed);
            CHECK(same(resumed.saved(), end));
            finish(host);
            CHECK(difference(host, resumed) < 1e-4);
            there back(z);
            back.trainer->load(host.saved());
            CHECK(same(back.saved(), host.saved()));
        }
        CHECK(modes.size() == (joint ? 1 : 3));
    }
}
