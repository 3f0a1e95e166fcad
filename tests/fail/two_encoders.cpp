// error: an agent needs exactly one encoder
#include <engram/encoder/identity.hpp>
#include "../model/archetypes.hpp"
using namespace engram;
using archetype::whole;

#ifndef ENGRAM_TWIN
using model = agent<archetype::encoder, archetype::controller, archetype::memory, archetype::auxiliary,
                    archetype::learner, identity>;
#else
using model = whole::with<identity>;
#endif

int main() {
    return model::trace<cpu<float>>({}, {{1, 2, 1}, 3}, 1).task.actions;
}
