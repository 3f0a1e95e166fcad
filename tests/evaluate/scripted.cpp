// Scripted policies play fixed numbers of episodes in every row.

#include "engram/evaluate/scripted.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace engram;

namespace {

/// Episodes of three steps; row r pays 1 for action r % 2, which the oracle knows.
class guessing final : public batch_environment {
public:
    explicit guessing(int count, bool has_oracle = true) : played_(static_cast<std::size_t>(count)) {
        info_.name = "guessing";
        info_.actions = 2;
        info_.has_oracle = has_oracle;
    }
    int size() const override { return static_cast<int>(played_.size()); }
    const task_info& info() const override { return info_; }
    void reset(int, int) override {}
    void observe(int, float*) const override { FAIL("nothing is to be drawn"); }
    outcome step(int row, int action) override {
        int& played = played_[static_cast<std::size_t>(row)];
        const bool done = ++played == 3;
        if (done) played = 0;
        return {action == row % 2 ? 1.0f : 0.0f, done};
    }
    std::optional<trial_event> event(int) const override { return {}; }
    int oracle(int row) const override { return row % 2; }
    std::span<const std::byte> state(int) const override { return {}; }
    void restore(int, std::span<const std::byte>) override {}

private:
    task_info info_;
    std::vector<int> played_;
};

}  // namespace

TEST_CASE("the oracle earns what there is, random actions half of it") {
    const level_maker make = [](const std::string&, int count, std::uint64_t, int) {
        return std::make_unique<guessing>(count);
    };
    const auto oracle = play_scripted(make, "train", scripted_policy::oracle, 10, 1, 4);
    CHECK(oracle.episodes == 10);
    CHECK(oracle.mean == doctest::Approx(3));
    CHECK(oracle.standard_error == doctest::Approx(0));
    // Three coins: mean 1.5, variance 3 / 4.
    const auto random = play_scripted(make, "train", scripted_policy::random, 4000, 1);
    CHECK(std::abs(random.mean - 1.5) < 5 * std::sqrt(0.75 / 4000));
    CHECK(random.standard_error == doctest::Approx(std::sqrt(0.75 / 4000)).epsilon(0.05));
    CHECK(play_scripted(make, "train", scripted_policy::random, 4000, 1).mean == random.mean);
    CHECK(play_scripted(make, "train", scripted_policy::random, 4000, 2).mean != random.mean);
    CHECK_THROWS_AS(play_scripted(make, "train", scripted_policy::random, 0, 1), error);
}

TEST_CASE("an environment without an oracle is not played by one") {
    const level_maker make = [](const std::string&, int count, std::uint64_t, int) {
        return std::make_unique<guessing>(count, false);
    };
    CHECK(play_scripted(make, "train", scripted_policy::random, 10, 1).mean > 0);
    CHECK_THROWS_WITH_AS(play_scripted(make, "train", scripted_policy::oracle, 10, 1),
                         "guessing: this environment has no oracle (it would give `int oracle() const`); "
                         "give --policy random",
                         error);
}
