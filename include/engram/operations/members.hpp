#pragma once
// SPDX-License-Identifier: MIT

// Calls a function with every member of an aggregate, on the host and on a device, without a list of them.

#include <concepts>
#include <type_traits>

#include <engram/core/device.hpp>

namespace engram::internal {

/// Stands for a member of any type.
struct any_member {
    template <class T>
    operator T() const;
};

template <class Aggregate, class... Any>
constexpr int member_count() {
    if constexpr (requires { Aggregate{Any{}..., any_member{}}; })
        return member_count<Aggregate, Any..., any_member>();
    else
        return static_cast<int>(sizeof...(Any));
}

/// visit(member) for each of at most eleven members, in the order in which they are declared.
template <class Aggregate, class Visit>
ENGRAM_HD constexpr void for_members(Aggregate& all, Visit visit) {
    constexpr int count = member_count<std::remove_const_t<Aggregate>>();
    static_assert(count >= 1 && count <= 11, "operands: between one and eleven members");
    if constexpr (count == 1) {
        auto& [a] = all;
        visit(a);
    } else if constexpr (count == 2) {
        auto& [a, b] = all;
        visit(a), visit(b);
    } else if constexpr (count == 3) {
        auto& [a, b, c] = all;
        visit(a), visit(b), visit(c);
    } else if constexpr (count == 4) {
        auto& [a, b, c, d] = all;
        visit(a), visit(b), visit(c), visit(d);
    } else if constexpr (count == 5) {
        auto& [a, b, c, d, e] = all;
        visit(a), visit(b), visit(c), visit(d), visit(e);
    } else if constexpr (count == 6) {
        auto& [a, b, c, d, e, f] = all;
        visit(a), visit(b), visit(c), visit(d), visit(e), visit(f);
    } else if constexpr (count == 7) {
        auto& [a, b, c, d, e, f, g] = all;
        visit(a), visit(b), visit(c), visit(d), visit(e), visit(f), visit(g);
    } else if constexpr (count == 8) {
        auto& [a, b, c, d, e, f, g, h] = all;
        visit(a), visit(b), visit(c), visit(d), visit(e), visit(f), visit(g), visit(h);
    } else if constexpr (count == 9) {
        auto& [a, b, c, d, e, f, g, h, i] = all;
        visit(a), visit(b), visit(c), visit(d), visit(e), visit(f), visit(g), visit(h), visit(i);
    } else if constexpr (count == 10) {
        auto& [a, b, c, d, e, f, g, h, i, j] = all;
        visit(a), visit(b), visit(c), visit(d), visit(e), visit(f), visit(g), visit(h), visit(i), visit(j);
    } else {
        auto& [a, b, c, d, e, f, g, h, i, j, k] = all;
        visit(a), visit(b), visit(c), visit(d), visit(e), visit(f), visit(g), visit(h), visit(i), visit(j), visit(k);
    }
}

}  // namespace engram::internal
