// Slots that are filled in turn, as operations: where a write goes, what attention covers, gradients, wrong widths.

#include <doctest/doctest.h>

#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/affine.hpp>
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
