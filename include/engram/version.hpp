#pragma once
// SPDX-License-Identifier: MIT

// The version of the library. CMake's project(VERSION) and the Conan recipe read these three lines, so that a plain
// compiler call knows it as well. Every header includes this one, directly or not, which is why the one thing that all
// of them need is checked here.

#define ENGRAM_VERSION_MAJOR 0
#define ENGRAM_VERSION_MINOR 1
#define ENGRAM_VERSION_PATCH 0

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "engram needs C++20: compile with -std=c++20 (g++ 12 or newer, clang 14 or newer)"
#endif

#include <string>

namespace engram {

/// "0.1.0".
inline std::string library_version() {
    return std::to_string(ENGRAM_VERSION_MAJOR) + "." + std::to_string(ENGRAM_VERSION_MINOR) + "." +
           std::to_string(ENGRAM_VERSION_PATCH);
}

}  // namespace engram
