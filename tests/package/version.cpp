// The header's version is the one that CMake was told.

#include <engram/version.hpp>

static_assert(ENGRAM_VERSION_MAJOR == EXPECTED_MAJOR);
static_assert(ENGRAM_VERSION_MINOR == EXPECTED_MINOR);
static_assert(ENGRAM_VERSION_PATCH == EXPECTED_PATCH);
