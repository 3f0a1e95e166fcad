// How many launches a step takes: counted by the emulation, which a graph on a GPU repeats one for one.

#include <doctest/doctest.h>

#include <array>
#include <map>
#include <string>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/controller/min_gru.hpp>
#include <engram/device/operations.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/graph/scan.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/dnc.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/laws.hpp>
#include <engram/operations/softmax.hpp>

#include "count_launches.hpp"

using namespace engram;
using namespace launches_test;

namespace {

using device = emulated<float>;
template <class Agent>
sweep_counts of_agent(int T, typename Agent::settings s = {}) {
    s.encoder.layers = {6, 4};
    s.controller.hidden = 5;
    const auto a = Agent::template trace<device>(s, {{4, 4, 1}, 3}, 5);
    program<device> p(*a.g, a.store, {.steps = T, .batch = 3, .gradients = true});
    fill_randomly(p, a, 1);
    return count_launches(p);
}

}  // namespace

TEST_CASE("a k-NN read is one launch a step forward and one backward") {
    const int T = 6;
    using remembering = agent<mlp, lstm, fifo_knn, no_auxiliary, vtrace>;
    remembering::settings few, many;
    few.memory.slots = 128, many.memory.slots = 129;
    const auto found = of_agent<remembering>(T, few);
    CHECK(found.forward.at("memory.read") == T);
    // Distances of many slots are measured by a launch ahead.
    CHECK(of_agent<remembering>(T, many).forward.at("memory.read") == 2 * T);
    // W_k's gradient and its bias's are two launches an unroll.
    CHECK(found.backward.at("memory.read") == T + 2);
    CHECK(found.forward.at("memory.forget") == T);
    CHECK(found.forward.at("memory.write") == T);
}

TEST_CASE("products of layers that nothing feeds back are launched for all steps at once") {
    using layers = agent<mlp, min_gru, no_memory, no_auxiliary, vtrace>;
    const auto few = of_agent<layers>(4), many = of_agent<layers>(11);
    for (const char* name : {"controller.layer.0.gates", "controller.layer.3.gates"}) {
        CHECK(many.forward.at(name) == few.forward.at(name));
        CHECK(many.backward.at(name) == few.backward.at(name));
    }
}

TEST_CASE("an LSTM step is one product and one pointwise launch, its gradient too") {
    using lstm_alone = agent<mlp, lstm, no_memory, no_auxiliary, vtrace>;
    const auto few = of_agent<lstm_alone>(4), many = of_agent<lstm_alone>(11);
    // What does not depend on the hidden state is summed for all steps at once, and so are the gradients of weights.
    for (const char* name : {"controller.gates", "controller.cell"}) {
        CHECK(many.forward.at(name) - few.forward.at(name) == 7);
        CHECK(many.backward.at(name) - few.backward.at(name) == 7);
    }
    CHECK(few.forward.at("controller.gates") <= 4 + 4);
}

TEST_CASE("the heads of a DNC are launched together") {
    const auto launches = [](int read_heads, int write_heads) {
        using computer = agent<mlp, lstm, dnc, no_auxiliary, vtrace>;
        computer::settings s;
        s.encoder.layers = {4};
        s.controller.hidden = 5;
        s.memory.slots = 4, s.memory.word = 3, s.memory.read_heads = read_heads, s.memory.write_heads = write_heads;
        const auto a = computer::trace<device>(s, {{4, 4, 1}, 3}, 5);
        program<device> p(*a.g, a.store, {.steps = 4, .batch = 2, .gradients = true});
        fill_randomly(p, a, 1);
        auto found = count_launches(p);
        std::array<std::int64_t, 2> all{};
        for (const auto& [name, count] : found.forward) all[0] += count;
        for (const auto& [name, count] : found.backward) all[1] += count;
        return all;
    };
    const auto one = launches(1, 1), four = launches(4, 1), writers = launches(4, 2);
    CHECK(four == one);
    // Links are a resource of every write head, and allocation sees the heads before it.
    CHECK(writers[0] > four[0]);
    CHECK(writers[1] > four[1]);
}

TEST_CASE("cosines with a matrix memory are one launch forward and one for each gradient") {
    const int N = 7, W = 3, R = 2;
    graph<device> g(std::make_shared<parameters<float>>(1));
    const auto memory = g.input("memory", N * W, extent::sequence, true),
               keys = g.input("keys", R * W, extent::sequence, true);
    const auto cosine = cosine_scores("cosine", memory, keys, W);
    const auto joint = joint_cosine_scores("joint", memory, keys, W);
    add_loss("loss", sum_columns("sum", cosine));
    add_loss("joint loss", sum_columns("joint sum", joint));
    program<device> p(g, std::make_shared<parameters<float>>(1), {.steps = 4, .batch = 3, .gradients = true},
                      {memory, keys});
    const auto found = count_launches(p);
    for (const char* name : {"cosine", "joint"}) {
        CHECK(found.forward.at(name) == 1);
        CHECK(found.backward.at(name) == 2);
    }
}
