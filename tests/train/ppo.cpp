// PPO: epochs and minibatches, exact resume, refused settings.

#include <doctest/doctest.h>

#include <engram/train/asynchronous_update.hpp>

#include "same_file.hpp"
#include "small_run.hpp"

using namespace small;

namespace {

using learning_model = agent<mlp, lstm, fifo_knn, no_auxiliary, ppo>;

traced_agent<backend> with_memory(std::uint64_t seed = 1, double divergence_cost = 0, double divergence_target = 0.01) {
    learning_model::settings s;
    s.learner.divergence_cost = divergence_cost;
    s.learner.divergence_target = divergence_target;
    s.encoder.layers = {32};
    s.controller.hidden = 16;
    s.memory.slots = 32, s.memory.key = 16, s.memory.neighbours = 4;
    return learning_model::trace<backend>(s, shape_of(task::describe(options())), seed);
}

struct run : small_training<backend> {
    run(int threads, int epochs, int minibatches, std::uint64_t seed = 1, double divergence_cost = 0)
        : small_training(with_memory(seed, divergence_cost), threads, epochs, minibatches) {}
};

double loss_named(const training_window& w, const std::string& end) {
    for (const auto& [name, value] : w.losses)
        if (name.ends_with(end)) return value;
    FAIL("no loss ends in ", end);
    return 0;
}

double weight_in(const safetensors& file) {
    return file.values<double>("adaptive_weights", {1})[0];
}

}  // namespace

TEST_CASE("epochs times minibatches updates an unroll; the parts and their order are the seed's") {
    run one(1, 3, 2), again(1, 3, 2), two(2, 3, 2);
    for (run* r : {&one, &again, &two}) r->iterate(4);
    CHECK(one.t.updates() == 24);
    CHECK(one.t.steps() == 4 * 42);
    CHECK(same(one.saved(), again.saved()));
    // Two threads share every minibatch: equal but for the order of sums.
    const auto a = weights(one.a), b = weights(two.a);
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(double(a[i]) - double(b[i])));
    CHECK(worst < 2e-3);
    const auto w = one.t.take_window();
    CHECK(w.losses.size() == 3);
    double sum = 0;
    for (const auto& [name, value] : w.losses) sum += value;
    CHECK(sum == doctest::Approx(w.loss).epsilon(1e-5));
}

TEST_CASE("every epoch begins with the memory and the state that the unroll began with") {
    // A rate of zero leaves the weights: each epoch then repeats the first one's numbers, ratios of 1 among them.
    const auto a = with_memory(), b = with_memory();
    auto once = six_by_seven(1, 1), thrice = six_by_seven(3, 1);
    once.optimiser.learning_rate = thrice.optimiser.learning_rate = 0;
    training_loop<acting_update<backend>> one({3, 1, 0}, a, maker(), once), three({3, 1, 0}, b, maker(), thrice);
    for (int i = 0; i < 6; ++i) {
        one.iterate();
        three.iterate();
        const auto x = one.take_window(), y = three.take_window();
        CHECK(y.loss == doctest::Approx(x.loss).epsilon(1e-12));
        CHECK(y.gradient_norm == doctest::Approx(x.gradient_norm).epsilon(1e-12));
    }
}

TEST_CASE("a resumed run equals the uninterrupted one bit for bit") {
    for (const double divergence_cost : {0.0, 0.2})
        for (const int threads : {1, 2}) {
            CAPTURE(divergence_cost);
            CAPTURE(threads);
            run whole(threads, 2, 3, 1, divergence_cost);
            whole.iterate(5);
            const auto file = whole.saved();
            run resumed(threads, 2, 3, 99, divergence_cost);
            resumed.iterate(2);
            resumed.t.load(file);
            whole.iterate(5);
            resumed.iterate(5);
            CHECK(same(resumed.saved(), whole.saved()));
            CHECK_FALSE(same(resumed.saved(), file));
            CHECK(file.contains("adaptive_weights") == (divergence_cost > 0));
        }
}

TEST_CASE("the weight of the divergence follows what the divergence comes to") {
    // A rate of zero leaves the policy where the behaviour's is.
    const auto still = with_memory(1, 0.2), moving = with_memory(1, 0.2, 1e-9);
    auto s = six_by_seven(3, 2);
    s.optimiser.learning_rate = 0;
    training_loop<acting_update<backend>> one({3, 1, 0}, still, maker(), s);
    one.iterate();
    CHECK(loss_named(one.take_window(), "divergence_loss") == 0);
    const auto weight = [](auto& t) {
        const auto file = saved(t);
        return weight_in(file);
    };
    CHECK(weight(one) == 0.1);
    one.iterate();
    CHECK(weight(one) == 0.05);
    for (int i = 0; i < 40; ++i) one.iterate();
    CHECK(weight(one) == 1e-6);

    s.optimiser.learning_rate = 1e-2;
    training_loop<acting_update<backend>> two({3, 1, 0}, moving, maker(), s);
    two.iterate();
    CHECK(loss_named(two.take_window(), "divergence_loss") > 0.2 * 2e-9);
    CHECK(weight(two) == doctest::Approx(0.3).epsilon(1e-12));

    auto file = saved(two);
    auto& bytes = file.tensors.at("adaptive_weights").data;
    std::fill(bytes.begin(), bytes.end(), std::uint8_t{0});
    CHECK_THROWS_WITH_AS(one.load(file), doctest::Contains("an adaptive weight is 0; expected more than zero"), error);
    CHECK(weight(one) == 1e-6);
}

TEST_CASE("a heavy weight keeps the policy near the behaviour's") {
    const auto divergence = [](double cost, double target) {
        const auto a = with_memory(1, cost, target);
        auto s = six_by_seven(8, 2);
        s.optimiser.learning_rate = 1e-2;
        training_loop<acting_update<backend>> t({3, 1, 0}, a, maker(), s);
        for (int i = 0; i < 5; ++i) t.iterate();
        const auto before = saved(t);
        (void)t.take_window();
        t.iterate();
        return loss_named(t.take_window(), "divergence_loss") / weight_in(before);
    };
    // Weights that hardly change, as the target is far from everything.
    const double light = divergence(1e-5, 1e-9), heavy = divergence(1e2, 1e-9);
    CAPTURE(light);
    CAPTURE(heavy);
    CHECK(heavy < light / 10);
}

TEST_CASE("an update that learns once has no weight to adapt") {
    const auto a = with_memory(1, 0.2);
    CHECK_THROWS_WITH_AS((training_loop<asynchronous_update<backend>>({3, 2, 0}, a, maker(), six_by_seven())),
                         doctest::Contains("divergence_loss: its weight is adapted between passes"), error);
}

TEST_CASE("what does not divide is a sentence") {
    const auto a = with_memory();
    CHECK_THROWS_WITH_AS(training_loop<acting_update<backend>>({3, 1, 0}, a, maker(), six_by_seven(1, 4)),
                         "rollout.minibatches: 6 environments do not divide into 4 equal minibatches", engram::error);
    CHECK_THROWS_WITH_AS(training_loop<acting_update<backend>>({3, 3, 0}, a, maker(), six_by_seven(1, 3)),
                         "threads: expected 1 to 2 (the number of environments of a minibatch), got 3", engram::error);
    CHECK_THROWS_WITH_AS(six_by_seven(0, 1).rollout.check(), "rollout.epochs: expected at least one, got 0",
                         engram::error);
}
