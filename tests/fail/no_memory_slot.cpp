// error: an agent needs exactly one memory (no_memory for none)
#include <engram/memory/no_memory.hpp>
#include "../model/archetypes.hpp"
using namespace engram;
using archetype::whole;

#ifndef ENGRAM_TWIN
using model = agent<archetype::encoder, archetype::controller, archetype::auxiliary, archetype::learner>;
#else
using model = agent<archetype::encoder, archetype::controller, archetype::auxiliary, archetype::learner, no_memory>;
#endif

int main() {
    return model::trace<cpu<float>>({}, {{1, 2, 1}, 3}, 1).task.actions;
}
