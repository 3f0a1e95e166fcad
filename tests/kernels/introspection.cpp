// Attention over slots: softplus and softmax against loops, gradients against differences, masks, and logits so low or
// so high that their sums leave the number type.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "engram/operations/slots.hpp"

namespace {

using engram::slot_attention_kind;

template <class Real>
struct call {
    int L, R, valid;
    slot_attention_kind kind;
    std::vector<Real> x, weight, total, d_x;

    call(int l, int r, int v, slot_attention_kind k, std::vector<Real> logits)
        : L(l),
          R(r),
          valid(v),
          kind(k),
          x(std::move(logits)),
          weight(x.size(), Real(9)),
          total(static_cast<std::size_t>(r)),
          d_x(x.size(), Real(9)) {}
    void forward() {
        for (int r = 0; r < R; ++r)
            total[static_cast<std::size_t>(r)] = engram::weigh_slots(row, L, valid, kind, head(x, r), head(weight, r));
    }
    void backward(const std::vector<Real>& d) {
        for (int r = 0; r < R; ++r)
            engram::weigh_slots_gradient(row, L, valid, total[static_cast<std::size_t>(r)], head(x, r), head(weight, r),
                                         head(d, r), head(d_x, r));
    }

private:
    engram::row_columns<Real> head(const std::vector<Real>& of, int r) const {
        return {{const_cast<Real*>(of.data()) + r * L, false}, 0, 0, L, 0};
    }
    const std::string name = "slots";
    const engram::host_row<Real> row{name};
};

std::vector<double> oracle(const call<double>& c) {
    std::vector<double> w;
    for (int r = 0; r < c.R; ++r) {
        double sum = 0;
        std::vector<double> s;
        for (int i = 0; i < c.L; ++i) {
            const double e = std::exp(c.x[static_cast<std::size_t>(r * c.L + i)]);
            s.push_back(i >= c.valid ? 0 : c.kind == slot_attention_kind::softmax ? e : std::log(1 + e));
            sum += s.back();
        }
        for (const double v : s) w.push_back(c.valid ? v / sum : 0);
    }
    return w;
}

}  // namespace

TEST_CASE("weights equal the loops, their gradients the differences") {
    std::mt19937 rng(1);
    std::normal_distribution<double> normal(0, 2);
    double apart = 0, slope = 0;
    for (int n = 0; n < 100; ++n) {
        const int L = 1 + static_cast<int>(rng() % 30), R = 1 + static_cast<int>(rng() % 4);
        const int valid = n % 3 ? static_cast<int>(rng()) % (L + 1) : L;
        std::vector<double> x(static_cast<std::size_t>(R * L)), d(x.size());
        for (double& v : x) v = normal(rng);
        for (double& v : d) v = normal(rng);
        call<double> c(L, R, std::abs(valid), n % 2 ? slot_attention_kind::softplus : slot_attention_kind::softmax, x);
        c.forward();
        const auto expected = oracle(c);
        for (std::size_t i = 0; i < x.size(); ++i) apart = std::max(apart, std::abs(c.weight[i] - expected[i]));
        c.backward(d);
        double scale = 1e-3, worst = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double keep = c.x[i], h = 1e-3;
            double difference = 0;
            for (const auto& [step, by] : {std::pair{-2, 1.0}, {-1, -8.0}, {1, 8.0}, {2, -1.0}}) {
                c.x[i] = keep + step * h;
                const auto w = oracle(c);
                for (std::size_t j = 0; j < w.size(); ++j) difference += by * w[j] * d[j];
            }
            c.x[i] = keep;
            difference /= 12 * h;
            worst = std::max(worst, std::abs(difference - c.d_x[i]));
            scale = std::max(scale, std::abs(difference));
        }
        slope = std::max(slope, worst / scale);
    }
    MESSAGE("weights differ by ", apart, ", slopes by ", slope, " of the largest");
    CHECK(apart <= 1e-14);
    CHECK(slope <= 1e-9);
}

TEST_CASE_TEMPLATE("softplus that vanishes is weighed by its limit, softmax", Real, float, double) {
    const std::vector<Real> d{1, 0, Real(-0.5), 2};
    for (const double low : {-50.0, -90.0, -120.0, -800.0, -1e6}) {
        const Real at = static_cast<Real>(low);
        call<Real> plus(4, 1, 4, slot_attention_kind::softplus, {at, at - Real(0.5), at + 1, at}),
            max(4, 1, 4, slot_attention_kind::softmax, plus.x);
        for (auto* c : {&plus, &max}) {
            c->forward();
            c->backward(d);
        }
        for (std::size_t i = 0; i < 4; ++i) {
            CHECK(std::abs(plus.weight[i] - max.weight[i]) <= Real(1e-5));
            CHECK(std::abs(plus.d_x[i] - max.d_x[i]) <= Real(1e-5));
        }
        CHECK(plus.weight[2] > Real(0.4));
    }
}

TEST_CASE_TEMPLATE("exponentials do not overflow", Real, float, double) {
    call<Real> max(3, 1, 3, slot_attention_kind::softmax, {Real(1e4), Real(-1e4), Real(1e4)});
    max.forward();
    max.backward({1, 2, 3});
    CHECK(max.weight == std::vector<Real>{Real(0.5), 0, Real(0.5)});
    CHECK(max.d_x == std::vector<Real>{Real(-0.5), 0, Real(0.5)});
    call<Real> plus(3, 1, 3, slot_attention_kind::softplus, {Real(1e4), Real(-1e4), Real(3e4)});
    plus.forward();
    plus.backward({1, 2, 3});
    CHECK(plus.weight == std::vector<Real>{Real(0.25), 0, Real(0.75)});
    for (const Real v : plus.d_x) CHECK(std::isfinite(v));
}

TEST_CASE("slots behind the mask weigh nothing, whatever their logits, and an empty memory has no weights") {
    for (const auto kind : {slot_attention_kind::softplus, slot_attention_kind::softmax}) {
        call<double> c(3, 2, 1, kind, {0.3, std::nan(""), 1e300, -1, std::nan(""), 5});
        c.forward();
        c.backward({1, 1, 1, 1, 1, 1});
        CHECK(c.weight == std::vector<double>{1, 0, 0, 1, 0, 0});
        CHECK(c.d_x == std::vector<double>(6, 0.0));
        c.valid = 0;
        c.forward();
        c.backward({1, 1, 1, 1, 1, 1});
        CHECK(c.weight == std::vector<double>(6, 0.0));
        CHECK(c.d_x == std::vector<double>(6, 0.0));
    }
}

TEST_CASE("NaN is not hidden") {
    call<double> c(3, 1, 3, slot_attention_kind::softplus, {0.3, std::nan(""), 1});
    c.forward();
    CHECK(std::isnan(c.weight[0]));
}
