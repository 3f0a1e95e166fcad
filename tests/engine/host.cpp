#ifndef ENGRAM_WITH_PROGRAMS  // whose float operations are in engram_compiled
#define ENGRAM_COMPILE_OPERATIONS
#endif
#define ENGRAM_COMPILE_HOST
#include "host.hpp"

namespace engram {

template class parameters<double>;
ENGRAM_OPERATIONS(, cpu<double>)
ENGRAM_RECURRENCES(, cpu<double>)

}  // namespace engram
