// The recurrences of today: GRU, MinGRU, the linear recurrent unit, S5, FFM, SHM, mLSTM, gated DeltaNet, and GTrXL.
// Each gives the numbers of a test vector that was computed twice by other programs, those of plain loops, gradients of
// central differences, and keeps the laws of a controller, in float too.

#include <complex>
#include <set>

#include "alone.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/fast_and_forgetful.hpp>
#include <engram/controller/gated_delta_net.hpp>
#include <engram/controller/gru.hpp>
#include <engram/controller/gtrxl.hpp>
#include <engram/controller/linear_recurrent_unit.hpp>
#include <engram/controller/min_gru.hpp>
#include <engram/controller/mlstm.hpp>
#include <engram/controller/s5.hpp>
#include <engram/controller/stable_hadamard.hpp>
#include <engram/core/settings.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/memory/no_memory.hpp>

using namespace engram;
using alone::printed;
using oracle::affine;
using oracle::at;
using oracle::matrix;
using oracle::numbers;
using oracle::sigmoid;
using oracle::softplus;
using oracle::operator+;

namespace {

// --- the matrices of all test vectors; they act from the left ---

const matrix P{{0.2, -0.4}, {0.1, 0.3}}, Q{{-0.3, 0.5}, {0.25, 0.15}}, R{{0.4, 0.1}, {-0.2, 0.35}};
const matrix W{{-0.3, 0.5}, {0.25, 0.15}, {0.6, -0.2}};
const numbers b{0.05, -0.1}, c{0.3, 0.2}, w1{0.7, 0.1}, w2{0, 0.5};
const matrix xs{{0.5, -1}, {1.5, 0.25}, {-0.75, 2}};
const numbers none{0, 0};

numbers left(const matrix& m, const numbers& x, const numbers& add = {}) {
    numbers y;
    for (std::size_t i = 0; i < m.size(); ++i) {
        double sum = add.empty() ? 0 : add[i];
        for (std::size_t j = 0; j < x.size(); ++j) sum += m[i][j] * x[j];
        y.push_back(sum);
    }
    return y;
}
double dot(const numbers& a, const numbers& x) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * x[i];
    return sum;
}
/// As the library has weights: the transposed matrices side by side.
numbers side_by_side(const std::vector<matrix>& of) {
    numbers all;
    for (std::size_t j = 0; j < of[0][0].size(); ++j)
        for (const auto& m : of)
            for (const auto& row : m) all.push_back(row[j]);
    return all;
}
numbers below(const std::vector<matrix>& of) {
    numbers all;
    for (const auto& m : of) all = all + side_by_side({m});
    return all;
}
matrix scaled(const matrix& m, double by) {
    matrix s = m;
    for (auto& row : s)
        for (double& x : row) x *= by;
    return s;
}
const matrix one{{1, 0}, {0, 1}}, zero{{0, 0}, {0, 0}};
numbers logs(numbers x) {
    for (double& v : x) v = std::log(v);
    return x;
}

double silu(double x) {
    return x * sigmoid(x);
}
double bend(double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

/// Every parameter as rows; a bias is one of one row.
matrix rows_of(const parameters<double>& store, const std::string& name) {
    const auto p = store.find(name);
    matrix m = oracle::zeros(store[p].rows, store[p].columns);
    oracle::spread(store.values(p), m);
    return m;
}
numbers row_of(const parameters<double>& store, const std::string& name) {
    return oracle::flat(rows_of(store, name));
}
/// x W without a bias.
numbers product(const parameters<double>& store, const std::string& name, const numbers& x) {
    const matrix m = rows_of(store, name);
    REQUIRE(m.size() == x.size());
    numbers y(m[0].size());
    for (std::size_t i = 0; i < x.size(); ++i)
        for (std::size_t j = 0; j < y.size(); ++j) y[j] += x[i] * m[i][j];
    return y;
}
numbers part(const numbers& x, int first, int count) {
    return {x.begin() + first, x.begin() + first + count};
}
/// Every `group` numbers with mean square 1, and mean 0 where they are centred.
numbers normal(numbers x, int group, bool centred, double epsilon) {
    for (std::size_t first = 0; first < x.size(); first += at(group)) {
        double mean = 0, power = 0;
        for (int i = 0; i < group; ++i) mean += x[first + at(i)] / group;
        if (!centred) mean = 0;
        for (int i = 0; i < group; ++i) power += std::pow(x[first + at(i)] - mean, 2) / group;
        for (int i = 0; i < group; ++i) x[first + at(i)] = (x[first + at(i)] - mean) / std::sqrt(power + epsilon);
    }
    return x;
}
numbers layer_normal(const parameters<double>& store, const std::string& name, const numbers& x) {
    numbers y = normal(x, static_cast<int>(x.size()), true, 1e-5);
    const numbers gain = row_of(store, name + ".gain"), bias = row_of(store, name + ".bias");
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = y[i] * gain[i] + bias[i];
    return y;
}

/// The last three inputs of a short convolution.
struct window {
    matrix past;
    numbers step(const parameters<double>& store, const std::string& name, const numbers& x) {
        past.resize(3, numbers(x.size()));
        numbers y = row_of(store, name + ".bias");
        for (std::size_t k = 0; k < 4; ++k) {
            const numbers tap = row_of(store, name + ".tap." + std::to_string(k));
            for (std::size_t i = 0; i < x.size(); ++i) y[i] += tap[i] * (k == 0 ? x : past[k - 1])[i];
        }
        past = {x, past[0], past[1]};
        for (double& v : y) v = silu(v);
        return y;
    }
};

/// All that is asked of a controller besides its numbers.
template <class Controller>
void keeps_what_it_must(const typename Controller::settings& s, int least) {
    {
        alone::controller<Controller> on(s, 4);
        on.unsettle();
        alone::differentiates(on, least);
    }
    {
        alone::controller<Controller, cpu<float>> on(s, 4);
        on.unsettle();
        alone::acts_as_it_learns(on);
    }
    using model = agent<identity, Controller, no_memory, no_auxiliary, supervised>;
    typename model::settings all;
    all.controller = s;
    all.learner.targets = "bits";
    const task_shape shape{{1, 6, 1}, 0, 3};
    prepared::keeps_the_laws<model, cpu<float>>(all, shape);
}

template <class Controller>
std::string refused(const typename Controller::settings& s) {
    try {
        s.check();
    } catch (const std::exception& e) {
        return e.what();
    }
    return "taken";
}

}  // namespace

TEST_CASE("GRU") {
    alone::controller<gru> v({.hidden = 2}, 2);
    v.set("controller.input.weight", side_by_side({P, Q, R}));
    v.set("controller.input.bias", numbers{0.1, 0} + numbers{0, 0.1} + b);
    v.set("controller.recurrent.weight", side_by_side({R, P, Q}));
    v.set("controller.recurrent.bias", none + none + c);
    const auto h = alone::headline(v, {xs});
    printed(h[0][0], {0.217321861059, -0.207936023469});
    printed(h[0][1], {0.447628138315, -0.201982456613});
    printed(h[0][2], {0.353109933812, 0.215671017555});
    printed(h[1][2], {0.009038898081, 0.314847429993});

    const gru::settings s{.hidden = 5};
    alone::controller<gru> a(s, 4);
    a.unsettle();
    alone::walks_alike(a, numbers(5), [&](const numbers& x, numbers& now) {
        const numbers in = affine(*a.store, "controller.input", x), re = affine(*a.store, "controller.recurrent", now);
        for (std::size_t j = 0; j < 5; ++j) {
            const double r = sigmoid(in[j] + re[j]), z = sigmoid(in[5 + j] + re[5 + j]);
            now[j] = (1 - z) * std::tanh(in[10 + j] + r * re[10 + j]) + z * now[j];
        }
        return now;
    });
    keeps_what_it_must<gru>(s, 100);
    CHECK(refused<gru>({.hidden = 0}) == "controller.hidden: expected a positive number of units, got 0");
}

TEST_CASE("MinGRU") {
    for (const bool positive : {true, false}) {
        min_gru::settings chosen{.hidden = 2, .layers = 1};
        if (!positive) chosen.candidates = "linear";
        alone::controller<min_gru> v(chosen, 2);
        v.set("controller.input.weight", side_by_side({one}));
        v.set("controller.layer.0.gates.weight", side_by_side({P, Q, R}));
        v.set("controller.layer.0.gates.bias", b + c + none);
        const auto y = alone::headline(v, {xs});
        // o h' + (1 - o) x.
        const auto through = [&](int t, const numbers& h) {
            numbers expected;
            const numbers o = left(R, xs[at(t)]);
            for (std::size_t j = 0; j < 2; ++j)
                expected.push_back(sigmoid(o[j]) * h[j] + (1 - sigmoid(o[j])) * xs[at(t)][j]);
            return expected;
        };
        if (!positive) {
            printed(y[0][2], through(2, {-0.696513054377, 0.251428665084}));
            continue;
        }
        printed(y[0][0], through(0, {0.434051542137, 0.224730676724}));
        printed(y[0][1], through(1, {0.590051196048, 0.484309685693}));
        printed(y[0][2], {-0.230874799103, 1.116449133266});
        printed(y[1][2], through(2, {0.237389535722, 0.534183212797}));

        const min_gru::settings s{.hidden = 5, .layers = 2, .candidates = chosen.candidates};
        alone::controller<min_gru> a(s, 4);
        a.unsettle();
        alone::walks_alike(a, oracle::zeros(2, 5), [&](const numbers& in, matrix& now) {
            numbers x = affine(*a.store, "controller.input", in);
            for (std::size_t n = 0; n < 2; ++n) {
                const numbers g = affine(*a.store, "controller.layer." + std::to_string(n) + ".gates", x);
                for (std::size_t j = 0; j < 5; ++j) {
                    const double z = sigmoid(g[5 + j]), o = sigmoid(g[10 + j]);
                    now[n][j] = (1 - z) * now[n][j] + z * (g[j] >= 0 ? g[j] + 0.5 : sigmoid(g[j]));
                    x[j] = o * now[n][j] + (1 - o) * x[j];
                }
            }
            return x;
        });
        keeps_what_it_must<min_gru>(s, 100);
    }
    CHECK(refused<min_gru>({.layers = 0}) == "controller.layers: expected at least one layer, got 0");
    min_gru::settings s;
    CHECK_THROWS_WITH(engram::set(s, "candidates", "log"),
                      "unknown candidates 'log'; expected one of positive, linear");
}

namespace {

using complex_numbers = std::vector<std::complex<double>>;

/// What stands behind a recurrence: x + W_1 f sigma(W_2 f), and the numbers that the test vectors print.
numbers gated(const parameters<double>& store, const std::string& layer, const numbers& x, const numbers& u,
              const complex_numbers& s, double pairs) {
    numbers parts;
    for (const auto& z : s) parts.push_back(z.real());
    for (const auto& z : s) parts.push_back(z.imag());
    numbers y = product(store, layer + "read.weight", parts);
    const numbers through = row_of(store, layer + "through");
    for (std::size_t j = 0; j < y.size(); ++j) y[j] = bend(pairs * y[j] + through[j] * u[j]);
    const numbers g = affine(store, layer + "gate", y);
    for (std::size_t j = 0; j < y.size(); ++j) y[j] = x[j] + g[j] * sigmoid(g[y.size() + j]);
    return y;
}
/// The same for a printed y, where W_1 = 1 and W_2 = 0.
numbers behind(const numbers& x, const numbers& y) {
    return {x[0] + bend(y[0]) / 2, x[1] + bend(y[1]) / 2};
}
template <class Controller>
void set_block(alone::controller<Controller>& v) {
    v.set("controller.input.weight", side_by_side({one}));
    v.set("controller.layer.0.input.weight", side_by_side({P, Q}));
    v.set("controller.layer.0.read.weight", below({R, scaled(P, -1)}));
    v.set("controller.layer.0.through", {1, 0.5});
    v.set("controller.layer.0.gate.weight", side_by_side({one, zero}));
}

}  // namespace

TEST_CASE("linear recurrent unit") {
    alone::controller<linear_recurrent_unit> v({.hidden = 2, .layers = 1, .states = 2, .norm = false}, 2);
    set_block(v);
    v.set("controller.layer.0.nu", logs({0.1, 0.5}));
    v.set("controller.layer.0.theta", logs({0.3, 1.2}));
    v.set("controller.layer.0.gamma", logs({0.425757262912, 0.795060097621}));
    const auto h = alone::headline(v, {xs});
    printed(h[0][0], behind(xs[0], {0.612672793344, -0.578506312012}));
    printed(h[0][1], behind(xs[1], {1.800537730708, 0.076318296459}));
    printed(h[0][2], behind(xs[2], {-0.705576465934, 1.020771328794}));
    printed(h[1][2], behind(xs[2], {-0.938579929802, 1.147997629890}));

    for (const bool norm : {true, false}) {
        const linear_recurrent_unit::settings s{.hidden = 5, .layers = 2, .states = 3, .norm = norm};
        alone::controller<linear_recurrent_unit> a(s, 4);
        // At first no length is outside of what was asked for, and gamma is what makes a state as large as its input.
        const numbers nu = row_of(*a.store, "controller.layer.0.nu"),
                      gamma = row_of(*a.store, "controller.layer.0.gamma");
        for (std::size_t i = 0; i < 3; ++i) {
            const double length = std::exp(-std::exp(nu[i]));
            CHECK(length >= 0.9);
            CHECK(length <= 0.999);
            CHECK(std::exp(2 * gamma[i]) + length * length == doctest::Approx(1));
        }
        a.unsettle();
        alone::walks_alike(a, std::vector<complex_numbers>(2, complex_numbers(3)),
                           [&](const numbers& in, std::vector<complex_numbers>& now) {
                               numbers x = affine(*a.store, "controller.input", in);
                               for (std::size_t n = 0; n < 2; ++n) {
                                   const std::string layer = "controller.layer." + std::to_string(n) + ".";
                                   const numbers u = norm ? layer_normal(*a.store, layer + "norm", x) : x;
                                   const numbers B = product(*a.store, layer + "input.weight", u);
                                   for (std::size_t i = 0; i < 3; ++i) {
                                       const std::complex<double> lambda = std::exp(
                                           std::complex<double>(-std::exp(row_of(*a.store, layer + "nu")[i]),
                                                                std::exp(row_of(*a.store, layer + "theta")[i])));
                                       now[n][i] = lambda * now[n][i] + std::exp(row_of(*a.store, layer + "gamma")[i]) *
                                                                            std::complex<double>(B[i], B[3 + i]);
                                   }
                                   x = gated(*a.store, layer, x, u, now[n], 1);
                               }
                               return x;
                           });
        keeps_what_it_must<linear_recurrent_unit>(s, 100);
    }
    CHECK(refused<linear_recurrent_unit>({.radius_low = 0.9, .radius_high = 0.5}) ==
          "controller.radius_low, controller.radius_high: expected 0 <= low < high <= 1, got 0.9 and 0.5");
}

TEST_CASE("S5") {
    alone::controller<s5> v({.hidden = 2, .layers = 1, .states = 2}, 2);
    set_block(v);
    v.set("controller.layer.0.lambda.real", {-0.5, -0.5});
    v.set("controller.layer.0.lambda.imaginary", {1, 3});
    v.set("controller.layer.0.log_dt", logs({0.1, 0.05}));
    const auto h = alone::headline(v, {xs});
    printed(h[0][0], behind(xs[0], {0.561656050368, -0.515811135686}));
    printed(h[0][1], behind(xs[1], {1.607495159413, 0.099625414693}));
    printed(h[0][2], behind(xs[2], {-0.758860510426, 0.999312594940}));
    printed(h[1][2], behind(xs[2], {-0.863568746833, 1.029741873840}));
    printed({s5_layer::frequency(0, 2), s5_layer::frequency(1, 2)}, {0.556501115084, 4.603293007067});

    const s5::settings s{.hidden = 5, .layers = 2, .states = 3};
    alone::controller<s5> a(s, 4);
    a.unsettle();
    // A state whose L - 1 is of a series, and one that may not grow.
    const numbers im = row_of(*a.store, "controller.layer.0.lambda.imaginary");
    a.set("controller.layer.0.lambda.real", {-0.5, -0.02, 0.3});
    a.set("controller.layer.0.lambda.imaginary", {im[0], 0.1, im[2]});
    a.set("controller.layer.0.log_dt", logs({0.3, 0.04, 0.1}));
    alone::walks_alike(
        a, std::vector<complex_numbers>(2, complex_numbers(3)),
        [&](const numbers& in, std::vector<complex_numbers>& now) {
            numbers x = affine(*a.store, "controller.input", in);
            for (std::size_t n = 0; n < 2; ++n) {
                const std::string layer = "controller.layer." + std::to_string(n) + ".";
                const numbers B = product(*a.store, layer + "input.weight", x);
                for (std::size_t i = 0; i < 3; ++i) {
                    const std::complex<double> lambda(std::min(row_of(*a.store, layer + "lambda.real")[i], -1e-4),
                                                      row_of(*a.store, layer + "lambda.imaginary")[i]);
                    const auto pole = std::exp(lambda * std::exp(row_of(*a.store, layer + "log_dt")[i]));
                    now[n][i] = pole * now[n][i] + (pole - 1.0) / lambda * std::complex<double>(B[i], B[3 + i]);
                }
                x = gated(*a.store, layer, x, x, now[n], 2);
            }
            return x;
        });
    keeps_what_it_must<s5>(s, 100);
    CHECK(refused<s5>({.dt_low = 0}) ==
          "controller.dt_low, controller.dt_high: expected 0 < low <= high, got 0 and 0.1");
}

TEST_CASE("fast and forgetful memory") {
    const double pi = std::acos(-1.0);
    alone::controller<fast_and_forgetful> v({.hidden = 2, .traces = 2, .phases = 2}, 2);
    // The skip r is Qx.
    v.set("controller.input.weight", side_by_side({P, Q, R, Q}));
    v.set("controller.input.bias", b + c + none + none);
    v.set("controller.alpha", {0.1, -0.5});
    v.set("controller.omega", {pi, pi / 4});
    numbers mix;  // [parts, m, c] of rows, where the facts have [m, c, parts]
    for (int im = 0; im < 2; ++im)
        for (int jk = 0; jk < 4; ++jk)
            for (int o = 0; o < 2; ++o) mix.push_back(((o + 2 * (2 * jk + im)) % 5 - 2) / 5.0);
    v.set("controller.mix.weight", mix);
    const auto h = alone::headline(v, {xs});
    printed(h[0][2], {0.168109234165, 0.734208295154});
    numbers expected = normal({0.049087106041, 0.590749049347}, 2, true, 1e-5);
    for (std::size_t j = 0; j < 2; ++j) {
        const double open = sigmoid(left(R, xs[2])[j]);
        expected[j] = expected[j] * open + left(Q, xs[2])[j] * (1 - open);
    }
    printed(h[1][2], expected);

    const fast_and_forgetful::settings s{.hidden = 5, .traces = 3, .phases = 2, .longest = 16};
    alone::controller<fast_and_forgetful> a(s, 4);
    const numbers alpha = row_of(*a.store, "controller.alpha"), omega = row_of(*a.store, "controller.omega");
    CHECK(std::exp(-16 * alpha[2]) == doctest::Approx(0.01));
    CHECK(omega[0] == doctest::Approx(2 * pi));
    CHECK(omega[1] == doctest::Approx(2 * pi / 16));
    a.unsettle();
    alone::walks_alike(a, complex_numbers(6), [&](const numbers& in, complex_numbers& now) {
        const numbers x = affine(*a.store, "controller.input", in);
        numbers parts;
        for (std::size_t j = 0; j < 3; ++j)
            for (std::size_t k = 0; k < 2; ++k)
                now[2 * j + k] =
                    now[2 * j + k] * std::exp(std::complex<double>(-std::abs(row_of(*a.store, "controller.alpha")[j]),
                                                                   row_of(*a.store, "controller.omega")[k])) +
                    x[j] * sigmoid(x[3 + j]);
        for (const auto& z : now) parts.push_back(z.real());
        for (const auto& z : now) parts.push_back(z.imag());
        numbers z = normal(affine(*a.store, "controller.mix", parts), 5, true, 1e-5);
        for (std::size_t j = 0; j < 5; ++j) z[j] = z[j] * sigmoid(x[6 + j]) + x[11 + j] * (1 - sigmoid(x[6 + j]));
        return z;
    });
    keeps_what_it_must<fast_and_forgetful>(s, 100);
    CHECK(refused<fast_and_forgetful>({.longest = 1}) == "controller.longest: expected more than one step, got 1");
}

TEST_CASE("stable Hadamard memory") {
    // The recurrence alone: theta, c, v, k, q and eta are given.
    alone::stepped<cpu<double>> v;
    v.trace(
        {{"theta", 2}, {"c", 2}, {"v", 2}, {"k", 2}, {"q", 2}, {"eta", 1}},
        [&] {
            return stable_hadamard_layer::state<var<cpu<double>>>{v.g->state("matrix", 4), v.g->state("place", 1)};
        },
        [](const auto& in, auto& now) {
            return stable_hadamard_layer::recall(in[0], in[1], in[2], in[3], in[4], in[5], 100, now.matrix);
        });
    std::vector<matrix> shown(6);
    const auto shares = [](numbers x) {
        x = oracle::relu(x);
        const double sum = x[0] + x[1] + 1e-5;
        return numbers{x[0] / sum, x[1] / sum};
    };
    for (const auto& x : xs) {
        shown[0].push_back({0.5, -0.25});
        shown[1].push_back(left(R, x));
        shown[2].push_back(left(Q, x));
        shown[3].push_back(shares(left(P, x)));
        shown[4].push_back(shares(left(R, x)));
        shown[5].push_back({dot(w1, x)});
    }
    const auto h = alone::headline(v, shown);
    printed(h[0][2], {0.334091661594, 0.175910729497});
    printed(h[1][2], {0.513819844496, 0.047187536739});

    stable_hadamard::settings s{.hidden = 5, .layers = 2, .size = 3, .rows = 7};
    for (const double bound : {0.0, 0.04}) {
        s.bound = bound;
        alone::controller<stable_hadamard> a(s, 4);
        a.unsettle();
        struct layer {
            matrix M = oracle::zeros(3, 3);
            double place = 0;
        };
        std::set<int> rows;
        int cut = 0;
        alone::walks_alike(a, std::vector<layer>(2), [&](const numbers& in, std::vector<layer>& now) {
            numbers x = affine(*a.store, "controller.input", in);
            for (std::size_t n = 0; n < 2; ++n) {
                const std::string name = "controller.layer." + std::to_string(n) + ".";
                const numbers u = layer_normal(*a.store, name + "norm", x),
                              all = product(*a.store, name + "look.weight", u);
                numbers k = oracle::relu(part(all, 0, 3)), q = oracle::relu(part(all, 3, 3));
                const double sums[] = {k[0] + k[1] + k[2] + 1e-5, q[0] + q[1] + q[2] + 1e-5};
                const int row = static_cast<int>(now[n].place * 7);
                rows.insert(row);
                now[n].place = std::fmod(now[n].place + (std::sqrt(5.0) - 1) / 2, 1);
                numbers read = product(*a.store, name + "through.weight", u);
                for (int i = 0; i < 3; ++i)
                    for (int j = 0; j < 3; ++j) {
                        double& m = now[n].M[at(i)][at(j)];
                        m = m * (1 + std::tanh(rows_of(*a.store, name + "theta")[at(row)][at(i)] * all[at(9 + j)])) +
                            sigmoid(all[12]) * all[at(6 + i)] * k[at(j)] / sums[0];
                        if (bound > 0 && std::abs(m) > bound) m = std::copysign(bound, m), ++cut;
                        read[at(i)] += m * q[at(j)] / sums[1];
                    }
                x = affine(*a.store, name + "out", read);
            }
            return x;
        });
        CHECK(rows.size() == 7);
        CHECK((cut > 0) == (bound > 0));
        keeps_what_it_must<stable_hadamard>(s, 100);
    }
    CHECK(refused<stable_hadamard>({.rows = 0}) == "controller.rows: expected at least one row, got 0");
    CHECK(refused<stable_hadamard>({.bound = -1}) == "controller.bound: expected 0 or a positive number, got -1");
}

TEST_CASE("mLSTM") {
    alone::stepped<cpu<double>> v;
    v.trace(
        {{"q", 2}, {"k", 2}, {"v", 2}, {"i", 1}, {"f", 1}},
        [&] {
            return mlstm_layer::state<var<cpu<double>>>{v.g->state("matrix", 4), v.g->state("norm", 2),
                                                        v.g->state("scale", 1), v.g->state("seen", 3)};
        },
        [](const auto& in, auto& now) { return mlstm_layer::recall(1, in[0], in[1], in[2], in[3], in[4], now); });
    std::vector<matrix> shown(5);
    for (const auto& x : xs) {
        shown[0].push_back(left(P, x));
        shown[1].push_back(left(R, x));
        shown[2].push_back(left(Q, x, b));
        shown[3].push_back({dot(w1, x)});
        shown[4].push_back({1 + dot(w2, x)});
    }
    const auto h = alone::headline(v, shown);
    const auto opened = [](int t, numbers y) {
        const numbers o = left(R, xs[at(t)], c);
        for (std::size_t j = 0; j < 2; ++j) y[j] *= sigmoid(o[j]);
        return y;
    };
    printed(opened(0, h[0][0]), {-0.052998495975, -0.008074600950});
    printed(opened(1, h[0][1]), {-0.007563993060, 0.028289981813});
    printed(opened(2, h[0][2]), {0.375404080562, -0.228717892770});
    printed(opened(2, h[1][2]), {0.193855880364, 0.002560551269});

    // Plain loops without a stabiliser; keys and values of different widths.
    const mlstm::settings s{.hidden = 5, .layers = 2, .heads = 2, .key = 3, .inner = 4};
    alone::controller<mlstm> a(s, 4);
    a.unsettle();
    struct layer {
        matrix C = oracle::zeros(6, 2);  // rows of both heads' keys
        numbers n = numbers(6);
        window seen;
    };
    alone::walks_alike(a, std::vector<layer>(2), [&](const numbers& in, std::vector<layer>& now) {
        numbers x = affine(*a.store, "controller.input", in);
        for (std::size_t l = 0; l < 2; ++l) {
            const std::string name = "controller.layer." + std::to_string(l) + ".";
            const numbers up = affine(*a.store, name + "up", layer_normal(*a.store, name + "norm", x));
            const numbers c4 = now[l].seen.step(*a.store, name + "convolution", part(up, 0, 4));
            const numbers look = affine(*a.store, name + "look", c4),
                          v4 = affine(*a.store, name + "value", part(up, 0, 4));
            const numbers gates = affine(*a.store, name + "gates", look + v4);
            numbers h4(4);
            for (int g = 0; g < 2; ++g) {
                const double F = sigmoid(gates[at(2 + g)]), I = std::exp(gates[at(g)]) / std::sqrt(3.0);
                double overlap = 0;
                for (int i = 3 * g; i < 3 * g + 3; ++i) {
                    now[l].n[at(i)] = F * now[l].n[at(i)] + I * look[at(6 + i)];
                    overlap += now[l].n[at(i)] * look[at(i)];
                    for (int j = 0; j < 2; ++j) {
                        double& entry = now[l].C[at(i)][at(j)];
                        entry = F * entry + I * look[at(6 + i)] * v4[at(2 * g + j)];
                        h4[at(2 * g + j)] += look[at(i)] * entry;
                    }
                }
                for (int j = 0; j < 2; ++j) h4[at(2 * g + j)] /= std::max(std::abs(overlap), 1.0);
            }
            h4 = normal(h4, 2, true, 1e-5);
            for (std::size_t j = 0; j < 4; ++j)
                h4[j] = (h4[j] * row_of(*a.store, name + "gain")[j] + row_of(*a.store, name + "skip")[j] * c4[j]) *
                        silu(up[4 + j]);
            const numbers down = affine(*a.store, name + "down", h4);
            for (std::size_t j = 0; j < 5; ++j) x[j] += down[j];
        }
        return x;
    });
    keeps_what_it_must<mlstm>(s, 100);
    CHECK(refused<mlstm>({.heads = 3}) ==
          "controller.heads: 128 columns (controller.inner) do not divide into 3 heads");
}

TEST_CASE("gated DeltaNet") {
    const auto unit = [](const numbers& x, double size = 1) {
        numbers y{silu(x[0]), silu(x[1])};
        const double length = std::sqrt(y[0] * y[0] + y[1] * y[1]);
        return numbers{y[0] / length * size, y[1] / length * size};
    };
    for (const bool gated : {false, true}) {
        alone::stepped<cpu<double>> v;
        v.trace(
            {{"q", 2}, {"k", 2}, {"v", 3}, {"beta", 1}, {"alpha", 1}},
            [&] {
                return gated_delta_net_layer::state<var<cpu<double>>>{v.g->state("matrix", 6), v.g->state("seen", 3)};
            },
            [](const auto& in, auto& now) {
                return gated_delta_net_layer::recall(1, in[0], in[1], in[2], in[3], in[4], now);
            });
        std::vector<matrix> shown(5);
        for (const auto& x : xs) {
            shown[0].push_back(unit(left(R, x), 1 / std::sqrt(2.0)));
            shown[1].push_back(unit(left(P, x)));
            shown[2].push_back(left(W, x));
            shown[3].push_back({sigmoid(dot(w1, x))});
            shown[4].push_back({gated ? std::exp(-2 * softplus(dot(w2, x) - 1)) : 1});
        }
        const auto y = alone::headline(v, shown);
        printed(y[1][2], {0.300474012809, 0.027594552197, -0.208492172153});
        printed(y[0][0], {-0.152079312971, -0.005849204345, 0.116984086901});
        if (!gated) printed(y[0][2], {0.265937681382, 0.168871848586, 0.019399813336});
        if (gated) printed(y[0][1], {-0.191927867979, 0.098424737990, 0.297010815498});
        if (gated) printed(y[0][2], {0.282490763026, 0.062554292951, -0.144327508915});
    }

    for (const bool negative : {false, true}) {
        const gated_delta_net::settings s{
            .hidden = 5, .layers = 2, .heads = 2, .key = 3, .value = 2, .negative = negative};
        alone::controller<gated_delta_net> a(s, 4);
        a.unsettle();
        struct layer {
            matrix S = oracle::zeros(6, 2);
            window seen;
        };
        alone::walks_alike(a, std::vector<layer>(2), [&](const numbers& in, std::vector<layer>& now) {
            numbers x = affine(*a.store, "controller.input", in);
            for (std::size_t l = 0; l < 2; ++l) {
                const std::string name = "controller.layer." + std::to_string(l) + ".";
                numbers u = normal(x, 5, false, 1e-6);
                for (std::size_t j = 0; j < 5; ++j) u[j] *= row_of(*a.store, name + "norm")[j];
                const numbers seen =
                    now[l].seen.step(*a.store, name + "convolution", product(*a.store, name + "look.weight", u));
                const numbers gates = product(*a.store, name + "gates.weight", u);
                const numbers open = product(*a.store, name + "gate.weight", u);
                numbers y4(4);
                for (int g = 0; g < 2; ++g) {
                    const numbers q = normal(part(seen, 3 * g, 3), 3, false, 1e-6),
                                  k = normal(part(seen, 6 + 3 * g, 3), 3, false, 1e-6);
                    const double beta = (negative ? 2 : 1) * sigmoid(gates[at(g)]);
                    const double alpha = std::exp(-std::exp(row_of(*a.store, name + "rate")[at(g)]) *
                                                  softplus(gates[at(2 + g)] + row_of(*a.store, name + "bias")[at(g)]));
                    for (int j = 0; j < 2; ++j) {
                        double old = 0;
                        for (int i = 0; i < 3; ++i)
                            old += alpha * now[l].S[at(3 * g + i)][at(j)] * k[at(i)] / std::sqrt(3.0);
                        for (int i = 0; i < 3; ++i) {
                            double& entry = now[l].S[at(3 * g + i)][at(j)];
                            entry = alpha * entry + beta * (seen[at(12 + 2 * g + j)] - old) * k[at(i)] / std::sqrt(3.0);
                            y4[at(2 * g + j)] += entry * q[at(i)] / 3;
                        }
                    }
                }
                y4 = normal(y4, 2, false, 1e-6);
                for (std::size_t j = 0; j < 4; ++j) y4[j] *= row_of(*a.store, name + "gain")[j] * silu(open[j]);
                const numbers out = product(*a.store, name + "out.weight", y4);
                for (std::size_t j = 0; j < 5; ++j) x[j] += out[j];
            }
            return x;
        });
        if (!negative) keeps_what_it_must<gated_delta_net>(s, 100);
    }
    CHECK(refused<gated_delta_net>({.key = 0}) == "controller.key: expected at least one column, got 0");
}

TEST_CASE("GTrXL") {
    // The gate alone.
    for (const double bias : {2.0, 0.0}) {
        alone::stepped<cpu<double>> v;
        const auto gate = stream_gate::declare(*v.g, "gate", 2);
        v.trace(
            {{"x", 2}, {"y", 2}}, [&] { return gru::state<var<cpu<double>>>{v.g->state("hidden", 2)}; },
            [&](const auto& in, auto& now) { return now.hidden = gate("gate", bias, in[0], in[1]); });
        v.set("gate.y.weight", side_by_side({P, Q, R}));
        v.set("gate.x.weight", side_by_side({R, P}));
        v.set("gate.reset.weight", side_by_side({Q}));
        const auto y = alone::headline(v, {{xs[0], xs[0], xs[0]}, {xs[1], xs[1], xs[1]}});
        printed(y[0][0],
                bias > 0 ? numbers{0.473155887272, -0.890722920296} : numbers{0.394886023828, -0.569935430586});
    }
    // Two keys, written one after the other, and a query at the second; no step is turned.
    const gtrxl::settings two{.hidden = 2, .layers = 1, .heads = 1, .inner = 1, .window = 3};
    alone::stepped<cpu<double>> v;
    v.trace(
        {{"q", 2}, {"k", 2}, {"v", 2}}, [&] { return gtrxl_layer::begin(*v.g, two); },
        [&](const auto& in, auto& now) {
            const auto [step, next] = map("step", count_step{}, now.step);
            const auto found = attend_window("window", 1, 3, now.window, split_columns<2>(in[0]),
                                             split_columns<2>(in[1]), in[2], step);
            now = {found.ring, next};
            return found.seen;
        });
    std::vector<matrix> shown(3);
    for (const std::size_t t : {0, 1, 2}) {
        shown[0].push_back(left(P, xs[(t + 1) % 3]));
        shown[1].push_back(left(R, xs[t]));
        shown[2].push_back(left(Q, xs[t]));
    }
    const auto seen = alone::headline(v, shown);
    printed(seen[0][1], {-0.508866374682, 0.164987572544});
    printed(seen[0][0], shown[2][0]);  // one value was written
    printed(seen[1][2], shown[2][2]);  // and one in this episode

    // Plain loops over what was seen: all keys of the last steps of the episode.
    const gtrxl::settings s{.hidden = 8, .layers = 2, .heads = 2, .inner = 3, .window = 4, .gate_bias = 0.5};
    alone::controller<gtrxl> a(s, 4);
    a.unsettle();
    const auto gated_sum = [&](const std::string& name, const numbers& x, const numbers& y) {
        const numbers of_y = product(*a.store, name + ".y.weight", y), of_x = product(*a.store, name + ".x.weight", x);
        numbers left_of(8), out(8);
        for (std::size_t j = 0; j < 8; ++j) left_of[j] = sigmoid(of_y[j] + of_x[j]) * x[j];
        const numbers n = product(*a.store, name + ".reset.weight", left_of);
        for (std::size_t j = 0; j < 8; ++j) {
            const double z = sigmoid(of_y[8 + j] + of_x[8 + j] - 0.5);
            out[j] = (1 - z) * x[j] + z * std::tanh(of_y[16 + j] + n[j]);
        }
        return out;
    };
    struct layer {
        matrix keys, values;
    };
    alone::walks_alike(a, std::vector<layer>(2), [&](const numbers& in, std::vector<layer>& now) {
        numbers x = affine(*a.store, "controller.input", in);
        for (std::size_t l = 0; l < 2; ++l) {
            const std::string name = "controller.layer." + std::to_string(l) + ".";
            const numbers look =
                affine(*a.store, name + "attention.look", layer_normal(*a.store, name + "attention.norm", x));
            const numbers frequency = row_of(*a.store, name + "attention.frequency");
            const auto turned = [&](const numbers& of) {
                numbers y(8);
                const double step = static_cast<double>(now[l].keys.size());
                for (std::size_t j = 0; j < 4; ++j) {
                    const auto z = std::complex<double>(of[j], of[4 + j]) * std::polar(1.0, frequency[j] * step);
                    y[j] = z.real(), y[4 + j] = z.imag();
                }
                return y;
            };
            const numbers q = turned(part(look, 0, 8)), k = turned(part(look, 8, 8));
            now[l].keys.push_back(k);
            now[l].values.push_back(part(look, 16, 8));
            const std::size_t last = now[l].keys.size(), first = last > 4 ? last - 4 : 0;
            numbers found(8);
            for (std::size_t h = 0; h < 2; ++h) {
                double total = 0;
                numbers sum(4);
                for (std::size_t t = first; t < last; ++t) {
                    double score = 0;
                    for (const std::size_t j : {2 * h, 2 * h + 1, 4 + 2 * h, 5 + 2 * h})
                        score += q[j] * now[l].keys[t][j];
                    total += std::exp(score / 2);
                    for (std::size_t j = 0; j < 4; ++j) sum[j] += std::exp(score / 2) * now[l].values[t][4 * h + j];
                }
                for (std::size_t j = 0; j < 4; ++j) found[4 * h + j] = sum[j] / total;
            }
            const numbers e =
                gated_sum(name + "attended", x, oracle::relu(affine(*a.store, name + "attention.combine", found)));
            const numbers wide =
                oracle::relu(affine(*a.store, name + "inner.widen", layer_normal(*a.store, name + "inner.norm", e)));
            x = gated_sum(name + "layered", e, oracle::relu(affine(*a.store, name + "inner.narrow", wide)));
        }
        return x;
    });
    keeps_what_it_must<gtrxl>(s, 100);
    CHECK(refused<gtrxl>({.heads = 5}) ==
          "controller.heads: 64 columns (controller.hidden) do not divide into 5 heads of pairs");
}
