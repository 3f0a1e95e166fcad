// Heads side by side: against plain loops, gradients against central differences, and what is refused.

#include "heads.hpp"

#include <cmath>

using namespace heads_test;

namespace {

template <class Real>
double worst_difference_from_loops(int N, int H, int K) {
    using backend = cpu<Real>;
    const int T = 2, B = 2;
    traced<backend> m(N, H, K);
    std::vector<var<backend>> shown{m.blended,  m.soft,  m.sums,  m.mixed,   m.released, m.decayed, m.content,
                                    m.products, m.found, m.equal, m.centred, m.turned,   m.levelled};
    shown.insert(shown.end(), m.cleared.begin(), m.cleared.end());
    program<backend> p(m.g, m.store, {.steps = T, .batch = B}, shown);
    fill(p, m.g);
    p.forward();
    const auto in = [&](const std::string& name, int row, int i) {
        const auto all = p.input(name);
        return static_cast<double>(all[static_cast<std::size_t>(row) * (all.size() / (T * B)) + std::size_t(i)]);
    };
    double level = 0, spread = 0.01;
    for (int r = 0; r < T * B; ++r) level += in("whole", r, 0) / (T * B);
    for (int r = 0; r < T * B; ++r) spread += std::pow(in("whole", r, 0) - level, 2) / (T * B);
    double worst = 0;
    const auto compare = [&](const var<backend>& v, int row, int i, double expected) {
        worst = std::max(worst, std::abs(static_cast<double>(p.output(v).data[row * v.width + i]) - expected));
    };
    for (int r = 0; r < T * B; ++r) {
        compare(m.levelled, r, 0, (in("whole", r, 0) - level) / std::sqrt(spread));
        std::vector<double> y(static_cast<std::size_t>(N)), d(y);
        for (int n = 0; n < N; ++n) y[std::size_t(n)] = d[std::size_t(n)] = in("start", r, n);
        for (int h = 0; h < H; ++h) {
            double total = 0, sum = 0, sharpened = 0;
            const double gate = in("gate", r, h), sharp = std::log1p(std::exp(gate + 0.3));
            const auto value = [&](int k, int n) { return in(message("value.", k), r, h * N + n); };
            double power = 0.01, mean = 0, variance = 0.01;
            for (int n = 0; n < N; ++n) {
                power += std::pow(in("x", r, h * N + n), 2) / N;
                mean += value(0, n) / N;
            }
            for (int n = 0; n < N; ++n) variance += std::pow(value(0, n) - mean, 2) / N;
            for (int n = 0; n < N; ++n) {
                double read = 0;
                for (int m_row = 0; m_row < N; ++m_row) {
                    const double product = in("x", r, h * N + m_row) * value(0, n);
                    compare(m.products, r, (h * N + m_row) * N + n, product);
                    read += value(1, m_row) * product;
                }
                compare(m.found, r, h * N + n, read);
                compare(m.equal, r, h * N + n, 0.5 * in("x", r, h * N + n) / std::sqrt(power));
                compare(m.centred, r, h * N + n, (value(0, n) - mean) / std::sqrt(variance));
                compare(m.turned, r, h * N + n,
                        std::cos(gate) * in("x", r, h * N + n) + std::sin(in("x", r, h * N + n)));
            }
            for (int n = 0; n < N; ++n) {
                total += std::exp(in("x", r, h * N + n));
                sharpened += std::exp(sharp * in("x", r, h * N + n));
            }
            for (int n = 0; n < N; ++n) {
                const double x = in("x", r, h * N + n), soft = std::exp(x) / total;
                sum += x;
                compare(m.blended, r, h * N + n, std::tanh(in("whole", r, 0) + gate) * x + gate * gate);
                compare(m.soft, r, h * N + n, soft);
                compare(m.content, r, h * N + n, std::exp(sharp * x) / sharpened);
                double mixed = 0;
                for (int k = 0; k < K; ++k)
                    mixed += in("shares", r, h * K + k) * in(message("value.", k), r, h * N + n);
                compare(m.mixed, r, h * N + n, mixed);
                double& u = y[std::size_t(n)];
                u = std::min(u * std::max(1 - gate * x, 0.0), 2.0) + x * x;
                d[std::size_t(n)] = 0.5 * d[std::size_t(n)] + soft;
            }
            compare(m.sums, r, h, sum);
        }
        for (int n = 0; n < N; ++n) {
            compare(m.released, r, n, y[std::size_t(n)]);
            compare(m.decayed, r, n, d[std::size_t(n)]);
        }
        for (int k = 0; k < K; ++k)
            for (int i = 0; i < H * N; ++i)
                compare(m.cleared[std::size_t(k)], r, i, in("reset", r, 0) > 0.5 ? 0 : in(message("value.", k), r, i));
    }
    return worst;
}

}  // namespace

namespace {

struct of_two_spreads {
    constexpr auto operator()(auto a, auto b, auto x) const { return a * x + b * b * x; }
};

template <class Backend>
void spreads_agree() {
    using real = typename Backend::real;
    for (const int F : {72, 96, 40}) {  // 2 and 3 heads share 12 and 16 columns; 2 and 5 share 4
        const int a_heads = 2, b_heads = F == 40 ? 5 : 3;
        const auto store = std::make_shared<parameters<real>>(1);
        graph<Backend> g{store};
        const auto a = g.input("a", a_heads, extent::sequence, true), b = g.input("b", b_heads, extent::sequence, true),
                   x = g.input("x", F, extent::sequence, true);
        const auto y = map("y", of_two_spreads{}, a.spread(F / a_heads), b.spread(F / b_heads), x);
        add_loss("loss", sum_columns("sum", y));
        const auto fill = [&](auto& p) {
            philox random(11, 1);
            for (const char* name : {"a", "b", "x"})
                for (real& v : p.input(name)) v = static_cast<real>(random.normal());
        };
        program<Backend> p(g, store, {.steps = 2, .batch = 2, .gradients = true}, {y});
        fill(p);
        p.forward(), p.backward();
        double worst = 0;
        for (int row = 0; row < 4; ++row)
            for (int f = 0; f < F; ++f) {
                const auto at = [&](const char* name, int heads) {
                    return static_cast<double>(p.input(name)[static_cast<std::size_t>(row * heads + f / (F / heads))]);
                };
                const double wanted = at("a", a_heads) * at("x", F) + at("b", b_heads) * at("b", b_heads) * at("x", F);
                worst = std::max(worst, std::abs(static_cast<double>(p.output(y).data[row * F + f]) - wanted));
            }
        CHECK(worst < (sizeof(real) == 4 ? 1e-5 : 1e-12));
        if constexpr (std::is_same_v<real, double>) {
            const auto report = check_gradients<Backend>(g, store, {.steps = 2, .batch = 2}, fill, 1000);
            INFO(report.where);
            CHECK(report.worst < 1e-6);
        }
    }
}

}  // namespace

TEST_CASE("two inputs may be spread over other numbers of columns each") {
    spreads_agree<cpu<double>>();
    spreads_agree<cpu<float>>();
}

TEST_CASE("forward equals plain loops") {
    for (const auto& [N, H, K] :
         {std::array{3, 2, 3}, std::array{16, 4, 3}, std::array{21, 1, 2}, std::array{2, 3, 9}}) {
        CHECK(worst_difference_from_loops<double>(N, H, K) < 1e-13);
        CHECK(worst_difference_from_loops<float>(N, H, K) < 2e-5);
    }
}

TEST_CASE("gradients agree with central differences, alone and through a scan") {
    gradients_agree<cpu<double>>(3, 2, 3);
    gradients_agree<cpu<double>>(9, 1, 2);
}

TEST_CASE("a cleared row forgets what is no number, and passes no gradient") {
    using backend = cpu<double>;
    auto store = std::make_shared<parameters<double>>(1);
    graph<backend> g(store);
    const auto x = g.input("x", 2, extent::sequence, true), reset = g.input("reset", 1);
    const auto y = clear_rows<backend>("clear", reset, {x})[0];
    add_loss("loss", sum_columns("sum", y));
    program<backend> p(g, store, {.steps = 1, .batch = 2, .gradients = true}, {y, x});
    const double nan = std::nan("");
    std::ranges::copy(std::array{nan, nan, 3.0, 4.0}, p.input("x").begin());
    std::ranges::copy(std::array{1.0, 0.0}, p.input("reset").begin());
    p.forward();
    p.backward();
    CHECK(std::ranges::equal(std::span(p.output(y).data, 4), std::array{0.0, 0.0, 3.0, 4.0}));
    CHECK(std::ranges::equal(std::span(p.gradient_of(x).data, 4), std::array{0.0, 0.0, 1.0, 1.0}));
}

TEST_CASE("widths that are not those of heads are refused in one sentence") {
    using backend = cpu<double>;
    graph<backend> g(std::make_shared<parameters<double>>(1));
    const auto x = g.input("x", 6), gate = g.input("gate", 2), start = g.input("start", 3);
    CHECK_THROWS_WITH(map("wide", times{}, gate, x),
                      "wide: inputs of 6 and 2 columns do not go together; widths must be equal or 1");
    CHECK_THROWS_WITH(map("wide", times{}, gate.spread(2), x),
                      "wide: inputs of 6 and 4 columns do not go together; widths must be equal or 1");
    CHECK_THROWS_WITH(softmax("soft", gate.spread(3)), "soft: spread columns are for maps alone");
    CHECK_THROWS_WITH(gate.spread(0), "spread: a column cannot stand for 0 columns");
    CHECK_THROWS_WITH(softmax("soft", x, 4), "soft: 6 columns do not divide into groups of 4");
    CHECK_THROWS_WITH(mixture<backend>("mix", gate, {x, start}, 3),
                      "mix: values of 6 and 3 columns, expected the same for every value, a multiple of the 3 columns "
                      "of a head");
    CHECK_THROWS_WITH(mixture<backend>("mix", gate, {x, g.input("other", 6)}, 3),
                      "mix: 2 heads of 2 values need 4 shares, not 2");
    CHECK_THROWS_WITH(mixture<backend>("mix", g.input("four", 4), {x, x}, 3),
                      "mix: two inputs share columns; give one of them as a copy");
    CHECK_THROWS_WITH(fold_heads("fold", decay{}, 2, start, g.input("five", 5)),
                      "fold: 5 columns for 2 heads; expected one a head, or 3 a head as there are in what they change");
    CHECK_THROWS_WITH(content_weights("content", g.input("seven", 7), gate),
                      "content: cosines of 7 columns do not divide among 2 strengths");
    CHECK_THROWS_WITH(fold_heads("fold", decay{}, 0, start, x), "fold: 0 heads; at least one is needed");
    CHECK_THROWS_WITH(clear_rows<backend>("clear", gate, {x}), "clear: reset is one column, not 2");
}

TEST_CASE("a standardised column wants the whole batch") {
    using backend = cpu<double>;
    const auto store = std::make_shared<parameters<double>>(1);
    graph<backend> g{store};
    const auto y = standardise("level", g.input("x", 1));
    CHECK_THROWS_WITH_AS(program<backend>(g, store, {.steps = 4, .batch = 2, .total_batch = 8}, {y}),
                         "level: rows of the batch meet in it, so the batch cannot be split; expected a single shard",
                         error);
}
