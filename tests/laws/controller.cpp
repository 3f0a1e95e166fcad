// The laws of controllers, alone and with a memory whose reads they take in.

#include "../model/prepare.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/no_memory.hpp>

using namespace prepared;

using ff = agent<identity, feed_forward, no_memory, no_auxiliary, vtrace>;
using recurrent = ff::with<lstm>;

TEST_CASE("feed_forward") {
    keeps_the_laws<ff>();
    differentiates<ff>(tiny<ff>(), task(), 40);
}

TEST_CASE("lstm") {
    keeps_the_laws<recurrent>();
    differentiates<recurrent>(tiny<recurrent>(), task(), 50);
}

TEST_CASE("without last action and reward the controller has fewer inputs and still keeps the laws") {
    auto s = tiny<recurrent>();
    const auto with = traced<recurrent, cpu<double>>(s);
    s.wiring.last_action_reward = false;
    const auto without = traced<recurrent, cpu<double>>(s);
    const auto rows = [](const auto& a) { return (*a.store)[a.store->find("controller.gates.weight")].rows; };
    CHECK(rows(with) == 16 + 3 + 1 + 5);
    CHECK(rows(without) == 16 + 5);
    keeps_the_laws<recurrent>(s);
    differentiates<recurrent>(s, task(), 50);
}

TEST_CASE("an LSTM carries what a feed-forward controller does not") {
    // The same last step after two different pasts.
    const auto differs = [](const auto& a) {
        program<cpu<double>> p(*a.g, a.store, {.steps = 4}, {a.h});
        std::vector<double> last;
        for (const double past : {0.1, 0.9}) {
            fill_randomly(p, a, 3);
            std::fill_n(p.input("observation").begin(), 16, past);
            p.forward();
            const auto h = p.output(a.h);
            last.insert(last.end(), h.at(3), h.at(3) + 5);
        }
        return !std::equal(last.begin(), last.begin() + 5, last.begin() + 5);
    };
    CHECK(differs(traced<recurrent, cpu<double>>()));
    CHECK_FALSE(differs(traced<ff, cpu<double>>()));
}
