// The laws of the sequence baselines in float: they promise bits, so the number type matters.

#include "../model/prepare.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/srnn.hpp>
#include <engram/controller/transformer.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/memory/no_memory.hpp>

using namespace prepared;

namespace {

using sequences = agent<identity, transformer, no_memory, no_auxiliary, supervised>;
using shuffling = sequences::with<srnn>;

const task_shape shape{{1, 6, 1}, 0, 3};

}  // namespace

TEST_CASE("transformer, and blocks longer than a pack") {
    for (const char* positions : {"rotary", "learned"}) {
        sequences::settings s;
        s.controller = {
            .hidden = 40, .layers = 2, .heads = 2, .inner = 21, .positions = {"positions", positions}, .longest = 80};
        s.learner.targets = "bits";
        const auto a = traced<sequences, cpu<float>>(s, shape);
        for (const int steps : {5, 80}) {
            std::string all;
            for (const auto& sentence : broken_laws(a, 1, steps, 3)) all += sentence + "; ";
            CHECK(all == "");
        }
    }
}

TEST_CASE("srnn") {
    shuffling::settings s;
    s.controller = {.hidden = 19, .hyper = 7, .layers = 2};
    s.learner.targets = "bits";
    keeps_the_laws<shuffling, cpu<float>>(s, shape);
}
