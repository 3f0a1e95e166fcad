// SPDX-License-Identifier: MIT

// One training step (forward, backward, clip, Adam) of the five generative temporal models at the paper's sizes, batch
// 10, T = 25, 28 x 28 frames, and of a DNC (batch 16, 16 x 16 memory, 4 read heads, LSTM 64, T = 25) on bits.
//
//   benchmark-gtmm_step [--threads N] [--repeats R] [--only NAME]
//   benchmark-gtmm_step --write FILE   weights, inputs and loss of small models with each memory, on bits, for
//                                      gpu/sequence_peers.py --check
//
// A line each: frames per second, the share of the time in matrix products (affine maps and convolutions, one thread),
// the memory of the plan and the process's peak. Batch normalisation mixes the rows of a batch, so the five models run
// on one thread whatever --threads says.

#include <sys/resource.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <engram/core/thread_pool.hpp>
#include <engram/io/safetensors.hpp>
#include <engram/train/optimiser.hpp>

#include "flags.hpp"
#include "gtmm_models.hpp"

namespace {

using namespace engram;
using backend = cpu<float>;
using seconds_clock = std::chrono::steady_clock;

double seconds_since(seconds_clock::time_point start) {
    return std::chrono::duration<double>(seconds_clock::now() - start).count();
}

bool is_product(const operation<backend>& op) {
    return dynamic_cast<const affine_operation<backend>*>(&op) ||
           dynamic_cast<const simple_operation<backend, convolution_kernel, convolution_settings>*>(&op);
}

template <class Model>
void measure(const std::string& name, const typename Model::settings& s, const task_shape& task, int T, int B,
             int threads, int repeats) {
    auto model = Model::template trace<backend>(s, task, 1);
    std::vector<std::unique_ptr<program<backend>>> shards;
    for (int i = 0; i < threads; ++i)
        shards.push_back(std::make_unique<program<backend>>(
            *model.g, model.store,
            plan_options{
                .steps = T, .batch = B * (i + 1) / threads - B * i / threads, .gradients = true, .total_batch = B}));
    for (auto& p : shards) gtmm::fill(*p, *model.g, 1);
    optimiser_settings o;
    o.learning_rate = 1e-3;
    optimiser<float> adam(o, *model.store);
    thread_pool pool(threads);
    const auto step = [&] {
        pool.run([&](int i) {
            auto& p = *shards[static_cast<std::size_t>(i)];
            p.forward();
            p.backward();
        });
        const auto total = shards[0]->gradient();
        for (std::size_t i = 1; i < shards.size(); ++i)
            for (std::size_t j = 0; j < total.size(); ++j) total[j] += shards[i]->gradient()[j];
        adam.update(*model.store, total, 0);
    };
    step();
    std::vector<double> times;
    for (int r = 0; r < repeats; ++r) {
        const auto start = seconds_clock::now();
        step();
        times.push_back(seconds_since(start));
    }
    std::sort(times.begin(), times.end());
    const double best = times.front(), median = times[times.size() / 2];

    double products = 0, all = 0;
    const auto around = [&](const operation<backend>& op, auto call) {
        const auto start = seconds_clock::now();
        call();
        const double spent = seconds_since(start);
        all += spent;
        if (is_product(op)) products += spent;
    };
    for (int r = 0; r < std::max(1, repeats / 2); ++r) {
        shards[0]->forward_around(around);
        shards[0]->backward_around(around);
    }
    std::size_t bytes = 0;
    for (const auto& p : shards) bytes += p->memory();
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf(
        "{\"model\": \"%s\", \"threads\": %d, \"T\": %d, \"B\": %d, \"parameters\": %lld, "
        "\"milliseconds_best\": %.2f, \"milliseconds_median\": %.2f, \"frames_per_second\": %.0f, "
        "\"share_in_products\": %.3f, \"plan_MB\": %.1f, \"peak_MB\": %.1f}\n",
        name.c_str(), threads, T, B, static_cast<long long>(model.store->total()), 1e3 * best, 1e3 * median,
        T * B / best, products / all, static_cast<double>(bytes) / 1e6, static_cast<double>(usage.ru_maxrss) / 1e3);
    std::fflush(stdout);
}

template <class Memory>
void write_bits(safetensors& file, const std::string& name) {
    using model = gtmm::bits_with<Memory>;
    typename model::settings s;
    s.controller.hidden = 24;
    s.memory.slots = 12;
    s.learner.targets = "bits";
    if constexpr (requires { s.memory.word; }) s.memory.word = 6;
    if constexpr (requires { s.memory.heads; }) s.memory.heads = 3;
    if constexpr (requires { s.memory.read_heads; }) s.memory.read_heads = 3;
    if constexpr (requires { s.memory.start; }) s.memory.start = "learned";
    auto traced = model::template trace<backend>(s, gtmm::bits(), 1);
    {
        philox random(2, 2);
        auto edit = traced.store->edit();
        for (auto& w : edit.flat()) w += 0.2f * random.normal();
    }
    program<backend> p(*traced.g, traced.store, {.steps = 10, .batch = 3, .gradients = true});
    gtmm::fill(p, *traced.g, 1);
    p.forward();
    for (const auto& e : traced.store->entries())
        file.add<float>(
            name + "." + e.name, {e.rows, e.columns},
            traced.store->flat().subspan(static_cast<std::size_t>(e.offset), static_cast<std::size_t>(e.size())));
    for (const auto& v : traced.g->values())
        if (p.has_input(v.name)) file.add<float>(name + ".input." + v.name, {10, 3, v.width}, p.input(v.name));
    file.add<double>(name + ".loss", {1}, std::vector<double>{p.loss()});
}

}  // namespace

int main(int argc, char** argv) try {
    const flags told(argc, argv, {{"--threads", "1"}, {"--repeats", "5"}, {"--only", ""}, {"--write", ""}});
    const int threads = told.number("--threads", 1), repeats = told.number("--repeats");
    const std::string &only = told.text("--only"), &file = told.text("--write");
    if (!file.empty()) {
        safetensors all;
        write_bits<dnc>(all, "dnc");
        write_bits<ntm>(all, "ntm");
        write_bits<lru_access>(all, "lru");
        write_bits<introspection>(all, "introspection");
        all.write(file);
        return 0;
    }
    const auto wanted = [&](const char* name) { return only.empty() || only == name; };
    const auto generative = [&]<class Model>(const char* name, std::type_identity<Model>) {
        if (wanted(name)) measure<Model>(name, gtmm::paper<Model>(), gtmm::frames(), gtmm::T, gtmm::B, 1, repeats);
    };
    generative("vrnn", std::type_identity<engram::catalogue::vrnn>{});
    generative("introspective_gtmm", std::type_identity<engram::catalogue::introspective_gtmm>{});
    generative("ntm_gtmm", std::type_identity<engram::catalogue::ntm_gtmm>{});
    generative("lru_gtmm", std::type_identity<engram::catalogue::lru_gtmm>{});
    generative("dnc_gtmm", std::type_identity<engram::catalogue::dnc_gtmm>{});
    if (wanted("dnc")) {
        for (const int n : {1, threads})
            if (n == 1 || threads > 1) {
                measure<gtmm::bits_dnc>("dnc", gtmm::small_dnc(), gtmm::bits(), 25, 16, n, 20 * repeats);
                if (threads == 1) break;
            }
    }
    return 0;
} catch (const engram::error& problem) {
    std::fprintf(stderr, "benchmark-gtmm_step: %s\n", problem.what());
    return 2;
}
