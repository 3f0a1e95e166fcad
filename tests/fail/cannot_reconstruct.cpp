// error: the auxiliary loss does not work with this encoder (reconstruction needs one that can decode)
#include <engram/auxiliary/reconstruction.hpp>
#include <engram/encoder/identity.hpp>
#include "../model/archetypes.hpp"
using namespace engram;
using archetype::whole;

#ifndef ENGRAM_TWIN
using model = whole::with<reconstruction>;
#else
using model = whole::with<identity>::with<reconstruction>;
#endif

int main() {
    return model::trace<cpu<float>>({}, {{1, 2, 1}, 3}, 1).task.actions;
}
