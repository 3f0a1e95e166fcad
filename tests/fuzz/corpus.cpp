// SPDX-License-Identifier: MIT
// Replays the inputs of tests/fuzz/corpus/<target>/, among them everything that a fuzzer has found, without a fuzzer;
// and each of them cut short and with single bytes changed.

#include <doctest/doctest.h>

#include <filesystem>

#include "targets.hpp"

namespace {

/// The files of one target's corpus.
std::vector<std::filesystem::path> corpus(const std::string& name) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(ENGRAM_SOURCE_DIR "/tests/fuzz/corpus/" + name))
        files.push_back(entry.path());
    return files;
}

}  // namespace

TEST_CASE("no input of the corpus breaks a reader") {
    for (const auto& [name, target] : fuzz::targets()) {
        const std::string reader = name;  // clang before 16 captures no binding
        CAPTURE(reader);
        const auto files = corpus(name);
        CHECK(files.size() >= 2);
        for (const auto& path : files) {
            const engram::bytes content = engram::read_file(path);
            fuzz::run(target, content);
            const std::size_t stride = content.size() / 100 + 1;
            for (std::size_t at = 0; at < content.size(); at += stride) {
                fuzz::run(target, std::span(content).first(at));
                for (const int change : {1, 0x80, 0xff}) {
                    engram::bytes damaged = content;
                    damaged[at] = static_cast<std::uint8_t>(damaged[at] ^ change);
                    fuzz::run(target, damaged);
                }
            }
        }
    }
}

TEST_CASE("every target has inputs that are read to the end") {
    for (const auto& [name, target] : fuzz::targets()) {
        int whole = 0;
        for (const auto& path : corpus(name)) {
            try {
                target.read(engram::read_file(path));
                ++whole;
            } catch (const engram::error&) {
            }
        }
        const std::string reader = name;  // clang before 16 captures no binding
        CAPTURE(reader);
        CHECK(whole > 0);
    }
}

TEST_CASE("the watch sees memory, and that it is given back") {
    const allocation::watch watch;
    const std::ptrdiff_t before = allocation::now;
    {
        const std::vector<char> much(100000);
        CHECK(much.back() == 0);
    }
    CHECK(watch.most() >= 100000);
    CHECK(allocation::now == before);
}
