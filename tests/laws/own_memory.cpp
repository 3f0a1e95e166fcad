// The memory of examples/ keeps the laws too: what a user's policy is put through.

#include "../../examples/own_memory.hpp"
#include <engram/learner/ppo.hpp>
#include <engram/learner/supervised.hpp>
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

/// A ring of the graph is no state: what one evaluation wrote must not be there in the next.
TEST_CASE("a memory that keeps its entries in a ring is checked by the same call, under every learner") {
    const auto check = [](auto model) {
        using Agent = decltype(model);
        typename Agent::settings s;
        s.encoder.layers = {6};
        s.controller.hidden = 4;
        s.memory.key = 3;
        const auto a = Agent::template trace<cpu<double>>(s, task(), 1);
        const auto report = check_gradients(a);
        CHECK_MESSAGE(report.worst < 1e-6, report.where);
        CHECK(report.compared > 80);
        // The weights are the agent's again, and states that are filled by hand leave the ring to the check.
        const auto alone = check_gradients<cpu<double>>(
            *a.g, a.store, {.steps = 5, .batch = 2, .gradients = true, .replay = true}, [&](auto& p) {
                for (const auto& name : p.state_names()) std::fill(p.state(name).begin(), p.state(name).end(), 0);
                fill_randomly(p, a, 1);
            });
        CHECK_MESSAGE(alone.worst < 1e-6, alone.where);
        CHECK(std::equal(a.store->flat().begin(), a.store->flat().end(),
                         Agent::template trace<cpu<double>>(s, task(), 1).store->flat().begin()));
    };
    using knn = own::model::with<fifo_knn>;
    check(knn{});
    check(knn::with<ppo>{});
    check(knn::with<supervised>{});
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
