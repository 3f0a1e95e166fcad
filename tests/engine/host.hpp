#pragma once
// The engine and the operations, compiled once for all tests that trace a model (host.cpp): the build puts this ahead
// of their sources.

#include <engram/program/compiled_operations.hpp>

#ifndef ENGRAM_COMPILE_HOST
namespace engram {

extern template class parameters<double>;
ENGRAM_OPERATIONS(extern, cpu<double>)
ENGRAM_RECURRENCES(extern, cpu<double>)

}  // namespace engram
#endif
