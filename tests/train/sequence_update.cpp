// Training on sequences: learns, resumes bit for bit, draws the same data whatever the threads; scores and drawings.

#include <doctest/doctest.h>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/evaluate/sequences.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/learner/variational.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/agent.hpp>
#include <engram/train/sequence_update.hpp>

using namespace engram;

namespace {

/// Three random patterns of eight bits, then the same three again; the target is the pattern itself.
class echo final : public sequence_source {
public:
    echo() {
        info_.name = "echo";
        info_.steps = 6;
        info_.observation = {1, 8, 1};
        info_.targets = 8;
        info_.recall = 3;
    }
    const sequence_info& info() const override { return info_; }
    void draw(const std::string& level, std::uint64_t seed, std::uint64_t index,
              const sequence_place& to) const override {
        philox random(seed, stream_id("echo." + level, static_cast<std::uint32_t>(index)));
        for (int t = 0; t < 6; ++t) {
            float* frame = to.observation + t * to.rows * 8;
            for (int i = 0; i < 8; ++i)
                frame[i] = t < 3 ? static_cast<float>(random.below(2)) : to.observation[(t - 3) * to.rows * 8 + i];
            if (to.target) std::copy_n(frame, 8, to.target + t * to.rows * 8);
            if (to.weight) to.weight[t * to.rows] = 1;
            if (to.origin) to.origin[t] = t < 3 ? -1 : t - 3;
        }
    }

private:
    sequence_info info_;
};

using vrnn = agent<mlp, lstm, no_memory, no_auxiliary, variational>;

vrnn::settings small() {
    vrnn::settings s;
    s.encoder.layers = {16};
    s.controller.hidden = 24;
    s.learner.latent = 6;
    s.learner.hidden = 16;
    s.wiring.features = 16;
    return s;
}

optimiser_settings quick() {
    optimiser_settings o;
    o.learning_rate = 3e-3;
    o.epsilon = 1e-8;
    o.clip = 5;
    return o;
}

const auto task = std::make_shared<const echo>();

traced_agent<cpu<float>> model(std::uint64_t seed = 1, purpose why = purpose::learning) {
    return vrnn::trace<cpu<float>>(small(), shape_of(task->info()), seed, why);
}

std::vector<float> weights(const traced_agent<cpu<float>>& m) {
    return {m.store->flat().begin(), m.store->flat().end()};
}

}  // namespace

TEST_CASE("the negative ELBO falls, and a score agrees with training") {
    const auto m = model();
    training_loop<sequence_update<cpu<float>>> t({1, 1, 0}, m, task, sequence_settings{16}, quick());
    t.iterate();
    const double first = t.take_window().loss;
    for (int i = 0; i < 600; ++i) t.iterate();
    t.take_window();
    for (int i = 0; i < 50; ++i) t.iterate();
    const auto w = t.take_window();
    CHECK(w.loss < 0.75 * first);
    CHECK(w.divergence.size() == 6);
    double sum = 0;
    for (std::size_t i = 0; i < 6; ++i) sum += w.divergence[i] - w.log_likelihood[i];
    CHECK(sum / 6 == doctest::Approx(w.loss).epsilon(1e-4));

    const auto g = model(1, purpose::generating);
    const auto from = weights(m);
    std::copy(from.begin(), from.end(), g.store->edit().flat().begin());
    sequence_player<cpu<float>> player(g, task, 20);
    const auto s = player.score("train", 200, 5);
    CHECK(s.sequences == 200);
    CHECK(s.unit == "nats");
    // 800 training sequences against 200 others: a few standard errors apart at most.
    CHECK(std::abs(s.mean - 6 * w.loss) < 6 * s.standard_error + 0.5);
    CHECK(s.first_sight == doctest::Approx(s.before).epsilon(1e-6));
    double last = 0;
    for (std::size_t i = 3; i < 6; ++i) last += s.divergence[i] / 3;
    CHECK(s.recall == doctest::Approx(last).epsilon(1e-6));
    const auto again = player.score("train", 200, 5);
    CHECK(again.mean == s.mean);
    CHECK(player.score("train", 200, 6).mean != s.mean);
    CHECK(player.score("train", 200, 5, [] { return true; }).sequences == 0);
    const auto d = player.draw("train", 5, 3);
    CHECK(d.generated.size() == 6u * 20u * 8u);
    CHECK(std::all_of(d.generated.begin(), d.generated.end(), [](float v) { return v >= 0 && v <= 1; }));
}

TEST_CASE("a resumed run is the run that was never stopped") {
    for (const int threads : {1, 2}) {
        const auto whole = model(), part = model(), rest = model();
        rest.store->edit().flat()[0] += 1;
        training_loop<sequence_update<cpu<float>>> a({1, threads, 10'000}, whole, task, sequence_settings{16}, quick());
        for (int i = 0; i < 12; ++i) a.iterate();
        safetensors file;
        {
            training_loop<sequence_update<cpu<float>>> b({1, threads, 10'000}, part, task, sequence_settings{16},
                                                         quick());
            for (int i = 0; i < 7; ++i) b.iterate();
            b.save(file);
        }
        training_loop<sequence_update<cpu<float>>> c({1, threads, 10'000}, rest, task, sequence_settings{16}, quick());
        c.load(file);
        CHECK(c.updates() == 7);
        for (int i = 0; i < 5; ++i) c.iterate();
        CHECK(weights(whole) == weights(rest));
        CHECK(a.steps() == 12 * 16 * 6);
    }
}

TEST_CASE("threads split the rows and nothing else") {
    const auto one = model(), two = model();
    training_loop<sequence_update<cpu<float>>> a({1, 1, 0}, one, task, sequence_settings{16}, quick()),
        b({1, 2, 0}, two, task, sequence_settings{16}, quick());
    for (int i = 0; i < 3; ++i) {
        a.iterate();
        b.iterate();
        // The gradient is summed in another order: float's precision of a sum of a few hundred terms.
        CHECK(a.take_window().loss == doctest::Approx(b.take_window().loss).epsilon(1e-5));
    }
}

TEST_CASE("supervised bits: wrong bits a sequence") {
    using taught = agent<identity, lstm, no_memory, no_auxiliary, supervised>;
    taught::settings s;
    s.controller.hidden = 16;
    s.learner.targets = "bits";
    const auto m = taught::trace<cpu<float>>(s, shape_of(task->info()), 1);
    training_loop<sequence_update<cpu<float>>> t({1, 1, 0}, m, task, sequence_settings{16}, quick());
    sequence_player<cpu<float>> player(m, task, 10);
    const auto before = player.score("train", 100, 5);
    CHECK(before.unit == "wrong bits a sequence");
    CHECK(before.mean > 10);
    for (int i = 0; i < 1500; ++i) t.iterate();
    CHECK(player.score("train", 100, 5).mean < 0.1);
}

TEST_CASE("bad input") {
    const auto m = model();
    CHECK_THROWS_WITH(training_loop<sequence_update<cpu<float>>>({1, 17, 0}, m, task, sequence_settings{16}, quick()),
                      doctest::Contains("threads: expected 1 to 16"));
    sequence_player<cpu<float>> player(m, task, 2);
    CHECK_THROWS_WITH(player.score("trane", 2, 1), doctest::Contains("train"));
    vrnn::settings s = small();
    CHECK_THROWS_WITH(set(s, {{"learner.latent", "0"}}), doctest::Contains("learner.latent"));
    CHECK_THROWS_WITH(set(s, {{"learner.likelihood", "bernouli"}}),
                      "unknown learner.likelihood 'bernouli'; did you mean 'bernoulli'?");
}
