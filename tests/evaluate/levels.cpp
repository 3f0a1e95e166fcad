// Evaluation on a level: every environment plays its share, whatever the lengths of its episodes.

#include <doctest/doctest.h>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/evaluate/levels.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/no_memory.hpp>

#include "../train/threads_as_processes.hpp"

using namespace engram;

namespace {

// Row r plays episodes of length 1 + 9 (r % 2) and earns 1 + raise r a step.
class uneven final : public batch_environment {
public:
    uneven(int count, std::uint64_t seed, bool seeks_goal = false, int first_row = 0, float raise = 0)
        : played_(static_cast<std::size_t>(count)), seed_(seed), first_row_(first_row), raise_(raise) {
        info_.seeks_goal = seeks_goal;
        info_.name = "uneven";
        info_.observation = {1, 1, 2};
        info_.actions = 3;
    }
    int size() const override { return static_cast<int>(played_.size()); }
    const task_info& info() const override { return info_; }
    void reset(int, int) override {}
    void observe(int row, float* pixels) const override {
        pixels[0] = static_cast<float>(seed_ % 1000) / 1000.0f;
        pixels[1] = static_cast<float>((first_row_ + row) % 2);
    }
    outcome step(int row, int) override {
        int& played = played_[static_cast<std::size_t>(row)];
        const bool done = ++played == 1 + 9 * ((first_row_ + row) % 2);
        if (done) played = 0;
        return {1 + raise_ * static_cast<float>(first_row_ + row), done};
    }
    std::optional<trial_event> event(int) const override { return {}; }
    int oracle(int) const override { return 0; }
    std::span<const std::byte> state(int) const override { return {}; }
    void restore(int, std::span<const std::byte>) override {}

private:
    task_info info_;
    std::vector<int> played_;
    std::uint64_t seed_;
    int first_row_;
    float raise_;
};

using small = agent<mlp, feed_forward, no_memory, no_auxiliary, vtrace>;

traced_agent<cpu<float>> traced() {
    small::settings s;
    s.encoder.layers = {4};
    s.controller.hidden = 4;
    return small::trace<cpu<float>>(s, {{1, 1, 2}, 3}, 1);
}

}  // namespace

TEST_CASE("short episodes are not counted more often than long ones") {
    const auto a = traced();
    std::vector<std::uint64_t> seeds;
    const level_maker make = [&](const std::string&, int count, std::uint64_t seed, int) {
        seeds.push_back(seed);
        return std::make_unique<uneven>(count, seed);
    };
    // 4 rows x 5 episodes: half of length 1, half of length 10.
    const auto even = evaluate_level(a, a.store, make, "train", 20, 7, 4);
    CHECK(even.episodes == 20);
    CHECK(even.mean == doctest::Approx(5.5));
    CHECK(even.standard_error == doctest::Approx(4.5 / std::sqrt(19.0)));
    // 22 episodes: rows 0 and 1 play one more each.
    CHECK(evaluate_level(a, a.store, make, "train", 22, 7, 4).mean == doctest::Approx(5.5));
    // 3 episodes need no more than 3 rows: lengths 1, 10, 1.
    CHECK(evaluate_level(a, a.store, make, "train", 3, 7, 4).mean == doctest::Approx(4));
    CHECK(evaluate_level(a, a.store, make, "holdout", 20, 8, 4).mean == doctest::Approx(5.5));
    CHECK(seeds[0] == seeds[1]);
    CHECK(seeds[0] != 7);
    CHECK(seeds[0] != seeds[3]);
    CHECK_THROWS_AS(evaluate_level(a, a.store, make, "train", 0, 7), error);
    CHECK(evaluate_level(a, a.store, make, "train", 20, 7, 4, [] { return true; }).episodes == 0);
    CHECK(even.goals.steps.empty());
}

TEST_CASE("where a goal is sought, the steps to it are counted in the episodes that count") {
    const auto a = traced();
    const level_maker make = [](const std::string&, int count, std::uint64_t seed, int) {
        return std::make_unique<uneven>(count, seed, true);
    };
    // A goal every step: 10 episodes of one step and 10 of ten.
    const auto goals = evaluate_level(a, a.store, make, "train", 20, 7, 4).goals;
    CHECK(goals.steps == std::vector<double>(10, 1.0));
    CHECK(goals.episodes == std::vector<int>{20, 10, 10, 10, 10, 10, 10, 10, 10, 10});
}

TEST_CASE("several processes play some of the environments each and have the score of one") {
    const level_maker make = [](const std::string&, int count, std::uint64_t seed, int first_row) {
        return std::make_unique<uneven>(count, seed, true, first_row, 0.3f);
    };
    for (const int rows : {1, 4, 7}) {
        const auto a = traced();
        const auto alone = evaluate_level(a, a.store, make, "train", 23, 7, rows);
        CHECK(alone.episodes == 23);
        for (const int count : {2, 3, 5}) {
            std::vector<level_score> scores(static_cast<std::size_t>(count));
            threads_as_processes::as_processes(count, [&](processes& self) {
                const auto own = traced();
                const auto rank = static_cast<std::size_t>(self.rank());
                scores[rank] = evaluate_level(own, own.store, make, "train", 23, 7, rows, {}, &self);
            });
            for (const auto& score : scores) {
                CHECK(score.episodes == 23);
                CHECK(score.mean == alone.mean);
                CHECK(score.standard_error == alone.standard_error);
                CHECK(score.goals.steps == alone.goals.steps);
                CHECK(score.goals.episodes == alone.goals.episodes);
            }
        }
    }
    threads_as_processes::as_processes(3, [&](processes& self) {
        const auto own = traced();
        const auto stop = [&] { return self.rank() == 1; };
        const bool none = evaluate_level(own, own.store, make, "train", 23, 7, 4, stop, &self).episodes == 0;
        require(none, "process ", self.rank(), " has a score although another one was told to stop");
    });
}
