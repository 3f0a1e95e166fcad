#pragma once
// SPDX-License-Identifier: MIT

// The one exception of the library: a sentence that says what was wrong, where, and what was expected.

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <engram/version.hpp>

namespace engram {

/// Bad input: shapes, names, files, numbers. Programs print `what()` and exit with code 2.
struct error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// One part of a message: anything that streams, of whatever type. What prints it is compiled once for its type, and
/// nothing for each combination of types that some message has.
class message_part {
public:
    template <class T>
    message_part(const T& value) : value_(&value), print_(&print<T>) {}
    message_part(const char* text) : value_(text), print_(&print_text) {}

    friend std::ostream& operator<<(std::ostream& out, const message_part& part) {
        part.print_(out, part.value_);
        return out;
    }

private:
    template <class T>
    static void print(std::ostream& out, const void* value) {
        out << *static_cast<const T*>(value);
    }
    static void print_text(std::ostream& out, const void* text) { out << static_cast<const char*>(text); }

    const void* value_;
    void (*print_)(std::ostream&, const void*);
};

/// The parts side by side.
inline std::string message_of(std::initializer_list<message_part> parts) {
    std::ostringstream out;
    for (const message_part& part : parts) out << part;
    return out.str();
}

/// Throws an `error` whose sentence is the parts side by side.
[[noreturn]] inline void fail_with(std::initializer_list<message_part> parts) {
    throw error(message_of(parts));
}

/// Concatenates anything that streams: message("lstm.gates: inputs have ", n, " columns").
template <class... Parts>
std::string message(const Parts&... parts) {
    return message_of({message_part(parts)...});
}

/// Throws an `error` whose sentence is the parts side by side.
template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
    fail_with({message_part(parts)...});
}

/// Throws the sentence made of `parts` unless `condition` holds.
template <class... Parts>
void require(bool condition, const Parts&... parts) {
    if (!condition) [[unlikely]]
        fail_with({message_part(parts)...});
}

/// Names as a sentence lists them: "a, b, c".
template <class Names>
std::string in_a_list(const Names& names) {
    std::string all;
    for (const auto& name : names) {
        if (!all.empty()) all += ", ";
        all += std::string(name);
    }
    return all;
}

/// Number of single-character insertions, deletions and substitutions between two names.
inline int edit_distance(std::string_view a, std::string_view b) {
    std::vector<int> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        int diagonal = row[0];
        row[0] = static_cast<int>(i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const int substituted = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
        }
    }
    return row[b.size()];
}

/// The valid name nearest to a mistyped one, of those at most `reach` letters away; empty when there are none.
template <class Names>
std::string nearest_name(std::string_view wrong, const Names& names, int reach = std::numeric_limits<int>::max()) {
    std::string best;
    bool found = false;
    for (const auto& valid : names) {
        const std::string_view name = valid;
        // A letter more or less is an edit: most names need not be compared with a long word.
        const auto longer = static_cast<std::ptrdiff_t>(wrong.size()) - static_cast<std::ptrdiff_t>(name.size());
        if (std::abs(longer) > reach) continue;
        const int distance = edit_distance(wrong, name);
        if (distance > reach || (found && distance == reach)) continue;
        reach = distance;
        found = true;
        best = name;
    }
    return best;
}

/// How a sentence about an unknown name ends: "; did you mean 'y'?" where a valid name is a few letters away (ours: at
/// most two, or a third of them) or begins with three or more letters that were written; otherwise what was expected.
template <class Names>
std::string instead_of(std::string_view wrong, const Names& names) {
    const int size = static_cast<int>(wrong.size());
    std::string near = nearest_name(wrong, names, std::min(std::max(2, size / 3), size - 1));
    bool is_near = !near.empty();
    int count = 0;
    for (const auto& name : names) {
        if (!is_near && size >= 3 && std::string_view(name).starts_with(wrong)) {
            near = std::string(name);
            is_near = true;
        }
        ++count;
    }
    if (count == 0) return "; there are none";
    if (is_near) return "; did you mean '" + near + "'?";
    // A list that is longer than a sentence helps nobody.
    if (count > 40) return "; none of the " + std::to_string(count) + " that there are is like it";
    return (count == 1 ? "; expected " : "; expected one of ") + in_a_list(names);
}

/// Throws "unknown <kind> 'x'; did you mean 'y'?", or with what was expected, unless `name` is one of `names`.
template <class Names>
void require_known(std::string_view kind, std::string_view name, const Names& names) {
    for (const auto& valid : names)
        if (name == valid) return;
    fail("unknown ", kind, " '", name, "'", instead_of(name, names));
}

}  // namespace engram
