// SPDX-License-Identifier: MIT

// Packs against single numbers and against double: loads, operators, and the largest errors of the float maths.

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "engram/core/circular.hpp"
#include "engram/core/pack.hpp"

using engram::pack;

namespace {

template <class Real>
pack<Real> ramp(Real first, Real step) {
    std::array<Real, pack<Real>::width> numbers;
    for (int i = 0; i < pack<Real>::width; ++i) numbers[i] = first + step * static_cast<Real>(i);
    return pack<Real>::load(numbers.data());
}

/// Largest |pack result - exact| / scale(exact) over a grid, and that the single-number form stays as near.
template <class Function, class Exact, class Scale>
double largest_error(float low, float high, Function function, Exact exact, Scale scale) {
    double worst = 0;
    const int points = 200000;
    constexpr int width = pack<float>::width;
    for (int i = 0; i < points; i += width) {
        std::array<float, width> x;
        for (int j = 0; j < width; ++j)
            x[j] = low + (high - low) * static_cast<float>(i + j) / static_cast<float>(points - 1);
        const pack<float> y = function(pack<float>::load(x.data()));
        for (int j = 0; j < width; ++j) {
            const double wanted = exact(static_cast<double>(x[j]));
            worst = std::max(worst, std::fabs(y[j] - wanted) / scale(wanted));
            worst = std::max(worst, std::fabs(static_cast<double>(function(x[j])) - wanted) / scale(wanted));
        }
    }
    return worst;
}

const auto absolute = [](double) { return 1.0; };
const auto relative = [](double y) { return std::fabs(y); };
const auto mixed = [](double y) { return std::max(1.0, std::fabs(y)); };

}  // namespace

TEST_CASE_TEMPLATE("load, store and sum keep every lane", Real, float, double) {
    constexpr int width = pack<Real>::width;
    CHECK(width * sizeof(Real) == engram::pack_bytes);
    std::vector<Real> from(width + 1), to(width + 1, Real(-1));
    for (int i = 0; i <= width; ++i) from[i] = static_cast<Real>(i + 1);
    for (int count = 0; count <= width; ++count) {
        const auto p = pack<Real>::load(from.data(), count);
        for (int i = 0; i < width; ++i) CHECK(p[i] == (i < count ? from[i] : 0));
        CHECK(p.sum() == count * (count + 1) / 2);
        std::fill(to.begin(), to.end(), Real(-1));
        (p + 1).store(to.data(), count);
        for (int i = 0; i <= width; ++i) CHECK(to[i] == (i < count ? from[i] + 1 : -1));
    }
    pack<Real>::load(from.data() + 1).store(to.data());
    for (int i = 0; i < width; ++i) CHECK(to[i] == from[i + 1]);
}

TEST_CASE_TEMPLATE("operators mix with plain numbers", Real, float, double) {
    const auto x = ramp<Real>(-2, 0.5), y = ramp<Real>(Real(3.1), Real(-0.25));
    auto z = x;
    z += y;
    z *= 2;
    z -= 0.5;
    z /= y;
    const auto all = select(x < y, -x * y + 1, 2.0 / y - 3);
    const auto zero_one = select((x >= 0) & !(x == 1), 1.0f, 0);
    for (int i = 0; i < pack<Real>::width; ++i) {
        CHECK(z[i] == doctest::Approx(((x[i] + y[i]) * 2 - 0.5) / y[i]).epsilon(1e-6));
        CHECK(all[i] == doctest::Approx(x[i] < y[i] ? -x[i] * y[i] + 1 : 2 / y[i] - 3).epsilon(1e-6));
        CHECK(zero_one[i] == (x[i] >= 0 && x[i] != 1 ? 1 : 0));
        CHECK(max(x, 0.25)[i] == std::max<Real>(x[i], Real(0.25)));
        CHECK(min(x, y)[i] == std::min(x[i], y[i]));
        CHECK(abs(x)[i] == std::fabs(x[i]));
        CHECK(relu(x)[i] == std::max<Real>(x[i], 0));
        CHECK(sqrt(abs(x))[i] == std::sqrt(std::fabs(x[i])));
        CHECK(square(x)[i] == x[i] * x[i]);
        CHECK(reciprocal(y)[i] == 1 / y[i]);
        CHECK(multiply_add(x, y, z)[i] == doctest::Approx(x[i] * y[i] + z[i]).epsilon(1e-6));
        CHECK((x <= y)[i] == (x[i] <= y[i]));
        CHECK((x > y)[i] == (x[i] > y[i]));
        CHECK((x != 0)[i] == (x[i] != 0));
    }
    CHECK(std::signbit(pack<Real>(Real(-0.0))[0]));
    CHECK(engram::max(2, 0.5f) == 2);
    CHECK(engram::select(true, 1, 2.5) == 1);
}

TEST_CASE("float maths stays within its stated errors") {
    using namespace engram;
    CHECK(largest_error(
              -20, 20, [](auto x) { return tanh(x); }, [](double x) { return std::tanh(x); }, absolute) < 4e-7);
    // Both signs apart: a relative error near zero tells that small arguments pass unharmed.
    CHECK(largest_error(
              1e-30f, 1e-3f, [](auto x) { return tanh(x); }, [](double x) { return std::tanh(x); }, relative) < 3e-7);
    CHECK(largest_error(
              -40, 40, [](auto x) { return logistic(x); }, [](double x) { return 1 / (1 + std::exp(-x)); }, absolute) <
          3e-7);
    CHECK(largest_error(
              -87, 88.7f, [](auto x) { return exp(x); }, [](double x) { return std::exp(x); }, relative) < 3e-7);
    CHECK(largest_error(
              1e-37f, 2e-37f, [](auto x) { return log(x); }, [](double x) { return std::log(x); }, relative) < 3e-7);
    CHECK(largest_error(
              1e-3f, 4, [](auto x) { return log(x); }, [](double x) { return std::log(x); }, mixed) < 3e-7);
    CHECK(largest_error(
              4, 1e30f, [](auto x) { return log(x); }, [](double x) { return std::log(x); }, relative) < 3e-7);
    CHECK(largest_error(
              -60, 60, [](auto x) { return softplus(x); }, [](double x) { return std::log1p(std::exp(x)); }, mixed) <
          4e-7);
    CHECK(largest_error(
              -80, -10, [](auto x) { return softplus(x); }, [](double x) { return std::log1p(std::exp(x)); },
              relative) < 4e-7);
}

TEST_CASE("sine and cosine stay within their stated errors, and far angles have the library's") {
    const auto sine = [](auto x) { return engram::sine(x); };
    const auto cosine = [](auto x) { return engram::cosine(x); };
    const auto exact_sine = [](double x) { return std::sin(x); };
    const auto exact_cosine = [](double x) { return std::cos(x); };
    for (const float far : {3.2f, 100.0f, 8192.0f}) {
        CHECK(largest_error(-far, far, sine, exact_sine, absolute) < 4e-7);
        CHECK(largest_error(-far, far, cosine, exact_cosine, absolute) < 4e-7);
    }
    CHECK(largest_error(1e-30f, 0.7f, sine, exact_sine, relative) < 3e-7);
    CHECK(largest_error(8190, 1e6f, cosine, exact_cosine, absolute) < 4e-7);
    CHECK(std::isnan(sine(std::numeric_limits<float>::infinity())));
    CHECK(std::isnan(cosine(pack<float>(std::numeric_limits<float>::quiet_NaN()))[0]));
    // A lane has the bits of a single number, beside a far one too.
    std::array<float, pack<float>::width> x;
    for (int i = 0; i < pack<float>::width; ++i) x[i] = i == 1 ? 1e5f : 0.37f * static_cast<float>(i * i + 1);
    for (int i = 0; i < pack<float>::width; ++i) {
        CHECK(sine(pack<float>::load(x.data()))[i] == sine(x[i]));
        CHECK(cosine(pack<float>::load(x.data()))[i] == cosine(x[i]));
        CHECK(sine(pack<float>(x[i]))[i] == sine(x[i]));
    }
    CHECK(sine(0.0f) == 0);
    CHECK(cosine(0.0f) == 1);
}

TEST_CASE_TEMPLATE("extremes saturate and NaN survives", Real, float, double) {
    const Real infinity = std::numeric_limits<Real>::infinity(), nan = std::numeric_limits<Real>::quiet_NaN();
    const auto at = [](auto function, Real x) {
        const Real single = function(x), lane = function(pack<Real>(x))[1];
        CHECK((single == lane || (single != single && lane != lane)));
        return lane;
    };
    using namespace engram;
    CHECK(at([](auto x) { return exp(x); }, infinity) == infinity);
    CHECK(at([](auto x) { return exp(x); }, -infinity) == 0);
    CHECK(at([](auto x) { return exp(x); }, Real(0)) == 1);
    CHECK(at([](auto x) { return log(x); }, infinity) == infinity);
    CHECK(at([](auto x) { return log(x); }, Real(0)) == -infinity);
    CHECK(at([](auto x) { return log(x); }, Real(1)) == 0);
    CHECK(at([](auto x) { return log(x); }, std::numeric_limits<Real>::denorm_min()) ==
          doctest::Approx(std::log(std::numeric_limits<Real>::denorm_min())).epsilon(1e-6));
    CHECK(std::isnan(at([](auto x) { return log(x); }, Real(-1))));
    CHECK(at([](auto x) { return tanh(x); }, infinity) == doctest::Approx(1).epsilon(3e-7));
    CHECK(at([](auto x) { return tanh(x); }, -infinity) == doctest::Approx(-1).epsilon(3e-7));
    CHECK(at([](auto x) { return tanh(x); }, infinity) <= 1);
    CHECK(at([](auto x) { return logistic(x); }, infinity) <= 1);
    CHECK(at([](auto x) { return logistic(x); }, -infinity) >= 0);
    CHECK(at([](auto x) { return logistic(x); }, -infinity) < 2e-7);
    CHECK(at([](auto x) { return softplus(x); }, Real(1e30)) == Real(1e30));
    CHECK(at([](auto x) { return softplus(x); }, Real(-1e30)) == 0);
    for (const Real x : {nan, -nan}) {
        CHECK(std::isnan(at([](auto v) { return exp(v); }, x)));
        CHECK(std::isnan(at([](auto v) { return log(v); }, x)));
        CHECK(std::isnan(at([](auto v) { return tanh(v); }, x)));
        CHECK(std::isnan(at([](auto v) { return logistic(v); }, x)));
        CHECK(std::isnan(at([](auto v) { return softplus(v); }, x)));
        CHECK(std::isnan(at([](auto v) { return relu(v); }, x)));
        CHECK(std::isnan(at([](auto v) { return abs(v); }, x)));
        CHECK(std::isnan(at([](auto v) { return max(v, Real(1)); }, x)));
        CHECK(std::isnan(at([](auto v) { return min(Real(1) + 0 * v, v); }, x)));
    }
}
