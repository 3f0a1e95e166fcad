// The laws of encoders of vectors, and of the decoders that reconstruction makes of them.

#include "../model/prepare.hpp"

#include <engram/auxiliary/reconstruction.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/no_memory.hpp>

using namespace prepared;

using identical = agent<identity, feed_forward, no_memory, reconstruction, vtrace>;
using layered = agent<mlp, feed_forward, no_memory, reconstruction, vtrace>;

TEST_CASE("identity keeps the laws and shows the observation as it is") {
    keeps_the_laws<identical>();
    differentiates<identical>(tiny<identical>(), task(), 90);
    const auto a = traced<identical, cpu<double>>();
    CHECK(a.g->info(a.x).name == "observation");
    for (const auto& e : a.store->entries()) CHECK(e.name.rfind("encoder", 0) == std::string::npos);
}

TEST_CASE("mlp keeps the laws") {
    keeps_the_laws<layered>();
    differentiates<layered>();
    auto s = tiny<layered>();
    s.encoder.centre = false;
    differentiates<layered>(s);
}
