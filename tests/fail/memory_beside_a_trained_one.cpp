// error: an agent that acts on a trained memory has it in the controller's slot
// A learner that trains the controller's memory first has no use for another memory, nor for an auxiliary loss.

#include <engram/auxiliary/cpc.hpp>
#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/memup_ppo.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/agent.hpp>

using namespace engram;

#ifdef ENGRAM_TWIN
using chosen = no_auxiliary;
#else
using chosen = cpc;
#endif

int main() {
    return agent<mlp, lstm, no_memory, chosen, memup_ppo>::complete ? 0 : 1;
}
