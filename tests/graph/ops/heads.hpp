#pragma once
// What heads side by side compute, traced for any backend: spread maps, groups, mixtures, folds, content weights,
// cleared rows, matrices of heads, groups of one size, a column of an unroll of one size, angles.

#include <doctest/doctest.h>

#include <engram/core/circular.hpp>
#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/clear_rows.hpp>
#include <engram/operations/concatenate.hpp>
#include <engram/operations/content_weights.hpp>
#include <engram/operations/dnc.hpp>
#include <engram/operations/heads.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/normalise.hpp>
#include <engram/operations/outer.hpp>
#include <engram/operations/softmax.hpp>

namespace heads_test {

using namespace engram;

struct blend {
    constexpr auto operator()(auto whole, auto gate, auto x) const { return tanh(whole + gate) * x + square(gate); }
};
// Clamped, as usage is: the gradient of what a clamp cuts off is zero.
struct release {
    constexpr auto operator()(auto y, auto gate, auto x) const { return min(y * max(1 - gate * x, 0), 2) + x * x; }
};
struct turned_by {
    constexpr auto operator()(auto angle, auto x) const { return cosine(angle) * x + sine(x); }
};
struct decay {
    constexpr auto operator()(auto y, auto x) const { return 0.5 * y + x; }
};
template <class Var>
struct carried {
    BOOST_HANA_DEFINE_STRUCT(carried, (Var, slots), (Var, heads));
};

template <class Backend>
struct traced {
    using real = typename Backend::real;
    int N, H, K;  // slots, heads, values of a mixture
    std::shared_ptr<parameters<real>> store = std::make_shared<parameters<real>>(7);
    graph<Backend> g{store};
    var<Backend> x, gate, whole, start, reset, shares;
    std::vector<var<Backend>> values;
    var<Backend> blended, soft, sums, mixed, released, decayed, content, scanned, products, found, equal, centred,
        turned, levelled;
    std::vector<var<Backend>> cleared;

    traced(int slots, int heads, int mixed_values) : N(slots), H(heads), K(mixed_values) {
        x = g.input("x", H * N, extent::sequence, true);
        gate = g.input("gate", H, extent::sequence, true);
        whole = g.input("whole", 1, extent::sequence, true);
        start = g.input("start", N, extent::sequence, true);
        shares = g.input("shares", H * K, extent::sequence, true);
        reset = g.input("reset", 1);
        for (int k = 0; k < K; ++k) values.push_back(g.input(message("value.", k), H * N, extent::sequence, true));

        blended = map("blended", blend{}, whole, gate.spread(N), x);
        soft = softmax("soft", x, N);
        sums = sum_columns("sums", x, N);
        mixed = mixture("mixed", shares, values, N);
        released = fold_heads("released", release{}, H, start, gate, x);
        decayed = fold_heads("decayed", decay{}, H, start, soft);
        content = content_weights("content", x, gate, 0.3);
        cleared = clear_rows("cleared", reset, values);
        products = outer("products", x, values[0], H);
        found = read_matrices("found", products, values[1], H);
        equal = normalise("equal", x, N, false, 0.01, 0.5);
        centred = normalise("centred", values[0], N, true, 0.01);
        levelled = standardise("levelled", whole, 0.01);
        turned = map("turned", turned_by{}, gate.spread(N), x);
        // The same within a scan, where gradients meet what later steps sent back.
        const carried<var<Backend>> begin{g.state("slots", N), g.state("heads", H * N)};
        scanned = scan(g, begin, [&](auto& s) {
            const auto now = clear_rows<Backend>("reset", reset, {s.slots, s.heads});
            s.slots = fold_heads("step.fold", release{}, H, now[0], gate, now[1]);
            s.heads = mixture("step.mix", softmax("step.share", gate_pairs(now[1]), 2), {now[1], x}, N);
            return s.slots;
        });
        int i = 0;
        for (const auto& y : {blended, soft, sums, mixed, released, decayed, content, scanned, products, found, equal,
                              centred, turned, levelled})
            add(message("loss.", i++), y);
        for (const auto& y : cleared) add(message("loss.", i++), y);
    }

private:
    // [., H * 2]: two columns of every head.
    var<Backend> gate_pairs(const var<Backend>& heads) {
        std::vector<var<Backend>> pairs;
        for (int h = 0; h < H; ++h) pairs.push_back(heads.columns(h * N, 2));
        return concatenate("pairs", pairs);
    }
    void add(const std::string& name, const var<Backend>& y) {
        const auto weight = g.input(name + ".weight", y.width);
        add_loss(name, sum_columns(name + ".sum", map(name + ".weighted", times{}, y, weight)));
    }
};

template <class Backend>
void fill(program<Backend>& p, const graph<Backend>& g) {
    philox random(3, 1);
    using real = typename Backend::real;
    const auto draw = [&](std::span<real> to) {
        for (real& v : to) v = static_cast<real>(0.7 * static_cast<double>(random.normal()));
    };
    for (const auto& v : g.values())
        if (v.name != "reset" && p.has_input(v.name)) draw(p.input(v.name));
    for (const auto& name : p.state_names()) draw(p.state(name));
    for (std::size_t i = 0; i < p.input("reset").size(); ++i) p.input("reset")[i] = i % 3 == 1 ? 1 : 0;
}

template <class Backend>
void gradients_agree(int N, int H, int K) {
    traced<Backend> m(N, H, K);
    for (const bool hoist : {true, false}) {
        const auto report = check_gradients<Backend>(
            m.g, m.store, {.steps = 3, .batch = 2, .hoist = hoist}, [&](auto& p) { fill(p, m.g); }, 1000);
        INFO(report.where);
        CHECK(report.worst < 1e-6);
        CHECK(report.same_bits_twice);
        CHECK(report.compared == 3 * 2 * (H * N + H + 1 + N + H * K + K * H * N));
    }
}

/// Outputs and gradients of all inputs of one replay.
template <class Backend>
std::vector<double> numbers_of(int N, int H, int K, thread_order order = thread_order::ascending) {
    traced<Backend> m(N, H, K);
    std::vector<var<Backend>> outputs{m.blended, m.soft,     m.sums,  m.mixed, m.released, m.decayed, m.content,
                                      m.scanned, m.products, m.found, m.equal, m.centred,  m.turned,  m.levelled};
    outputs.insert(outputs.end(), m.cleared.begin(), m.cleared.end());
    std::vector<var<Backend>> inputs{m.x, m.gate, m.whole, m.start, m.shares};
    inputs.insert(inputs.end(), m.values.begin(), m.values.end());
    std::vector<var<Backend>> shown = outputs;
    shown.insert(shown.end(), inputs.begin(), inputs.end());
    const int T = 3, B = 2;
    program<Backend> p(m.g, m.store, {.steps = T, .batch = B, .gradients = true}, shown);
    if constexpr (requires { p.executor().order; }) p.executor().order = order;
    fill(p, m.g);
    p.forward();
    p.backward();
    std::vector<double> numbers;
    const auto add = [&](const auto& o, int width) {
        REQUIRE(o);
        for (int r = 0; r < T * B; ++r)
            for (int f = 0; f < width; ++f) numbers.push_back(static_cast<double>(o.data[r * o.stride + f]));
    };
    for (const auto& v : outputs) add(p.output(v), v.width);
    for (const auto& v : inputs) add(p.gradient_of(v), v.width);
    return numbers;
}

}  // namespace heads_test
