// Matrix memory operations: against plain loops, and gradients through a memory carried over steps.

#include <doctest/doctest.h>

#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/concatenate.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/matrix_memory.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;
using backend = cpu<double>;

namespace {

struct sigma {
    auto operator()(auto x) const { return logistic(x); }
};
struct weighted_square {
    auto operator()(auto a, auto b) const { return a * b + square(a); }
};
template <class Var>
struct memory_state {
    BOOST_HANA_DEFINE_STRUCT(memory_state, (Var, memory), (Var, seen));
};

void draw(std::span<double> to, std::uint64_t stream) {
    philox random(2, stream);
    for (double& v : to) v = 0.7 * static_cast<double>(random.normal());
}

gradient_report report_of(const graph<backend>& g, std::shared_ptr<parameters<double>> store, plan_options o,
                          const std::vector<std::string>& inputs) {
    const auto report = check_gradients<backend>(g, store, o, [&](auto& p) {
        for (std::size_t i = 0; i < inputs.size(); ++i) draw(p.input(inputs[i]), i);
        for (const auto& s : p.state_names()) draw(p.state(s), 99);
    });
    INFO(report.where);
    CHECK(report.worst < 1e-6);
    CHECK(report.same_bits_twice);
    return report;
}

}  // namespace

TEST_CASE("forward equals plain loops") {
    const int N = 5, W = 3, R = 2, T = 2, B = 2;
    auto store = std::make_shared<parameters<double>>();
    graph<backend> g(store);
    const auto M = g.input("M", N * W), k = g.input("k", R * W), w = g.input("w", R * N), e = g.input("e", R * W),
               a = g.input("a", R * W);
    const auto c = cosine_scores("cosine", M, k, W), read = weighted_read("read", w, M, W),
               next = erase_add("write", M, w, e, a, W);
    program<backend> p(g, store, {.steps = T, .batch = B}, {c, read, next});
    for (const char* name : {"M", "k", "w", "e", "a"}) draw(p.input(name), static_cast<std::uint64_t>(name[0]));
    p.forward();
    const auto in = [&](const char* name, int row, int width, int i) {
        return p.input(name)[static_cast<std::size_t>(row * width + i)];
    };
    double worst = 0;
    for (int r = 0; r < T * B; ++r) {
        for (int h = 0; h < R; ++h)
            for (int n = 0; n < N; ++n) {
                double kk = 1e-6, mm = 1e-6, km = 0;
                for (int i = 0; i < W; ++i) {
                    const double x = in("k", r, R * W, h * W + i), y = in("M", r, N * W, n * W + i);
                    kk += x * x;
                    mm += y * y;
                    km += x * y;
                }
                worst = std::max(worst,
                                 std::abs(p.output(c).data[r * R * N + h * N + n] - km / (std::sqrt(kk * mm) + 1e-6)));
            }
        for (int h = 0; h < R; ++h)
            for (int i = 0; i < W; ++i) {
                double sum = 0;
                for (int n = 0; n < N; ++n) sum += in("w", r, R * N, h * N + n) * in("M", r, N * W, n * W + i);
                worst = std::max(worst, std::abs(p.output(read).data[r * R * W + h * W + i] - sum));
            }
        for (int n = 0; n < N; ++n)
            for (int i = 0; i < W; ++i) {
                double kept = in("M", r, N * W, n * W + i), added = 0;
                for (int h = 0; h < R; ++h) {
                    kept *= 1 - in("w", r, R * N, h * N + n) * in("e", r, R * W, h * W + i);
                    added += in("w", r, R * N, h * N + n) * in("a", r, R * W, h * W + i);
                }
                worst = std::max(worst, std::abs(p.output(next).data[r * N * W + n * W + i] - kept - added));
            }
    }
    CHECK(worst < 1e-14);
}

TEST_CASE("gradients through five steps of address, erase, add and read") {
    const int N = 4, W = 3, X = 3;
    for (const int R : {1, 2}) {
        auto store = std::make_shared<parameters<double>>(6);
        graph<backend> g(store);
        const auto x = g.input("x", X, extent::sequence, true);
        const auto outside = g.input("outside", N * W, extent::batch, true);
        const auto first = g.input("first", N * W, extent::batch, true);
        const auto head = g.declare_linear("head", X + R * W, 3 * R * W);
        const memory_state<var<backend>> start{first, g.state("seen", R * W)};
        var<backend> memory;
        const auto read = scan(g, start, [&](auto& s) {
            const auto heads = affine<backend>("head", {x, s.seen}, head);
            const std::array z{heads.columns(0, R * W), heads.columns(R * W, R * W), heads.columns(2 * R * W, R * W)};
            std::vector<var<backend>> parts;
            const auto scores = cosine_scores("cosine", s.memory, z[0], W);
            for (int h = 0; h < R; ++h) parts.push_back(softmax(message("softmax", h), scores.columns(h * N, N)));
            const auto weights = concatenate<backend>("weights", parts);
            s.memory = erase_add("write", s.memory, weights, map("erase", sigma{}, z[1]), z[2], W);
            memory = s.memory;
            s.seen = weighted_read("read", weights, s.memory, W);
            return map("both", weighted_square{}, s.seen, weighted_read("constant", weights, outside, W));
        });
        add_loss("read", sum_columns("sum.read", read));
        add_loss("memory", sum_columns("sum.memory", map("square", weighted_square{}, memory, memory)), 0.1);
        for (const bool hoist : {true, false}) {
            const auto report =
                report_of(g, store, {.steps = 5, .batch = 2, .hoist = hoist}, {"x", "outside", "first"});
            CHECK(report.compared > 80);
        }
    }
}

TEST_CASE("gradients outside a scan: each input alone, shared inputs, sequences and batches") {
    const int N = 3, W = 5, R = 2;
    const std::vector<std::string> names{"M", "k", "w", "e", "a"};
    for (const extent rows : {extent::sequence, extent::batch})
        for (int only = -1; only < 5; ++only) {
            CAPTURE(only);
            auto store = std::make_shared<parameters<double>>();
            graph<backend> g(store);
            const std::vector<int> widths{N * W, R * W, R * N, R * W, R * W};
            std::vector<var<backend>> v;
            for (int i = 0; i < 5; ++i)
                v.push_back(g.input(names[static_cast<std::size_t>(i)], widths[static_cast<std::size_t>(i)],
                                    i == 1 ? extent::sequence : rows, only < 0 || only == i));
            const auto loss = [&](const std::string& name, const var<backend>& y) {
                add_loss(name, sum_columns("sum." + name, map("square." + name, weighted_square{}, y, y)));
            };
            if (only < 0 || only < 2) loss("cosine", cosine_scores("cosine", v[0], v[1], W));
            if (only < 0 || only == 0 || only == 2) loss("read", weighted_read("read", v[2], v[0], W));
            if (only != 1) loss("write", erase_add("write", v[0], v[2], v[3], v[4], W));
            if (only < 0) loss("twice", erase_add("twice", v[0], v[2], v[3], v[3], W));
            std::vector<std::string> used;
            program<backend> p(g, store, {.steps = 2, .batch = 2, .gradients = true});
            for (const auto& n : names)
                if (p.has_input(n)) used.push_back(n);
            CHECK(report_of(g, store, {.steps = 2, .batch = 2}, used).compared >= (rows == extent::batch ? 12 : 16));
        }
}

TEST_CASE("wrong widths are told when traced, with both shapes") {
    graph<backend> g(std::make_shared<parameters<double>>());
    const auto M = g.input("M", 12), x = g.input("x", 5), y = g.input("y", 6);
    const auto scope = g.scope("memory");
    CHECK_THROWS_WITH_AS(cosine_scores("cosine", M, y, 5),
                         "memory.cosine: a memory of 12 columns does not divide into words of 5", error);
    CHECK_THROWS_WITH_AS(cosine_scores("cosine", M, x, 3),
                         "memory.cosine: keys of 5 columns do not divide into words of 3, those of the memory [4,3]",
                         error);
    CHECK_THROWS_WITH_AS(weighted_read("read", x, M, 3),
                         "memory.read: weights of 5 columns do not divide among the slots of the memory [4,3]", error);
    CHECK_THROWS_WITH_AS(erase_add("write", M, M.columns(0, 8), y, x, 3),
                         "memory.write: 2 heads need 6 columns to erase and to add, not 6 and 5", error);
    CHECK_THROWS_WITH_AS(erase_add("write", M, x, y, y, 3),
                         "memory.write: weights of 5 columns do not divide among the slots of the memory [4,3]", error);
}
