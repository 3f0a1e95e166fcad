// The laws of the DNC's memory and of least-recently-used access; how their episodes begin; what their settings refuse.

#include "small_dnc_lru.hpp"

#include <engram/core/settings.hpp>

using namespace prepared;

namespace {

/// `seed` chooses numbers at which no difference changes the order of usages, where differences are wrong by design.
/// The whole update against differences, from states that no tie stands in and with links from outside. After an
/// episode's start usages are a millionth apart and may change places within a difference: it comes so late that no
/// second write after it is read.
template <class Agent>
void differentiates_from_states(typename Agent::settings s, std::uint64_t seed) {
    const auto a = traced<Agent, cpu<double>>(s);
    enlarge_memory_weights(a, 0.4);
    const auto report = check_gradients<cpu<double>>(
        *a.g, a.store, {.steps = 5, .batch = 2, .replay = true},
        [&](auto& p) {
            fill_randomly(p, a, seed);
            philox random(seed, 4);
            for (const auto& name : p.state_names()) {
                int n = 0;
                for (double& x : p.state(name))
                    x = name == "memory.memory" ? random.normal()
                        : name == "memory.usage"
                            ? 0.05 + 0.9 / s.memory.slots * (s.memory.slots - 1 - n++ % s.memory.slots)
                            : random.uniform() / 5;
            }
            for (std::size_t r = 0; r < p.resource_count(); ++r)
                for (const auto part : p.bound_resource(r)->bytes()) {
                    auto* links = reinterpret_cast<double*>(part.data());
                    for (std::size_t i = 0; i < part.size() / sizeof(double); ++i)
                        links[i] = i % 25 % 6 == 0 ? 0 : random.uniform() / 5;
                }
            p.input("reset")[s.memory.read_before_write ? 7 : 9] = 1;
        },
        16, 1e-3);
    INFO(report.where);
    CHECK(report.worst < 1e-6);
    CHECK(report.compared > 90);
    CHECK(report.same_bits_twice);
}

}  // namespace

TEST_CASE("dnc, in both orders, with one write head and several") {
    keeps_the_laws<differentiable>(computer(true, 1, "all"));
    keeps_the_laws<differentiable>(computer(false, 3, "held"));
    auto s = computer(true, 2, "held");
    s.memory.usage_gradient = true;
    differentiates_from_states<differentiable>(s, 11);
    s = computer(false, 1, "all");
    s.memory.usage_gradient = true;
    differentiates_from_states<differentiable>(s, 3);
}

TEST_CASE("lru_access, in both orders, with both gates and contents") {
    keeps_the_laws<least_recent>(access(true, "linear", "own", "all"));
    keeps_the_laws<least_recent>(access(false, "parameter", "key", "held"));
    differentiates_from_states<least_recent>(access(true, "parameter", "own", "held"), 9);
    differentiates_from_states<least_recent>(access(false, "linear", "key", "all"), 9);
}

TEST_CASE("the stop in usage can be lifted: then writes reach the loss through usage as well") {
    const auto slopes = [](bool through) {
        auto s = computer(true, 1, "all");
        s.memory.usage_gradient = through;
        const auto a = traced<differentiable, cpu<double>>(s);
        program<cpu<double>> p(*a.g, a.store, {.steps = 5, .batch = 2, .gradients = true, .replay = true});
        warm_up(p, a, 1);
        p.forward();
        p.backward();
        return std::pair(p.loss(), std::vector<double>(p.gradient().begin(), p.gradient().end()));
    };
    const auto stopped = slopes(false), through = slopes(true);
    CHECK(stopped.first == through.first);
    CHECK(stopped.second != through.second);
}

TEST_CASE("an episode of least-recently-used access begins with M = 1e-6 and all weights on slot 0") {
    auto s = access(true, "linear", "own", "all");
    s.memory.decay = 0.5;
    const auto a = traced<least_recent, cpu<double>>(s);
    program<cpu<double>> p(*a.g, a.store, {.steps = 1, .batch = 1}, {a.h, *a.slot_read_weight, *a.slot_write_weight});
    fill_randomly(p, a, 1);
    for (const auto& name : p.state_names()) std::fill(p.state(name).begin(), p.state(name).end(), NAN);
    p.input("reset")[0] = 1;
    p.forward();
    const auto read = p.output(*a.slot_read_weight), written = p.output(*a.slot_write_weight);
    const auto usage = p.next_state("memory.usage"), memory = p.next_state("memory.memory");
    for (int r = 0; r < 2; ++r) {
        double sum = 0;
        for (int n = 0; n < 6; ++n) {
            // Equal slots are read equally; half open gates write to slot 0, which was read last, and to slot r + 1.
            CHECK(std::abs(read.data[r * 6 + n] - 1.0 / 6) <= 1e-15);
            const double w = written.data[r * 6 + n];
            sum += w;
            CHECK((w > 0.01) == (n == 0 || n == r + 1));
        }
        CHECK(std::abs(sum - 1) <= 1e-15);
    }
    for (std::size_t n = 0; n < 6; ++n) {
        const double expected = (n == 0 ? 0.5 : 0.0) + 2.0 / 6 + written.data[n] + written.data[6 + n];
        CHECK(std::abs(usage[n] - expected) <= 1e-15);
        for (std::size_t i = 0; i < 3; ++i) CHECK((memory[n * 3 + i] == 1e-6) == (n > 2));
    }
}

// In double, where a logistic function reaches one.
TEST_CASE("usage and allocation stay in [0, 1], with gates wide open and shut") {
    for (const int heads : {1, 3})
        for (const double weights : {1.0, 30.0}) {
            using backend = cpu<double>;
            const auto a = traced<differentiable, backend>(computer(true, heads, "all"));
            enlarge_memory_weights(a, weights);
            std::vector<var<backend>> watched{a.h};
            for (const auto& op : a.g->operations())
                if (op->name == "memory.allocation" || op->name.starts_with("memory.usage")) {
                    watched.emplace_back();
                    watched.back().value = op->outputs[0];
                    watched.back().width = 5;
                }
            program<backend> p(*a.g, a.store, {.steps = 8, .batch = 4}, watched);
            int outside = 0, compared = 0, full = 0;
            for (int unroll = 0; unroll < 40; ++unroll) {
                fill_randomly(p, a, static_cast<std::uint64_t>(unroll));
                // Weights that sum to one may round to more, and then make links of less than zero.
                if (unroll % 4 == 3)
                    for (const char* name : {"memory.read_weight", "memory.write_weight"}) {
                        const auto weights_of = p.state(name);
                        for (std::size_t i = 0; i < weights_of.size(); ++i)
                            weights_of[i] = i % 5 == 2 ? std::nextafter(1.0, 2.0) : 0;
                    }
                if (unroll % 8 == 3) std::fill(p.state("memory.usage").begin(), p.state("memory.usage").end(), 0.0);
                p.forward();
                for (std::size_t i = 1; i < watched.size(); ++i)
                    for (int k = 0; k < 8 * 4 * 5; ++k) {
                        const double x = p.output(watched[i]).data[k];
                        outside += !(x >= 0 && x <= 1);
                        full += x == 1;
                        ++compared;
                    }
                for (const double x : p.next_state("memory.usage")) outside += !(x >= 0 && x <= 1);
                p.carry();
            }
            // Allocations, usages after all writes, after all free gates, and after each allocation but the last.
            CHECK(compared == 40 * 8 * 4 * 5 * (2 * heads + 1));
            CHECK(outside == 0);
            if (weights > 1) CHECK(full > 0);
        }
}

TEST_CASE("settings are refused in the user's words") {
    const auto refused = [](auto settings, const char* assignment, const char* sentence) {
        CHECK_THROWS_WITH_AS(assign(settings, assignment), sentence, error);
    };
    const dnc::settings d;
    refused(d, "slots=0", "memory.slots: expected at least one slot, got 0");
    refused(d, "word=-1", "memory.word: expected at least one column, got -1");
    refused(d, "read_heads=0", "memory.read_heads: expected at least one head, got 0");
    refused(d, "write_heads=0", "memory.write_heads: expected at least one head, got 0");
    refused(d, "input=hold", "unknown input 'hold'; did you mean 'held'?");
    const lru_access::settings l;
    refused(l, "slots=0", "memory.slots: expected at least one slot, got 0");
    refused(l, "word=0", "memory.word: expected at least one column, got 0");
    refused(l, "heads=0", "memory.heads: expected at least one head, got 0");
    refused(l, "decay=1.5", "memory.decay: expected a number from 0 to 1, got 1.5");
    refused(l, "input=hold", "unknown input 'hold'; did you mean 'held'?");
    refused(l, "gate=liner", "unknown gate 'liner'; did you mean 'linear'?");
    refused(l, "content=keys", "unknown content 'keys'; did you mean 'key'?");
    auto few = l;
    few.heads = 3;
    few.slots = 4;
    refused(few, "heads=8", "memory.heads: 8 heads write to 8 different slots, but memory.slots is 4");
}
