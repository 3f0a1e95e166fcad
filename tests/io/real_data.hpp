#pragma once
// SPDX-License-Identifier: MIT

// The data sets of Omniglot and MNIST, which no build brings along. ENGRAM_DATA names the folder that holds mnist/ and
// omniglot/; without it whatever asks for them is skipped, and CTest says so.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "engram/core/error.hpp"

/// The folder of `set`, or the one that holds both, of the folder that the variable's value names; throws if it has
/// not.
inline std::string data_folder(const std::string& value, const std::string& set = "") {
    for (const std::string needed : {"mnist", "omniglot"})
        engram::require(std::filesystem::is_directory(value + "/" + needed), "ENGRAM_DATA names '", value,
                        "', which has no folder ", needed);
    return set.empty() ? value : value + "/" + set;
}

/// The same of the environment; for sources whose every case needs it, since the first one ends the process.
inline std::string real_data(const std::string& set = "") {
    const char* value = std::getenv("ENGRAM_DATA");
    if (value && *value) return data_folder(value, set);
    std::puts("skipped: ENGRAM_DATA names no folder that holds mnist and omniglot");
    std::fflush(nullptr);
    std::_Exit(77);
}
