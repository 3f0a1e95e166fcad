#pragma once
// SPDX-License-Identifier: MIT

// Reflected aggregates: weights, recurrent states and settings are plain structs whose members are known by name.
//
// A struct is a Struct of Boost.Hana, in one of two ways. Settings, which have default values, are adapted at global
// scope, before their first use; templates name their members where they define them:
//
//     namespace engram { struct lstm_settings { int hidden = 512; int layers = 1; }; }
//     ENGRAM_REFLECT(engram::lstm_settings, hidden, layers);
//
//     template <class Var>
//     struct lstm_state { BOOST_HANA_DEFINE_STRUCT(lstm_state, (Var, hidden), (Var, cell)); };
//
// A struct without members is written ENGRAM_REFLECT(type) or BOOST_HANA_DEFINE_STRUCT(type).
// BOOST_HANA_ADAPT_STRUCT does what ENGRAM_REFLECT does, but instantiates a tuple of strings for every struct that is
// adapted, used or not: a quarter of the time that engram.hpp took.
//
// The leaves of an object are what is left when reflected structs, std::array, std::vector and std::tuple are taken
// apart. Each has a path, `memory.key` or `layers.0.weight`, and they always come in the same order: that of the
// members. This is the only header that includes Hana's structs; it costs about 0.1 s of compile time.

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/hana/accessors.hpp>
#include <boost/hana/adapt_struct.hpp>
#include <boost/hana/concept/struct.hpp>
#include <boost/hana/define_struct.hpp>
#include <boost/hana/first.hpp>
#include <boost/hana/pair.hpp>
#include <boost/hana/second.hpp>
#include <boost/hana/string.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/unpack.hpp>

#include <engram/core/error.hpp>

// Rescans its arguments 85 times, once for each member that is left.
#define ENGRAM_RESCAN(...) ENGRAM_RESCAN_21(ENGRAM_RESCAN_21(ENGRAM_RESCAN_21(ENGRAM_RESCAN_21(__VA_ARGS__))))
#define ENGRAM_RESCAN_21(...) ENGRAM_RESCAN_5(ENGRAM_RESCAN_5(ENGRAM_RESCAN_5(ENGRAM_RESCAN_5(__VA_ARGS__))))
#define ENGRAM_RESCAN_5(...) ENGRAM_RESCAN_1(ENGRAM_RESCAN_1(ENGRAM_RESCAN_1(ENGRAM_RESCAN_1(__VA_ARGS__))))
#define ENGRAM_RESCAN_1(...) __VA_ARGS__
#define ENGRAM_NO_ARGUMENTS ()

#define ENGRAM_MEMBERS(NAME, ...)                                                                            \
    ::boost::hana::make_pair(BOOST_HANA_STRING(#NAME), ::engram::internal::member_accessor<&Struct::NAME>{}) \
        __VA_OPT__(, ENGRAM_MORE_MEMBERS ENGRAM_NO_ARGUMENTS(__VA_ARGS__))
#define ENGRAM_MORE_MEMBERS() ENGRAM_MEMBERS

/// Makes a struct known to Boost.Hana by its members. apply() is a template, so that what is never taken apart costs
/// nothing.
#define ENGRAM_REFLECT(TYPE, ...)                                                                     \
    template <>                                                                                       \
    struct boost::hana::accessors_impl<TYPE> {                                                        \
        template <class Struct = TYPE>                                                                \
        static constexpr auto apply() {                                                               \
            return ::boost::hana::make_tuple(__VA_OPT__(ENGRAM_RESCAN(ENGRAM_MEMBERS(__VA_ARGS__)))); \
        }                                                                                             \
    }

namespace engram {

/// A struct whose members Boost.Hana can name.
template <class T>
concept reflected = boost::hana::Struct<std::remove_cvref_t<T>>::value;

/// Calls f(std::string_view name, member&) for every member, in order; members of a const object are const.
template <class T, class F>
constexpr void for_each_member(T&& object, F&& f) {
    static_assert(reflected<T>,
                  "engram: this type is not reflected: add ENGRAM_REFLECT(type, members...) after it, at global "
                  "scope, or define it with BOOST_HANA_DEFINE_STRUCT");
    if constexpr (reflected<T>) {
        namespace hana = boost::hana;
        hana::unpack(hana::accessors<std::remove_cvref_t<T>>(), [&](const auto&... members) {
            (f(std::string_view(hana::first(members).c_str()), hana::second(members)(object)), ...);
        });
    }
}

/// Names of the members of a reflected type.
template <reflected T>
std::vector<std::string> member_names() {
    return boost::hana::unpack(boost::hana::accessors<T>(), [](const auto&... members) {
        return std::vector<std::string>{boost::hana::first(members).c_str()...};
    });
}

namespace internal {

/// What finds a member in an object of its struct.
template <auto Pointer>
struct member_accessor {
    template <class T>
    constexpr decltype(auto) operator()(T&& object) const {
        return std::forward<T>(object).*Pointer;
    }
};

template <class T>
inline constexpr bool is_sequence = false;
template <class T, class A>
inline constexpr bool is_sequence<std::vector<T, A>> = !std::is_same_v<T, bool>;  // its elements have no address
template <class T, std::size_t N>
inline constexpr bool is_sequence<std::array<T, N>> = true;

template <class T>
inline constexpr bool is_tuple = false;
template <class... Parts>
inline constexpr bool is_tuple<std::tuple<Parts...>> = true;

inline std::string join(const std::string& prefix, std::string_view name) {
    return prefix.empty() ? std::string(name) : prefix + "." + std::string(name);
}

}  // namespace internal

/// Calls f(const std::string& path, leaf&) for every leaf, in order; paths start with `prefix` (none when it is empty).
/// An object that cannot be taken apart is its own only leaf, at the path `prefix`.
template <class T, class F>
void for_each_leaf(T&& object, const std::string& prefix, F&& f) {
    using type = std::remove_cvref_t<T>;
    if constexpr (reflected<type>) {
        for_each_member(object, [&](std::string_view name, auto& member) {
            for_each_leaf(member, internal::join(prefix, name), f);
        });
    } else if constexpr (internal::is_sequence<type>) {
        for (std::size_t i = 0; i < object.size(); ++i)
            for_each_leaf(object[i], internal::join(prefix, std::to_string(i)), f);
    } else if constexpr (internal::is_tuple<type>) {
        std::size_t i = 0;
        std::apply([&](auto&... parts) { (for_each_leaf(parts, internal::join(prefix, std::to_string(i++)), f), ...); },
                   object);
    } else {
        f(prefix, object);
    }
}

/// Whether a part of a path is the place of an element in a list or tuple, not a member's name.
inline bool is_place(std::string_view part) {
    return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// A leaf's path up to the last element of a list on it: "layers.1" of "layers.1.h"; empty where there is none.
inline std::string element_of(const std::string& path) {
    std::size_t end = path.size();
    while (end > 0) {
        const std::size_t dot = path.rfind('.', end - 1), begin = dot == path.npos ? 0 : dot + 1;
        if (is_place(std::string_view(path).substr(begin, end - begin))) return path.substr(0, end);
        end = dot == path.npos ? 0 : dot;
    }
    return "";
}

/// Number of leaves.
template <class T>
int leaf_count(const T& object) {
    int count = 0;
    for_each_leaf(object, "", [&](const std::string&, const auto&) { ++count; });
    return count;
}

/// Paths of the leaves, in order.
template <class T>
std::vector<std::string> leaf_paths(const T& object, const std::string& prefix = "") {
    std::vector<std::string> paths;
    for_each_leaf(object, prefix, [&](const std::string& path, const auto&) { paths.push_back(path); });
    return paths;
}

/// The same structure with every leaf replaced by f(leaf).
template <class T, class F>
T map_leaves(T object, F&& f) {
    for_each_leaf(object, "", [&](const std::string&, auto& leaf) { leaf = f(std::as_const(leaf)); });
    return object;
}

/// The leaves in order; each must convert to Leaf.
template <class Leaf, class T>
std::vector<Leaf> flatten(const T& object) {
    std::vector<Leaf> leaves;
    for_each_leaf(object, "", [&](const std::string&, const auto& leaf) { leaves.push_back(leaf); });
    return leaves;
}

/// The inverse of flatten: the structure of `like` with `leaves` in order. Throws when their number differs.
template <class T, class Leaf>
T unflatten(T like, const std::vector<Leaf>& leaves) {
    const int expected = leaf_count(like);
    require(expected == static_cast<int>(leaves.size()), "unflatten: got ", leaves.size(), " leaves, expected ",
            expected);
    std::size_t next = 0;
    for_each_leaf(like, "", [&](const std::string&, auto& leaf) { leaf = leaves[next++]; });
    return like;
}

}  // namespace engram
