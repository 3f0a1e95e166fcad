// Two looks at a ring against one: the same slots in the same order for every input.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "engram/kernels/knn.hpp"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace {

using engram::byte_instruction;
using numbers = std::vector<float>;
const float infinity = std::numeric_limits<float>::infinity(), nan_value = std::numeric_limits<float>::quiet_NaN();

/// A ring of keys alone; what was never written is NaN, and so are its bounds.
struct store {
    numbers content, key, norm;
    std::vector<std::uint32_t> words;
    std::int64_t written = 0;
    engram::knn_ring<float> ring, plain;

    store(int slots, int D)
        : content(std::size_t(slots)),
          key(std::size_t(slots) * D, nan_value),
          norm(std::size_t(slots), nan_value),
          words(std::size_t(engram::knn_compact_words(slots, D)), 0x7fc07fc0u),
          ring{content.data(), key.data(), norm.data(), &written, slots, 1, D, {words.data()}},
          plain(ring) {
        plain.compact = {};
    }
    store(const store&) = delete;
    void write(const numbers& k) {
        const float nothing = 0;
        engram::knn_write(ring, &nothing, k.data());
    }
};

/// What was seen of searches: how many gave an answer, and of how many distances.
struct tally {
    int searches = 0, answers = 0, looked = 0;
};

template <byte_instruction By>
void below_every_distance(const store& s, const numbers& query) {
    const int valid = engram::knn_valid(s.ring);
    numbers below(std::size_t(valid), nan_value), distance(below);
    const engram::knn_first_look<By> look(s.ring, query.data());
    if (!look.possible) return;
    look.below(0, valid, below.data());
    engram::knn_distances(s.plain, query.data(), valid, distance.data());
    int above = 0;
    for (std::size_t i = 0; i < below.size(); ++i)
        above += std::isnan(below[i]) ||
                 !(below[i] <= look.bound(distance[i]) || distance[i] == infinity || below[i] == -infinity);
    REQUIRE(above == 0);
}

template <byte_instruction By>
void same_answer(const store& s, const numbers& query, int k, const std::vector<int>& expected, tally& seen) {
    below_every_distance<By>(s, query);
    std::vector<int> slot(std::size_t(k), -1);
    numbers scratch(std::size_t(s.ring.slots), nan_value);
    const auto found =
        engram::two_pass_search<By>(s.ring, query.data(), engram::knn_valid(s.ring), k, slot.data(), scratch.data());
    ++seen.searches;
    seen.looked += found.looked;
    if (found.count == 0) return;
    ++seen.answers;
    REQUIRE(found.count == k);
    REQUIRE(slot == expected);
}

/// At least 128 valid slots.
void same_search(const store& s, const numbers& query, int k, tally& seen) {
    const int valid = engram::knn_valid(s.ring);
    REQUIRE(valid >= 4 * engram::knn_columns);
    std::vector<int> expected(std::size_t(k), -1), slot(expected);
    numbers scratch(std::size_t(s.ring.slots), nan_value);
    REQUIRE(engram::knn_select(s.plain, query.data(), k, expected.data(), scratch.data()) == k);
    REQUIRE(engram::knn_select(s.ring, query.data(), k, slot.data(), scratch.data()) == k);
    REQUIRE(slot == expected);
    same_answer<byte_instruction::one>(s, query, k, expected, seen);
    if (engram::best_byte_instruction >= byte_instruction::two)
        same_answer<byte_instruction::two>(s, query, k, expected, seen);
    if (engram::best_byte_instruction >= byte_instruction::four)
        same_answer<byte_instruction::four>(s, query, k, expected, seen);
}

/// Keys and queries of `cases` rings, wrapped or not; draw(D, i) gives the i-th key and, for i = -1, a query.
tally searches(int cases, unsigned seed, const std::function<std::function<float(int, int)>(std::mt19937&)>& kind) {
    std::mt19937 rng(seed);
    tally seen;
    for (int c = 0; c < cases; ++c) {
        const int D = c % 5 == 0 ? 1 + int(rng() % 9) : c % 5 == 1 ? 128 : 1 + int(rng() % 200);
        const int slots = 128 + int(rng() % 400), writes = 128 + int(rng() % (2 * unsigned(slots)));
        const int k = 1 + int(rng() % engram::knn_columns);
        const auto draw = kind(rng);
        const auto vector = [&](int i) {
            numbers x(std::size_t(D), 0.0f);
            for (int d = 0; d < D; ++d) x[std::size_t(d)] = draw(i, d);
            return x;
        };
        store s(slots, D);
        for (int i = 0; i < writes; ++i) s.write(vector(i));
        for (int q = 0; q < 3; ++q) same_search(s, vector(-1), k, seen);
        const int some = int(rng() % unsigned(engram::knn_valid(s.ring)));
        same_search(s, {s.key.begin() + some * D, s.key.begin() + (some + 1) * D}, k, seen);
    }
    return seen;
}

float normal(std::mt19937& rng) {
    return std::normal_distribution<float>()(rng);
}

}  // namespace

TEST_CASE("ordinary keys: the same slots, from few distances") {
    const auto seen = searches(300, 1, [](std::mt19937& rng) { return [&](int, int) { return normal(rng); }; });
    CHECK(seen.answers >= seen.searches * 9 / 10);  // of few dimensions many keys are near
    std::mt19937 rng(2);
    for (const float mean : {0.0f, 1.0f, 30.0f}) {
        store s(1024, 128);
        const auto vector = [&] {
            numbers x(128);
            for (float& v : x) v = mean + normal(rng);
            return x;
        };
        for (int i = 0; i < 1500; ++i) s.write(vector());
        tally here;
        for (int q = 0; q < 50; ++q) same_search(s, vector(), 10, here);
        CHECK(here.answers == here.searches);
        CHECK(here.looked <= 40 * here.searches);
    }
}

TEST_CASE("keys of every size, also those that floats flush or overflow") {
    for (const bool flush : {false, true}) {
#if defined(__SSE__)
        const auto before = _mm_getcsr();
        if (flush) _mm_setcsr(before | 0x8040);
#else
        if (flush) continue;
#endif
        const auto seen = searches(500, 3, [](std::mt19937& rng) {
            const float of_keys = std::exp2(float(int(rng() % 270) - 145)),
                        of_query = std::exp2(float(int(rng() % 270) - 145));
            return [&rng, of_keys, of_query](int i, int) { return normal(rng) * (i < 0 ? of_query : of_keys); };
        });
        CHECK(seen.answers > seen.searches / 8);
        const auto mixed = searches(300, 4, [](std::mt19937& rng) {
            const int least = int(rng() % 200) - 149, span = 1 + int(rng() % 60);
            return
                [&rng, least, span](int, int) { return std::ldexp(normal(rng), least + int(rng() % unsigned(span))); };
        });
        CHECK(mixed.answers > mixed.searches / 8);
#if defined(__SSE__)
        _mm_setcsr(before);
#endif
    }
}

TEST_CASE("numbers that are not finite, in some keys, in the centre, in the query") {
    for (const float bad : {nan_value, infinity, -infinity, std::numeric_limits<float>::max()})
        searches(100, 5, [bad](std::mt19937& rng) {
            const int where = int(rng() % 4), one_in = 1 << (rng() % 12);
            return [&rng, where, one_in, bad](int i, int) {
                const bool here = where == 0 ? i < 0 : where == 1 ? i == 0 : i >= 0;
                return here && rng() % unsigned(one_in) == 0 ? bad : normal(rng);
            };
        });
}

TEST_CASE("ties and what is nearly one") {
    searches(200, 6, [](std::mt19937& rng) {  // few different keys, or one
        const auto kinds = unsigned(1 + rng() % 40);
        numbers all(kinds * 200);
        for (float& x : all) x = normal(rng);
        std::vector<unsigned> which(2000);
        for (auto& w : which) w = unsigned(rng() % kinds);
        return [=](int i, int d) { return all[which[std::size_t(i + 1)] * 200 + std::size_t(d)]; };
    });
    searches(200, 7, [](std::mt19937& rng) {  // one key, a few units in the last place to either side
        numbers one(200);
        for (float& x : one) x = 3 + normal(rng);
        const float units = std::ldexp(1.0f, int(rng() % 20) - 24);
        return [&rng, one, units](int, int d) { return one[std::size_t(d)] * (1 + units * float(int(rng() % 9) - 4)); };
    });
    searches(200, 8, [](std::mt19937& rng) {  // exact distances with many ties
        const int span = 1 + int(rng() % 3);
        return [&rng, span](int, int) { return float(int(rng() % (2 * unsigned(span) + 1)) - span); };
    });
}

// Errors are all to the side of what they are multiplied by, so that Cauchy and Schwarz are equalities and the bound
// without which a slot would be above its distance is the whole bound.
TEST_CASE("rounding as bad as it can be, of keys and of queries, up to the widest sums") {
    std::mt19937 rng(9);
    tally seen;
    for (int c = 0; c < 300; ++c) {
        const bool of_keys = c % 2 == 0;
        const int D = c % 5 == 0 ? 1024 - int(rng() % 500) : 2 + int(rng() % 150);
        const int most = std::min(engram::byte_products<>::most, (1 << 24) / D);
        const float key_scale = std::ldexp(1.0f, int(rng() % 40) - 20),
                    query_scale = std::ldexp(key_scale, int(rng() % 20) - 17);
        numbers sign(std::size_t(D), 0.0f), key(sign), query(sign);
        store s(200, D);
        s.write(key);
        for (float& x : sign) x = rng() % 2 ? 1.0f : -1.0f;
        for (int i = 1; i < 200; ++i) {
            // Of the first number the scales are made. The others are just below the middle of two whole ones, or
            // whole.
            const float whole = of_keys ? float(rng() % 120) : 127, more = of_keys && i % 3 ? 0.5f - 0x1p-12f : 0;
            for (std::size_t d = 0; d < key.size(); ++d) key[d] = key_scale * (d ? sign[d] * (whole + more) : 127);
            s.write(key);
        }
        const int range = c % 3 ? 1 + most / 8 : most;
        for (std::size_t d = 0; d < query.size(); ++d)
            query[d] = query_scale * (d         ? sign[d] * (float(int(rng() % unsigned(range))) + 0.5f - 0x1p-8f)
                                      : of_keys ? 0.0f
                                                : float(most));
        if (of_keys)
            for (std::size_t d = 0; d < query.size(); ++d) query[d] = d ? sign[d] * query_scale * 127 : 0.0f;
        same_search(s, query, 1 + int(rng() % 10), seen);
        for (float& x : query) x = -x;
        same_search(s, query, 1 + int(rng() % 10), seen);
    }
}

// What the floats of a sum lose is all that the bounds have to hold.
TEST_CASE("keys and queries of which bytes lose nothing") {
    std::mt19937 rng(13);
    for (int c = 0; c < 200; ++c) {
        const int D = 20 + int(rng() % 500);
        const bool at_zero = c % 2 == 0;  // query and centre are zero, or all keys far from zero and equal to the query
        store s(130, D);
        numbers key(std::size_t(D), 0.0f), query(key);
        const auto draw = [&] {
            for (float& x : key) x = 10 + normal(rng);
        };
        if (!at_zero) draw();
        for (int i = 0; i < 130; ++i, at_zero ? draw() : void()) s.write(key);
        if (!at_zero) query = key;
        tally seen;
        same_search(s, query, 1, seen);
        // Norms in another order, as a device sums them.
        for (float& norm : s.norm) norm *= 1 - 0x1p-20f * float(rng() % 2);
        engram::rebuild_compact(s.ring);
        same_search(s, query, 1, seen);
    }
}

TEST_CASE("slots that cannot be told apart are given up after a sample, others are not") {
    std::mt19937 rng(12);
    for (const float spread : {0.0f, 1e-6f, 1.0f})
        for (const int slots : {128, 300, 1024}) {
            store s(slots, 64);
            numbers one(64), key(64);
            for (float& x : one) x = normal(rng);
            const auto draw = [&] {
                for (std::size_t d = 0; d < key.size(); ++d) key[d] = one[d] + spread * normal(rng);
            };
            for (int i = 0; i < slots; ++i) draw(), s.write(key);
            draw();
            int slot[10];
            numbers scratch(std::size_t(slots), nan_value);
            const auto found = engram::two_pass_search(s.ring, key.data(), slots, 10, slot, scratch.data());
            CHECK(found.count == (spread == 1 ? 10 : 0));
            CHECK((found.looked > 0) == (spread == 1));
        }
}

TEST_CASE("norms that are not those of the keys") {
    std::mt19937 rng(11);
    const float some[] = {0, nan_value, infinity, -infinity, 1, 0x1p100f, -0x1p100f, 0x1p-140f, 0x1p127f, -0x1p127f};
    tally seen;
    for (int c = 0; c < 500; ++c) {
        store s(300, 40);
        numbers key(40);
        const auto draw = [&] {
            const float scale = c % 2 || rng() % 3 ? 1 : some[rng() % 10];
            for (float& x : key) x = scale * normal(rng);
        };
        for (int i = 0; i < 300; ++i) draw(), s.write(key);
        for (float& norm : s.norm)
            if (c % 9 == 0)
                norm *= 1 + 0.01f * normal(rng);
            else if (rng() % 1024 < unsigned(c % 9))
                norm = some[rng() % 10];
        engram::rebuild_compact(s.ring);
        draw();
        same_search(s, key, 10, seen);
    }
    CHECK(seen.answers > seen.searches / 4);
}

TEST_CASE("k_at_most and indices_at_most") {
    std::mt19937 rng(10);
    for (int c = 0; c < 500; ++c) {
        const int n = engram::knn_columns + int(rng() % 300), k = 1 + int(rng() % engram::knn_columns);
        numbers x(std::size_t(n), 0.0f);
        for (float& v : x) v = c % 2 ? normal(rng) : float(int(rng() % 5));
        if (c % 7 == 0) std::fill_n(x.begin(), rng() % unsigned(n), -infinity);
        const float bound = engram::k_at_most(x.data(), n, k);
        std::vector<int> expected, found(std::size_t(n), -1);
        for (int i = 0; i < n; ++i)
            if (x[std::size_t(i)] <= bound) expected.push_back(i);
        REQUIRE(int(expected.size()) >= k);
        const int most = 1 + int(rng() % unsigned(n));
        expected.resize(std::min(expected.size(), std::size_t(most)));
        found.resize(std::size_t(engram::indices_at_most(x.data(), n, bound, most, found.data())));
        REQUIRE(found == expected);
        numbers over(x);
        const int count = engram::indices_at_most(over.data(), n, bound, most, over.data());
        REQUIRE(std::vector<int>(over.begin(), over.begin() + count) == expected);
    }
}
