// SPDX-License-Identifier: MIT

// Exact nearest neighbours as an agent asks for them: B rings of N keys, one query each, the K nearest of every ring.
// Milliseconds of one round of B searches, beside FAISS's flat index in benchmarks/peers/knn_read.py, which reads the
// same keys and queries.
//
//   benchmark-knn_read [--threads N] [--repeats R] [--batch B] [--slots N] [--weights FILE] [--outputs FILE]
//
// One JSON line, as benchmarks/peers/run.sh reads it: the median round of R samples of at least 20 ms, by the clock and
// in processor time of all threads, and the same with the read behind the search (weights and mixture of the contents),
// which FAISS has not. --outputs writes the slots [B, K], nearest first.

#include <time.h>

#include <cstdint>
#include <cstdio>

#include <engram/kernels/knn.hpp>

#include "flags.hpp"
#include "mra_core.hpp"

namespace {

using engram::aligned_vector;

/// Seconds of processor time that all threads have had.
double process_seconds() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

struct rings {
    static constexpr int V = 512;
    int B, N, D, K;
    aligned_vector<float> keys, norms, content, queries, read;
    aligned_vector<std::uint32_t> words;
    std::vector<int> slots;
    std::int64_t written;

    rings(const engram::safetensors& file, int neighbours) : K(neighbours) {
        const auto& shape = file.at("keys").shape;
        B = int(shape[0]), N = int(shape[1]), D = int(shape[2]);
        written = N;
        const auto stored = file.values<float>("keys"), asked = file.values<float>("queries");
        keys.assign(stored.begin(), stored.end());
        queries.assign(asked.begin(), asked.end());
        content.assign(std::size_t(N) * V, 0.5f);
        read.resize(std::size_t(B) * V);
        slots.resize(std::size_t(B) * std::size_t(K));
        norms.resize(std::size_t(B) * std::size_t(N));
        for (std::size_t i = 0; i < norms.size(); ++i) {
            const float* key = keys.data() + i * std::size_t(D);
            norms[i] = engram::dot(key, key, D);
        }
        words.resize(std::size_t(B * engram::knn_compact_words(N, D)));
        for (int b = 0; b < B; ++b) engram::rebuild_compact(ring(b));
    }
    engram::knn_ring<float> ring(int b) {
        const auto first = std::ptrdiff_t{b} * N;
        return {content.data(),
                keys.data() + first * D,
                norms.data() + first,
                &written,
                N,
                V,
                D,
                {words.data() + b * engram::knn_compact_words(N, D)}};
    }
    void search(int first, int last, bool reads, aligned_vector<float>& scratch) {
        scratch.resize(std::size_t(N + 2 * K));
        for (int b = first; b < last; ++b) {
            const auto one = ring(b);
            const float* query = queries.data() + std::ptrdiff_t{b} * D;
            int* found = slots.data() + std::ptrdiff_t{b} * K;
            const int count = engram::knn_select(one, query, K, found, scratch.data());
            if (reads)
                engram::knn_read(query, one.key, D, one.content, V, 0, V, count, 1e-3f, scratch.data() + N,
                                 scratch.data() + N + K, read.data() + std::ptrdiff_t{b} * V, found);
        }
    }
};

struct times {
    std::vector<double> wall, processor;
};

double least(const std::vector<double>& numbers) {
    return *std::min_element(numbers.begin(), numbers.end());
}

}  // namespace

int main(int argc, char** argv) try {
    const flags options(argc, argv,
                        {{"--threads", "1"},
                         {"--repeats", "5"},
                         {"--batch", "16"},
                         {"--slots", "1024"},
                         {"--weights", ""},
                         {"--outputs", ""}});
    const int D = 128, batch = options.number("--batch"), count = options.number("--slots");
    const engram::safetensors file =
        options.text("--weights").empty()
            ? mra::random_file({{"keys", {batch, count, D}, 1}, {"queries", {batch, D}, 1}})
            : engram::safetensors::read(options.text("--weights"));
    rings all(file, 10);
    engram::thread_pool pool(options.number("--threads", 1));
    std::vector<aligned_vector<float>> scratch(std::size_t(pool.size()));
    // Threads meet at the end of all rounds alone, as those of an agent do at the end of an unroll.
    const auto run = [&](bool reads, int rounds) {
        pool.run([&](int i) {
            for (int r = 0; r < rounds; ++r)
                all.search(all.B * i / pool.size(), all.B * (i + 1) / pool.size(), reads, scratch[std::size_t(i)]);
        });
    };
    run(true, 1);
    if (const std::string& path = options.text("--outputs"); !path.empty()) {
        engram::safetensors out;
        const std::vector<std::int64_t> slots(all.slots.begin(), all.slots.end());
        out.add<std::int64_t>("slots", {all.B, all.K}, slots);
        out.write(path);
    }
    auto start = std::chrono::steady_clock::now();
    run(false, 3);
    const int rounds = std::max(1, int(20 * 3 / mra::milliseconds_since(start)));
    times found[2];
    for (int turn = 0; turn < 2 * options.number("--repeats"); ++turn) {
        const bool reads = turn % 2 != 0;
        start = std::chrono::steady_clock::now();
        const double before = process_seconds();
        run(reads, rounds);
        found[reads].processor.push_back(1e3 * (process_seconds() - before) / rounds);
        found[reads].wall.push_back(mra::milliseconds_since(start) / rounds);
    }
    const double total = mra::median(found[0].wall);
    if (total > 0)
        std::printf(
            "{\"threads\": %d, \"total_ms\": %.4f, \"processor_ms\": %.4f, \"frames_per_second\": %.0f, \"read_ms\": "
            "%.4f, \"read_processor_ms\": %.4f}\n",
            pool.size(), total, least(found[0].processor), 1e3 * all.B / total, mra::median(found[1].wall),
            least(found[1].processor));
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
