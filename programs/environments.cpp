// The environments that every program links.

#define ENGRAM_COMPILE_TASKS
#include <engram/program/compiled_tasks.hpp>
