// error: a variational model draws frames: its encoder must be able to decode
#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/variational.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/agent.hpp>
#include "../model/archetypes.hpp"

using namespace engram;
#ifdef ENGRAM_TWIN
using model = agent<mlp, lstm, no_memory, no_auxiliary, variational>;
#else
using model = agent<archetype::encoder, lstm, no_memory, no_auxiliary, variational>;
#endif

int main() {
    return static_cast<int>(model::trace<cpu<float>>({}, {{2, 2, 1}, 0}, 1).store->total() == 0);
}
