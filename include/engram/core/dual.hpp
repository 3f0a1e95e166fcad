#pragma once
// SPDX-License-Identifier: MIT

// dual<Value, Mask>: a number with its derivatives to those inputs that it depends on, bit i of Mask for input i.
//
// The mask is part of the type, so a derivative that is zero by structure costs nothing: in an LSTM cell the output
// gate carries one slope, not five. Value is a float, a double or a pack. Write functors with `auto` locals: every
// operation returns its own type, whose mask is the union of its operands' masks.
//
// Conventions at kinks: at a tie max and min take the slope of their first operand; abs'(0) = 1, relu'(0) = 0.

#include <array>
#include <bit>
#include <concepts>
#include <type_traits>
#include <utility>

#include "engram/core/device.hpp"
#include "engram/core/pack.hpp"

namespace engram {

/// Position among the derivatives stored for `mask` of input `input`.
constexpr int slope_index(unsigned mask, int input) {
    return std::popcount(mask & ((1u << input) - 1u));
}

/// The input whose derivative is stored at position `index`.
constexpr int slope_input(unsigned mask, int index) {
    for (; index > 0; --index) mask &= mask - 1;
    return std::countr_zero(mask);
}

template <class Value, unsigned Mask>
struct dual;

template <class Number>
inline constexpr bool is_dual = false;
template <class Value, unsigned Mask>
inline constexpr bool is_dual<dual<Value, Mask>> = true;

template <class Value, unsigned Mask>
struct dual {
    using value_type = Value;
    static constexpr unsigned mask = Mask;
    static constexpr int size = std::popcount(Mask);

    Value primal;
    std::array<Value, size> slopes;  // in the order of the inputs

    dual() = default;
    ENGRAM_HD constexpr dual(const Value& v, const std::array<Value, size>& s) : primal(v), slopes(s) {}

    /// A constant depends on nothing: its slopes are zero.
    template <class Constant>
        requires(!is_dual<Constant> && std::convertible_to<Constant, Value>)
    ENGRAM_HD constexpr dual(const Constant& c) : primal(static_cast<Value>(c)), slopes{} {}

    /// A number that depends on fewer inputs.
    template <unsigned Fewer>
        requires(Fewer != Mask && (Fewer & ~Mask) == 0)
    ENGRAM_HD constexpr dual(const dual<Value, Fewer>& d) : dual(widen(d, std::make_integer_sequence<int, size>{})) {}

    template <class Other>
    ENGRAM_HD constexpr dual& operator+=(const Other& b) {
        return *this = *this + b;
    }
    template <class Other>
    ENGRAM_HD constexpr dual& operator-=(const Other& b) {
        return *this = *this - b;
    }
    template <class Other>
    ENGRAM_HD constexpr dual& operator*=(const Other& b) {
        return *this = *this * b;
    }
    template <class Other>
    ENGRAM_HD constexpr dual& operator/=(const Other& b) {
        return *this = *this / b;
    }

private:
    template <unsigned Fewer, int... K>
    static ENGRAM_HD constexpr dual widen(const dual<Value, Fewer>& d, std::integer_sequence<int, K...>);
};

template <class Number>
concept dual_number = is_dual<Number>;

/// What may stand beside a dual without being one: its value type and everything that converts to it.
template <class Number, class Value>
concept constant_of = !is_dual<Number> && std::convertible_to<Number, Value>;

/// Derivative to input I, zero where there is no dependence.
template <int I, class Number>
ENGRAM_HD constexpr auto derivative(const Number& x) {
    if constexpr (!is_dual<Number>)
        return Number(0);
    else if constexpr ((Number::mask >> I & 1u) == 0)
        return typename Number::value_type(0);
    else
        return x.slopes[slope_index(Number::mask, I)];
}

/// Input I of a functor: its derivative to itself is one, to all others zero.
template <int I, class Value>
ENGRAM_HD constexpr dual<Value, 1u << I> make_input(const Value& v) {
    return {v, std::array<Value, 1>{Value(1)}};
}

template <class Value, unsigned Mask>
ENGRAM_HD constexpr Value value(const dual<Value, Mask>& x) {
    return x.primal;
}

/// The same value, taken as a constant: no derivative flows through it.
template <class Number>
ENGRAM_HD constexpr auto constant(const Number& x) {
    return value(x);
}
template <class Number>
ENGRAM_HD constexpr auto stop(const Number& x) {
    return value(x);
}

template <class Value, unsigned Mask>
template <unsigned Fewer, int... K>
ENGRAM_HD constexpr dual<Value, Mask> dual<Value, Mask>::widen(const dual<Value, Fewer>& d,
                                                               std::integer_sequence<int, K...>) {
    return {d.primal, {derivative<slope_input(Mask, K)>(d)...}};
}

// The chain rule, in two forms: every function and operator below is one line through them.

template <class Value, unsigned Mask, int... K>
ENGRAM_HD constexpr dual<Value, Mask> chained(const Value& v, const Value& slope, const dual<Value, Mask>& a,
                                              std::integer_sequence<int, K...>) {
    return {v, {slope * a.slopes[K]...}};
}

/// f(a), given f's value and slope.
template <class Value, unsigned Mask>
ENGRAM_HD constexpr dual<Value, Mask> chain(const Value& v, const Value& slope, const dual<Value, Mask>& a) {
    return chained(v, slope, a, std::make_integer_sequence<int, dual<Value, Mask>::size>{});
}

/// One derivative of a result of two operands: a rule joins both slopes, or treats the only one.
template <int I, class A, class B, class Rule>
ENGRAM_HD constexpr auto joined(const A& a, const B& b, const Rule& rule) {
    constexpr bool in_a = (A::mask >> I & 1u) != 0, in_b = (B::mask >> I & 1u) != 0;
    if constexpr (in_a && in_b)
        return rule.both(derivative<I>(a), derivative<I>(b));
    else if constexpr (in_a)
        return rule.left(derivative<I>(a));
    else
        return rule.right(derivative<I>(b));
}

template <class Value, unsigned A, unsigned B, class Rule, int... K>
ENGRAM_HD constexpr dual<Value, (A | B)> join(const Value& v, const dual<Value, A>& a, const dual<Value, B>& b,
                                              const Rule& rule, std::integer_sequence<int, K...>) {
    return {v, {joined<slope_input(A | B, K)>(a, b, rule)...}};
}

template <class Value, unsigned A, unsigned B, class Rule>
ENGRAM_HD constexpr dual<Value, (A | B)> join(const Value& v, const dual<Value, A>& a, const dual<Value, B>& b,
                                              const Rule& rule) {
    return join(v, a, b, rule, std::make_integer_sequence<int, std::popcount(A | B)>{});
}

namespace rules {
struct sum {
    template <class V>
    ENGRAM_HD constexpr V both(const V& da, const V& db) const {
        return da + db;
    }
    template <class V>
    ENGRAM_HD constexpr V left(const V& da) const {
        return da;
    }
    template <class V>
    ENGRAM_HD constexpr V right(const V& db) const {
        return db;
    }
};
struct difference {
    template <class V>
    ENGRAM_HD constexpr V both(const V& da, const V& db) const {
        return da - db;
    }
    template <class V>
    ENGRAM_HD constexpr V left(const V& da) const {
        return da;
    }
    template <class V>
    ENGRAM_HD constexpr V right(const V& db) const {
        return -db;
    }
};
/// da * by_a + db * by_b, with by_a and by_b the partial derivatives.
template <class V>
struct weighted {
    V by_a, by_b;
    ENGRAM_HD constexpr V both(const V& da, const V& db) const { return multiply_add(da, by_a, V(db * by_b)); }
    ENGRAM_HD constexpr V left(const V& da) const { return da * by_a; }
    ENGRAM_HD constexpr V right(const V& db) const { return db * by_b; }
};
template <class V, class Condition>
struct choice {
    Condition condition;
    ENGRAM_HD constexpr V both(const V& da, const V& db) const { return select(condition, da, db); }
    ENGRAM_HD constexpr V left(const V& da) const { return select(condition, da, V(0)); }
    ENGRAM_HD constexpr V right(const V& db) const { return select(condition, V(0), db); }
};
}  // namespace rules

template <class V, unsigned A, unsigned B>
ENGRAM_HD constexpr auto operator+(const dual<V, A>& a, const dual<V, B>& b) {
    return join(V(a.primal + b.primal), a, b, rules::sum{});
}
template <class V, unsigned A, unsigned B>
ENGRAM_HD constexpr auto operator-(const dual<V, A>& a, const dual<V, B>& b) {
    return join(V(a.primal - b.primal), a, b, rules::difference{});
}
template <class V, unsigned A, unsigned B>
ENGRAM_HD constexpr auto operator*(const dual<V, A>& a, const dual<V, B>& b) {
    return join(V(a.primal * b.primal), a, b, rules::weighted<V>{b.primal, a.primal});
}
template <class V, unsigned A, unsigned B>
ENGRAM_HD constexpr auto operator/(const dual<V, A>& a, const dual<V, B>& b) {
    const V inverse = reciprocal(b.primal), quotient = a.primal / b.primal;
    return join(quotient, a, b, rules::weighted<V>{inverse, -quotient * inverse});
}
template <class V, unsigned A>
ENGRAM_HD constexpr auto operator-(const dual<V, A>& a) {
    return chain(V(-a.primal), V(-1), a);
}

template <class V, unsigned A, constant_of<V> C>
ENGRAM_HD constexpr dual<V, A> operator+(const dual<V, A>& a, const C& c) {
    return {a.primal + static_cast<V>(c), a.slopes};
}
template <class V, unsigned A, constant_of<V> C>
ENGRAM_HD constexpr dual<V, A> operator+(const C& c, const dual<V, A>& a) {
    return a + c;
}
template <class V, unsigned A, constant_of<V> C>
ENGRAM_HD constexpr dual<V, A> operator-(const dual<V, A>& a, const C& c) {
    return {a.primal - static_cast<V>(c), a.slopes};
}
template <class V, unsigned A, constant_of<V> C>
ENGRAM_HD constexpr dual<V, A> operator-(const C& c, const dual<V, A>& a) {
    return chain(V(static_cast<V>(c) - a.primal), V(-1), a);
}
template <class V, unsigned A, constant_of<V> C>
ENGRAM_HD constexpr dual<V, A> operator*(const dual<V, A>& a, const C& c) {
    return chain(V(a.primal * static_cast<V>(c)), static_cast<V>(c), a);
}
template <class V, unsigned A, constant_of<V> C>
ENGRAM_HD constexpr dual<V, A> operator*(const C& c, const dual<V, A>& a) {
    return a * c;
}
template <class V, unsigned A, constant_of<V> C>
ENGRAM_HD constexpr dual<V, A> operator/(const dual<V, A>& a, const C& c) {
    return chain(V(a.primal / static_cast<V>(c)), V(reciprocal(static_cast<V>(c))), a);
}
template <class V, unsigned A, constant_of<V> C>
ENGRAM_HD constexpr dual<V, A> operator/(const C& c, const dual<V, A>& a) {
    const V quotient = static_cast<V>(c) / a.primal;
    return chain(quotient, V(-quotient / a.primal), a);
}

/// The value type of two operands of which one at least is a dual.
template <class A, class B>
struct common_dual : common_dual<B, A> {};
template <class V, unsigned Mask, class B>
struct common_dual<dual<V, Mask>, B> {
    using type = V;
};
template <class A, class B>
using common_value = typename common_dual<A, B>::type;

template <class A, class B>
concept either_dual = is_dual<A> || is_dual<B>;

template <class V, class Number>
ENGRAM_HD constexpr auto as_dual(const Number& x) {
    if constexpr (is_dual<Number>)
        return x;
    else
        return dual<V, 0>(x);
}

template <class A, class B>
requires either_dual<A, B> ENGRAM_HD constexpr auto operator<(const A& a, const B& b) {
    using V = common_value<A, B>;
    return V(value(a)) < V(value(b));
}
template <class A, class B>
requires either_dual<A, B> ENGRAM_HD constexpr auto operator<=(const A& a, const B& b) {
    using V = common_value<A, B>;
    return V(value(a)) <= V(value(b));
}
template <class A, class B>
requires either_dual<A, B> ENGRAM_HD constexpr auto operator>(const A& a, const B& b) {
    using V = common_value<A, B>;
    return V(value(a)) > V(value(b));
}
template <class A, class B>
requires either_dual<A, B> ENGRAM_HD constexpr auto operator>=(const A& a, const B& b) {
    using V = common_value<A, B>;
    return V(value(a)) >= V(value(b));
}
template <class A, class B>
requires either_dual<A, B> ENGRAM_HD constexpr auto operator==(const A& a, const B& b) {
    using V = common_value<A, B>;
    return V(value(a)) == V(value(b));
}

template <class Condition, class A, class B>
requires either_dual<A, B> ENGRAM_HD constexpr auto select(const Condition& condition, const A& a, const B& b) {
    using V = common_value<A, B>;
    const V v = select(condition, V(value(a)), V(value(b)));
    return join(v, as_dual<V>(a), as_dual<V>(b), rules::choice<V, Condition>{condition});
}
template <class A, class B>
requires either_dual<A, B> ENGRAM_HD constexpr auto max(const A& a, const B& b) {
    using V = common_value<A, B>;
    const V x = V(value(a)), y = V(value(b));
    return join(max(x, y), as_dual<V>(a), as_dual<V>(b), rules::choice<V, decltype(x >= y)>{x >= y});
}
template <class A, class B>
requires either_dual<A, B> ENGRAM_HD constexpr auto min(const A& a, const B& b) {
    using V = common_value<A, B>;
    const V x = V(value(a)), y = V(value(b));
    return join(min(x, y), as_dual<V>(a), as_dual<V>(b), rules::choice<V, decltype(x <= y)>{x <= y});
}

template <class V, unsigned A>
ENGRAM_HD constexpr auto exp(const dual<V, A>& x) {
    const V y = exp(x.primal);
    return chain(y, y, x);
}
template <class V, unsigned A>
ENGRAM_HD constexpr auto log(const dual<V, A>& x) {
    return chain(V(log(x.primal)), V(reciprocal(x.primal)), x);
}
template <class V, unsigned A>
ENGRAM_HD constexpr auto tanh(const dual<V, A>& x) {
    const V y = tanh(x.primal);
    return chain(y, V(multiply_add(V(-y), y, V(1))), x);
}
template <class V, unsigned A>
ENGRAM_HD constexpr auto logistic(const dual<V, A>& x) {
    const V y = logistic(x.primal);
    return chain(y, V(y * (V(1) - y)), x);
}
template <class V, unsigned A>
ENGRAM_HD constexpr auto softplus(const dual<V, A>& x) {
    return chain(V(softplus(x.primal)), V(logistic(x.primal)), x);
}
template <class V, unsigned A>
ENGRAM_HD constexpr auto sqrt(const dual<V, A>& x) {
    const V y = sqrt(x.primal);
    return chain(y, V(V(0.5) / y), x);
}
template <class V, unsigned A>
ENGRAM_HD constexpr auto square(const dual<V, A>& x) {
    return chain(V(x.primal * x.primal), V(x.primal + x.primal), x);
}
template <class V, unsigned A>
ENGRAM_HD constexpr auto abs(const dual<V, A>& x) {
    return chain(V(abs(x.primal)), V(select(x.primal < V(0), V(-1), V(1))), x);
}
template <class V, unsigned A>
ENGRAM_HD constexpr auto relu(const dual<V, A>& x) {
    return chain(V(relu(x.primal)), V(select(x.primal > V(0), V(1), V(0))), x);
}
template <class V, unsigned A>
ENGRAM_HD constexpr auto reciprocal(const dual<V, A>& x) {
    const V y = reciprocal(x.primal);
    return chain(y, V(-y * y), x);
}

}  // namespace engram
