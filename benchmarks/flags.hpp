#pragma once
// SPDX-License-Identifier: MIT

// What a benchmark is told: pairs `--name value`. A word that is no name, a name without a value and a value that is no
// such number end the program with status 2 and one sentence.

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <engram/core/error.hpp>
#include <engram/core/settings.hpp>

class flags {
public:
    /// `known` has each name with the value that it has untold.
    flags(int count, char** words, std::map<std::string, std::string> known = {})
        : program_(words[0]), values_(std::move(known)) {
        program_.erase(0, program_.rfind('/') + 1);
        or_exit([&] {
            std::vector<std::string> names;
            for (const auto& [name, value] : values_) names.push_back(name);
            for (int i = 1; i < count; i += 2) {
                engram::require(!names.empty(), "it takes no options, got '", words[i], "'");
                engram::require_known("option", words[i], names);
                engram::require(i + 1 < count, words[i], " has no value");
                values_[words[i]] = words[i + 1];
            }
        });
    }

    const std::string& text(const std::string& name) const { return values_.at(name); }

    template <typename Number = int>
    Number number(const std::string& name, Number least = 0) const {
        return or_exit([&] {
            const auto value = engram::parse<Number>(name, text(name));
            engram::require(value >= least, name, ": expected at least ", least, ", got ", value);
            return value;
        });
    }

private:
    template <typename Body>
    auto or_exit(Body body) const -> decltype(body()) {
        try {
            return body();
        } catch (const engram::error& problem) {
            std::fprintf(stderr, "%s: %s\n", program_.c_str(), problem.what());
            std::exit(2);
        }
    }

    std::string program_;
    std::map<std::string, std::string> values_;
};
