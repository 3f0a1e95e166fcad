// SPDX-License-Identifier: MIT
// The entry of libFuzzer: ENGRAM_FUZZ names the target. Built by ./dev fuzz, with clang.

#include <cstdio>

#include "targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::target& chosen = []() -> const fuzz::target& {
        const char* name = std::getenv("ENGRAM_FUZZ");
        const auto found = fuzz::targets().find(name ? name : "");
        if (found == fuzz::targets().end()) {
            std::fprintf(stderr, "ENGRAM_FUZZ names no target; expected");
            for (const auto& [known, _] : fuzz::targets()) std::fprintf(stderr, " %s", known.c_str());
            std::fprintf(stderr, "\n");
            std::exit(2);
        }
        return found->second;
    }();
    fuzz::run(chosen, {data, size});
    return 0;
}
