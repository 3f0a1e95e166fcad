// The k-NN memory in an unroll: entries that are read often are copied once, which nobody may notice.

#include <doctest/doctest.h>

#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/knn.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;

namespace {

constexpr int T = 12, B = 2, X = 3, D = 2, N = 4, K = 3;

template <class Var>
struct last_read {
    BOOST_HANA_DEFINE_STRUCT(last_read, (Var, value));
};

// q = W_q [x, m_prev]; m = read(q); the entry written is a sequence from outside, its key has a weight of its own.
template <class Backend>
struct traced {
    std::shared_ptr<parameters<typename Backend::real>> store = std::make_shared<parameters<typename Backend::real>>(3);
    graph<Backend> g{store};
    var<Backend> read, when;

    explicit traced(bool jumpy) {
        const auto x = g.input("x", X), entry = g.input("entry", X), reset = g.input("reset", 1);
        const auto query = g.declare_linear("query", 2 * X, D);
        const auto key = g.declare_linear("key", X, D), written = g.declare_linear("written", X, D);
        const auto ring = add_knn_memory(g, "ring", N, X, D);
        read = scan(g, last_read<var<Backend>>{g.state("read", X)}, [&](auto& s) {
            knn_forget(ring, reset);
            knn_read_settings how{.memory = ring,
                                  .weight = {},
                                  .bias = {},
                                  .neighbours = K,
                                  .epsilon = 0.1,
                                  .jumpy = jumpy,
                                  .value_offset = 0,
                                  .value_width = X};
            const auto r = knn_read(affine<Backend>("query", {x, s.value}, query), key, how);
            s.value = r.value;
            when = r.when;
            knn_write(ring, entry, affine<Backend>("written", {entry}, written));
            return r.value;
        });
        add_loss("loss", sum_columns("sum", read));
    }

    // Both rows begin anew inside the unroll, so that writes of the same number and slot hold different things.
    void fill(program<Backend>& p, int first, int steps) {
        using real = typename Backend::real;
        philox random(5, 5);
        std::vector<real> all(T * B * X);
        for (const char* name : {"x", "entry"}) {
            for (auto& v : all) v = static_cast<real>(random.normal());
            std::copy_n(all.data() + first * B * X, steps * B * X, p.input(name).data());
        }
        for (int t = 0; t < steps; ++t)
            for (int b = 0; b < B; ++b)
                p.input("reset")[static_cast<std::size_t>(t * B + b)] = first + t == 0 || first + t == 3 + b;
    }
};

}  // namespace

TEST_CASE("an unroll reads what single steps read, across episodes and overwritten slots") {
    using backend = cpu<float>;
    for (const bool jumpy : {true, false}) {
        traced<backend> m(jumpy);
        program<backend> unroll(m.g, m.store, {.steps = T, .batch = B, .gradients = true}, {m.read, m.when});
        program<backend> one(m.g, m.store, {.steps = 1, .batch = B}, {m.read, m.when});
        m.fill(unroll, 0, T);
        unroll.forward();
        int repeated = 0, different = 0;
        for (int t = 0; t < T; ++t) {
            m.fill(one, t, 1);
            one.forward();
            const auto a = unroll.output(m.read), b = one.output(m.read);
            const auto aw = unroll.output(m.when), bw = one.output(m.when);
            for (int i = 0; i < B * X; ++i) different += a.at(t)[i] != b.at(0)[i];
            for (int i = 0; i < B * K; ++i) {
                different += aw.at(t)[i] != bw.at(0)[i];
                repeated += t > 0 && aw.at(t)[i] >= 0 && aw.at(t)[i] < aw.at(t - 1)[i];
            }
            one.carry();
        }
        CHECK(different == 0);
        CHECK(repeated > 0);
    }
}

TEST_CASE("gradients of entries that are read at many steps") {
    using backend = cpu<double>;
    traced<backend> m(true);
    const auto report = check_gradients<backend>(
        m.g, m.store, {.steps = T, .batch = B}, [&](auto& p) { m.fill(p, 0, T); }, 24);
    INFO(report.where);
    CHECK(report.worst < 1e-6);
    CHECK(report.compared > 10);
    CHECK(report.same_bits_twice);
}

TEST_CASE("without jumpy backpropagation the key weight gets exactly nothing") {
    using backend = cpu<float>;
    traced<backend> m(false);
    program<backend> p(m.g, m.store, {.steps = T, .batch = B, .gradients = true}, {m.read});
    m.fill(p, 0, T);
    p.forward();
    p.backward();
    for (std::size_t i = 0; i < m.store->entries().size(); ++i) {
        const auto& e = m.store->entries()[i];
        bool zero = true;
        for (const float v : p.gradient().subspan(std::size_t(e.offset), std::size_t(e.size()))) zero &= v == 0;
        INFO(e.name);
        CHECK(zero == !e.name.starts_with("query"));
    }
}

namespace {

constexpr int rows = 2, slots = 600, key_width = 64, neighbours = 7;

/// The same search with the compact keys, and without.
bool searches_as_it_holds(knn_rings<float>& rings, std::uint64_t seed, bool by_compact_keys = true) {
    philox random(seed, 1);
    std::vector<float> query(key_width), scratch(slots);
    bool same = true;
    for (int b = 0; b < rings.batch(); ++b) {
        const auto ring = rings.ring(b);
        for (int q = 0; q < 5; ++q) {
            for (float& x : query) x = random.normal();
            std::vector<int> found(neighbours, -1), expected(neighbours, -2);
            auto plain = ring;
            plain.compact = {};
            const int count = knn_select(ring, query.data(), neighbours, found.data(), scratch.data());
            same &= count == knn_select(plain, query.data(), neighbours, expected.data(), scratch.data());
            same &= found == expected;
            if (by_compact_keys)  // and not because it gave up
                same &= two_pass_search(ring, query.data(), knn_valid(ring), neighbours, found.data(), scratch.data())
                            .count == neighbours;
        }
    }
    return same;
}

void write_randomly(knn_rings<float>& rings, std::uint64_t seed, int writes) {
    philox random(seed, 2);
    const float content = 0;
    std::vector<float> key(key_width);
    for (int b = 0; b < rings.batch(); ++b)
        for (int w = 0; w < writes; ++w) {
            for (float& x : key) x = random.normal();
            knn_write(rings.ring(b), &content, key.data());
        }
}

}  // namespace

TEST_CASE("rings search what they hold: written, wrapped, reset, overwritten from outside, written as a device does") {
    static_assert(knn_compact_pays(slots, key_width, neighbours) || pack_bytes < 64);
    knn_rings<float> rings(rows, slots, 1, key_width), other(rows, slots, 1, key_width);
    const bool compact = rings.ring(0).compact.words != nullptr;
    CHECK(compact == knn_compact_pays(slots, key_width, 1));
    write_randomly(rings, 1, slots + 100);
    CHECK(searches_as_it_holds(rings, 1, compact));
    write_randomly(other, 2, 2 * slots - 50);
    CHECK(searches_as_it_holds(other, 2, compact));

    const auto take = [&] {
        const auto from = other.bytes(), to = rings.bytes();
        std::size_t all = 0;
        for (std::size_t i = 0; i < from.size(); ++i) {
            std::copy(from[i].begin(), from[i].end(), to[i].begin());
            all += from[i].size();
        }
        return all;
    };
    // Checkpoints stay what they were: contents, keys, norms and counts.
    CHECK(take() == rows * (slots * (1 + key_width + 1) * sizeof(float) + sizeof(std::int64_t)));
    CHECK(searches_as_it_holds(rings, 3, compact));
    write_randomly(rings, 4, 30);  // between a restored part and the next search
    CHECK(searches_as_it_holds(rings, 4, compact));
    take();
    write_randomly(rings, 5, 3);
    CHECK(searches_as_it_holds(rings, 5, compact));

    const auto first = rings.first();
    CHECK(first.compact.words == nullptr);
    for (int i = 0; i < rows * slots; ++i) {
        std::fill_n(first.key + std::ptrdiff_t{i} * key_width, key_width, 0.01f * static_cast<float>(i));
        first.norm[i] =
            dot(first.key + std::ptrdiff_t{i} * key_width, first.key + std::ptrdiff_t{i} * key_width, key_width);
    }
    CHECK(searches_as_it_holds(rings, 6, false));
    rings.reset();
    write_randomly(rings, 7, slots / 2 + 220);
    CHECK(searches_as_it_holds(rings, 7, compact));
}

template <class Real>
using plain_vector = std::vector<Real>;

TEST_CASE("small rings, doubles and memory of another kind have no compact keys") {
    CHECK(knn_rings<float>(1, 64, 1, 64).ring(0).compact.words == nullptr);
    CHECK(knn_rings<float>(1, 4096, 1, 16).ring(0).compact.words == nullptr);
    CHECK(knn_rings<double>(1, 1024, 1, 128).ring(0).compact.words == nullptr);
    CHECK(knn_rings<float, plain_vector>(1, 1024, 1, 128).ring(0).compact.words == nullptr);
}
