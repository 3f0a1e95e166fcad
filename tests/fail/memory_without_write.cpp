// error: the memory cannot be written: see can_write
#include "../model/archetypes.hpp"

using namespace engram;
using archetype::whole;

#ifndef ENGRAM_TWIN
struct mine : archetype::memory_begins, archetype::memory_forgets, archetype::memory_reads {};
using model = whole::with<mine>;
#else
struct mine : archetype::memory {};
using model = whole::with<mine>;
#endif

int main() {
    return model::trace<cpu<float>>({}, {{1, 2, 1}, 3}, 1).task.actions;
}
