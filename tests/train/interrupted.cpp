// An episode that was cut from without goes on in what is learnt; all actions are said before one is taken.

#include <doctest/doctest.h>

#include <engram/task/plugged.hpp>
#include <engram/train/unroll.hpp>

#include "small_agent.hpp"

using namespace small;

namespace {

enum class cut { never, seen, unseen };

/// The small task, whose row 1 is cut at a step: what it showed then is known, or is not.
class cut_environment final : public batch_environment {
public:
    cut_environment(cut how, int at) : inner_(maker()(3, 0)), how_(how), at_(at) {}

    int size() const override { return inner_->size(); }
    const task_info& info() const override { return inner_->info(); }
    void reset(int first, int count) override { inner_->reset(first, count); }
    void observe(int row, float* pixels) const override { inner_->observe(row, pixels); }
    void announce(int row, int) override {
        REQUIRE(taken_ == 0);
        announced_ += row + 1;
    }
    outcome step(int row, int action) override {
        REQUIRE(announced_ == 6);
        if (++taken_ == 3) announced_ = taken_ = 0, ++steps_;
        outcome got = inner_->step(row, action);
        const int now = row == 2 ? steps_ : steps_ + 1;
        got.reward += 0.25f;
        if (row != 1 || now != at_ || how_ == cut::never) return got;
        last_.resize(static_cast<std::size_t>(info().observation.size()));
        inner_->observe(row, last_.data());
        inner_->reset(row, 1);
        got.done = got.interrupted = true;
        return got;
    }
    bool observe_last(int row, float* pixels) const override {
        if (row != 1 || how_ != cut::seen) return false;
        std::copy(last_.begin(), last_.end(), pixels);
        return true;
    }
    std::optional<trial_event> event(int row) const override { return inner_->event(row); }
    int oracle(int row) const override { return inner_->oracle(row); }
    std::span<const std::byte> state(int row) const override { return inner_->state(row); }
    void restore(int row, std::span<const std::byte> saved) override { inner_->restore(row, saved); }

private:
    std::unique_ptr<batch_environment> inner_;
    cut how_;
    int at_, announced_ = 0, taken_ = 0, steps_ = 0;
    std::vector<float> last_;
};

}  // namespace

TEST_CASE("the last reward of a cut episode has the value of what was seen last, or is what was expected") {
    constexpr int at = 4;
    const auto agent = trace(1, 16, 0.9);
    CHECK(agent.discount == 0.9);
    const auto acting = [&](cut how) {
        return actor<backend>(agent, agent.store, std::make_unique<cut_environment>(how, at), 5, 0);
    };
    auto whole = acting(cut::never), seen = acting(cut::seen), unseen = acting(cut::unseen);
    for (int t = 0; t < at; ++t) whole.step(), seen.step(), unseen.step();
    const float reward = whole.reward()[1];
    CHECK(reward >= 0.25f);
    CHECK(seen.done()[1] == 1);
    const float value = whole.peek()[1];
    CHECK(std::fabs(value) > 1e-4f);
    CHECK(seen.reward()[1] == reward + 0.9f * value);
    CHECK(unseen.reward()[1] == unseen.value()[1]);
    // What it earned is what it earned, and nobody else notices.
    CHECK(seen.finished().size() == 1);
    CHECK(seen.finished()[0] == whole.episode_reward()[1]);
    for (const int row : {0, 2}) {
        CHECK(seen.reward()[row] == whole.reward()[row]);
        CHECK(seen.done()[static_cast<std::size_t>(row)] == 0);
    }
    CHECK(seen.reset()[1] == 1);
    CHECK(seen.last_reward()[1] == 0);
    // The next episode is entered alike however the last one ended.
    seen.step(), unseen.step();
    CHECK(seen.value()[1] == unseen.value()[1]);
}

namespace {

/// Three steps an episode, the last of which is the end of every other one and a cut of the rest.
struct timed {
    static constexpr own_task specification{
        .name = "timed", .observation = {1, 1, 2}, .actions = 2, .longest_episode = 3, .maximum_reward = 3};
    int time, number;
    void reset(philox&) { time = 0, ++number; }
    outcome step(int) {
        const bool last = ++time == 3;
        return {1, last, last && number % 2 == 0};
    }
    void observe(float* numbers) const { numbers[0] = static_cast<float>(time), numbers[1] = 7; }
};

}  // namespace

TEST_CASE("an environment of one's own may cut an episode: what it showed then is kept for one step") {
    batch_of<plugged<timed>> rows("train", 2, 1, 0, {}, nullptr);
    int cuts = 0;
    for (int t = 1; t <= 12; ++t)
        for (const int row : {0, 1}) {
            const outcome got = rows.step(row, 0);
            CHECK(got.done == (t % 3 == 0));
            float seen[2] = {-1, -1};
            CHECK(rows.observe_last(row, seen) == got.interrupted);
            CHECK(seen[0] == (got.interrupted ? 3 : -1));
            CHECK(seen[1] == (got.interrupted ? 7 : -1));
            rows.observe(row, seen);
            CHECK(seen[0] == static_cast<float>(t % 3));
            cuts += got.interrupted ? 1 : 0;
        }
    CHECK(cuts == 4);
}

TEST_CASE("who begins anew forgets what was loaded of an episode") {
    const auto agent = trace(1, 16, 0.9);
    actor<backend> fresh(agent, agent.store, std::make_unique<cut_environment>(cut::never, 0), 5, 0);
    for (int t = 0; t < 3; ++t) fresh.step();
    fresh.begin_anew();
    for (int row = 0; row < 3; ++row) {
        CHECK(fresh.reset()[static_cast<std::size_t>(row)] == 1);
        CHECK(fresh.last_action()[static_cast<std::size_t>(row)] == -1);
        CHECK(fresh.last_reward()[static_cast<std::size_t>(row)] == 0);
        CHECK(fresh.episode_reward()[static_cast<std::size_t>(row)] == 0);
    }
}
