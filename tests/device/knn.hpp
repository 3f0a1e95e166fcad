#pragma once
// Reads of the k-NN memory on a device: the slots that the host chooses, ties included, and its numbers.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <engram/device/operations.hpp>
#include <engram/device/ops/knn.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/softmax.hpp>

namespace knn_test {

using namespace engram;

struct sizes {
    int X, D, N, K, B;
    bool jumpy;
};

template <class Var>
struct last_read {
    BOOST_HANA_DEFINE_STRUCT(last_read, (Var, value));
};

// m_t = read(x_t); then an entry with a key of its own is written.
template <class Backend>
struct traced {
    using real = typename Backend::real;
    std::shared_ptr<parameters<real>> store = std::make_shared<parameters<real>>(3);
    graph<Backend> g{store};
    var<Backend> read, weight, when;

    explicit traced(const sizes& z) {
        const auto query = g.input("query", z.D, extent::sequence, true), key = g.input("key", z.D);
        const auto entry = g.input("entry", z.X), reset = g.input("reset", 1);
        const auto remembered = g.declare_linear("remembered", z.X, z.D);
        const auto ring = add_knn_memory(g, "ring", z.N, z.X, z.D);
        read = scan(g, last_read<var<Backend>>{g.state("read", z.X)}, [&](auto& s) {
            knn_forget(ring, reset);
            knn_read_settings how;
            how.memory = ring;
            how.neighbours = z.K;
            how.epsilon = 0.1;
            how.jumpy = z.jumpy;
            how.value_width = z.X;
            const auto r = knn_read(query, remembered, how);
            s.value = r.value;
            weight = r.weight;
            when = r.when;
            knn_write(ring, entry, key);
            return r.value;
        });
        add_loss("loss", sum_columns("sum", read));
    }
};

enum class numbers { whole, any, broken };

/// Whole numbers: every distance is exact, and most are tied. Broken ones: some keys are no numbers.
template <class Backend>
void fill(program<Backend>& p, const sizes& z, numbers kind) {
    using real = typename Backend::real;
    philox random(7, 7);
    for (const char* name : {"query", "key", "entry"})
        for (auto& v : p.input(name))
            v = kind == numbers::any ? static_cast<real>(random.normal()) : static_cast<real>(random.below(3) - 1);
    if (kind == numbers::broken)
        for (std::size_t i = 0; i < p.input("key").size(); i += 7)
            p.input("key")[i] = std::numeric_limits<real>::quiet_NaN();
    int i = 0;
    for (auto& v : p.input("reset")) v = i / z.B == 0 || i % 23 == 22, ++i;
}

struct outcome_of_sweeps {
    std::vector<double> when, value;
};

template <class Backend>
outcome_of_sweeps run(const sizes& z, int T, numbers kind, thread_order order = thread_order::ascending) {
    traced<Backend> m(z);
    program<Backend> p(m.g, m.store, {.steps = T, .batch = z.B, .gradients = true}, {m.read, m.weight, m.when});
    if constexpr (requires { p.executor().order; }) p.executor().order = order;
    outcome_of_sweeps found;
    const auto note = [&](std::vector<double>& to, const operand<const typename Backend::real>& o) {
        for (int r = 0; r < T * z.B; ++r)
            for (int c = 0; c < o.width; ++c) to.push_back(static_cast<double>(o.data[r * o.stride + c]));
    };
    for (int sweep = 0; sweep < 2; ++sweep) {  // the second one reads what the first one has written
        fill(p, z, kind);
        p.forward();
        p.backward();
        note(found.when, p.output(m.when));
        note(found.value, p.output(m.read));
        note(found.value, p.output(m.weight));
        for (const auto g : p.gradient()) found.value.push_back(static_cast<double>(g));
        p.carry();
    }
    return found;
}

template <class Device>
void device_equals_host(const sizes& z, int T, numbers kind) {
    const auto host = run<cpu<double>>(z, T, kind);
    const auto device = run<Device>(z, T, kind);
    CHECK(host.when == device.when);
    REQUIRE(host.value.size() == device.value.size());
    double worst = 0;
    for (std::size_t i = 0; i < host.value.size(); ++i)
        worst = std::max(worst, std::abs(host.value[i] - device.value[i]) / std::max(1.0, std::abs(host.value[i])));
    CHECK(worst < 1e-10);
    for (const auto order :
         {thread_order::descending, thread_order::scrambled}) {  // a GPU has its own: the same bits twice
        const auto other = run<Device>(z, T, kind, order);
        CHECK(other.when == device.when);
        CHECK(other.value == device.value);
    }
}

/// Sizes around the block's: several rounds of lanes, one tile of neighbours and more, less and more than K entries.
template <class Device>
void reads_equal_the_host() {
    for (const bool jumpy : {true, false}) {
        device_equals_host<Device>({3, 2, 600, 7, 2, jumpy}, 40, numbers::whole);
        device_equals_host<Device>({5, 9, 4, 3, 3, jumpy}, 12, numbers::any);
        device_equals_host<Device>({4, 301, 20, 11, 2, jumpy}, 30, numbers::any);
    }
}

/// A neighbour without a key gives a read that is no number on both: only the choice is compared.
template <class Device>
void broken_keys_come_last() {
    const sizes z{3, 2, 10, 6, 2, false};
    CHECK(run<cpu<double>>(z, 30, numbers::broken).when == run<Device>(z, 30, numbers::broken).when);
}

/// More slots than a block's scratch holds.
template <class Device>
void a_large_memory_is_read() {
    const sizes large{2, 2, internal::knn_read_rows<double>::near_slots + 8, 4, 1, true};
    const auto host = run<cpu<double>>(large, 300, numbers::whole), device = run<Device>(large, 300, numbers::whole);
    CHECK(host.when == device.when);
}

}  // namespace knn_test
