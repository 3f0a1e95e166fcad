// The operations that every ablation links.

#define ENGRAM_COMPILE_OPERATIONS
#include <engram/program/compiled_operations.hpp>
