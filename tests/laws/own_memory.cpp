// The memory of examples/ keeps the laws too: what a user's policy is put through.

#include "../../examples/own_memory.hpp"
#include <engram/memory/fifo_knn.hpp>

#include "../model/prepare.hpp"

using namespace prepared;

TEST_CASE("own_memory") {
    own::model::settings s;
    s.encoder.layers = {6};
    s.controller.hidden = 4;
    s.memory = {.length = 3, .address = 3, .sharpness = 2};
    keeps_the_laws<own::model>(s);
    differentiates<own::model>(s, task(), 80);
}

namespace {

/// Keeps what it stored when an episode ends.
struct hoarder : fifo_knn {
    template <class Var>
    static void forget(const weights&, const Var&, state<Var>&) {}
};

}  // namespace

TEST_CASE("a broken law is told") {
    using model = agent<mlp, feed_forward, hoarder, no_auxiliary, vtrace>;
    const auto broken = broken_laws(traced<model, cpu<double>>());
    REQUIRE_FALSE(broken.empty());
    for (const auto& sentence : broken) CHECK(sentence.starts_with("an episode's start: h of row"));
}
