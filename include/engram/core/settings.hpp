#pragma once
// SPDX-License-Identifier: MIT

// Settings: reflected aggregates with default values, read from and written to text by dotted name.
//
//     assign(settings, "memory.slots=2048");   // --set memory.slots=2048
//
// A setting is an int, std::int64_t, float, double, bool, choice<"some", "words">, std::string or std::vector<int>; a
// reflected member is a group of settings. An aggregate that defines `void check() const` is checked after every
// change, and the change is undone when it throws: settings are valid whatever was asked of them. Errors: an unknown
// name (with the nearest valid one), a text of the wrong type, a number that its type cannot hold.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <engram/core/choice.hpp>
#include <engram/core/error.hpp>
#include <engram/core/reflection.hpp>

namespace engram {

/// The types that a setting may have.
template <class T>
concept setting_type = std::is_same_v<T, int> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, float> ||
    std::is_same_v<T, double> || std::is_same_v<T, bool> || std::is_same_v<T, std::string> ||
    std::is_same_v<T, std::vector<int>> || is_choice<T>;

/// What a setting of type T is, in words: "an integer", "a number"...
template <setting_type T>
constexpr const char* type_in_words() {
    if constexpr (std::is_same_v<T, bool>)
        return "true or false";
    else if constexpr (std::is_integral_v<T>)
        return "an integer";
    else if constexpr (std::is_floating_point_v<T>)
        return "a number";
    else if constexpr (is_choice<T>)
        return "a word";
    else if constexpr (std::is_same_v<T, std::string>)
        return "a text";
    else
        return "a list of integers such as 16,32,32";
}

/// Calls f(const std::string& name, value&) for every setting, in order.
template <reflected S, class F>
void for_each_setting(S&& settings, F&& f, const std::string& prefix = "") {
    for_each_member(settings, [&](std::string_view member, auto& value) {
        using type = std::remove_cvref_t<decltype(value)>;
        const std::string name = internal::join(prefix, member);
        if constexpr (reflected<type>) {
            for_each_setting(value, f, name);
        } else {
            static_assert(setting_type<type>,
                          "engram: a setting is an int, std::int64_t, float, double, bool, choice<...>, std::string, "
                          "std::vector<int>, or a reflected group of settings");
            f(name, value);
        }
    });
}

/// Dotted names of all settings, in order.
template <reflected S>
std::vector<std::string> names(const S& settings) {
    std::vector<std::string> all;
    for_each_setting(settings, [&](const std::string& name, const auto&) { all.push_back(name); });
    return all;
}

/// The shortest text from which `parse` gives the same value.
template <setting_type T>
std::string to_text(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
        return value ? "true" : "false";
    } else if constexpr (std::is_arithmetic_v<T>) {
        char buffer[64];
        return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
    } else if constexpr (is_choice<T>) {
        return std::string(value.word());
    } else if constexpr (std::is_same_v<T, std::string>) {
        return value;
    } else {
        std::string text;
        for (const int number : value) {
            if (!text.empty()) text += ',';
            text += std::to_string(number);
        }
        return text;
    }
}

/// The value that `text` means; `name` is what errors call it.
template <setting_type T>
T parse(std::string_view name, std::string_view text) {
    const auto wrong = [&] { fail(name, ": expected ", type_in_words<T>(), ", got '", text, "'"); };
    if constexpr (std::is_same_v<T, bool>) {
        if (text == "true" || text == "1") return true;
        if (text != "false" && text != "0") wrong();
        return false;
    } else if constexpr (std::is_arithmetic_v<T>) {
        T value{};
        const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool whole = end == text.data() + text.size();
        require(!(whole && status == std::errc::result_out_of_range), name, ": ", text, " is out of range");
        if (status != std::errc{} || !whole) wrong();
        if constexpr (std::is_floating_point_v<T>) {
            if (!std::isfinite(value)) wrong();
        }
        return value;
    } else if constexpr (is_choice<T>) {
        return T(name, text);
    } else if constexpr (std::is_same_v<T, std::string>) {
        return std::string(text);
    } else {
        std::vector<int> list;
        std::string_view rest = text;
        while (!rest.empty()) {
            const std::size_t comma = rest.find(',');
            int number = 0;
            const std::string_view item = rest.substr(0, comma);
            const auto [end, status] = std::from_chars(item.data(), item.data() + item.size(), number);
            if (status != std::errc{} || end != item.data() + item.size()) wrong();
            list.push_back(number);
            if (comma == std::string_view::npos) break;
            rest.remove_prefix(comma + 1);
            if (rest.empty()) wrong();
        }
        return list;
    }
}

/// Calls check() on every group that has one, inner groups first.
template <reflected S>
void check_settings(const S& settings) {
    for_each_member(settings, [](std::string_view, const auto& value) {
        if constexpr (reflected<std::remove_cvref_t<decltype(value)>>) check_settings(value);
    });
    if constexpr (requires { settings.check(); }) settings.check();
}

/// Text of the setting called `name`.
template <reflected S>
std::string get(const S& settings, std::string_view name) {
    require_known("setting", name, names(settings));
    std::string text;
    for_each_setting(settings, [&](const std::string& candidate, const auto& value) {
        if (candidate == name) text = to_text(value);
    });
    return text;
}

namespace internal {

/// Where a setting's value is, whatever its type.
struct place {
    void* value;
    void (*assign)(void* value, const std::string& name, const std::string& text);
};

template <setting_type T>
void assign_text(void* value, const std::string& name, const std::string& text) {
    *static_cast<T*>(value) = parse<T>(name, text);
}

}  // namespace internal

/// Gives settings the values that texts mean, in order, and checks the outcome: pairs that are valid only together may
/// be set together. On error nothing changes.
template <reflected S>
void set(S& settings, const std::vector<std::pair<std::string, std::string>>& pairs) {
    S changed = settings;
    std::vector<std::string> known;
    std::vector<internal::place> places;
    for_each_setting(changed, [&](const std::string& name, auto& value) {
        known.push_back(name);
        places.push_back({&value, &internal::assign_text<std::remove_cvref_t<decltype(value)>>});
    });
    for (const auto& [name, text] : pairs) {
        require_known("setting", name, known);
        const auto at = std::find(known.begin(), known.end(), name) - known.begin();
        const internal::place& found = places[static_cast<std::size_t>(at)];
        found.assign(found.value, name, text);
    }
    check_settings(changed);
    settings = std::move(changed);
}

/// Gives one setting the value that a text means.
template <reflected S>
void set(S& settings, std::string_view name, std::string_view text) {
    set(settings, {{std::string(name), std::string(text)}});
}

/// The same for texts `name=value`, as written after --set.
template <reflected S>
void assign(S& settings, const std::vector<std::string>& assignments) {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const std::string& assignment : assignments) {
        const std::size_t equals = assignment.find('=');
        require(equals != std::string::npos, "expected name=value, got '", assignment, "'");
        pairs.emplace_back(assignment.substr(0, equals), assignment.substr(equals + 1));
    }
    set(settings, pairs);
}

/// The same for one text `name=value`.
template <reflected S>
void assign(S& settings, std::string_view assignment) {
    assign(settings, std::vector<std::string>{std::string(assignment)});
}

}  // namespace engram
