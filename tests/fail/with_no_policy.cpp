// error: with<P> needs a policy: a type that claims a slot by
#include "../model/archetypes.hpp"

using namespace engram;
using archetype::whole;

#ifndef ENGRAM_TWIN
struct mine {};
using model = whole::with<mine>;
#else
struct mine : archetype::memory {};
using model = whole::with<mine>;
#endif

int main() {
    return model::trace<cpu<float>>({}, {{1, 2, 1}, 3}, 1).task.actions;
}
