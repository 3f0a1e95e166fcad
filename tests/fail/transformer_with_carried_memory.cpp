// error: a controller of whole sequences cannot act step by step yet
#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/transformer.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/agent.hpp>

using namespace engram;

/// Trains what is carried from unroll to unroll; a Transformer carries nothing.
struct carrying : supervised {
#ifndef ENGRAM_TWIN
    static constexpr bool carries_memory = true;
#endif
};
using model = agent<identity, transformer, no_memory, no_auxiliary, carrying>;

int main() {
    model::settings s;
    s.learner.targets = "bits";
    return static_cast<int>(model::trace<cpu<float>>(s, {{2, 2, 1}, 0, 3}, 1).store->total() == 0);
}
