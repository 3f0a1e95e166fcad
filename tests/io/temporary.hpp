#pragma once
// SPDX-License-Identifier: MIT

// A folder that disappears with the test, and the sentence of an error.

#include <cstdlib>
#include <filesystem>
#include <string>

#include "engram/core/error.hpp"

struct temporary_folder {
    std::string path;
    temporary_folder() {
        path = (std::filesystem::temp_directory_path() / "engram-test-XXXXXX").string();
        if (!::mkdtemp(path.data())) engram::fail("no temporary folder");
    }
    ~temporary_folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    temporary_folder(const temporary_folder&) = delete;
    temporary_folder& operator=(const temporary_folder&) = delete;
    std::string operator/(const std::string& name) const { return path + "/" + name; }
    /// Number of files in it: a half-written one would count.
    int files() const {
        int count = 0;
        for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path)) ++count;
        return count;
    }
};

template <class F>
std::string sentence(F f) {
    try {
        f();
    } catch (const engram::error& e) {
        return e.what();
    }
    return "no error";
}

inline bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}
