#pragma once
// SPDX-License-Identifier: MIT

// choice<"rotary", "learned">: a setting that is one of some words.
//
//     choice<"rotary", "learned"> positions;             // "rotary", where nothing else is said
//     if (s.positions == "learned") ...                  // "learnt" would not compile
//
// The command line and config.json show the words, and refuse any other one with the nearest (core/settings.hpp).

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include <engram/core/error.hpp>

namespace engram {

namespace internal {

/// A text among the arguments of a template.
template <std::size_t N>
struct fixed_text {
    char letters[N];
    consteval fixed_text(const char (&text)[N]) { std::copy_n(text, N, letters); }
    constexpr std::string_view view() const { return {letters, N - 1}; }
};

/// Called while compiling, where it is an error that names itself.
inline void this_setting_has_no_such_word() {}

}  // namespace internal

/// A setting that is one of some words, the first of them unless another one is said. A word that is none of them does
/// not compile: choice<"rotary", "learned"> positions = "learned";
template <internal::fixed_text... Words>
class choice {
public:
    using of_words = choice;
    static constexpr std::array<std::string_view, sizeof...(Words)> words{Words.view()...};

    constexpr choice() = default;
    template <std::size_t N>
    consteval choice(const char (&word)[N]) : place_(place_of({word, N - 1})) {
        if (place_ == words.size()) internal::this_setting_has_no_such_word();
    }
    /// The word that somebody wrote for a setting of this name; throws, with the nearest, where it is none of them.
    choice(std::string_view setting, std::string_view word) : place_(place_of(word)) {
        require_known(setting, word, words);
    }

    constexpr std::string_view word() const { return words[place_]; }
    constexpr std::size_t place() const { return place_; }
    friend constexpr bool operator==(choice, choice) = default;

private:
    static constexpr std::size_t place_of(std::string_view word) {
        std::size_t place = 0;
        while (place < words.size() && words[place] != word) ++place;
        return place;
    }
    std::size_t place_ = 0;
};

/// Whether T is a choice.
template <class T>
concept is_choice = requires {
    T::words[0];
    typename T::of_words;
};

}  // namespace engram
