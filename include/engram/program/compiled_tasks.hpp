#pragma once
// SPDX-License-Identifier: MIT

// The environments and sequences of the registries, compiled once in engram_compiled: whatever asks for a task by its
// name would otherwise hold all of them, and half of its compile time would be theirs.

#include <engram/task/registry.hpp>
#include <engram/task/sequence_registry.hpp>

// Defined by the one source file that compiles them.
#ifdef ENGRAM_COMPILE_TASKS
#define ENGRAM_EXTERN
#else
#define ENGRAM_EXTERN extern
#endif

namespace engram {

ENGRAM_EXTERN template std::vector<registered_task> register_all(library_tasks);
ENGRAM_EXTERN template std::vector<registered_sequence> register_all(library_sequences);

}  // namespace engram

#undef ENGRAM_EXTERN
