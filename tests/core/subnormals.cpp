// SPDX-License-Identifier: MIT
// Numbers below the smallest normal one are zero where zero_subnormals says so, and nowhere else; where the processor's
// mode is not known, they stay numbers everywhere.

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <thread>

#include <engram/core/subnormals.hpp>
#include <engram/core/thread_pool.hpp>

using namespace engram;

namespace {

template <class Real>
Real product_of(Real a, Real b) {
    const volatile Real x = a, y = b;
    return x * y;
}

/// Whether results and operands keep them.
template <class Real>
void check_here(bool zero) {
    CAPTURE(zero);
    constexpr Real least = std::numeric_limits<Real>::min(), subnormal = least / 8;
    CHECK((product_of(least, Real(0.125)) == 0) == zero);     // a result
    CHECK((product_of(subnormal, Real(1024)) == 0) == zero);  // an operand
    CHECK(product_of(least, Real(1)) == least);
}
void check_here(bool wanted) {
    const bool zero = wanted && zero_subnormals::available();
    CHECK(zero_subnormals::here() == zero);
    check_here<float>(zero);
    check_here<double>(zero);
}

}  // namespace

TEST_CASE("results and operands are zero while it lives, and numbers after it") {
    check_here(false);
    {
        const zero_subnormals zero;
        check_here(true);
        {
            const zero_subnormals kept(false);
            check_here(false);
        }
        check_here(true);
        try {
            const zero_subnormals inner(false);
            throw 1;
        } catch (int) {
        }
        check_here(true);
    }
    check_here(false);
}

TEST_CASE("a thread begins as the one that made it, a call of a pool runs as the caller, whoever made the pool") {
    const auto in_a_thread = [] {
        bool zero = false;
        std::thread([&] { zero = zero_subnormals::here(); }).join();
        return zero;
    };
    CHECK(!in_a_thread());
    {
        const zero_subnormals zero;
        CHECK(in_a_thread() == zero_subnormals::available());
    }
    for (const bool made_as_zero : {false, true}) {
        CAPTURE(made_as_zero);
        const zero_subnormals as_made(made_as_zero);
        thread_pool pool(3);
        for (const bool wanted : {true, false, true}) {
            const zero_subnormals mode(wanted);
            std::array<bool, 3> zero{};
            pool.run([&](int i) { zero[static_cast<std::size_t>(i)] = product_of(1e-38f, 0.1f) == 0; });
            const bool expected = wanted && zero_subnormals::available();
            CHECK(zero == std::array{expected, expected, expected});
        }
    }
}
