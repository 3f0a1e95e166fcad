// Slots that are filled in turn, as operations: where a write goes, what attention covers and reads find, gradients,
// a store that a time loop writes in place, wrong widths.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/model/slots.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/least_used.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/slots.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;
using backend = cpu<double>;

namespace {

constexpr int L = 3, W = 2, R = 2;

struct uneven {
    auto operator()(auto x) const { return square(x + 0.3); }
};
struct next_count {
    auto operator()(auto n) const { return n + 1; }
};
struct next_behind {
    auto operator()(auto n, auto seen) const { return n + 1 + 0 * seen; }
};
template <class Var>
struct slots_state {
    BOOST_HANA_DEFINE_STRUCT(slots_state, (Var, memory), (Var, written));
};

void draw(std::span<double> to, std::uint64_t stream) {
    philox random(2, stream);
    for (double& v : to) v = static_cast<double>(random.normal());
}

}  // namespace

TEST_CASE("writes go round, and what is no count leads nowhere else") {
    auto store = std::make_shared<parameters<double>>();
    graph<backend> g(store);
    const auto M = g.input("M", L * W), z = g.input("z", W), n = g.input("n", 1);
    const auto next = write_slot("write", M, z, n);
    const auto w = slot_attention("attention", M, L, slot_attention_kind::softmax, {n});
    const std::vector<double> counts{0, 1, 2, 3, 4, 1e6 + 1, -1, std::nan(""), 1e30};
    const int T = static_cast<int>(counts.size());
    const int slots[] = {0, 1, 2, 0, 1, 2, 0, 0, 0}, valid[] = {0, 1, 2, 3, 3, 3, 0, 0, 0};
    program<backend> p(g, store, {.steps = T, .batch = 1}, {next, w});
    draw(p.input("M"), 1);
    draw(p.input("z"), 2);
    std::copy(counts.begin(), counts.end(), p.input("n").begin());
    p.forward();
    for (int t = 0; t < T; ++t) {
        CAPTURE(t);
        int attended = 0;
        for (int i = 0; i < L * W; ++i) {
            const bool replaced = i / W == slots[t];
            CHECK(p.output(next).at(t)[i] == (replaced ? p.input("z")[static_cast<std::size_t>(t * W + i % W)]
                                                       : p.input("M")[static_cast<std::size_t>(t * L * W + i)]));
        }
        for (int i = 0; i < L; ++i) attended += p.output(w).at(t)[i] > 0;
        CHECK(attended == valid[t]);
    }
}

TEST_CASE("gradients outside a scan: each input alone, both, one in two roles, sequences and batches") {
    for (const extent rows : {extent::sequence, extent::batch})
        for (int only = -1; only < 2; ++only) {
            CAPTURE(only);
            auto store = std::make_shared<parameters<double>>();
            graph<backend> g(store);
            const auto M = g.input("M", L * W, rows, only != 1), z = g.input("z", W, rows, only != 0),
                       n = g.input("n", 1);
            const auto loss = [&](const std::string& name, const var<backend>& y) {
                add_loss(name, sum_columns("sum." + name, map("uneven." + name, uneven{}, y)));
            };
            loss("write", write_slot("write", M, z, n));
            if (only < 0) loss("shared", write_slot("shared", M, M.columns(1, W), n));
            if (only != 1) {
                loss("attention", slot_attention("attention", M, L, slot_attention_kind::softplus));
                loss("masked", slot_attention("masked", M, L, slot_attention_kind::softmax, {n}));
            }
            const auto report = check_gradients<backend>(g, store, {.steps = 2, .batch = 2}, [&](auto& p) {
                draw(p.input("M"), 1);
                draw(p.input("z"), 2);
                for (std::size_t i = 0; i < 4; ++i) p.input("n")[i] = static_cast<double>(i);
            });
            INFO(report.where);
            CHECK(report.worst < 1e-6);
            CHECK(report.same_bits_twice);
            CHECK(report.compared >= 4);
        }
}

TEST_CASE("gradients through slots that are carried over seven steps, two turns and more") {
    auto store = std::make_shared<parameters<double>>(5);
    graph<backend> g(store);
    const auto x = g.input("x", 3, extent::sequence, true), first = g.input("first", L * W, extent::batch, true);
    const auto logits = g.declare_linear("logits", 3 + W, R * L), content = g.declare_linear("content", 3 + W, W);
    const slots_state<var<backend>> start{first, g.state("written", 1)};
    const auto read = scan(g, start, [&](auto& s) {
        const auto newest = s.memory.columns(0, W);
        const auto w = slot_attention("attention", affine<backend>("logits", {x, newest}, logits), L,
                                      slot_attention_kind::softplus, {s.written});
        const auto r = weighted_read("read", w, s.memory, W);
        s.memory = write_slot("write", s.memory, affine<backend>("content", {x, newest}, content), s.written);
        s.written = map("written", next_count{}, s.written);
        return r;
    });
    add_loss("loss", sum_columns("sum", map("uneven", uneven{}, read)));
    for (const bool hoist : {true, false}) {
        const auto report = check_gradients<backend>(g, store, {.steps = 7, .batch = 2, .hoist = hoist}, [&](auto& p) {
            draw(p.input("x"), 1);
            draw(p.input("first"), 2);
            p.state("written")[0] = 1;
            p.state("written")[1] = 5;
        });
        INFO(report.where);
        CHECK(report.worst < 1e-6);
        CHECK(report.same_bits_twice);
        CHECK(report.compared > 60);
    }
}

TEST_CASE("what weights find, by age and by slot, and nothing in slots that were not written") {
    for (const bool by_age : {true, false}) {
        auto store = std::make_shared<parameters<double>>();
        graph<backend> g(store);
        const auto M = g.input("M", L * W), w = g.input("w", R * L), n = g.input("n", 1);
        const auto read = read_slots("read", w, M, n, W, by_age);
        const std::vector<double> counts{0, 1, 2, 3, 4, 5};
        const int T = static_cast<int>(counts.size());
        program<backend> p(g, store, {.steps = T, .batch = 1}, {read});
        draw(p.input("M"), 1);
        draw(p.input("w"), 2);
        std::copy(counts.begin(), counts.end(), p.input("n").begin());
        for (int t = 0; t < L; ++t)  // what nobody wrote may be anything
            for (int i = t; i < L; ++i)
                std::fill_n(p.input("M").begin() + (t * L + i) * W, W, std::numeric_limits<double>::quiet_NaN());
        p.forward();
        for (int t = 0; t < T; ++t)
            for (int r = 0; r < R; ++r)
                for (int c = 0; c < W; ++c) {
                    double sum = 0;
                    for (int write = std::max(0, t - L); write < t; ++write) {
                        const int weight = by_age ? t - 1 - write : write % L;
                        sum += p.input("w")[static_cast<std::size_t>((t * R + r) * L + weight)] *
                               p.input("M")[static_cast<std::size_t>((t * L + write % L) * W + c)];
                    }
                    CHECK(p.output(read).at(t)[r * W + c] == doctest::Approx(sum).epsilon(1e-14));
                }
    }
}

TEST_CASE("gradients of reads outside a scan, each input alone and both") {
    for (const bool by_age : {true, false})
        for (int only = -1; only < 2; ++only) {
            CAPTURE(only);
            auto store = std::make_shared<parameters<double>>();
            graph<backend> g(store);
            const auto M = g.input("M", L * W, extent::sequence, only != 1),
                       w = g.input("w", R * L, extent::sequence, only != 0), n = g.input("n", 1);
            add_loss("read", sum_columns("sum", map("uneven", uneven{}, read_slots("op", w, M, n, W, by_age))));
            const auto report = check_gradients<backend>(g, store, {.steps = 3, .batch = 2}, [&](auto& p) {
                draw(p.input("M"), 1);
                draw(p.input("w"), 2);
                for (std::size_t i = 0; i < 6; ++i) p.input("n")[i] = static_cast<double>(i);
            });
            INFO(report.where);
            CHECK(report.worst < 1e-6);
            CHECK(report.same_bits_twice);
            CHECK(report.compared >= 6);
        }
}

TEST_CASE("cosines with a ring are those with its slots, by slot or by age, and zero where nothing was written") {
    const auto compare = [](bool joint, const auto&... all) {
        return joint ? joint_cosine_scores("joint", all...) : cosine_scores("each", all...);
    };
    for (const bool joint : {false, true})
        for (const bool by_age : {true, false}) {
            CAPTURE(joint);
            CAPTURE(by_age);
            auto store = std::make_shared<parameters<double>>();
            graph<backend> g(store);
            const auto M = g.input("M", L * W, extent::sequence, true), k = g.input("k", R * W, extent::sequence, true),
                       n = g.input("n", 1);
            const auto all = compare(joint, M, k, W), some = compare(joint, M, k, W, std::vector{n}, by_age);
            add_loss("loss", sum_columns("sum", map("uneven", uneven{}, some)));
            constexpr int T = 6;
            const auto fill = [&](auto& p) {
                draw(p.input("M"), 1);
                draw(p.input("k"), 2);
                for (int t = 0; t < T; ++t) p.input("n")[static_cast<std::size_t>(t)] = t;
            };
            program<backend> p(g, store, {.steps = T, .batch = 1}, {all, some});
            fill(p);
            p.forward();
            for (int t = 0; t < T; ++t)
                for (int r = 0; r < R; ++r)
                    for (int i = 0; i < L; ++i) {
                        const int slot = by_age ? (t - 1 - i + 2 * L) % L : i;
                        CHECK(p.output(some).at(t)[r * L + i] ==
                              doctest::Approx(i < t ? p.output(all).at(t)[r * L + slot] : 0).epsilon(1e-14));
                    }
            const auto report = check_gradients<backend>(g, store, {.steps = T, .batch = 1}, fill);
            INFO(report.where);
            CHECK(report.worst < 1e-6);
            CHECK(report.same_bits_twice);

            program<backend> q(g, store, {.steps = T, .batch = 1, .gradients = true}, {some});
            fill(q);
            for (int t = 0; t < L; ++t)  // what nobody wrote may be anything
                std::fill(q.input("M").begin() + (t * L + t) * W, q.input("M").begin() + (t + 1) * L * W,
                          std::numeric_limits<double>::quiet_NaN());
            q.forward();
            q.backward();
            CHECK(std::isfinite(q.loss()));
            for (const auto& v : {M, k})
                for (int t = 0; t < T; ++t)
                    for (int i = 0; i < v.width; ++i) CHECK(std::isfinite(q.gradient_of(v).at(t)[i]));
        }
}

namespace {

template <class Var>
struct looking_state {
    BOOST_HANA_DEFINE_STRUCT(looking_state, (Var, memory), (Var, written), (Var, seen));
};

/// A memory whose reads say what is read next, and whose episodes begin with `reset`; `constant`: what is written is
/// given from outside, and has no gradient.
struct fed_back {
    std::shared_ptr<parameters<double>> store = std::make_shared<parameters<double>>(5);
    graph<backend> g{store};
    var<backend> read, ring;

    explicit fed_back(bool by_age, bool constant = false) {
        const auto x = g.input("x", 3, extent::sequence, !constant), reset = g.input("reset", 1);
        const auto logits = g.declare_linear("logits", 3 + R * W, R * L);
        linear content;
        if (!constant) content = g.declare_linear("content", 3 + R * W, W);
        const looking_state<var<backend>> start{g.uncleared_state("ring", L * W), g.state("written", 1),
                                                g.state("seen", R * W)};
        read = scan(g, start, [&](auto& s) {
            reset_rows(s, reset);
            const auto w = slot_attention("attention", affine<backend>("logits", {x, s.seen}, logits), L,
                                          slot_attention_kind::softmax, {s.written});
            s.seen = read_slots("read", w, s.memory, s.written, W, by_age);
            const auto z = constant ? x.columns(0, W) : affine<backend>("content", {x, s.seen}, content);
            s.memory = write_slot("write", s.memory, z, s.written);
            ring = s.memory;
            s.written = map("written", next_count{}, s.written);
            return s.seen;
        });
        add_loss("loss", sum_columns("sum", map("uneven", uneven{}, read)));
    }
    void fill(program<backend>& p, int first, int steps) const {
        std::vector<double> x(static_cast<std::size_t>(9 * 2 * 3));
        draw(x, 1);
        std::copy_n(x.begin() + first * 6, steps * 6, p.input("x").begin());
        for (int t = 0; t < steps; ++t)
            for (int b = 0; b < 2; ++b)
                p.input("reset")[static_cast<std::size_t>(t * 2 + b)] = b == 0 ? first + t == 4 : first + t == 0;
    }
    static void stale(program<backend>& p) {
        std::fill_n(p.state("ring").begin() + L * W, L * W, std::numeric_limits<double>::quiet_NaN());
        p.state("written")[1] = 7;
    }
    /// Whether the ring is one block through all steps.
    static bool in_place(const program<backend>& p, const var<backend>& ring) {
        return p.planned().in_place[static_cast<std::size_t>(ring.value)];
    }
};

std::vector<double> of(std::span<const double> numbers) {
    return {numbers.begin(), numbers.end()};
}

}  // namespace

TEST_CASE("a ring that gets no gradient leaves its content's to whoever else gives one") {
    const auto store = std::make_shared<parameters<double>>(5);
    graph<backend> g{store};
    const auto x = g.input("x", 3, extent::sequence, true);
    const auto logits = g.declare_linear("logits", 3 + R * W, R * L), content = g.declare_linear("content", 3, W);
    const auto z = affine<backend>("z", {x}, content);
    add_loss("own", sum_columns("own_sum", map("own_uneven", uneven{}, z)));
    const looking_state<var<backend>> start{g.uncleared_state("ring", L * W), g.state("written", 1),
                                            g.state("seen", R * W)};
    var<backend> ring;
    const auto read = scan(g, start, [&](auto& s) {
        const auto w = slot_attention("attention", affine<backend>("logits", {x, s.seen}, logits), L,
                                      slot_attention_kind::softmax, {s.written});
        s.seen = read_slots("read", w, stop_gradient(s.memory), s.written, W, true);
        ring = s.memory = write_slot("write", s.memory, z, s.written);
        // What is written waits for what was read, so both are of one loop.
        s.written = map("written", next_behind{}, s.written, s.seen.columns(0, 1));
        return s.seen;
    });
    add_loss("read", sum_columns("sum", map("uneven", uneven{}, read)));
    const auto fill = [&](auto& p) {
        std::vector<double> numbers(static_cast<std::size_t>(9 * 2 * 3));
        draw(numbers, 1);
        std::copy(numbers.begin(), numbers.end(), p.input("x").begin());
    };
    // What a read gives to the content is dropped, so that the loss of the content alone is its gradient.
    program<backend> p(g, store, {.steps = 9, .batch = 2, .gradients = true});
    CHECK(fed_back::in_place(p, ring));
    const auto gradient_of_content = [&] {
        fill(p);
        p.forward();
        p.spoil_gradients();
        p.backward();
        const auto& entry = (*store)[content.weight];
        return std::vector<double>(p.gradient().begin() + entry.offset,
                                   p.gradient().begin() + entry.offset + entry.size());
    };
    const auto found = gradient_of_content();
    for (int k = 0; k < 3; ++k)
        for (int i = 0; i < W; ++i) {
            double wanted = 0;
            for (int row = 0; row < 9 * 2; ++row) {
                const double here = p.input("x")[static_cast<std::size_t>(row * 3 + k)];
                double value = store->values(content.bias)[i];
                for (int j = 0; j < 3; ++j)
                    value +=
                        p.input("x")[static_cast<std::size_t>(row * 3 + j)] * store->values(content.weight)[j * W + i];
                wanted += here * 2 * (value + 0.3);
            }
            CHECK(std::abs(found[static_cast<std::size_t>(k * W + i)] - wanted) < 1e-6);
        }
}

TEST_CASE("a memory that is written in place has the bits of one whose steps are all kept") {
    for (const bool by_age : {true, false}) {
        const fed_back m(by_age);
        program<backend> one(m.g, m.store, {.steps = 9, .batch = 2, .gradients = true}, {m.read});
        program<backend> all(m.g, m.store, {.steps = 9, .batch = 2, .gradients = true}, {m.read, m.ring});
        CHECK(fed_back::in_place(one, m.ring));
        CHECK(!fed_back::in_place(all, m.ring));
        CHECK(one.memory() < all.memory());
        for (auto* p : {&one, &all}) {
            draw(p->state("ring"), 4);
            p->state("written")[0] = 2;
            fed_back::stale(*p);
            m.fill(*p, 0, 9);
        }
        const auto ring = of(one.state("ring")).size();
        for (int pass = 0; pass < 2; ++pass) {  // the second one begins where the first one began
            for (auto* p : {&one, &all}) {
                p->forward();
                p->backward();
            }
            CHECK(one.loss() == all.loss());
            CHECK(std::isfinite(one.loss()));
            CHECK(of(one.gradient()) == of(all.gradient()));
            // Row 1 began with what nobody wrote in this episode, three slots of which were written since.
            CHECK(of(one.next_state("ring")) == of(all.next_state("ring")));
            CHECK(of(one.next_state("ring")).size() == ring);
        }
    }
}

TEST_CASE("unrolls cut anywhere carry a memory that is written in place") {
    const fed_back m(true);
    program<backend> whole(m.g, m.store, {.steps = 9, .batch = 2, .gradients = true}, {m.read});
    fed_back::stale(whole);
    m.fill(whole, 0, 9);
    whole.forward();
    for (const int cut : {1, 4, 5}) {
        CAPTURE(cut);
        program<backend> first(m.g, m.store, {.steps = cut, .batch = 2, .gradients = true}, {m.read});
        program<backend> second(m.g, m.store, {.steps = 9 - cut, .batch = 2, .gradients = true}, {m.read});
        fed_back::stale(first);
        m.fill(first, 0, cut);
        first.forward();
        first.backward();
        first.carry();
        for (const char* name : {"ring", "written", "seen"})
            std::copy(first.state(name).begin(), first.state(name).end(), second.state(name).begin());
        m.fill(second, cut, 9 - cut);
        second.forward();
        for (int t = 0; t < 9; ++t)
            for (int i = 0; i < 2 * R * W; ++i)
                CHECK((t < cut ? first.output(m.read).at(t) : second.output(m.read).at(t - cut))[i] ==
                      whole.output(m.read).at(t)[i]);
    }
}

TEST_CASE("gradients through a memory that is written in place, of what is trained and of constants") {
    for (const bool constant : {false, true})
        for (const bool by_age : {true, false}) {
            const fed_back m(by_age, constant);
            const auto report = check_gradients<backend>(m.g, m.store, {.steps = 9, .batch = 2}, [&](auto& p) {
                CHECK(fed_back::in_place(p, m.ring) == p.options().gradients);
                m.fill(p, 0, 9);
            });
            INFO(report.where);
            CHECK(report.worst < 1e-6);
            CHECK(report.same_bits_twice);
            CHECK(report.compared > (constant ? 20 : 60));
        }
}

TEST_CASE("wrong widths are told when traced") {
    graph<backend> g(std::make_shared<parameters<double>>());
    const auto M = g.input("M", 12), z = g.input("z", 5), two = g.input("two", 2), n = g.input("n", 1);
    const auto scope = g.scope("memory");
    CHECK_THROWS_WITH_AS(write_slot("write", M, z, n),
                         "memory.write: a memory of 12 columns does not divide into words of 5", error);
    CHECK_THROWS_WITH_AS(write_slot("write", M, two, two),
                         "memory.write: the count of writes must be one column, not 2", error);
    CHECK_THROWS_WITH_AS(slot_attention("attention", z, 3, slot_attention_kind::softmax),
                         "memory.attention: 5 logits do not divide among 3 slots", error);
    CHECK_THROWS_WITH_AS(slot_attention("attention", M, 3, slot_attention_kind::softmax, {two}),
                         "memory.attention: the count of writes must be one column, not 2", error);
}
