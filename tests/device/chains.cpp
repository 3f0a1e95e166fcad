// Chains: what alone hangs on itself in a time loop runs all steps by one launch on a device. It has the bits of
// single steps, in any order of threads, and however long an unroll is, its launches are as many.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/fast_and_forgetful.hpp>
#include <engram/controller/gated_delta_net.hpp>
#include <engram/controller/gtrxl.hpp>
#include <engram/controller/linear_recurrent_unit.hpp>
#include <engram/controller/min_gru.hpp>
#include <engram/controller/mlstm.hpp>
#include <engram/controller/s5.hpp>
#include <engram/controller/stable_hadamard.hpp>
#include <engram/device/operations.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/graph/scan.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/memory_traces.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/laws.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/recall_matrices.hpp>
#include <engram/operations/softmax.hpp>

#include "count_launches.hpp"

using namespace engram;
using namespace launches_test;

namespace {

struct complex_turn {
    constexpr auto operator()(auto x, auto one, auto re, auto im) const {
        return std::tuple{0.9 * re - one * im + x, 0.9 * im + one * re};
    }
};
struct halve {
    constexpr auto operator()(auto x) const { return 0.5 * x; }
};

template <class Var>
struct several {
    BOOST_HANA_DEFINE_STRUCT(several, (Var, re), (Var, im), (Var, matrix), (Var, held), (Var, tangled));
};

/// A complex recurrence beside an input of one column, matrices of two heads that read it, a state that holds what they
/// gave a step before, and a loop of several operations that read all of them.
struct traced {
    static constexpr int H = 2, K = 3, V = 6;
    std::shared_ptr<parameters<float>> store = std::make_shared<parameters<float>>();
    graph<device> g{store};
    std::vector<var<device>> inputs;
    var<device> y;

    traced() {
        const auto reset = g.input("reset", 1), weight = g.input("weight", H * V);
        for (const auto& [name, width] : {std::pair{"key", H * K}, {"value", H * V}, {"gate", H}, {"one", 1}})
            inputs.push_back(g.input(name, width, extent::sequence, true));
        const auto& in = inputs;
        const several<var<device>> first{g.own_state("re", H * V), g.own_state("im", H * V),
                                         g.own_state("matrix", H * K * V), g.state("held", H * V),
                                         g.state("tangled", H * V)};
        y = scan(g, first, [&](several<var<device>>& now) {
            reset_rows(now, reset);
            const auto [re, im] = map("turn", complex_turn{}, in[1], in[3], now.re, now.im);
            now.re = re, now.im = im;
            const auto found = recall_matrices("recall", H, true, now.matrix, in[0], in[0], now.im, in[2], in[2]);
            now.matrix = found.matrix;
            const auto mixed = map("mixed", add{}, now.tangled, now.held);
            now.held = found.read;
            now.tangled = map("half", halve{}, map("sum", add{}, mixed, now.re));
            return now.tangled;
        });
        add_loss("read", sum_columns("sum", map("weighed", times{}, y, weight), H * V));
    }
};

/// Outputs, gradients and what is left, of inputs that are the same whatever the options.
std::vector<float> all_of(const plan_options& options, thread_order order = thread_order::ascending) {
    traced m;
    program<device> p(m.g, m.store, options, {m.y});
    p.executor().order = order;
    philox random(5, 1);
    for (const char* name : {"key", "value", "gate", "one", "weight"})
        for (float& x : p.input(name)) x = 0.5f * static_cast<float>(random.normal());
    const int B = options.batch;
    for (std::size_t i = 0; auto& r : p.input("reset"))
        r = static_cast<int>(i) / B % (3 + static_cast<int>(i) % B) == 1, ++i;
    for (const auto& name : p.state_names())
        for (float& x : p.state(name)) x = static_cast<float>(random.normal());
    p.forward(), p.backward();
    std::vector<float> found;
    const auto keep = [&](const operand<const float>& o, int width) {
        found.insert(found.end(), o.data, o.data + options.steps * B * width);
    };
    keep(p.output(m.y), m.y.width);
    for (const auto& x : m.inputs) keep(p.gradient_of(x), x.width);
    for (const auto& name : p.state_names())
        found.insert(found.end(), p.next_state(name).begin(), p.next_state(name).end());
    return found;
}

template <class Controller, class Memory = no_memory>
sweep_counts launches_of(const typename Controller::settings& controller, int T) {
    using line = agent<mlp, Controller, Memory, no_auxiliary, vtrace>;
    typename line::settings s;
    s.encoder.layers = {6};
    s.controller = controller;
    const auto a = line::template trace<device>(s, {{4, 4, 1}, 3}, 5);
    program<device> p(*a.g, a.store, {.steps = T, .batch = 3, .gradients = true});
    fill_randomly(p, a, 1);
    return count_launches(p);
}

template <class Controller, class Memory = no_memory>
void takes_as_many_launches_whatever_the_length(const typename Controller::settings& s) {
    const auto few = launches_of<Controller, Memory>(s, 4), many = launches_of<Controller, Memory>(s, 11);
    for (const auto& [name, count] : many.forward) {
        const std::string operation = name;  // clang before 16 captures no binding
        CAPTURE(operation);
        CHECK(count == few.forward.at(name));
    }
    for (const auto& [name, count] : many.backward) {
        const std::string operation = name;
        CAPTURE(operation);
        CHECK(count == few.backward.at(name));
    }
}

}  // namespace

TEST_CASE("a chain has the bits of steps, in any order of threads, with resets anywhere") {
    for (const int T : {1, 2, 9}) {
        CAPTURE(T);
        const plan_options options{.steps = T, .batch = 3, .gradients = true};
        plan_options stepwise = options;
        stepwise.hoist = false;
        const auto chained = all_of(options);
        CHECK(chained == all_of(stepwise));
        for (const auto order : {thread_order::descending, thread_order::scrambled})
            CHECK(chained == all_of(options, order));
        CHECK(std::all_of(chained.begin(), chained.end(), [](float x) { return std::isfinite(x); }));
    }
}

TEST_CASE("chains are launched once each way, what hangs together step by step") {
    traced m;
    program<device> p(m.g, m.store, {.steps = 7, .batch = 2, .gradients = true});
    const auto found = count_launches(p);
    CHECK(found.forward.at("turn") == 1);
    CHECK(found.backward.at("turn") == 2);  // the column beside it gets its gradient by one of its own
    CHECK(found.forward.at("recall") == 1);
    CHECK(found.backward.at("recall") == 1);
    CHECK(found.forward.at("half") == 7);
    CHECK(found.backward.at("half") == 7);
}

TEST_CASE("a recurrence of today takes as many launches, however long an unroll is") {
    takes_as_many_launches_whatever_the_length<min_gru>({.hidden = 5, .layers = 2});
    takes_as_many_launches_whatever_the_length<linear_recurrent_unit>({.hidden = 5, .layers = 2, .states = 3});
    takes_as_many_launches_whatever_the_length<s5>({.hidden = 5, .layers = 2, .states = 3});
    takes_as_many_launches_whatever_the_length<fast_and_forgetful>(
        {.hidden = 5, .traces = 3, .phases = 2, .longest = 16});
    takes_as_many_launches_whatever_the_length<stable_hadamard>({.hidden = 5, .size = 3, .rows = 7});
    takes_as_many_launches_whatever_the_length<mlstm>({.hidden = 5, .layers = 2, .heads = 2, .key = 3, .inner = 4});
    takes_as_many_launches_whatever_the_length<gated_delta_net>(
        {.hidden = 5, .layers = 2, .heads = 2, .key = 3, .value = 2});
    takes_as_many_launches_whatever_the_length<gtrxl>({.hidden = 8, .layers = 2, .heads = 2, .inner = 3, .window = 3});
    takes_as_many_launches_whatever_the_length<min_gru, memory_traces>({.hidden = 5, .layers = 1});
}
