// The laws of generative models: the variational learner without a memory and with one.

#include "../model/prepare.hpp"

#include <engram/controller/feed_forward.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/variational.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/memory/no_memory.hpp>

using namespace prepared;

using vrnn = agent<mlp, lstm, no_memory, no_auxiliary, variational>;
using with_knn = vrnn::with<fifo_knn>;

namespace {

template <class Agent>
typename Agent::settings small() {
    auto s = tiny<Agent>();
    s.learner.latent = 3;
    s.learner.hidden = 4;
    s.wiring.features = 5;
    return s;
}

template <class Agent>
void keeps_both(typename Agent::settings s, task_shape t = task()) {
    keeps_the_laws<Agent>(s, t);
    auto a = Agent::template trace<cpu<double>>(s, t, 5, purpose::generating);
    unsettle(a);
    std::string all;
    for (const auto& sentence : broken_laws(a)) all += sentence + "; ";
    CHECK(all == "");
}

}  // namespace

TEST_CASE("without a memory: VRNN") {
    keeps_both<vrnn>(small<vrnn>());
    differentiates<vrnn>(small<vrnn>());
    keeps_both<vrnn::with<feed_forward>>(small<vrnn::with<feed_forward>>());
}

TEST_CASE("Gaussian frames, linear maps, no condition") {
    auto s = small<vrnn>();
    s.learner.likelihood = "gaussian";
    s.learner.sigma = 1;  // a small one makes a loss of thousands, whose rounding drowns differences
    s.learner.hidden = 0;
    keeps_both<vrnn>(s, {{4, 4, 1}, 0});
    differentiates<vrnn>(s, {{4, 4, 1}, 0});
}

TEST_CASE("with a memory: what was read goes to prior, posterior, decoder and, if wanted, the controller") {
    auto s = small<with_knn>();
    keeps_both<with_knn>(s);
    s.wiring.previous_reads = true;
    keeps_both<with_knn>(s);
    // Written latents are constants to this memory, and no replay gives them: leave out what differences would reach
    // through them.
    differentiates<with_knn>(s, task(), 20, 4, [](const std::string& name) { return name.starts_with("decoder."); });
}

TEST_CASE("a generating trace that follows the posterior is the learning one") {
    const auto s = small<with_knn>();
    const auto a = with_knn::trace<cpu<double>>(s, task(), 5),
               b = with_knn::trace<cpu<double>>(s, task(), 5, purpose::generating);
    const auto run = [&](const traced_agent<cpu<double>>& m, double prior) {
        program<cpu<double>> p(*m.g, m.store, {.steps = 6, .batch = 2},
                               {m.generative->frame, m.generative->divergence});
        fill_randomly(p, m, 3);
        if (p.has_input("use_prior")) {
            auto flags = p.input("use_prior");
            for (std::size_t i = 0; i < flags.size(); ++i) flags[i] = i >= 6 ? prior : 0;
        }
        p.forward();
        std::vector<double> out;
        for (const auto& v : {m.generative->frame, m.generative->divergence}) {
            const auto o = p.output(v);
            out.insert(out.end(), o.data, o.data + 12 * v.width);
        }
        return out;
    };
    REQUIRE(std::equal(a.store->flat().begin(), a.store->flat().end(), b.store->flat().begin()));
    CHECK(run(a, 0) == run(b, 0));
    const auto followed = run(b, 0), alone = run(b, 1);
    CHECK(std::equal(followed.begin(), followed.begin() + 6 * 16, alone.begin()));
    CHECK(!std::equal(followed.begin() + 6 * 16, followed.begin() + 12 * 16, alone.begin() + 6 * 16));
}

TEST_CASE("a VRNN that is left alone does not see the frames any more") {
    const auto s = small<vrnn>();
    const auto m = vrnn::trace<cpu<double>>(s, task(), 5, purpose::generating);
    program<cpu<double>> p(*m.g, m.store, {.steps = 6, .batch = 1}, {m.generative->frame});
    const auto frames = [&](double last_frames) {
        fill_randomly(p, m, 3);
        p.replay_count() = 0;
        for (std::size_t t = 0; t < 6; ++t) {
            p.input("use_prior")[t] = t >= 3;
            for (std::size_t i = 0; t >= 3 && i < 16; ++i) p.input("observation")[t * 16 + i] = last_frames;
        }
        p.forward();
        const auto o = p.output(m.generative->frame);
        return std::vector<double>(o.data, o.data + 6 * 16);
    };
    CHECK(frames(0) == frames(1));
}
