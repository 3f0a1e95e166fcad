// The laws of the introspection network's memory and of the Neural Turing Machine's, and what their settings refuse.

#include "../model/prepare.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/core/settings.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/introspection.hpp>
#include <engram/memory/ntm.hpp>

using namespace prepared;

namespace {

using looking_back = agent<identity, lstm, introspection, no_auxiliary, vtrace>;
using turing = looking_back::with<ntm>;

looking_back::settings looking(const char* order, bool masked, const char* attention, int hidden) {
    auto s = tiny<looking_back>();
    s.memory.slots = 4;
    s.memory.heads = 2;
    s.memory.hidden = hidden;
    s.memory.order = {"order", order};
    s.memory.masked = masked;
    s.memory.attention = {"attention", attention};
    return s;
}

turing::settings machine(bool read_before_write, decltype(ntm::settings::start) start, memory_input input) {
    auto s = tiny<turing>();
    s.memory.slots = 5;
    s.memory.word = 3;
    s.memory.read_heads = 2;
    s.memory.write_heads = 2;
    s.memory.read_before_write = read_before_write;
    s.memory.start = start;
    s.memory.focus = start == "learned" ? decltype(s.memory.focus)("none") : "first";
    s.memory.input = input;
    return s;
}

/// prepared::differentiates with episodes that begin at the first step, as those of a run do: an NTM that never began
/// one has equal slots, and slopes of zero. Weights of the memory are large enough for its slopes to stand out, and the
/// differences wider than usual: some slopes of heads are a millionth of the loss, whose rounding shows otherwise.
template <class Agent>
void differentiates_from_the_start(typename Agent::settings s, std::uint64_t seed) {
    const auto a = traced<Agent, cpu<double>>(s);
    {
        philox random(3, 3);
        auto edit = a.store->edit();
        for (std::size_t i = 0; i < a.store->entries().size(); ++i) {
            const auto& e = a.store->entries()[i];
            for (std::ptrdiff_t k = 0; e.name.starts_with("memory.") && k < e.size(); ++k)
                edit.values({static_cast<int>(i)})[k] += 0.4 * static_cast<double>(random.normal());
        }
    }
    const auto report = check_gradients<cpu<double>>(
        *a.g, a.store, {.steps = 5, .batch = 2, .replay = true},
        [&](auto& p) {
            fill_randomly(p, a, seed);
            for (const std::size_t at : {0, 1, 6}) p.input("reset")[at] = 1;
        },
        16, 2e-3);
    INFO(report.where);
    CHECK(report.worst < 1e-6);
    CHECK(report.compared > 100);
    CHECK(report.same_bits_twice);
}

}  // namespace

TEST_CASE("introspection, by age and by position") {
    keeps_the_laws<looking_back>(looking("age", false, "softplus", 6));
    keeps_the_laws<looking_back>(looking("position", true, "softmax", 0));
    differentiates_from_the_start<looking_back>(looking("age", true, "softplus", 6), 9);
    differentiates_from_the_start<looking_back>(looking("position", false, "softmax", 0), 9);
}

TEST_CASE("ntm, in both orders and from both starts") {
    keeps_the_laws<turing>(machine(true, "constant", "all"));
    keeps_the_laws<turing>(machine(false, "learned", "held"));
    differentiates_from_the_start<turing>(machine(true, "learned", "all"), 9);
    differentiates_from_the_start<turing>(machine(false, "constant", "held"), 9);
}

TEST_CASE("a new episode of an NTM has its weights on slot 0, its slots do not stay alike") {
    auto s = machine(true, "constant", "all");
    const auto a = traced<turing, cpu<double>>(s);
    program<cpu<double>> p(*a.g, a.store, {.steps = 3, .batch = 2}, {a.h});
    fill_randomly(p, a, 1);
    p.input("reset")[0] = p.input("reset")[1] = 1;
    p.forward();
    const auto memory = p.next_state("memory.memory");
    for (std::size_t i = 3; i < 15; i += 3) CHECK(std::abs(memory[i] - memory[0]) > 1e-6);
}

TEST_CASE("settings are refused in the user's words") {
    const auto refused = [](auto settings, const char* assignment, const char* sentence) {
        CHECK_THROWS_WITH_AS(assign(settings, assignment), sentence, error);
    };
    const ntm::settings m;
    refused(m, "slots=0", "memory.slots: expected at least one slot, got 0");
    refused(m, "word=0", "memory.word: expected at least one column, got 0");
    refused(m, "read_heads=0", "memory.read_heads: expected at least one head, got 0");
    refused(m, "write_heads=-1", "memory.write_heads: expected at least one head, got -1");
    refused(m, "input=hold", "unknown input 'hold'; did you mean 'held'?");
    refused(m, "start=constnat", "unknown start 'constnat'; did you mean 'constant'?");
    refused(m, "focus=fist", "unknown focus 'fist'; did you mean 'first'?");
    refused(m, "focus=none",
            "memory.focus: without a focus a constant start leaves all slots alike for ever; expected first, or "
            "memory.start=learned");
    const introspection::settings i;
    refused(i, "slots=0", "memory.slots: expected at least one slot, got 0");
    refused(i, "heads=0", "memory.heads: expected at least one head, got 0");
    refused(i, "hidden=-1", "memory.hidden: expected a number of units, or 0 for a linear layer, got -1");
    refused(i, "order=aged", "unknown order 'aged'; did you mean 'age'?");
    refused(i, "attention=softmin", "unknown attention 'softmin'; did you mean 'softmax'?");
}
