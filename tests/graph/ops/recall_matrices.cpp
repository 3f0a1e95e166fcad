// Matrix memories as one operation: against plain loops, and the laws of what carries its state by itself: a scan,
// steps and unrolls cut anywhere have the same bits, with resets anywhere; gradients are those of central differences.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string_view>

#include <engram/core/philox.hpp>
#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/model/slots.hpp>
#include <engram/operations/heads.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/recall_matrices.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;

namespace {

constexpr int H = 2, K = 3, V = 5;

struct product_of {
    constexpr auto operator()(auto a, auto b) const { return a * b; }
};
template <class Var>
struct carried {
    BOOST_HANA_DEFINE_STRUCT(carried, (Var, matrix));
};

template <class Real>
struct traced {
    using backend = cpu<Real>;
    std::shared_ptr<parameters<Real>> store = std::make_shared<parameters<Real>>();
    graph<backend> g{store};
    std::vector<var<backend>> inputs;
    var<backend> reset, y, matrix;

    explicit traced(bool corrects, bool shown_matrix = false) {
        reset = g.input("reset", 1);
        for (const auto& [name, width] :
             {std::pair{"query", H * K}, {"key", H * K}, {"value", H * V}, {"write", H}, {"keep", H}})
            inputs.push_back(g.input(name, width, extent::sequence, true));
        const auto weight = g.input("weight", H * V);
        y = scan(g, carried<var<backend>>{g.scanned_state("matrix", H * K * V)}, [&](carried<var<backend>>& now) {
            reset_rows(now, reset);
            const auto found = recall_matrices("recall", H, corrects, now.matrix, inputs[0], inputs[1], inputs[2],
                                               inputs[3], inputs[4]);
            now.matrix = matrix = found.matrix;
            return found.read;
        });
        add_loss("loss", sum_columns("sum", map("weighed", product_of{}, y, weight), H * V));
        if (shown_matrix)
            add_loss("shown", sum_columns("whole", map("square", product_of{}, matrix, matrix), H * K * V));
    }
    /// Numbers of steps from `first` on, the same for a step however an unroll is cut. Row b begins at steps that 4 + b
    /// divides.
    void fill(program<backend>& p, int first = 0) const {
        const int B = p.options().batch, T = p.options().steps;
        for (const char* name : {"query", "key", "value", "write", "keep", "weight"}) {
            if (!p.has_input(name)) continue;
            const auto all = p.input(name);
            const int width = static_cast<int>(all.size()) / (T * B);
            for (int t = 0; t < T; ++t) {
                philox random(static_cast<std::uint64_t>(name[0] * 256 + name[2]),
                              static_cast<std::uint64_t>(first + t));
                for (int i = 0; i < B * width; ++i) {
                    const auto x = 0.7 * static_cast<double>(random.normal());
                    all[static_cast<std::size_t>(t * B * width + i)] =
                        static_cast<Real>(std::string_view(name) == "keep" ? 1 / (1 + std::exp(-2 - x)) : x);
                }
            }
        }
        for (int t = 0; t < T; ++t)
            for (int b = 0; b < B; ++b)
                p.input("reset")[static_cast<std::size_t>(t * B + b)] = (first + t) % (4 + b) == 0;
    }
    /// What two unrolls in a row give: outputs, gradients, and the state behind them.
    std::vector<std::vector<Real>> all_of(const plan_options& options, std::size_t* memory = nullptr) {
        program<backend> p(g, store, options, {y});
        if (memory) *memory = p.memory();
        std::vector<std::vector<Real>> found;
        const auto keep = [&](const operand<const Real>& o, int width) {
            found.emplace_back(o.data, o.data + options.steps * options.batch * width);
        };
        for (const int first : {0, options.steps}) {
            fill(p, first);
            p.forward(), p.backward();
            keep(p.output(y), H * V);
            for (const auto& x : inputs) keep(p.gradient_of(x), x.width);
            found.emplace_back(p.next_state("matrix").begin(), p.next_state("matrix").end());
            p.carry();
        }
        return found;
    }
};

template <class Real>
void a_scan_has_the_bits_of_steps() {
    for (const bool corrects : {false, true})
        for (const bool shown : {false, true})
            for (const int T : {1, 2, 7, 16, 23}) {
                INFO(corrects, " ", shown, " ", T);
                traced<Real> m(corrects, shown);
                const plan_options options{.steps = T, .batch = 3, .gradients = true};
                plan_options stepwise = options;
                stepwise.hoist = false;
                std::size_t scanned_bytes = 0, stepped_bytes = 0;
                CHECK(m.all_of(options, &scanned_bytes) == m.all_of(stepwise, &stepped_bytes));
                if (T > 2) CHECK((scanned_bytes < stepped_bytes) == !shown);
            }
}

}  // namespace

TEST_CASE("a scan has the bits of steps, whoever else reads the matrices, with resets anywhere") {
    a_scan_has_the_bits_of_steps<double>();
    a_scan_has_the_bits_of_steps<float>();
}

TEST_CASE("unrolls cut anywhere have the bits of one") {
    for (const bool corrects : {false, true}) {
        traced<float> m(corrects);
        const int B = 3, T = 24;
        program<cpu<float>> whole(m.g, m.store, {.steps = T, .batch = B}, {m.y});
        m.fill(whole);
        whole.forward();
        std::vector<float> state(whole.state("matrix").begin(), whole.state("matrix").end());
        int first = 0;
        for (const int steps : {1, 5, 2, 16}) {
            program<cpu<float>> part(m.g, m.store, {.steps = steps, .batch = B}, {m.y});
            m.fill(part, first);
            std::copy(state.begin(), state.end(), part.state("matrix").begin());
            part.forward();
            for (int t = 0; t < steps; ++t)
                for (int i = 0; i < B * H * V; ++i)
                    CHECK(part.output(m.y).at(t)[i] == whole.output(m.y).at(first + t)[i]);
            state.assign(part.next_state("matrix").begin(), part.next_state("matrix").end());
            first += steps;
        }
        CHECK(first == T);
        CHECK(state == std::vector<float>(whole.next_state("matrix").begin(), whole.next_state("matrix").end()));
    }
}

TEST_CASE("matrices of heads are those of plain loops") {
    for (const bool corrects : {false, true}) {
        traced<double> m(corrects);
        const int B = 2, T = 11;
        program<cpu<double>> p(m.g, m.store, {.steps = T, .batch = B}, {m.y});
        m.fill(p);
        p.forward();
        double worst = 0;
        for (int b = 0; b < B; ++b)
            for (int h = 0; h < H; ++h) {
                double M[K][V] = {};
                for (int t = 0; t < T; ++t) {
                    const auto in = [&](int of, int i, int width) {
                        return p.input(m.g.info(m.inputs[static_cast<std::size_t>(of)])
                                           .name)[static_cast<std::size_t>(((t * B + b) * H + h) * width + i)];
                    };
                    for (auto& row : M)
                        for (double& x : row)
                            x = p.input("reset")[static_cast<std::size_t>(t * B + b)] > 0 ? 0 : in(4, 0, 1) * x;
                    double change[V];
                    for (int i = 0; i < V; ++i) {
                        double stood = 0;
                        for (int n = 0; n < K; ++n) stood += in(1, n, K) * M[n][i];
                        change[i] = in(3, 0, 1) * (in(2, i, V) - (corrects ? stood : 0));
                    }
                    for (int i = 0; i < V; ++i) {
                        double read = 0;
                        for (int n = 0; n < K; ++n) {
                            M[n][i] += in(1, n, K) * change[i];
                            read += in(0, n, K) * M[n][i];
                        }
                        worst = std::max(worst, std::abs(read - p.output(m.y).at(t)[(b * H + h) * V + i]));
                    }
                }
                for (int n = 0; n < K; ++n)
                    for (int i = 0; i < V; ++i)
                        worst = std::max(
                            worst,
                            std::abs(M[n][i] -
                                     p.next_state("matrix")[static_cast<std::size_t>(((b * H + h) * K + n) * V + i)]));
            }
        CHECK(worst < 1e-12);
    }
}

TEST_CASE("gradients of matrices of heads are those of central differences") {
    for (const bool corrects : {false, true})
        for (const bool shown : {false, true})
            for (const int T : {1, 3, 10}) {
                traced<double> m(corrects, shown);
                const auto report = check_gradients<cpu<double>>(m.g, m.store, {.steps = T, .batch = 2}, [&](auto& p) {
                    m.fill(p, 1);
                    philox random(9, 1);
                    for (auto& x : p.state("matrix")) x = random.normal();
                });
                INFO(report.where);
                CHECK(report.worst < 1e-6);
                CHECK(report.compared >= 50);
                CHECK(report.same_bits_twice);
            }
}

TEST_CASE("what stood in a matrix ahead of an episode does not reach it") {
    for (const bool corrects : {false, true}) {
        traced<float> m(corrects);
        program<cpu<float>> p(m.g, m.store, {.steps = 6, .batch = 3, .gradients = true}, {m.y});
        m.fill(p);  // step 0 begins an episode in every row
        for (auto& x : p.state("matrix")) x = std::numeric_limits<float>::quiet_NaN();
        p.forward(), p.backward();
        CHECK(p.first_non_finite().empty());
        for (const auto& x : m.inputs)
            for (int i = 0; i < 6 * 3 * x.width; ++i) CHECK(std::isfinite(p.gradient_of(x).data[i]));
    }
}

TEST_CASE("what does not fit is refused") {
    graph<cpu<double>> g(std::make_shared<parameters<double>>());
    int inputs = 0;
    const auto in = [&](int width) { return g.input(message("in.", inputs++), width); };
    const auto of = [&](int matrix, int query, int key, int value, int write) {
        return recall_matrices("op", 2, true, in(matrix), in(query), in(key), in(value), in(write), in(2));
    };
    CHECK_THROWS_WITH_AS(of(12, 6, 6, 5, 2), "op: 5 columns do not divide into 2 heads", error);
    CHECK_THROWS_WITH_AS(of(12, 4, 6, 4, 2), "op: a query of 4 columns does not fit a key of 6", error);
    CHECK_THROWS_WITH_AS(of(14, 6, 6, 4, 2), "op: 2 matrices of 3 x 2 are not 14 columns", error);
    CHECK_THROWS_WITH_AS(of(12, 6, 6, 4, 1), "op: 2 heads write and keep by as many numbers, not 1 and 2", error);
    const auto reset = g.input("reset", 1);
    CHECK_THROWS_WITH_AS(scan(g, carried<var<cpu<double>>>{g.scanned_state("held", 4)},
                              [&](auto& now) {
                                  reset_rows(now, reset);
                                  return map("twice", product_of{}, now.matrix, now.matrix);
                              }),
                         "twice: 'held.entering' is a scanned state, for its own operation alone", error);
}
