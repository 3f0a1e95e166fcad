// SPDX-License-Identifier: MIT

// Training by MemUP and by its baselines on the copy task (facts 3.3, 3.4; the sizes of the paper preset): updates and
// steps per second of whole passes over T steps, the bytes of all programs, what the sequences take, and the process's
// peak.
//
//   benchmark-memup_step [--model NAME|all] [--threads N] [--repeats R] [--steps T] [--batch B] [--rollout r]
//                        [--every f] [--selected K] [--context LAYERS] [--dropout RATE] [--updates N]
//                        [--weights FILE] [--outputs FILE]
//
// A pass of MemUP and of the truncated baselines is ceil(T / r) updates, and MemUP's begins with the uncertainties of
// all T steps; a pass of a baseline under BPTT is one update. Drawing the sequences is part of it. --weights writes the
// first weights and the sequences of the first passes for benchmarks/peers/memup.py, --outputs the loss and the
// gradient norm of each of the first N updates; both happen before anything is timed. --updates alone, with --repeats
// 0, measures memory: the peak behind N updates. A JSON line a model.

#include <sys/resource.h>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <engram/catalogue.hpp>
#include <engram/io/safetensors.hpp>
#include <engram/task/copy_sequences.hpp>
#include <engram/train/memup_update.hpp>
#include <engram/train/sequence_update.hpp>
#include <engram/train/truncated_update.hpp>

#include "flags.hpp"
#include "mra_core.hpp"

namespace {

using namespace engram;
using backend = cpu<float>;

struct sizes {
    int threads, repeats, steps, batch, rollout, every, selected, context, updates;
    double dropout;
    std::string weights, outputs;
};

/// The paper preset.
template <class Model>
typename Model::settings paper(const sizes& z) {
    typename Model::settings s;
    s.encoder.width = 128;
    if constexpr (requires { s.controller.forget_bias; }) {
        s.controller.hidden = 128;
        s.controller.layers = 2;
        s.controller.dropout = z.dropout;
    }
    if constexpr (requires { s.learner.selected; }) {
        s.learner.rollout = z.rollout;
        s.learner.every = z.every;
        s.learner.selected = z.selected;
        s.learner.dropout = z.dropout;
        s.learner.context.layers = z.context;
        s.learner.context.dropout = z.dropout;
    }
    if constexpr (requires { s.learner.unroll; }) s.learner.unroll = z.rollout;
    return s;
}

template <class Trainer>
double loss_of(Trainer& trainer, double& norm) {
    const auto window = trainer.take_window();
    norm = window.gradient_norm;
    return window.loss;
}

/// What the other side starts from.
void save(const std::string& path, const parameters<float>& store, const sequence_source& source, const sizes& z,
          int passes) {
    safetensors file;
    each_parameter(store, [&](const std::string& name, const auto& shape, std::ptrdiff_t at, std::size_t n) {
        file.add<float>(name, shape, std::span<const float>(store.flat().data() + at, n));
    });
    const auto cells = static_cast<std::size_t>(z.steps) * static_cast<std::size_t>(z.batch);
    std::vector<float> token(cells * static_cast<std::size_t>(passes)), target(token.size());
    for (int pass = 0; pass < passes; ++pass)
        for (int b = 0; b < z.batch; ++b) {
            const std::size_t at = static_cast<std::size_t>(pass) * cells + static_cast<std::size_t>(b);
            sequence_place to;
            to.observation = token.data() + at;
            to.target = target.data() + at;
            to.rows = z.batch;
            source.draw(source.info().levels.front(), 1, static_cast<std::uint64_t>(pass * z.batch + b), to);
        }
    for (const auto& [name, numbers] : {std::pair{"tokens", &token}, std::pair{"targets", &target}})
        file.add<float>(name, {passes, z.steps, z.batch}, *numbers);
    file.add<std::int64_t>("sizes", {6},
                           std::vector<std::int64_t>{z.rollout, z.every, z.selected, z.context, z.updates, z.batch});
    file.write(path);
}

template <class Model>
void measure(const char* name, sizes z) {
    task_options options;
    options.steps = z.steps;
    const auto source = std::make_shared<copy_task<false>>(options);
    const auto settings = paper<Model>(z);
    const task_shape shape = shape_of(source->info());
    auto fast = Model::template trace<backend>(settings, shape, 1);
    optimiser_settings o;
    o.learning_rate = 2e-4;
    o.epsilon = 1e-8;
    o.clip = 1;
    traced_agent<backend> slow;
    constexpr bool memup = requires {
        settings.learner.selected;
    };
    constexpr bool truncated = requires {
        settings.learner.unroll;
    };
    if constexpr (memup) slow = Model::template trace<backend>(settings, shape, 1, purpose::generating);
    const int pass = memup || truncated ? (z.steps + z.rollout - 1) / z.rollout : 1;
    auto trainer = [&] {
        const sequence_settings batch{z.batch};
        if constexpr (memup)
            return training_loop<memup_update<backend>>({1, z.threads, 0}, fast, slow, source, batch, o);
        else if constexpr (truncated)
            return training_loop<truncated_update<backend>>({1, z.threads, 0}, fast, source, batch, o);
        else
            return training_loop<sequence_update<backend>>({1, z.threads, 0}, fast, source, batch, o);
    }();
    if (!z.weights.empty()) save(z.weights, *fast.store, *source, z, (z.updates + pass - 1) / pass);
    std::vector<float> losses, norms;
    for (int u = 0; u < z.updates; ++u) {
        trainer.iterate();
        double norm = 0;
        losses.push_back(static_cast<float>(loss_of(trainer, norm)));
        norms.push_back(static_cast<float>(norm));
    }
    if (!z.outputs.empty()) {
        safetensors file;
        file.add<float>("losses", {z.updates}, losses);
        file.add<float>("gradient_norms", {z.updates}, norms);
        file.write(z.outputs);
    }
    std::vector<double> times;
    for (int turn = 0; turn < (z.repeats > 0 ? z.repeats + 1 : 0); ++turn) {
        const auto start = std::chrono::steady_clock::now();
        for (int u = 0; u < pass; ++u) trainer.iterate();
        if (turn > 0) times.push_back(mra::milliseconds_since(start));
    }
    const double median = mra::median(times), rate = median > 0 ? 1e3 / median : 0;
    std::size_t programs = 0;
    if constexpr (memup) {
        programs = trainer->memory();
    } else {
        for (int i = 0; i < z.threads; ++i) programs += trainer->learner(static_cast<std::size_t>(i)).memory();
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf(
        "{\"model\": \"%s\", \"threads\": %d, \"T\": %d, \"B\": %d, \"updates\": %d, \"total_ms\": %.1f, "
        "\"fastest_ms\": %.1f, \"frames_per_second\": %.0f, \"updates_per_second\": %.3f, \"program_bytes\": %zu, "
        "\"peak_MB\": %.1f}\n",
        name, z.threads, z.steps, z.batch, pass, median,
        times.empty() ? 0 : *std::min_element(times.begin(), times.end()), rate * z.steps * z.batch, rate * pass,
        programs, static_cast<double>(usage.ru_maxrss) / 1e3);
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
    const flags f(argc, argv,
                  {{"--model", "memup"},
                   {"--threads", "1"},
                   {"--repeats", "3"},
                   {"--steps", "520"},
                   {"--batch", "128"},
                   {"--rollout", "20"},
                   {"--every", "20"},
                   {"--selected", "10"},
                   {"--context", "2"},
                   {"--dropout", "0.1"},
                   {"--updates", "0"},
                   {"--weights", ""},
                   {"--outputs", ""}});
    const sizes z{f.number("--threads", 1),      f.number("--repeats"), f.number("--steps"),
                  f.number("--batch"),           f.number("--rollout"), f.number("--every"),
                  f.number("--selected"),        f.number("--context"), f.number("--updates"),
                  f.number<double>("--dropout"), f.text("--weights"),   f.text("--outputs")};
    const std::string& wanted = f.text("--model");
    std::vector<std::string> names{"all"};
    bool found = wanted == "all";
    const auto one = [&]<class Model>(const char* name, std::type_identity<Model>) {
        names.emplace_back(name);
        if (wanted != "all" && wanted != name) return;
        found = true;
        measure<Model>(name, z);
    };
    one("memup", std::type_identity<catalogue::memup>{});
    one("tbptt_lstm", std::type_identity<catalogue::tbptt_lstm>{});
    one("tbptt_transformer", std::type_identity<catalogue::tbptt_transformer>{});
    one("bptt_lstm", std::type_identity<catalogue::bptt_lstm>{});
    one("bptt_srnn", std::type_identity<catalogue::bptt_srnn>{});
    one("bptt_transformer", std::type_identity<catalogue::bptt_transformer>{});
    if (!found) require_known("model", wanted, names);
    return 0;
} catch (const std::exception& problem) {
    std::fprintf(stderr, "benchmark-memup_step: %s\n", problem.what());
    return 2;
}
