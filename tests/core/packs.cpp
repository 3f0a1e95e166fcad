// SPDX-License-Identifier: MIT

// Several packs as one number: to the bit what each of their packs gives by itself.

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "engram/core/packs.hpp"
#include "engram/operations/row.hpp"

using engram::pack;
using engram::packs;

namespace {

template <class Real, int Count>
struct of {
    using real = Real;
    using many = packs<Real, Count>;
    static constexpr int width = pack<Real>::width;
    static_assert(many::width == Count * width);

    std::vector<Real> numbers = std::vector<Real>(many::width + 1);

    explicit of(Real first, Real step) {
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = first + step * static_cast<Real>(i);
    }
    many all() const { return many::load(numbers.data() + 1); }  // from an address that is no multiple of a pack
    pack<Real> one(int k) const { return pack<Real>::load(numbers.data() + 1 + k * width); }
};

/// Whether lanes k of `found` are `wanted(k)`, for all of its packs k.
template <class Real, class Many, class Wanted>
void check(const Many& found, Wanted wanted) {
    constexpr int width = pack<Real>::width;
    std::vector<Real> lanes(Many::width + 1, Real(-7));
    found.store(lanes.data());
    CHECK(lanes.back() == -7);
    for (int i = 0; i < Many::width; ++i) CHECK(lanes[static_cast<std::size_t>(i)] == wanted(i / width)[i % width]);
}

}  // namespace

TEST_CASE_TEMPLATE("packs are their packs", Type, of<float, 2>, of<float, 4>, of<double, 2>, of<double, 4>) {
    using real = typename Type::real;
    using many = typename Type::many;
    const Type a(real(-1.3), real(0.17)), b(real(2.9), real(-0.13)), c(real(0.7), real(0.31));
    const auto x = a.all(), y = b.all(), z = c.all();
    const auto check_each = [](const many& found, auto wanted) { check<real>(found, wanted); };

    check_each(x, [&](int k) { return a.one(k); });
    check_each(x + y, [&](int k) { return a.one(k) + b.one(k); });
    check_each(x - y, [&](int k) { return a.one(k) - b.one(k); });
    check_each(x * y, [&](int k) { return a.one(k) * b.one(k); });
    check_each(-x, [&](int k) { return -a.one(k); });
    check_each(multiply_add(x, y, z), [&](int k) { return multiply_add(a.one(k), b.one(k), c.one(k)); });
    check_each(many(real(0.3)) * x + 1, [&](int k) { return pack<real>(real(0.3)) * a.one(k) + 1; });
    check_each(select(x < y, x, z), [&](int k) { return select(a.one(k) < b.one(k), a.one(k), c.one(k)); });
    check_each(select(x != a.numbers[3], x, z),
               [&](int k) { return select(a.one(k) != a.numbers[3], a.one(k), c.one(k)); });
}

TEST_CASE_TEMPLATE("a mask of packs chooses lane by lane", Real, float, double) {
    using many = packs<Real, 2>;
    std::vector<Real> numbers(many::width);
    for (int chosen = 0; chosen < many::width; ++chosen) {
        std::fill(numbers.begin(), numbers.end(), Real(1));
        numbers[static_cast<std::size_t>(chosen)] = -1;
        select(many::load(numbers.data()) < many(0), many(5), many(3)).store(numbers.data());
        for (int i = 0; i < many::width; ++i) CHECK(numbers[static_cast<std::size_t>(i)] == (i == chosen ? 5 : 3));
    }
}

TEST_CASE_TEMPLATE("the sums of as many packs as one has lanes have the bits of each by itself", Real, float, double) {
    constexpr int width = pack<Real>::width;
    std::vector<Real> numbers(width * width);
    for (std::size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = static_cast<Real>((i * 2654435761u) % 1000003u) / Real(997) - Real(400);
    pack<Real> all[width];
    for (int k = 0; k < width; ++k) all[k] = pack<Real>::load(numbers.data() + k * width);
    const pack<Real> sums = engram::internal::sums_of(all);
    for (int k = 0; k < width; ++k) CHECK(sums[k] == all[k].sum());
}
