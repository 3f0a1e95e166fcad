// The k-NN memory against a loop-only restatement of facts 1.3 and 1.4 in double.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "engram/kernels/knn.hpp"

namespace {

using engram::knn_ring;

template <class Real>
struct ring_store {
    std::vector<Real> content, key, norm;
    std::int64_t written = 0;
    knn_ring<Real> ring;

    // Storage starts as NaN: whoever reads a slot that was never written shows it.
    ring_store(int slots, int content_width, int key_width)
        : content(static_cast<std::size_t>(slots) * content_width, std::numeric_limits<Real>::quiet_NaN()),
          key(static_cast<std::size_t>(slots) * key_width, std::numeric_limits<Real>::quiet_NaN()),
          norm(static_cast<std::size_t>(slots), std::numeric_limits<Real>::quiet_NaN()),
          ring{content.data(), key.data(), norm.data(), &written, slots, content_width, key_width} {}
};

// Small integers: every distance is exact in float, so that ties are true ties on both sides.
template <class Real>
std::vector<Real> small_integers(std::mt19937& rng, int n, int span) {
    std::uniform_int_distribution<int> draw(-span, span);
    std::vector<Real> x(static_cast<std::size_t>(n));
    for (Real& v : x) v = static_cast<Real>(draw(rng));
    return x;
}

std::vector<double> normals(std::mt19937& rng, int n) {
    std::normal_distribution<double> draw;
    std::vector<double> x(static_cast<std::size_t>(n));
    for (double& v : x) v = draw(rng);
    return x;
}

template <class Real>
std::vector<int> nearest(const std::vector<std::vector<Real>>& keys, const std::vector<Real>& query, int k) {
    std::vector<int> order(keys.size());
    std::vector<double> distance(keys.size(), 0.0);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        order[i] = static_cast<int>(i);
        for (std::size_t d = 0; d < query.size(); ++d) {
            const double gap = double(keys[i][d]) - double(query[d]);
            distance[i] += gap * gap;
        }
    }
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return distance[a] < distance[b]; });
    order.resize(std::min<std::size_t>(order.size(), static_cast<std::size_t>(k)));
    return order;
}

// Random rings, wrapped or not, against a full stable sort; `span` sets how many ties there are.
template <class Real>
void selection_equals_sort(int cases, unsigned seed) {
    std::mt19937 rng(seed);
    for (int c = 0; c < cases; ++c) {
        const int slots = 1 + static_cast<int>(rng() % 70), D = 1 + static_cast<int>(rng() % 40);
        const int k = 1 + static_cast<int>(rng() % 14), writes = static_cast<int>(rng() % (2 * slots + 2));
        const int span = c % 2 ? 1 : 50;
        ring_store<Real> store(slots, 3, D);
        std::vector<std::vector<Real>> keys;
        for (int w = 0; w < writes; ++w) {
            const auto key = small_integers<Real>(rng, D, span), content = small_integers<Real>(rng, 3, span);
            REQUIRE(engram::knn_write(store.ring, content.data(), key.data()) == w % slots);
            if (w < slots)
                keys.push_back(key);
            else
                keys[static_cast<std::size_t>(w % slots)] = key;
            REQUIRE(store.content[static_cast<std::size_t>(w % slots) * 3 + 2] == content[2]);
        }
        REQUIRE(engram::knn_valid(store.ring) == std::min(writes, slots));
        const auto query = small_integers<Real>(rng, D, span);
        std::vector<int> slot(static_cast<std::size_t>(k), -7);
        std::vector<Real> scratch(static_cast<std::size_t>(slots));
        const int found = engram::knn_select(store.ring, query.data(), k, slot.data(), scratch.data());
        const auto expected = nearest(keys, query, k);
        REQUIRE(found == static_cast<int>(expected.size()));
        slot.resize(static_cast<std::size_t>(found));
        REQUIRE(slot == expected);
    }
}

// m = sum_j w_j v_j, w_j = u_j / sum u, u_j = 1 / (epsilon + |q - k_j|^2), in the plainest double.
std::vector<double> read_oracle(const std::vector<double>& q, const std::vector<double>& keys,
                                const std::vector<double>& content, int C, int offset, int V, int found,
                                double epsilon) {
    const std::size_t D = q.size();
    std::vector<double> u(static_cast<std::size_t>(found)), read(static_cast<std::size_t>(V), 0.0);
    double total = 0;
    for (int j = 0; j < found; ++j) {
        double distance = 0;
        for (std::size_t d = 0; d < D; ++d) distance += (q[d] - keys[j * D + d]) * (q[d] - keys[j * D + d]);
        u[j] = 1 / (epsilon + distance);
        total += u[j];
    }
    for (int j = 0; j < found; ++j)
        for (int v = 0; v < V; ++v) read[v] += u[j] / total * content[j * C + offset + v];
    return read;
}

}  // namespace

TEST_CASE("the K nearest equal a stable sort: ties, wrap-around, few and no valid slots") {
    selection_equals_sort<float>(700, 1);
    selection_equals_sort<double>(300, 2);
}

TEST_CASE("identical keys tie exactly for real-valued keys, wherever they lie") {
    std::mt19937 rng(3);
    for (int slots : {1, 5, 16, 17, 33, 100}) {
        ring_store<float> store(slots, 1, 37);
        const auto draw = normals(rng, 74);
        const std::vector<float> key(draw.begin(), draw.begin() + 37), query(draw.begin() + 37, draw.end());
        const float content = 0;
        for (int w = 0; w < slots; ++w) engram::knn_write(store.ring, &content, key.data());
        std::vector<int> slot(10);
        std::vector<float> scratch(static_cast<std::size_t>(slots));
        const int found = engram::knn_select(store.ring, query.data(), 10, slot.data(), scratch.data());
        REQUIRE(found == std::min(slots, 10));
        for (int j = 0; j < found; ++j) CHECK(slot[j] == j);
    }
}

TEST_CASE("the order is the same in a large ring of real-valued keys") {
    std::mt19937 rng(4);
    ring_store<float> store(1024, 1, 128);
    std::vector<std::vector<float>> keys;
    const float content = 0;
    for (int w = 0; w < 1024; ++w) {
        const auto draw = normals(rng, 128);
        keys.emplace_back(draw.begin(), draw.end());
        engram::knn_write(store.ring, &content, keys.back().data());
    }
    for (int c = 0; c < 20; ++c) {
        const auto draw = normals(rng, 128);
        const std::vector<float> query(draw.begin(), draw.end());
        std::vector<int> slot(10);
        std::vector<float> scratch(1024);
        REQUIRE(engram::knn_select(store.ring, query.data(), 10, slot.data(), scratch.data()) == 10);
        CHECK(slot == nearest(keys, query, 10));
    }
}

TEST_CASE("reset forgets, and non-finite keys neither win nor break the selection") {
    ring_store<float> store(20, 1, 2);
    const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
    const float content = 1, query[2] = {0, 0};
    std::vector<float> scratch(20);
    int slot[25];
    CHECK(engram::knn_select(store.ring, query, 5, slot, scratch.data()) == 0);
    for (int w = 0; w < 18; ++w) {
        const float key[2] = {w % 3 == 0 ? nan : w % 3 == 1 ? infinity : float(w), 0};
        engram::knn_write(store.ring, &content, key);
    }
    REQUIRE(engram::knn_select(store.ring, query, 8, slot, scratch.data()) == 8);
    const int expected[8] = {2, 5, 8, 11, 14, 17, 0, 1};
    for (int j = 0; j < 8; ++j) CHECK(slot[j] == expected[j]);
    REQUIRE(engram::knn_select(store.ring, query, 25, slot, scratch.data()) == 18);
    std::sort(slot, slot + 18);
    for (int j = 0; j < 18; ++j) CHECK(slot[j] == j);
    const float bad[2] = {nan, nan};
    REQUIRE(engram::knn_select(store.ring, bad, 4, slot, scratch.data()) == 4);
    for (int j = 0; j < 4; ++j) CHECK(slot[j] == j);
    engram::knn_reset(store.ring);
    CHECK(engram::knn_valid(store.ring) == 0);
    CHECK(engram::knn_select(store.ring, query, 5, slot, scratch.data()) == 0);
    CHECK(engram::knn_write(store.ring, &content, query) == 0);
}

TEST_CASE("the read equals the oracle, and its gradient equals central differences") {
    std::mt19937 rng(5);
    for (int c = 0; c < 60; ++c) {
        const int D = 1 + static_cast<int>(rng() % 40), V = 1 + static_cast<int>(rng() % 40);
        const int offset = static_cast<int>(rng() % 20), C = offset + V, found = static_cast<int>(rng() % 12);
        const double epsilon = 1e-3;
        auto query = normals(rng, D), keys = normals(rng, std::max(1, found * D));
        const auto content = normals(rng, std::max(1, found * C)), d_read = normals(rng, V);
        std::vector<double> distance(12), weight(12), read(V, 7.0);
        engram::knn_read(query.data(), keys.data(), D, content.data(), C, offset, V, found, epsilon, distance.data(),
                         weight.data(), read.data());
        const auto expected = read_oracle(query, keys, content, C, offset, V, found, epsilon);
        for (int v = 0; v < V; ++v) REQUIRE(std::abs(read[v] - expected[v]) <= 1e-9 * (1 + std::abs(expected[v])));

        const auto before = normals(rng, D);
        auto d_query = before;
        std::vector<double> d_keys(keys.size(), 7.0);
        engram::knn_read_gradient(query.data(), keys.data(), D, content.data(), C, offset, V, found, epsilon,
                                  distance.data(), weight.data(), d_read.data(), d_query.data(), d_keys.data());
        const auto loss = [&] {
            const auto r = read_oracle(query, keys, content, C, offset, V, found, epsilon);
            double sum = 0;
            for (int v = 0; v < V; ++v) sum += d_read[v] * r[v];
            return sum;
        };
        // Relative to the largest entry: single entries near zero only show the differences' own rounding.
        const auto agree = [&](std::vector<double>& x, const std::vector<double>& gradient,
                               const std::vector<double>& offset_by, int n) {
            double worst = 0, scale = 1e-3;
            for (int i = 0; i < n; ++i) {
                const double keep = x[i], h = 1e-5 * (1 + std::abs(keep));
                double difference = 0;  // fourth order: the kernel 1 / (epsilon + d) is steep where d is small
                for (const auto& [step, factor] : {std::pair{2.0, -1.0}, {1.0, 8.0}, {-1.0, -8.0}, {-2.0, 1.0}}) {
                    x[i] = keep + step * h;
                    difference += factor * loss();
                }
                x[i] = keep;
                difference /= 12 * h;
                const double g = gradient[i] - (offset_by.empty() ? 0 : offset_by[i]);
                worst = std::max(worst, std::abs(g - difference));
                scale = std::max(scale, std::abs(difference));
            }
            return worst <= 1e-6 * scale;
        };
        REQUIRE(agree(query, d_query, before, D));
        REQUIRE(agree(keys, d_keys, {}, found * D));

        auto alone = before;  // without the keys (jumpy backpropagation off) the query's gradient is the same
        engram::knn_read_gradient<double>(query.data(), keys.data(), D, content.data(), C, offset, V, found, epsilon,
                                          distance.data(), weight.data(), d_read.data(), alone.data(), nullptr);
        REQUIRE(alone == d_query);
        if (found == 0) REQUIRE(d_query == before);
    }
}

TEST_CASE("a single neighbour has weight one and no gradient, however near or far") {
    for (float gap : {0.0f, 1e-30f, 1.0f, 1e18f}) {
        const float query[3] = {gap, 0, 0}, key[3] = {0, 0, 0}, content[2] = {3, -2}, d_read[2] = {1, 1};
        float distance, weight, read[2], d_query[3] = {0, 0, 0}, d_key[3];
        engram::knn_read(query, key, 3, content, 2, 0, 2, 1, 1e-3f, &distance, &weight, read);
        CHECK(weight == 1.0f);
        CHECK(read[0] == 3.0f);
        CHECK(read[1] == -2.0f);
        engram::knn_read_gradient(query, key, 3, content, 2, 0, 2, 1, 1e-3f, &distance, &weight, d_read, d_query,
                                  d_key);
        for (int d = 0; d < 3; ++d) CHECK(d_query[d] == 0.0f);
        for (int d = 0; d < 3; ++d) CHECK(d_key[d] == 0.0f);
    }
}
