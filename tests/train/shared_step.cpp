// SPDX-License-Identifier: MIT
// An update that threads and processes share has the bits of one thread's: weights, packed copies, moments, norm.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

#include <engram/train/optimiser.hpp>

#include "threads_as_processes.hpp"

using namespace engram;
using threads_as_processes::as_processes;

namespace {

/// Two matrices and a bias, so that packings of unlike sizes are shared.
std::unique_ptr<parameters<float>> store_of(int rows, int columns) {
    auto store = std::make_unique<parameters<float>>(3);
    const auto a = store->declare("a", rows, columns, initial::fan_in<float>());
    store->declare("bias", 1, columns, initial::zero<float>());
    const auto b = store->declare("b", columns, rows, initial::fan_in<float>());
    store->packed_forward(a);
    store->packed_transposed(a, 0, rows);
    store->packed_forward(b);
    store->paired_forward(b, 0, columns);
    return store;
}

std::vector<float> gradient_of(std::size_t n, unsigned seed) {
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal;
    std::vector<float> g(n);
    for (float& x : g) x = normal(rng);
    return g;
}

template <class Word>
void same_panels(const packed_weights<Word>& a, const packed_weights<Word>& b) {
    REQUIRE(a.panels() == b.panels());
    for (int p = 0; p < a.panels(); ++p) {
        const auto words = static_cast<std::size_t>(a.rows() * a.panel_vectors(p) * packed_weights<Word>::width);
        CHECK(std::memcmp(a.panel_row(p, 0), b.panel_row(p, 0), words * sizeof(Word)) == 0);
    }
}

struct result {
    std::vector<float> weights, first, second;
    std::vector<double> norms;
    bool operator==(const result&) const = default;
};

/// Three steps by the sums of `gradients`, one a process.
result stepped(parameters<float>& store, const optimiser_settings& s, int threads,
               const std::vector<std::vector<float>>& gradients, processes* self) {
    thread_pool pool(threads);
    optimiser<float> steps(s, store);
    result all;
    std::vector<float> room;
    for (int k = 0; k < 3; ++k) {
        std::vector<float> sum;
        if (self) {
            sum = gradients[static_cast<std::size_t>(self->rank())];
            add_up_halves(*self, std::span(sum), room);
        } else {
            auto parts = gradients;
            add_in_order(static_cast<int>(parts.size()), 1, [&](int to, int from) {
                for (std::size_t i = 0; i < parts[0].size(); ++i)
                    parts[static_cast<std::size_t>(to)][i] += parts[static_cast<std::size_t>(from)][i];
            });
            sum = parts[0];
        }
        all.norms.push_back(steps.update(store, sum, 0.1 * k, &pool, self));
    }
    steps.collect_moments();
    all.weights.assign(store.flat().begin(), store.flat().end());
    all.first.assign(steps.first_moment().begin(), steps.first_moment().end());
    all.second.assign(steps.second_moment().begin(), steps.second_moment().end());
    return all;
}

void is_one_update(const optimiser_settings& s, int rows, int columns, std::vector<int> processes_each = {1, 2, 4, 8}) {
    for (const int count : processes_each) {
        CAPTURE(count);
        std::vector<std::vector<float>> gradients;
        const auto n = static_cast<std::size_t>(store_of(rows, columns)->flat_size());
        for (int i = 0; i < count; ++i) gradients.push_back(gradient_of(n, static_cast<unsigned>(i)));
        const auto reference = store_of(rows, columns);
        const result alone = stepped(*reference, s, 1, gradients, nullptr);
        CHECK(alone.weights != std::vector<float>(n, 0));
        for (const int threads : {1, 2, 5}) {
            CAPTURE(threads);
            std::mutex one_at_a_time;
            as_processes(count, [&](processes& self) {
                const auto own = store_of(rows, columns);
                const result shared = stepped(*own, s, threads, gradients, count > 1 ? &self : nullptr);
                const std::lock_guard lock(one_at_a_time);
                CHECK(shared == alone);
                const auto a = own->find("a"), b = own->find("b");
                same_panels(*own->packed_forward(a), *reference->packed_forward(a));
                same_panels(*own->packed_transposed(a, 0, rows), *reference->packed_transposed(a, 0, rows));
                same_panels(*own->packed_forward(b), *reference->packed_forward(b));
                same_panels(*own->paired_forward(b, 0, columns), *reference->paired_forward(b, 0, columns));
            });
        }
    }
}

}  // namespace

TEST_CASE("Adam, clipped; enough numbers for threads, of two processes too") {
    is_one_update({.clip = 1}, 761, 1400, {1, 2});
}

TEST_CASE("Adam, clipped") {
    is_one_update({.clip = 1}, 300, 401);
}

TEST_CASE("RMSProp with momentum, not clipped") {
    is_one_update({.kind = "rmsprop", .momentum = 0.5, .clip = 0}, 257, 300);
}

TEST_CASE("fewer numbers than a block of the norm: some processes have no part") {
    is_one_update({.clip = 1}, 5, 7);
    is_one_update({.clip = 1}, 20, 50);
}

TEST_CASE("a gradient that is not finite changes nothing anywhere") {
    const auto before = store_of(300, 401);
    std::vector<std::vector<float>> gradients(2, gradient_of(static_cast<std::size_t>(before->flat_size()), 1));
    gradients[1].back() = std::numeric_limits<float>::infinity();
    as_processes(2, [&](processes& self) {
        const auto own = store_of(300, 401);
        const result shared = stepped(*own, {}, 2, gradients, &self);
        for (const double norm : shared.norms) CHECK_FALSE(std::isfinite(norm));
        CHECK(std::equal(shared.weights.begin(), shared.weights.end(), before->flat().begin()));
        CHECK(shared.first == std::vector<float>(shared.first.size(), 0));
    });
}
