#define ENGRAM_COMPILE_EMULATED
#include "emulated.hpp"

namespace engram {

ENGRAM_OPERATIONS(, emulated<float>)
ENGRAM_OPERATIONS(, emulated<double>)

}  // namespace engram
