#pragma once
// SPDX-License-Identifier: MIT

// What the module that speaks gRPC and the programs that load it have in common.

#include <string>

#include <engram/program/world.hpp>
#include <engram/version.hpp>

namespace engram {

/// Classes cross the border between the two, so both are of one library and one compiler.
inline std::string world_module_version() {
    return library_version() + ", " + __VERSION__ + ", face 1";
}

}  // namespace engram

extern "C" {
const char* engram_world_version();
engram::world* engram_join_world(const engram::world_settings* settings);
}
