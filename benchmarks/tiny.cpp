// SPDX-License-Identifier: MIT

// What the engine costs beside the arithmetic: replays of operations that do next to nothing, small recurrent layers,
// tracing and planning an agent, and the memory of its parts as the unroll grows.

#include <chrono>
#include <cstdio>
#include <numeric>

#include <engram/catalogue.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/operations/softmax.hpp>

#include "flags.hpp"

using namespace engram;
using backend = cpu<float>;

namespace {

/// Median microseconds of one call, over about a fifth of a second.
template <class Body>
double microseconds(Body body) {
    using clock = std::chrono::steady_clock;
    body();
    const auto start = clock::now();
    body();
    const double once = std::chrono::duration<double, std::micro>(clock::now() - start).count();
    const int calls = std::max(1, static_cast<int>(20e3 / 11 / std::max(once, 0.01)));
    std::vector<double> found;
    for (int n = 0; n < 11; ++n) {
        const auto first = clock::now();
        for (int i = 0; i < calls; ++i) body();
        found.push_back(std::chrono::duration<double, std::micro>(clock::now() - first).count() / calls);
    }
    std::sort(found.begin(), found.end());
    return found[found.size() / 2];
}

struct increment {
    auto operator()(auto x) const { return x + 1; }
};

void one_element_maps() {
    constexpr int count = 1000;
    graph<backend> g(std::make_shared<parameters<float>>());
    auto x = g.input("x", 1);
    for (int i = 0; i < count; ++i) x = map("increment", increment{}, x);
    program<backend> p(g, std::make_shared<parameters<float>>(), {}, {x});
    std::printf("replay of a map of one element                %8.1f ns\n",
                1e3 * microseconds([&] { p.forward(); }) / count);
}

void small_lstm(int batch) {
    constexpr int T = 50, H = 16;
    const auto store = std::make_shared<parameters<float>>();
    graph<backend> g(store);
    const auto x = g.input("x", H);
    const auto w = lstm::declare(g, {.hidden = H}, H);
    const auto h = scan(g, lstm::begin(g, {.hidden = H}), [&](auto& s) { return lstm::step<backend>({}, w, {x}, s); });
    add_loss("loss", sum_columns("sum", h));
    program<backend> p(g, store, {.steps = T, .batch = batch, .gradients = true}, {h});
    const double forward = microseconds([&] { p.forward(); }), backward = microseconds([&] { p.backward(); });
    std::printf("LSTM X = H = 16, B = %2d, one step             %8.2f us forward %6.2f us backward\n", batch,
                forward / T, backward / T);
}

using mra = catalogue::mra;
using small_mra = mra::with<mlp>;

template <class Agent>
void trace_and_plan(const char* name, const typename Agent::settings& s, const task_shape& task, int T, int B) {
    traced_agent<backend> a;
    // Tracing also draws the first weights, which takes nearly all of its time: that alone is measured too.
    const double trace = microseconds([&] { a = Agent::template trace<backend>(s, task, 1); });
    const double draw = microseconds([&] {
        philox random(1, 1);
        float sum = 0;
        for (std::int64_t i = 0; i < a.store->total(); ++i) sum += static_cast<float>(random.normal());
        volatile float kept = sum;
        (void)kept;
    });
    const plan_options learner{.steps = T, .batch = B, .gradients = true, .replay = true};
    const double analysis = microseconds([&] { make_plan(*a.g, learner, {}); });
    double bind = 0;
    std::size_t bytes = 0, operations = 0;
    bind = microseconds([&] {
        program<backend> p(*a.g, a.store, learner);
        bytes = p.memory();
        operations = p.operation_count();
    });
    std::printf(
        "%-22s trace %9.1f us (of which its first weights about %9.1f us), plan %7.1f us, with memory %9.1f us; "
        "%zu operations, arena %.1f MB\n",
        name, trace, draw, analysis, bind, operations, 1e-6 * static_cast<double>(bytes));
}

void ring_memory() {
    constexpr int B = 4;
    mra::settings s;
    const auto a = small_mra::trace<backend>({.encoder = {.layers = {256}},
                                              .controller = s.controller,
                                              .memory = s.memory,
                                              .auxiliary = s.auxiliary,
                                              .learner = s.learner,
                                              .wiring = s.wiring},
                                             {{12, 12, 3}, 5}, 1);
    for (const int T : {10, 50, 200}) {
        program<backend> p(*a.g, a.store, {.steps = T, .batch = B, .gradients = true, .replay = true});
        auto& rings = static_cast<knn_rings<float>&>(*p.bound_resource(0));
        const auto shape = rings.ring(0);
        std::size_t ring = rings.compact_bytes();
        for (const auto& piece : rings.bytes()) ring += piece.size();
        std::printf(
            "T = %3d: one ring of %d x (%d + %d)        %8.3f MB, arena of a row %8.3f MB\n", T, shape.slots,
            shape.content_width, shape.key_width, 1e-6 * static_cast<double>(ring) / B,
            1e-6 * static_cast<double>(p.memory() - sizeof(float) * static_cast<std::size_t>(a.store->flat_size())) /
                B);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const flags nothing(argc, argv);
    one_element_maps();
    small_lstm(1);
    small_lstm(16);
    small_mra::settings small;
    small.encoder.layers = {64};
    small.controller.hidden = 64;
    small.memory.slots = 64;
    small.memory.key = 16;
    trace_and_plan<small_mra>("small, T = 10, B = 32", small, {{12, 12, 3}, 5}, 10, 32);
    trace_and_plan<mra>("paper, T = 50, B = 2", {}, {{72, 96, 3}, 5}, 50, 2);
    ring_memory();
}
