// SPDX-License-Identifier: MIT

// One training step (forward, backward, clip, Adam) of small recurrent models with a memory, where what an engine costs
// beside the arithmetic shows. All have an LSTM controller of 64 units and a linear answer of every step:
//
//   dnc             bits: 10 in, 8 out; memory 16 x 16, four read heads; T = 20
//   introspection   vectors: 16 in, 16 out; 16 slots, four heads, 64 hidden units; T = 20
//   lstm            vectors: 16 in, 16 out; no memory; T = 50
//
// and controllers of several layers without a memory (vectors: 16 in, 16 out; T = 64; 128 columns, or 64 where what is
// carried is a matrix or a window), whose layers run over all steps one after the other (docs/decisions/0026):
//
//   min_gru         four layers           linear_recurrent_unit, s5, gated_delta_net, mlstm, gtrxl    two layers
//   stacked_lstm    three layers          gru, fast_and_forgetful, stable_hadamard                    one
//
// and memory traces (two of them) ahead of a feed-forward controller of 64 units, of the same vectors.
//
//   benchmark-memory_step [--model NAME] [--threads N] [--repeats R] [--steps T] [--batch B] [--weights FILE]
//                         [--outputs FILE] [--updates N] [--profile 1] [--acting 1]
//
// --weights writes the first weights, the inputs and the targets for benchmarks/peers/memory_step.py; --outputs the
// answers and gradients of the first step, and loss and gradient norm of each of the first N updates. Both happen
// before anything is timed. One JSON line: the median by the clock and the least processor time of R samples of about
// 20 ms. --profile 1 prints the operations by what they take instead.
//
// --acting 1 takes one step of time instead, as an agent does between two observations: forward alone, states carried,
// numbers copied in, the answer read, on one thread. Its outputs are the answers of T such steps from states of zero.

#include <time.h>

#include <cmath>
#include <cstdio>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/fast_and_forgetful.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/controller/gated_delta_net.hpp>
#include <engram/controller/gru.hpp>
#include <engram/controller/gtrxl.hpp>
#include <engram/controller/linear_recurrent_unit.hpp>
#include <engram/controller/min_gru.hpp>
#include <engram/controller/mlstm.hpp>
#include <engram/controller/s5.hpp>
#include <engram/controller/stable_hadamard.hpp>
#include <engram/controller/stacked_lstm.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/memory/dnc.hpp>
#include <engram/memory/introspection.hpp>
#include <engram/memory/memory_traces.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/agent.hpp>
#include <engram/train/optimiser.hpp>

#include "flags.hpp"
#include "mra_core.hpp"

namespace {

using namespace engram;
using mra::backend;

template <class Memory>
using model_with = agent<identity, engram::lstm, Memory, no_auxiliary, supervised>;

struct sizes {
    int threads, repeats, steps, batch, updates;
    bool profile, acting;
    std::string weights, outputs;
};

/// Milliseconds of processor time that all threads of this process have had.
double processor_milliseconds() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return 1e3 * double(now.tv_sec) + 1e-6 * double(now.tv_nsec);
}

void save(const std::string& path, const parameters<float>& store, const sizes& z, const std::vector<float>& x,
          int observed, const std::vector<float>& target, int answered) {
    safetensors file;
    for (const auto& e : store.entries())
        file.add<float>(e.name, {e.rows, e.columns},
                        store.flat().subspan(std::size_t(e.offset), std::size_t(e.size())));
    file.add<float>("x", {z.steps, z.batch, observed}, x);
    file.add<float>("target", {z.steps, z.batch, answered}, target);
    file.add<std::int64_t>("updates", {1}, std::vector<std::int64_t>{z.updates});
    file.write(path);
}

/// Least microseconds that the calls of each operation take in a step, the largest first.
void print_profile(mra::program& p) {
    std::map<std::string, std::pair<double, double>> least;
    for (int turn = 0; turn < 300; ++turn) {
        std::map<std::string, std::pair<double, double>> now;
        const auto around = [&now](auto sweep) {
            return [&now, sweep](const operation<backend>& op, auto call) {
                const auto start = std::chrono::steady_clock::now();
                call();
                now[op.name].*sweep += 1e3 * mra::milliseconds_since(start);
            };
        };
        p.forward_around(around(&std::pair<double, double>::first));
        p.backward_around(around(&std::pair<double, double>::second));
        for (const auto& [name, us] : now) {
            auto& [forward, backward] = least.emplace(name, us).first->second;
            forward = std::min(forward, us.first), backward = std::min(backward, us.second);
        }
    }
    std::vector<std::pair<double, std::string>> order;
    double all = 0;
    for (const auto& [name, us] : least) {
        order.emplace_back(us.first + us.second, name);
        all += us.first + us.second;
    }
    std::sort(order.rbegin(), order.rend());
    for (const auto& [us, name] : order)
        std::printf("%5.1f %%  forward %7.2f us  backward %7.2f us  %s\n", 100 * us / all, least[name].first,
                    least[name].second, name.c_str());
}

/// Median by the clock and least processor time, in milliseconds, of one call among `repeats` samples of about 20 ms.
template <class Call>
std::pair<double, double> timed(int repeats, Call call) {
    const auto rounds = [&](int count) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < count; ++i) call();
        return mra::milliseconds_since(start) / count;
    };
    rounds(3);
    const int count = std::max(1, int(20 / rounds(10)));
    std::vector<double> clock, processor;
    for (int turn = 0; turn < repeats; ++turn) {
        const double before = processor_milliseconds();
        clock.push_back(rounds(count));
        processor.push_back((processor_milliseconds() - before) / count);
    }
    return {mra::median(clock), *std::min_element(processor.begin(), processor.end())};
}

void print(const std::string& name, const sizes& z, const parameters<float>& store, int steps,
           std::pair<double, double> times, std::size_t operations) {
    std::printf(
        "{\"model\": \"%s\", \"threads\": %d, \"T\": %d, \"B\": %d, \"parameters\": %lld, \"total_ms\": %.5f, "
        "\"processor_ms\": %.5f, \"frames_per_second\": %.0f, \"operations\": %zu}\n",
        name.c_str(), z.threads, steps, z.batch, static_cast<long long>(store.total()), times.first, times.second,
        1e3 * steps * z.batch / times.first, operations);
}

/// Single steps over x [T, B, F] and round again.
template <class Model>
void act(const std::string& name, const Model& model, const sizes& z, const std::vector<float>& x, int observed,
         int answered) {
    require(z.threads == 1, "--acting takes one thread, not ", z.threads);
    mra::program p(*model.g, model.store, {.steps = 1, .batch = z.batch}, {model.logits});
    const auto input = p.input("observation"), reset = p.input("reset");
    const auto row = std::size_t(z.batch) * std::size_t(observed);
    int t = 0;
    const auto step = [&] {
        std::copy_n(x.begin() + std::ptrdiff_t(row) * t, row, input.begin());
        std::fill(reset.begin(), reset.end(), t == 0);
        p.forward();
        p.carry();
        t = (t + 1) % z.steps;
        return p.output(model.logits);
    };
    if (!z.outputs.empty()) {
        std::vector<float> answers;
        for (int i = 0; i < z.steps; ++i) {
            const auto answer = step();
            for (int b = 0; b < z.batch; ++b)
                answers.insert(answers.end(), answer.data + b * answer.stride,
                               answer.data + b * answer.stride + answered);
        }
        safetensors file;
        file.add<float>("answer", {z.steps, z.batch, answered}, answers);
        file.write(z.outputs);
    }
    float sum = 0;
    if (z.repeats > 0)
        print(name, z, *model.store, 1, timed(z.repeats, [&] { sum += step().data[0]; }), p.operation_count());
    require(std::isfinite(sum), "--acting: an answer is not finite");
}

template <class Model>
void measure(const std::string& name, const typename Model::settings& s, const task_shape& task, const sizes& z) {
    auto model = Model::template trace<backend>(s, task, 1);
    const int observed = task.observation.size(), answered = task.targets;
    const bool bits = s.learner.targets == "bits";
    philox random(1, 3);
    const auto cells = std::size_t(z.steps) * std::size_t(z.batch);
    std::vector<float> x(cells * std::size_t(observed)), target(cells * std::size_t(answered)), reset(cells),
        one(cells);
    const auto draw = [&](auto& numbers) {
        for (auto& v : numbers) v = bits ? float(random.uniform() < 0.5f) : float(random.normal());
    };
    draw(x), draw(target);
    std::fill_n(reset.begin(), z.batch, 1.0f);
    std::fill(one.begin(), one.end(), 1.0f);
    if (!z.weights.empty()) save(z.weights, *model.store, z, x, observed, target, answered);

    if (z.acting) return act(name, model, z, x, observed, answered);

    mra::shards shards(*model.g, model.store, z.steps, z.batch, z.threads, {model.logits});
    shards.set_input("observation", x, observed);
    shards.set_input("target", target, answered);
    shards.set_input("reset", reset, 1);
    shards.set_input("weight", one, 1);
    optimiser_settings o;
    o.learning_rate = 1e-3;
    o.epsilon = 1e-8;
    o.clip = 1;
    optimiser<float> adam(o, *model.store);
    double norm = 0;
    const auto step = [&] {
        shards.forward();
        shards.backward();
        norm = adam.update(*model.store, shards[0].gradient(), 0);
    };
    if (z.profile) return print_profile(shards[0]);

    if (!z.outputs.empty()) {
        safetensors file;
        shards.forward();
        shards.backward();
        file.add("answer", {z.steps, z.batch, answered},
                 shards.gather(answered, [&](mra::program& p) { return p.output(model.logits); }));
        for (const auto& e : model.store->entries())
            file.add<float>("grad." + e.name, {e.rows, e.columns},
                            shards[0].gradient().subspan(std::size_t(e.offset), std::size_t(e.size())));
        std::vector<float> losses, norms;
        for (int u = 0; u < z.updates; ++u) {
            step();
            double loss = 0;
            for (int i = 0; i < shards.threads(); ++i) loss += shards[i].loss();
            losses.push_back(float(loss));
            norms.push_back(float(norm));
        }
        file.add<float>("losses", {z.updates}, losses);
        file.add<float>("gradient_norms", {z.updates}, norms);
        file.write(z.outputs);
    }
    if (z.repeats > 0) print(name, z, *model.store, z.steps, timed(z.repeats, step), shards[0].operation_count());
}

}  // namespace

int main(int argc, char** argv) try {
    const flags f(argc, argv,
                  {{"--model", "dnc"},
                   {"--threads", "1"},
                   {"--repeats", "10"},
                   {"--steps", "0"},
                   {"--batch", "16"},
                   {"--weights", ""},
                   {"--outputs", ""},
                   {"--updates", "5"},
                   {"--profile", "0"},
                   {"--acting", "0"}});
    const std::string& name = f.text("--model");
    require_known("model", name,
                  std::vector<std::string>{"dnc", "introspection", "lstm", "gru", "min_gru", "linear_recurrent_unit",
                                           "s5", "fast_and_forgetful", "stable_hadamard", "mlstm", "gated_delta_net",
                                           "gtrxl", "memory_traces", "stacked_lstm"});
    sizes z{f.number("--threads", 1),  f.number("--repeats"), f.number("--steps"),
            f.number("--batch"),       f.number("--updates"), f.number("--profile") != 0,
            f.number("--acting") != 0, f.text("--weights"),   f.text("--outputs")};
    if (z.steps == 0) z.steps = name == "lstm" ? 50 : name == "dnc" || name == "introspection" ? 20 : 64;
    const auto controlled = []<class Model>(std::type_identity<Model>, target_kinds targets) {
        typename Model::settings s;
        s.controller.hidden = 64;
        s.learner.targets = targets;
        return s;
    };
    if (name == "dnc") {
        using model = model_with<dnc>;
        auto s = controlled(std::type_identity<model>{}, "bits");
        s.memory.slots = 16, s.memory.word = 16, s.memory.read_heads = 4;
        measure<model>(name, s, {{1, 10, 1}, 0, 8}, z);
    } else if (name == "introspection") {
        using model = model_with<introspection>;
        auto s = controlled(std::type_identity<model>{}, "numbers");
        s.memory.slots = 16, s.memory.heads = 4, s.memory.hidden = 64;
        measure<model>(name, s, {{1, 16, 1}, 0, 16}, z);
    } else if (name == "lstm") {
        using model = model_with<no_memory>;
        measure<model>(name, controlled(std::type_identity<model>{}, "numbers"), {{1, 16, 1}, 0, 16}, z);
    } else if (name == "memory_traces") {
        using model = agent<identity, feed_forward, memory_traces, no_auxiliary, supervised>;
        measure<model>(name, controlled(std::type_identity<model>{}, "numbers"), {{1, 16, 1}, 0, 16}, z);
    } else {
        const auto layers = [&]<class Controller>(std::type_identity<Controller>, int units, int count) {
            using model = agent<identity, Controller, no_memory, no_auxiliary, supervised>;
            typename model::settings s;
            s.controller.hidden = units;
            if constexpr (requires { s.controller.layers; }) s.controller.layers = count;
            s.learner.targets = "numbers";
            measure<model>(name, s, {{1, 16, 1}, 0, 16}, z);
        };
        if (name == "gru") layers(std::type_identity<gru>{}, 128, 1);
        if (name == "min_gru") layers(std::type_identity<min_gru>{}, 128, 4);
        if (name == "linear_recurrent_unit") layers(std::type_identity<linear_recurrent_unit>{}, 128, 2);
        if (name == "s5") layers(std::type_identity<s5>{}, 128, 2);
        if (name == "fast_and_forgetful") layers(std::type_identity<fast_and_forgetful>{}, 128, 1);
        if (name == "stable_hadamard") layers(std::type_identity<stable_hadamard>{}, 128, 1);
        if (name == "gated_delta_net") layers(std::type_identity<gated_delta_net>{}, 64, 2);
        if (name == "mlstm") layers(std::type_identity<mlstm>{}, 64, 2);
        if (name == "gtrxl") layers(std::type_identity<gtrxl>{}, 64, 2);
        if (name == "stacked_lstm") layers(std::type_identity<stacked_lstm>{}, 128, 3);
    }
    return 0;
} catch (const std::exception& problem) {
    std::fprintf(stderr, "benchmark-memory_step: %s\n", problem.what());
    return 2;
}
