// error: a policy has no settings that are known by name: write a `settings` aggregate
#include "../model/archetypes.hpp"

using namespace engram;
using archetype::whole;

struct mine : archetype::memory {
#ifndef ENGRAM_TWIN
    struct settings {
        int slots = 1;
    };
#endif
};

int main() {
    return whole::with<mine>::trace<cpu<float>>({}, {{1, 2, 1}, 3}, 1).task.actions;
}
