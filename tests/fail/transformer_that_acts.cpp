// error: a controller of whole sequences cannot act step by step yet
#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/transformer.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/agent.hpp>

using namespace engram;
#ifdef ENGRAM_TWIN
using model = agent<identity, transformer, no_memory, no_auxiliary, supervised>;
#else
using model = agent<identity, transformer, no_memory, no_auxiliary, vtrace>;
#endif

int main() {
    return static_cast<int>(model::trace<cpu<float>>({}, {{2, 2, 1}, 3}, 1).store->total() == 0);
}
