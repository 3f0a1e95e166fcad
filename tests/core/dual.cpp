// SPDX-License-Identifier: MIT

// Derivatives of every function against central differences in double, masks at compile time, and packs against
// doubles.

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <tuple>
#include <vector>

#include "engram/core/dual.hpp"

using engram::derivative;
using engram::dual;
using engram::make_input;
using engram::pack;
using engram::value;

// In namespace engram, as every functor of the library: there the names also reach plain numbers.
namespace engram {
struct lstm_cell {
    auto operator()(auto i, auto f, auto g, auto o, auto c) const {
        auto next = logistic(f + 1) * c + logistic(i) * tanh(g);
        return std::tuple{next, logistic(o) * tanh(next)};
    }
};

struct everything {
    auto operator()(auto a, auto b, auto c) const {
        auto first = exp(a) / (2.0f + square(b)) - log(3 + square(c)) * a;
        auto second = softplus(a - b) + sqrt(1.0 + square(a)) * reciprocal(2 + abs(b)) - relu(c) / 2;
        auto third = max(a, b) * min(b, c) + max(c, 0.25) + min(0.5, a) - 1 / (4 + b * b);
        auto fourth = select(a < b, a * c, square(b)) + select(c > 0, 1, c) + 2.0 * (1 - c);
        auto fifth = -a * stop(b) + constant(c);
        fifth += a;
        fifth *= 2;
        return std::tuple{first, second, third, fourth, fifth};
    }
};
}  // namespace engram

namespace {

template <class Functor, std::size_t... I, class Value>
auto duals(Functor f, const std::array<Value, sizeof...(I)>& x, std::index_sequence<I...>) {
    return f(make_input<static_cast<int>(I)>(x[I])...);
}

template <std::size_t N, int I = 0, class Number>
void all_slopes(const Number& y, std::array<double, N>& out) {
    if constexpr (I < static_cast<int>(N)) {
        out[I] = derivative<I>(y);
        all_slopes<N, I + 1>(y, out);
    }
}

/// Compares derivative I of every output with central differences; error of order step^2 + 1e-16 / step = 1e-10.
template <class Functor, std::size_t N>
void check_against_differences(Functor f, std::array<double, N> x, int stopped_output = -1) {
    const auto outputs = duals(f, x, std::make_index_sequence<N>{});
    const double step = 1e-5;
    for (std::size_t i = 0; i < N; ++i) {
        auto up = x, down = x;
        up[i] += step;
        down[i] -= step;
        const auto above = std::apply(f, up), below = std::apply(f, down), here = std::apply(f, x);
        [&]<std::size_t... K>(std::index_sequence<K...>) {
            (
                [&] {
                    CHECK(value(std::get<K>(outputs)) == doctest::Approx(std::get<K>(here)).epsilon(1e-14));
                    if (static_cast<int>(K) == stopped_output) return;
                    std::array<double, N> slopes;
                    all_slopes(std::get<K>(outputs), slopes);
                    const double numeric = (std::get<K>(above) - std::get<K>(below)) / (2 * step);
                    CHECK(slopes[i] == doctest::Approx(numeric).epsilon(1e-8));
                }(),
                ...);
        }
        (std::make_index_sequence<std::tuple_size_v<decltype(here)>>{});
    }
}

}  // namespace

TEST_CASE("masks are the inputs that a value depends on") {
    using in = double;
    using i = dual<in, 1>;
    using f = dual<in, 2>;
    using g = dual<in, 4>;
    using o = dual<in, 8>;
    using c = dual<in, 16>;
    using outputs = decltype(engram::lstm_cell{}(i{}, f{}, g{}, o{}, c{}));
    static_assert(std::tuple_element_t<0, outputs>::mask == 0b10111,
                  "the next cell does not depend on the output gate");
    static_assert(std::tuple_element_t<0, outputs>::size == 4);
    static_assert(std::tuple_element_t<1, outputs>::mask == 0b11111);
    static_assert(decltype(i{} + 1.0f)::mask == 1);
    static_assert(decltype(2 * c{} / o{})::mask == 0b11000);
    static_assert(std::is_same_v<decltype(constant(i{}) * 2.0), double>);
    static_assert(std::is_same_v<decltype(derivative<0>(make_input<3>(pack<float>(1)))), pack<float>>);
    static_assert(engram::slope_index(0b10110, 4) == 2 && engram::slope_input(0b10110, 2) == 4);

    constexpr auto x = make_input<0>(3.0), also_x = x;
    constexpr auto y = make_input<2>(4.0);
    constexpr auto product = x * y + also_x - 1;
    static_assert(product.primal == 14 && derivative<0>(product) == 5 && derivative<2>(product) == 3);
    static_assert(derivative<1>(product) == 0 && derivative<7>(2.0) == 0);
    constexpr dual<double, 0b111> wide = product;
    static_assert(derivative<0>(wide) == 5 && derivative<1>(wide) == 0 && derivative<2>(wide) == 3);
}

TEST_CASE("an LSTM cell agrees with central differences") {
    check_against_differences(engram::lstm_cell{}, std::array{0.3, -0.7, 1.1, 0.2, -1.4});
    check_against_differences(engram::lstm_cell{}, std::array{-2.0, 1.5, -0.4, -0.9, 0.8});
}

TEST_CASE("every function agrees with central differences") {
    for (const double a : {-1.3, 0.4, 0.9})
        for (const double b : {-0.8, 0.6})
            for (const double c : {-0.5, 0.1, 1.7}) {
                check_against_differences(engram::everything{}, std::array{a, b, c}, 4);
                const auto stopped =
                    std::get<4>(engram::everything{}(make_input<0>(a), make_input<1>(b), make_input<2>(c)));
                CHECK(decltype(stopped)::mask == 1);
                CHECK(derivative<0>(stopped) == doctest::Approx(2 - 2 * b));
            }
}

TEST_CASE("kinks follow the stated conventions") {
    const auto x = make_input<0>(0.0);
    const auto y = make_input<1>(0.0);
    CHECK(derivative<0>(relu(x)) == 0);
    CHECK(derivative<0>(abs(x)) == 1);
    CHECK(derivative<0>(max(x, y)) == 1);
    CHECK(derivative<1>(max(x, y)) == 0);
    CHECK(derivative<0>(min(x, y)) == 1);
    CHECK(derivative<0>(max(x, 1)) == 0);
}

TEST_CASE_TEMPLATE("packs of duals give what single numbers give", Real, float, double) {
    constexpr int width = pack<Real>::width;
    std::array<Real, width> a, b, c;
    for (int i = 0; i < width; ++i) {
        a[i] = static_cast<Real>(std::sin(1.0 + i));
        b[i] = static_cast<Real>(std::cos(2.0 + 3 * i));
        c[i] = static_cast<Real>(std::sin(5.0 - 2 * i));
    }
    using numbers = pack<Real>;
    const auto many =
        engram::everything{}(make_input<0>(numbers::load(a.data())), make_input<1>(numbers::load(b.data())),
                             make_input<2>(numbers::load(c.data())));
    // Float: about ten rounded operations with values of order one.
    const double tolerance = sizeof(Real) == 4 ? 4e-6 : 1e-13;
    for (int i = 0; i < width; ++i) {
        const auto one =
            engram::everything{}(make_input<0>(double(a[i])), make_input<1>(double(b[i])), make_input<2>(double(c[i])));
        [&]<std::size_t... K>(std::index_sequence<K...>) {
            (
                [&] {
                    CHECK(std::fabs(value(std::get<K>(many))[i] - value(std::get<K>(one))) < tolerance);
                    CHECK(std::fabs(derivative<0>(std::get<K>(many))[i] - derivative<0>(std::get<K>(one))) < tolerance);
                    CHECK(std::fabs(derivative<1>(std::get<K>(many))[i] - derivative<1>(std::get<K>(one))) < tolerance);
                    CHECK(std::fabs(derivative<2>(std::get<K>(many))[i] - derivative<2>(std::get<K>(one))) < tolerance);
                }(),
                ...);
        }
        (std::make_index_sequence<5>{});
    }
}
