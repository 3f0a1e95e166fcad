// Matrix memories as one operation: against plain loops, and the laws of what carries its state by itself: a scan,
// steps and unrolls cut anywhere have the same bits, with resets anywhere; gradients are those of central differences.

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>

#include <engram/core/philox.hpp>
#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/model/slots.hpp>
#include <engram/operations/attend_window.hpp>
#include <engram/operations/convolve_steps.hpp>
#include <engram/operations/heads.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/recall_matrices.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;

namespace {

constexpr int H = 2;
struct sizes {
    int K, V, L;
};
constexpr sizes small{3, 5, 4}, several_packs{8, 71, 43};  // rows of four, two, one and a part of a pack
enum class memory { added, corrected, window, convolved };
enum class lost { read, both, state };  // what has a loss
constexpr std::array every_memory{memory::added, memory::corrected, memory::window, memory::convolved};
constexpr std::array matrices{memory::added, memory::corrected};

struct product_of {
    constexpr auto operator()(auto a, auto b) const { return a * b; }
};
struct one_more {
    constexpr auto operator()(auto x) const { return x + 1; }
};
template <class Var>
struct carried {
    BOOST_HANA_DEFINE_STRUCT(carried, (Var, state), (Var, step));
};

template <class Real>
struct traced {
    using backend = cpu<Real>;
    std::shared_ptr<parameters<Real>> store = std::make_shared<parameters<Real>>();
    graph<backend> g{store};
    std::vector<var<backend>> inputs;
    var<backend> reset, y, state;
    std::array<parameter, 5> taps;  // of a convolution, its bias the last

    explicit traced(memory of, lost what = lost::read, sizes size = small) {
        const int K = size.K, V = size.V, L = size.L;
        reset = g.input("reset", 1);
        const int d = 2 * K;  // of a window's keys and values
        const bool window = of == memory::window, convolved = of == memory::convolved;
        for (const auto& [name, width] : {std::pair{"query", H * (window ? d : K)},
                                          {"key", H * (window ? d : K)},
                                          {"value", H * (window ? d : V)},
                                          {"write", H},
                                          {"keep", H}})
            if (inputs.size() < (convolved ? 1 : window ? 3 : 5))
                inputs.push_back(g.input(name, width, extent::sequence,
                                         what != lost::state || convolved || name != std::string_view("query")));
        const int width = inputs[convolved ? 0 : 2].width;
        for (parameter& p : taps)
            if (convolved) p = g.declare(message("tap.", &p - taps.data()), 1, width, initial::fan_in<Real>());
        const auto weight = g.input("weight", width);
        const carried<var<backend>> first{g.own_state("state", convolved ? 3 * width
                                                               : window  ? H * 2 * d * L
                                                                         : H * K * V),
                                          g.state("step", 1)};
        y = scan(g, first, [&](carried<var<backend>>& now) {
            reset_rows(now, reset);
            const auto& in = inputs;
            if (convolved) {
                const auto found =
                    convolve_steps("convolve", now.state, in[0], {taps[0], taps[1], taps[2], taps[3]}, taps[4]);
                now.state = state = found.seen;
                return found.y;
            }
            if (window) {
                const auto found = attend_window("attend", H, L, now.state, split_columns<2>(in[0]),
                                                 split_columns<2>(in[1]), in[2], now.step);
                now.state = state = found.ring, now.step = map("step", one_more{}, now.step);
                return found.seen;
            }
            const auto found =
                recall_matrices("recall", H, of == memory::corrected, now.state, in[0], in[1], in[2], in[3], in[4]);
            now.state = state = found.matrix;
            return found.read;
        });
        if (what != lost::state) add_loss("read", sum_columns("sum", map("weighed", product_of{}, y, weight), width));
        if (what != lost::read)
            add_loss("shown", sum_columns("whole", map("square", product_of{}, state, state), state.width));
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
            keep(p.output(y), y.width);
            for (const auto& x : inputs) keep(p.gradient_of(x), x.width);
            found.emplace_back(p.next_state("state").begin(), p.next_state("state").end());
            p.carry();
        }
        return found;
    }
};

template <class Real>
void a_scan_has_the_bits_of_steps(sizes size) {
    for (const memory of : every_memory)
        for (const lost what : {lost::read, lost::both})
            for (const int T : {1, 2, 7, 16, 23}) {
                INFO(static_cast<int>(of), " ", static_cast<int>(what), " ", T);
                traced<Real> m(of, what, size);
                const plan_options options{.steps = T, .batch = 3, .gradients = true};
                plan_options stepwise = options;
                stepwise.hoist = false;
                std::size_t scanned_bytes = 0, stepped_bytes = 0;
                CHECK(m.all_of(options, &scanned_bytes) == m.all_of(stepwise, &stepped_bytes));
                if (T > 2) CHECK((scanned_bytes < stepped_bytes) == (what == lost::read));
            }
}

}  // namespace

TEST_CASE("a scan has the bits of steps, whoever else reads the matrices, with resets anywhere") {
    for (const sizes size : {small, several_packs}) {
        a_scan_has_the_bits_of_steps<double>(size);
        a_scan_has_the_bits_of_steps<float>(size);
    }
}

TEST_CASE("unrolls cut anywhere have the bits of one") {
    for (const memory of : every_memory) {
        traced<float> m(of);
        const int B = 3, T = 24;
        program<cpu<float>> whole(m.g, m.store, {.steps = T, .batch = B}, {m.y});
        m.fill(whole);
        whole.forward();
        std::map<std::string, std::vector<float>> states;
        const auto left_by = [](auto& p, const std::string& name) {
            return std::vector<float>(p.next_state(name).begin(), p.next_state(name).end());
        };
        int first = 0;
        for (const int steps : {1, 5, 2, 16}) {
            program<cpu<float>> part(m.g, m.store, {.steps = steps, .batch = B}, {m.y});
            m.fill(part, first);
            for (const auto& [name, values] : states) std::copy(values.begin(), values.end(), part.state(name).begin());
            part.forward();
            for (int t = 0; t < steps; ++t)
                for (int i = 0; i < B * m.y.width; ++i)
                    CHECK(part.output(m.y).at(t)[i] == whole.output(m.y).at(first + t)[i]);
            for (const auto& name : part.state_names()) states[name] = left_by(part, name);
            first += steps;
        }
        CHECK(first == T);
        CHECK(states.at("state") == left_by(whole, "state"));
    }
}

TEST_CASE("matrices of heads are those of plain loops") {
    for (const memory of : matrices)
        for (const sizes size : {small, several_packs}) {
            const bool corrects = of == memory::corrected;
            const auto [K, V, L] = size;
            traced<double> m(of, lost::read, size);
            const int B = 2, T = 11;
            program<cpu<double>> p(m.g, m.store, {.steps = T, .batch = B}, {m.y});
            m.fill(p);
            p.forward();
            double worst = 0;
            for (int b = 0; b < B; ++b)
                for (int h = 0; h < H; ++h) {
                    std::vector<std::vector<double>> M(static_cast<std::size_t>(K),
                                                       std::vector<double>(static_cast<std::size_t>(V)));
                    for (int t = 0; t < T; ++t) {
                        const auto in = [&](int k, int i, int width) {
                            return p.input(m.g.info(m.inputs[static_cast<std::size_t>(k)])
                                               .name)[static_cast<std::size_t>(((t * B + b) * H + h) * width + i)];
                        };
                        for (auto& row : M)
                            for (double& x : row)
                                x = p.input("reset")[static_cast<std::size_t>(t * B + b)] > 0 ? 0 : in(4, 0, 1) * x;
                        std::vector<double> change(static_cast<std::size_t>(V));
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
                                worst, std::abs(M[n][i] -
                                                p.next_state(
                                                    "state")[static_cast<std::size_t>(((b * H + h) * K + n) * V + i)]));
                }
            CHECK(worst < 1e-12);
        }
}

TEST_CASE("gates have their gradients, however many of a head's keys fill a pack") {
    for (const int keys : {1, 2, 3, 4, 8})
        for (const bool corrects : {false, true}) {
            const auto store = std::make_shared<parameters<double>>(1);
            graph<cpu<double>> g{store};
            std::vector<var<cpu<double>>> in;
            for (const auto& [name, width] :
                 {std::pair{"query", keys}, {"key", keys}, {"value", 3}, {"write", 1}, {"keep", 1}})
                in.push_back(g.input(name, width, extent::sequence, true));
            const carried<var<cpu<double>>> first{g.own_state("state", keys * 3), g.state("step", 1)};
            const auto y = scan(g, first, [&](auto& now) {
                const auto found = recall_matrices("recall", 1, corrects, now.state, in[0], in[1], in[2], in[3], in[4]);
                now.state = found.matrix;
                return found.read;
            });
            add_loss("read", sum_columns("sum", map("square", product_of{}, y, y)));
            const auto report = check_gradients<cpu<double>>(
                g, store, {.steps = 3, .batch = 2},
                [&](auto& p) {
                    philox random(7, 1);
                    for (const char* name : {"query", "key", "value", "write", "keep"})
                        for (double& x : p.input(name)) x = 0.7 * static_cast<double>(random.normal());
                },
                1000);
            INFO(report.where);
            CHECK(report.worst < 1e-6);
            CHECK(report.compared == 3 * 2 * (2 * keys + 3 + 2));
        }
}

TEST_CASE("a convolution of steps is that of plain loops") {
    traced<double> m(memory::convolved);
    const int B = 2, T = 11, F = m.y.width;
    program<cpu<double>> p(m.g, m.store, {.steps = T, .batch = B}, {m.y});
    m.fill(p);
    p.forward();
    const auto x = p.input("query"), reset = p.input("reset");
    const auto at = [&](int t, int b) { return static_cast<std::size_t>(t * B + b); };
    for (int b = 0; b < B; ++b)
        for (int c = 0, begun = 0; c < F; ++c)
            for (int t = 0; t < T; ++t) {
                if (reset[at(t, b)] > 0) begun = t;
                double z = m.store->values(m.taps[4])[c];
                for (int k = 0; k < 4 && t - k >= begun; ++k)
                    z += m.store->values(m.taps[static_cast<std::size_t>(k)])[c] *
                         x[at(t - k, b) * static_cast<std::size_t>(F) + static_cast<std::size_t>(c)];
                CHECK(p.output(m.y).at(t)[b * F + c] == doctest::Approx(z / (1 + std::exp(-z))).epsilon(1e-12));
            }
}

TEST_CASE("slopes of taps are those of steps, wherever an unroll is scanned") {
    for (const lost what : {lost::read, lost::both})
        for (const int T : {1, 2, 7, 23}) {
            traced<double> m(memory::convolved, what);
            std::vector<double> found[2];
            for (const bool hoist : {true, false}) {
                program<cpu<double>> p(m.g, m.store, {.steps = T, .batch = 3, .gradients = true, .hoist = hoist},
                                       {m.y});
                for (const int first : {0, T}) {  // two sweeps, so that the second may not add to the first
                    m.fill(p, first);
                    p.forward(), p.backward(), p.carry();
                }
                found[hoist].assign(p.gradient().begin(), p.gradient().end());
            }
            double largest = 0;
            for (std::size_t i = 0; i < found[0].size(); ++i) {
                CHECK(found[1][i] == doctest::Approx(found[0][i]).epsilon(1e-12));
                largest = std::max(largest, std::abs(found[0][i]));
            }
            CHECK(largest > 0.01);
        }
}

TEST_CASE("their gradients are those of central differences") {
    for (const memory of : every_memory)
        for (const lost what : {lost::read, lost::both, lost::state})
            for (const auto& [size, T] : {std::pair{small, 1}, {small, 3}, {small, 10}, {several_packs, 3}}) {
                traced<double> m(of, what, size);
                const auto report = check_gradients<cpu<double>>(m.g, m.store, {.steps = T, .batch = 2}, [&](auto& p) {
                    m.fill(p, 1);
                    philox random(9, 1);
                    for (auto& x : p.state("state")) x = random.normal();
                });
                INFO(report.where);
                CHECK(report.worst < 1e-6);
                CHECK(report.compared >= (what == lost::state || of == memory::convolved ? 34 : 50));
                CHECK(report.same_bits_twice);
            }
}

TEST_CASE("what stood in a matrix ahead of an episode does not reach it") {
    for (const memory of : every_memory) {
        traced<float> m(of);
        program<cpu<float>> p(m.g, m.store, {.steps = 6, .batch = 3, .gradients = true}, {m.y});
        m.fill(p);  // step 0 begins an episode in every row
        for (auto& x : p.state("state")) x = std::numeric_limits<float>::quiet_NaN();
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
    const auto tap = g.declare("tap", 1, 4, initial::zero<double>());
    CHECK_THROWS_WITH_AS(convolve_steps("op", in(8), in(4), {tap, tap, tap, tap}, tap),
                         "op: three steps of 4 columns are not 8", error);
    CHECK_THROWS_WITH_AS(convolve_steps("op", in(9), in(3), {tap, tap, tap, tap}, tap),
                         "op: a tap of [1, 4] does not fit 3 columns", error);
    const auto reset = g.input("reset", 1);
    CHECK_THROWS_WITH_AS(scan(g, carried<var<cpu<double>>>{g.own_state("held", 4), g.state("step", 1)},
                              [&](auto& now) {
                                  reset_rows(now, reset);
                                  return sum_columns("twice", now.state, 4);
                              }),
                         "twice: 'held.entering' is a state of one operation, which alone may read it", error);
}
