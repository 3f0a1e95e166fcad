#pragma once
// SPDX-License-Identifier: MIT

// JSON files, and settings to and from JSON: {"rate": 0.001, "memory": {"slots": 1024}}.
//
// Reading is strict: a key that occurs twice, a key that is no setting (the nearest one is named) and a value of the
// wrong type are errors, and then nothing changes. Settings that are not mentioned keep their value. Needs nlohmann's
// header, which is why engram.hpp leaves this one out.

#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <engram/core/error.hpp>
#include <engram/core/settings.hpp>
#include <engram/io/file.hpp>

namespace engram {

/// JSON objects keep the order of their keys.
using json = nlohmann::ordered_json;

/// Whoever walks through a value may recurse: nothing here is nested deeper.
inline constexpr int deepest_json = 100;

/// The value that `text` means; `source` is what errors call it, for example a file's name. This and json_text() are
/// templates so that a build can compile nlohmann's parser once (ENGRAM_COMPILED_JSON); in others they are as inline
/// functions.
template <typename Json = json>
Json parse_json(std::string_view text, std::string_view source) {
    std::vector<std::set<std::string>> open_objects;
    const auto watch = [&](int depth, nlohmann::detail::parse_event_t event, Json& value) {
        using event_t = nlohmann::detail::parse_event_t;
        require(depth <= deepest_json, source, ": nested deeper than ", deepest_json, " levels");
        if (event == event_t::object_start) open_objects.emplace_back();
        if (event == event_t::object_end) open_objects.pop_back();
        if (event == event_t::key) {
            const auto key = value.template get<std::string>();
            require(open_objects.back().insert(key).second, source, ": the key '", key, "' occurs twice");
        }
        return true;
    };
    try {
        return Json::parse(text, watch);
    } catch (const nlohmann::json::parse_error& problem) {
        require(problem.byte <= text.size(), source, ": not valid JSON: it ends too early, at byte ", text.size());
        fail(source, ": not valid JSON at byte ", problem.byte, " of ", text.size());
    } catch (const nlohmann::json::exception&) {
        fail(source, ": not valid JSON: a number is out of range");
    }
}

#ifdef ENGRAM_COMPILED_JSON  // who defines it links both: programs/json.cpp
extern template json parse_json(std::string_view, std::string_view);
#endif

/// A file's content; throws a sentence with the place of what cannot be read.
inline json read_json(const std::string& path) {
    const bytes content = read_file(path);
    return parse_json({reinterpret_cast<const char*>(content.data()), content.size()}, path);
}

/// Text of a JSON value, indented, ending in a newline. Bytes that are not UTF-8 are replaced by U+FFFD.
template <typename Json = json>
std::string json_text(const std::type_identity_t<Json>& value) {
    return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

#ifdef ENGRAM_COMPILED_JSON
extern template std::string json_text(const json&);
#endif

namespace internal {

template <typename Visit>
void for_each_leaf(const json& value, std::string& name, Visit& visit) {
    if (!value.is_object()) return visit(std::as_const(name), value);
    const std::size_t outside = name.size();
    for (const auto& item : value.items()) {
        if (outside > 0) name += '.';
        name += item.key();
        for_each_leaf(item.value(), name, visit);
        name.resize(outside);
    }
}

}  // namespace internal

/// Calls visit(name, value) for each value below `object` that is no object, by its dotted name ("memory.slots"), in
/// order; a list is one value.
template <typename Visit>
void for_each_leaf(const json& object, Visit visit) {
    std::string name;
    internal::for_each_leaf(object, name, visit);
}

/// A value as a line of settings has it: a text without quotes, all others as JSON.
inline std::string json_word(const json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Writes the file whole or not at all.
inline void write_json(const std::string& path, const json& value) {
    write_file(path, json_text(value));
}

namespace internal {

template <setting_type T>
T setting_from_json(const std::string& name, const json& value) {
    const auto wrong = [&] {
        fail(name, ": expected ", type_in_words<T>(), ", got ",
             value.dump(-1, ' ', false, json::error_handler_t::replace));
    };
    if constexpr (std::is_same_v<T, bool>) {
        if (!value.is_boolean()) wrong();
        return value.get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
        if (!value.is_number_integer()) wrong();
        const bool fits = value.is_number_unsigned()
                              ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<T>::max())
                              : value.get<std::int64_t>() >= std::numeric_limits<T>::min();
        require(fits, name, ": ", value.dump(), " is out of range");
        return value.get<T>();
    } else if constexpr (std::is_floating_point_v<T>) {
        if (!value.is_number()) wrong();
        const double number = value.get<double>();
        require(std::abs(number) <= static_cast<double>(std::numeric_limits<T>::max()), name, ": ", value.dump(),
                " is out of range");
        return static_cast<T>(number);
    } else if constexpr (is_choice<T>) {
        if (!value.is_string()) wrong();
        return T(name, value.get<std::string>());
    } else if constexpr (std::is_same_v<T, std::string>) {
        if (!value.is_string()) wrong();
        return value.get<std::string>();
    } else {
        if (!value.is_array()) wrong();
        std::vector<int> list;
        for (std::size_t i = 0; i < value.size(); ++i)
            list.push_back(setting_from_json<int>(join(name, std::to_string(i)), value[i]));
        return list;
    }
}

template <reflected S>
void settings_from_json(S& settings, const json& object, const std::string& prefix) {
    if (!object.is_object())
        fail(prefix.empty() ? "settings" : prefix, ": expected an object, got ",
             object.dump(-1, ' ', false, json::error_handler_t::replace));
    std::vector<std::string> known;
    for (const std::string& member : member_names<S>()) known.push_back(join(prefix, member));
    for (const auto& item : object.items()) {
        const std::string name = join(prefix, item.key());
        require_known("setting", name, known);
        for_each_member(settings, [&](std::string_view member, auto& value) {
            using type = std::remove_cvref_t<decltype(value)>;
            if (member != item.key()) return;
            if constexpr (reflected<type>)
                settings_from_json(value, item.value(), name);
            else
                value = setting_from_json<type>(name, item.value());
        });
    }
}

}  // namespace internal

/// A float is written with its own few digits: 0.001, not 0.0010000000474974513.
template <reflected S>
json settings_to_json(const S& settings) {
    json object = json::object();
    for_each_member(settings, [&](std::string_view member, const auto& value) {
        using type = std::remove_cvref_t<decltype(value)>;
        json& place = object[std::string(member)];
        if constexpr (reflected<type>)
            place = settings_to_json(value);
        else if constexpr (std::is_same_v<type, float>)
            place = parse<double>(member, to_text(value));
        else if constexpr (is_choice<type>)
            place = to_text(value);
        else
            place = value;
    });
    return object;
}

/// Changes the settings that `object` mentions and checks the outcome. On error nothing changes.
template <reflected S>
void settings_from_json(S& settings, const json& object) {
    S changed = settings;
    internal::settings_from_json(changed, object, "");
    check_settings(changed);
    settings = std::move(changed);
}

}  // namespace engram
