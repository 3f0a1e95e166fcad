// error: an agent is made of policies: types that claim a slot by
#include "../model/archetypes.hpp"

using namespace engram;
using archetype::whole;

#ifndef ENGRAM_TWIN
using model = agent<archetype::encoder, archetype::controller, int, archetype::auxiliary, archetype::learner>;
#else
using model =
    agent<archetype::encoder, archetype::controller, archetype::memory, archetype::auxiliary, archetype::learner>;
#endif

int main() {
    return model::trace<cpu<float>>({}, {{1, 2, 1}, 3}, 1).task.actions;
}
