// The k-NN memory in an unroll: entries that are read often are copied once, which nobody may notice.

#include <doctest/doctest.h>

#include <engram/graph/check_gradients.hpp>
#include <engram/graph/ops/affine.hpp>
#include <engram/graph/ops/knn.hpp>
#include <engram/graph/ops/loss.hpp>
#include <engram/graph/scan.hpp>

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
