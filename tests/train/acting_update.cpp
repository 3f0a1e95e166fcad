// Synchronous training: exact resume, refused checkpoints, numbers that are not finite, threads.

#include <doctest/doctest.h>

#include <limits>

#include "same_file.hpp"
#include "small_run.hpp"

using namespace small;

namespace {

struct run : small_training<backend> {
    explicit run(int threads = 1, int hidden = 16, std::uint64_t seed = 1)
        : small_training(trace(seed, hidden), threads) {}
};

}  // namespace

TEST_CASE("a resumed run equals the uninterrupted one bit for bit") {
    for (const int threads : {1, 2}) {
        CAPTURE(threads);
        run whole(threads);
        whole.iterate(9);  // 63 steps: past the end of an episode of 50
        const auto file = whole.saved();
        run resumed(threads, 16, 99);
        resumed.iterate(2);  // what it did before leaves no trace
        resumed.t.load(file);
        CHECK(resumed.t.steps() == whole.t.steps());
        CHECK(resumed.t.updates() == 9);
        CHECK(same(resumed.saved(), file));
        (void)whole.t.take_window();
        whole.iterate(9);
        resumed.iterate(9);
        CHECK(same(resumed.saved(), whole.saved()));
        CHECK_FALSE(same(resumed.saved(), file));
        const auto a = whole.t.take_window(), b = resumed.t.take_window();
        CHECK(a.episodes == b.episodes);
        CHECK(a.episodes.size() == 6);  // steps 63 to 126 hold one end of an episode in each of six rows
        CHECK(a.loss == b.loss);
    }
}

TEST_CASE("a checkpoint of something else is refused by name and changes nothing") {
    run other(1, 24);
    const auto of_other = other.saved();
    run here;
    here.iterate(2);
    const auto before = here.saved();
    CHECK_THROWS_WITH_AS(here.t.load(of_other), doctest::Contains("expected ["), engram::error);
    CHECK_THROWS_WITH_AS(here.t.load(of_other), doctest::Contains("memory.key.weight"), engram::error);
    CHECK_THROWS_WITH_AS(run(2).t.load(before), doctest::Contains("was written with 1 shards, this run has 2"),
                         engram::error);

    auto extra = before;
    extra.tensors.emplace("optimiser.first.auxiliary.head", extra.at("learner.value.weight"));
    CHECK_THROWS_WITH_AS(here.t.load(extra), doctest::Contains("'auxiliary.head' that this model does not have"),
                         engram::error);
    auto asynchronous = before;
    asynchronous.metadata["training_mode"] = "asynchronous";
    CHECK_THROWS_WITH_AS(here.t.load(asynchronous), doctest::Contains("this run is synchronous"), engram::error);

    // The last row's environment is damaged: the rows before it are put back.
    auto damaged = before;
    run ahead;
    ahead.iterate(4);
    for (auto& [name, t] : damaged.tensors)
        if (name.find("environment.") != std::string::npos) t.data = ahead.saved().at(name).data;
    auto& last = damaged.tensors.at("shard.0.environment.5").data;
    std::fill(last.end() - 64, last.end(), std::uint8_t(255));
    std::fill(last.begin(), last.begin() + 8, std::uint8_t(255));
    CHECK_THROWS_WITH_AS(here.t.load(damaged), doctest::Contains("saved state"), engram::error);
    CHECK(same(here.saved(), before));
}

TEST_CASE("weights that are not numbers stop the run with the operation's name and stay as they were") {
    run r;
    r.iterate(1);
    const auto entry = (*r.a.store)[r.a.store->find("learner.value.weight")];
    r.a.store->edit().flat()[static_cast<std::size_t>(entry.offset)] = std::numeric_limits<float>::quiet_NaN();
    const auto before = weights(r.a);
    CHECK_THROWS_WITH_AS(r.t.iterate(), doctest::Contains("training stopped at step 84: the loss is"), engram::error);
    CHECK_THROWS_WITH_AS(r.t.iterate(), doctest::Contains("first non-finite value: learner.value"), engram::error);
    const auto after = weights(r.a);
    CHECK(std::memcmp(before.data(), after.data(), before.size() * sizeof(float)) == 0);
    CHECK(r.t.updates() == 1);
}

TEST_CASE("the first unroll does not depend on the number of threads") {
    run one(1), two(2);
    one.iterate(1);
    two.iterate(1);
    for (const char* name :
         {"observation", "action", "reward", "behaviour_log_probability", "continues", "bootstrap"}) {
        CAPTURE(name);
        auto& whole = one.t->shard(0).learner;
        const auto all = whole.input(name);
        const std::size_t steps = std::string(name) == "bootstrap" ? 1 : 7;
        const std::size_t width = all.size() / steps / 6;
        int different = 0;
        for (int part = 0; part < 2; ++part) {
            const auto half = two.t->shard(part).learner.input(name);
            for (std::size_t t = 0; t < steps; ++t)
                for (std::size_t i = 0; i < 3 * width; ++i)
                    different +=
                        half[t * 3 * width + i] != all[t * 6 * width + static_cast<std::size_t>(part) * 3 * width + i];
        }
        CHECK(different == 0);
    }
    // Gradients are sums of two parts now: equal but for rounding.
    const auto a = weights(one.a), b = weights(two.a);
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(double(a[i]) - double(b[i])));
    CHECK(worst < 1e-4);  // a tenth of one step of Adam
}
