#define ENGRAM_COMPILE_OPERATIONS
#include "host.hpp"

namespace engram {

template class parameters<double>;
ENGRAM_OPERATIONS(, cpu<double>)

}  // namespace engram
