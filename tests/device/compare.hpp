#pragma once
// One agent on the host and on an emulated device: the same numbers after ten updates, in any order of threads.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <engram/device/operations.hpp>
#include <engram/model/laws.hpp>
#include <engram/train/optimiser.hpp>

namespace device_test {

using namespace engram;

inline task_shape task() {
    return {{4, 4, 1}, 3};
}

/// What ten updates leave: weights, then states, then what the model says of another unroll.
template <class Agent, class Backend>
std::vector<double> after_ten_updates(const typename Agent::settings& s, const task_shape& t, int T, int B,
                                      thread_order order = thread_order::ascending) {
    using real = typename Backend::real;
    auto a = Agent::template trace<Backend>(s, t, 5);
    {
        // Zero biases would leave whole layers at the corner of a ReLU.
        philox random(2, 2);
        auto edit = a.store->edit();
        for (auto& w : edit.flat()) w += static_cast<real>(0.1 * static_cast<double>(random.normal()));
    }
    program<Backend> p(*a.g, a.store, {.steps = T, .batch = B, .gradients = true});
    if constexpr (requires { p.executor().order; }) p.executor().order = order;
    optimiser<real> adam({}, *a.store);
    std::vector<double> numbers;
    for (std::uint64_t update = 0; update < 10; ++update) {
        fill_randomly(p, a, update + 1);
        if (p.has_input("reset")) p.input("reset")[static_cast<std::size_t>(update * 3) % p.input("reset").size()] = 1;
        p.forward();
        p.backward();
        REQUIRE(adam.update(*a.store, p.gradient(), 0) > 0);
        p.carry();
        numbers.push_back(p.loss());
    }
    for (const real w : a.store->flat()) numbers.push_back(static_cast<double>(w));
    for (const auto& name : p.state_names())
        for (const real v : p.state(name)) numbers.push_back(static_cast<double>(v));

    std::vector<var<Backend>> outputs;
    for (const auto& [name, v] : a.watched) outputs.push_back(v);
    program<Backend> actor(*a.g, a.store, {.steps = 1, .batch = B}, outputs);
    for (std::uint64_t step = 0; step < 6; ++step) {
        fill_randomly(actor, a, step + 50);
        actor.forward();
        actor.carry();
        for (const auto& v : outputs) {
            const auto o = actor.output(v);
            for (int b = 0; b < B; ++b)
                for (int f = 0; f < o.width; ++f) numbers.push_back(static_cast<double>(o.data[b * o.stride + f]));
        }
    }
    return numbers;
}

/// The largest |a - b| / max(1, |a|); infinity when one is no number.
inline double difference(const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double wrong = std::abs(a[i] - b[i]) / std::max(1.0, std::abs(a[i]));
        worst = wrong <= worst ? worst : std::isfinite(wrong) ? wrong : std::numeric_limits<double>::infinity();
    }
    return worst;
}

/// In double the two differ by the order of sums alone.
template <class Agent>
void device_equals_host(const typename Agent::settings& s, const task_shape& t = task(), int T = 5, int B = 3) {
    const auto host = after_ten_updates<Agent, cpu<double>>(s, t, T, B);
    const auto device = after_ten_updates<Agent, emulated<double>>(s, t, T, B);
    CHECK(difference(host, device) < 1e-8);
    CHECK(after_ten_updates<Agent, emulated<double>>(s, t, T, B, thread_order::descending) == device);
    CHECK(after_ten_updates<Agent, emulated<double>>(s, t, T, B, thread_order::scrambled) == device);
}

/// In float ten updates of Adam (steps of 3e-4) carry rounding on; no selection may flip here.
template <class Agent>
void device_equals_host_in_float(const typename Agent::settings& s, const task_shape& t = task(), int T = 5,
                                 int B = 3) {
    const auto host = after_ten_updates<Agent, cpu<float>>(s, t, T, B);
    const auto device = after_ten_updates<Agent, emulated<float>>(s, t, T, B);
    CHECK(difference(host, device) < 2e-3);
}

}  // namespace device_test
