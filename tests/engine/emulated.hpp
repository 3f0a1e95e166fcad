#pragma once
// As host.hpp, for tests that trace a model for the emulated device too (emulated.cpp).

#include <engram/device/operations.hpp>

#include "host.hpp"

#ifndef ENGRAM_COMPILE_EMULATED
namespace engram {

ENGRAM_OPERATIONS(extern, emulated<float>)
ENGRAM_OPERATIONS(extern, emulated<double>)

}  // namespace engram
#endif
