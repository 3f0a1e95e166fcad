// SPDX-License-Identifier: MIT

// One training step (forward, backward, clip, Adam) of the five generative temporal models at the paper's sizes, batch
// 10, T = 25, 28 x 28 frames, and of a DNC (batch 16, 16 x 16 memory, 4 read heads, LSTM 64, T = 25) on bits.
//
//   benchmark-gtmm_step [--threads N] [--repeats R] [--only NAME]
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

#include <engram/catalogue.hpp>
#include <engram/core/philox.hpp>
#include <engram/core/thread_pool.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/train/optimiser.hpp>

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

void fill(program<backend>& p, const graph<backend>& g, std::uint64_t seed) {
    philox random(seed, 3);
    for (const auto& v : g.values())
        if (p.has_input(v.name))
            for (auto& x : p.input(v.name)) x = v.name == "reset" ? 0.0f : random.uniform();
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
    for (auto& p : shards) fill(*p, *model.g, 1);
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
        const double s = seconds_since(start);
        all += s;
        if (is_product(op)) products += s;
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

/// Sizes of the paper preset.
template <class Model>
typename Model::settings paper() {
    typename Model::settings s;
    s.encoder.network = "inception";
    s.controller.hidden = 208;
    s.learner.latent = 32;
    s.learner.hidden = 0;
    if constexpr (requires { s.memory.slots; }) s.memory.slots = 25;
    if constexpr (requires { s.memory.decay; }) s.memory.slots = 125;
    if constexpr (requires { s.memory.order; }) s.controller.hidden = 440;
    if constexpr (requires { s.memory.input; }) s.memory.input = "held";
    if constexpr (requires { s.memory.word; }) s.memory.word = 32;
    if constexpr (requires { s.memory.heads; }) s.memory.heads = 5;
    if constexpr (requires { s.memory.read_heads; }) s.memory.read_heads = 5;
    if constexpr (requires { s.memory.start; }) s.memory.start = "learned";
    return s;
}

using bits_dnc = agent<identity, engram::lstm, dnc, no_auxiliary, supervised>;

}  // namespace

int main(int argc, char** argv) try {
    int threads = 1, repeats = 5;
    std::string only;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string flag = argv[i];
        engram::require_known("flag", flag, std::vector<std::string>{"--threads", "--repeats", "--only"});
        if (flag == "--threads") threads = std::stoi(argv[i + 1]);
        if (flag == "--repeats") repeats = std::stoi(argv[i + 1]);
        if (flag == "--only") only = argv[i + 1];
    }
    const auto wanted = [&](const char* name) { return only.empty() || only == name; };
    const auto gtmm = [&]<class Model>(const char* name, std::type_identity<Model>) {
        if (wanted(name)) measure<Model>(name, paper<Model>(), {{28, 28, 1}, 0}, 25, 10, 1, repeats);
    };
    gtmm("vrnn", std::type_identity<engram::catalogue::vrnn>{});
    gtmm("introspective_gtmm", std::type_identity<engram::catalogue::introspective_gtmm>{});
    gtmm("ntm_gtmm", std::type_identity<engram::catalogue::ntm_gtmm>{});
    gtmm("lru_gtmm", std::type_identity<engram::catalogue::lru_gtmm>{});
    gtmm("dnc_gtmm", std::type_identity<engram::catalogue::dnc_gtmm>{});
    if (wanted("dnc")) {
        bits_dnc::settings s;
        s.controller.hidden = 64;
        s.memory.slots = 16;
        s.memory.word = 16;
        s.memory.read_heads = 4;
        s.learner.targets = "bits";
        for (const int n : {1, threads})
            if (n == 1 || threads > 1) {
                measure<bits_dnc>("dnc", s, {{1, 10, 1}, 0, 8}, 25, 16, n, 20 * repeats);
                if (threads == 1) break;
            }
    }
    return 0;
} catch (const engram::error& problem) {
    std::fprintf(stderr, "benchmark-gtmm_step: %s\n", problem.what());
    return 2;
}
