// SPDX-License-Identifier: MIT
// Truncated BPTT: whole sequences in one unroll are plain BPTT; carried states reach across unrolls, gradients do not.

#include "engram/train/truncated_update.hpp"

#include <doctest/doctest.h>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/stacked_lstm.hpp>
#include <engram/encoder/token_embedding.hpp>
#include <engram/evaluate/answers.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/agent.hpp>
#include <engram/task/add_marked.hpp>
#include <engram/task/copy_sequences.hpp>

#include "same_file.hpp"

using namespace engram;

namespace {

using truncated = agent<token_embedding, stacked_lstm, no_memory, no_auxiliary, truncated_supervised>;
using whole = truncated::with<supervised>;

template <class Agent>
typename Agent::settings tiny(int unroll, double forget_bias = 3) {
    typename Agent::settings s;
    s.encoder.width = 16;
    s.controller.hidden = 32;
    s.controller.forget_bias = forget_bias;
    if constexpr (requires { s.learner.unroll; }) s.learner.unroll = unroll;
    return s;
}

optimiser_settings quick(double rate = 1e-2) {
    optimiser_settings o;
    o.learning_rate = rate;
    o.epsilon = 1e-8;
    o.clip = 1;
    return o;
}

std::shared_ptr<const sequence_source> copying(int T, int items) {
    return std::make_shared<const copy_task<false>>(task_options{.items = items, .steps = T, .markers = "distinct"});
}

template <class Agent, class Backend>
traced_agent<Backend> traced(const std::shared_ptr<const sequence_source>& source, int unroll = 0,
                             double forget_bias = 3) {
    return Agent::template trace<Backend>(tiny<Agent>(unroll, forget_bias), shape_of(source->info()), 1);
}

}  // namespace

TEST_CASE("an unroll that holds the sequence is plain BPTT, bit for bit") {
    const auto source = copying(12, 2);
    const auto a = traced<truncated, cpu<double>>(source, 12), b = traced<whole, cpu<double>>(source);
    training_loop<truncated_update<cpu<double>>> t({1, 1, 0}, a, source, sequence_settings{4}, quick());
    training_loop<sequence_update<cpu<double>>> u({1, 1, 0}, b, source, sequence_settings{4}, quick());
    for (int i = 0; i < 5; ++i) {
        t.iterate();
        u.iterate();
        CHECK(t.take_window().loss == u.take_window().loss);
    }
    CHECK(std::equal(a.store->flat().begin(), a.store->flat().end(), b.store->flat().begin()));
    CHECK(t.steps() == u.steps());
}

// Whatever the unroll, the forward pass is that of the whole sequence: with equal weights the losses add up.
TEST_CASE("states are carried from unroll to unroll and begin anew with a sequence") {
    const auto source = copying(12, 2);
    const auto a = traced<truncated, cpu<double>>(source, 5), b = traced<whole, cpu<double>>(source);
    training_loop<truncated_update<cpu<double>>> t({1, 1, 0}, a, source, sequence_settings{4}, quick(0));
    training_loop<sequence_update<cpu<double>>> u({1, 1, 0}, b, source, sequence_settings{4}, quick(0));
    for (int sequences = 0; sequences < 3; ++sequences) {
        double sum = 0;  // 12 steps are unrolls of 5, 5 and 2, each a mean over 5
        for (int i = 0; i < 3; ++i) {
            t.iterate();
            sum += 5 * t.take_window().loss;
        }
        u.iterate();
        CHECK(sum / 12 == doctest::Approx(u.take_window().loss).epsilon(1e-12));
        CHECK(t.steps() == u.steps());
    }
}

namespace {

/// The same sequences, judged at their last step alone, as the class of an image is.
class judged_at_the_end final : public sequence_source {
public:
    explicit judged_at_the_end(std::shared_ptr<const sequence_source> all) : all_(std::move(all)) {}
    const sequence_info& info() const override { return all_->info(); }
    void draw(const std::string& level, std::uint64_t seed, std::uint64_t index,
              const sequence_place& to) const override {
        all_->draw(level, seed, index, to);
        for (int t = 0; t + 1 < info().steps; ++t) to.weight[t * to.rows] = 0;
    }

private:
    std::shared_ptr<const sequence_source> all_;
};

/// Everything of a checkpoint that an update changes.
std::vector<bytes> weights_and_moments(training_loop<truncated_update<cpu<float>>>& t) {
    const auto file = saved(t);
    std::vector<bytes> all;
    for (const auto& [name, tensor] : file.tensors)
        if (!name.starts_with("trainer.") && !name.starts_with("shard."))
            all.emplace_back(tensor.data.begin(), tensor.data.end());
    return all;
}

}  // namespace

TEST_CASE("an unroll without a target leaves weights and moments alone, and is no update") {
    const auto source = std::make_shared<const judged_at_the_end>(copying(12, 2));
    for (const int threads : {1, 2}) {
        const auto a = traced<truncated, cpu<float>>(source, 4);
        training_loop<truncated_update<cpu<float>>> t({1, threads, 0}, a, source, sequence_settings{4}, quick());
        auto before = weights_and_moments(t);
        for (int i = 0; i < 9; ++i) {
            t.iterate();
            const bool last = i % 3 == 2;
            const auto after = weights_and_moments(t);
            CHECK((after != before) == last);
            CHECK(t.updates() == (i + 1) / 3);
            const auto window = t.take_window();
            CHECK((window.loss != 0) == last);
            CHECK((window.gradient_norm != 0) == last);
            before = after;
        }
        CHECK(t.steps() == 9 * 4 * 4);
    }
}

TEST_CASE("a resumed run is the run that was never stopped") {
    const auto source = copying(12, 2);
    for (const int threads : {1, 2}) {
        const auto a = traced<truncated, cpu<float>>(source, 5), b = traced<truncated, cpu<float>>(source, 5),
                   c = traced<truncated, cpu<float>>(source, 5);
        training_loop<truncated_update<cpu<float>>> all({1, threads, 0}, a, source, sequence_settings{4}, quick()),
            part({1, threads, 0}, b, source, sequence_settings{4}, quick()),
            rest({1, threads, 0}, c, source, sequence_settings{4}, quick());
        for (int i = 0; i < 11; ++i) all.iterate();
        for (int i = 0; i < 7; ++i) part.iterate();
        const auto file = saved(part);
        rest.load(file);
        for (int i = 0; i < 4; ++i) rest.iterate();
        CHECK(std::equal(a.store->flat().begin(), a.store->flat().end(), c.store->flat().begin()));
        CHECK(rest.steps() == all.steps());
    }
}

// Two digits over 16 steps. Chance is 12.5 % of 400 answers: 50, standard deviation 6.6. Untrained states that are
// carried hold traces of what was seen: without a forget bias they have faded after 16 steps. Both are trained on the
// same sequences. Unrolls of two steps see nothing that helps to keep a digit; unrolls of five learn to keep one of the
// two by its trace, after as many sequences.
TEST_CASE("BPTT learns a gap that truncated BPTT cannot see") {
    const auto source = copying(20, 2);
    const auto a = traced<truncated, cpu<float>>(source, 2, 0), b = traced<whole, cpu<float>>(source);
    training_loop<truncated_update<cpu<float>>> t({1, 1, 0}, a, source, sequence_settings{16}, quick(5e-3));
    training_loop<sequence_update<cpu<float>>> u({1, 1, 0}, b, source, sequence_settings{16}, quick(5e-3));
    for (int i = 0; i < 3000; ++i) u.iterate();
    while (t.steps() < u.steps()) t.iterate();  // ten updates for each of the other's
    answer_player<cpu<float>> cut(a, source, 50), uncut(b, source, 50);
    const auto score = uncut.score("holdout_interpolate", 200, 1);
    CHECK(score.unit == "% right");
    CHECK(score.sequences == 200);
    CHECK(t.steps() == u.steps());
    MESSAGE("BPTT ", score.mean, " %, truncated ", cut.score("holdout_interpolate", 200, 1).mean, " %");
    CHECK(score.mean > 90);
    CHECK(cut.score("holdout_interpolate", 200, 1).mean < 20);
    CHECK(uncut.score("holdout_interpolate", 200, 1, [] { return true; }).sequences == 0);
    CHECK(uncut.score("holdout_interpolate", 7, 1).sequences == 7);
}

TEST_CASE("numbers are judged by their squared error, and bad input is one sentence") {
    const auto source = std::make_shared<const add_marked>(task_options{.steps = 6});
    const auto a = traced<truncated, cpu<float>>(source, 6);
    answer_player<cpu<float>> player(a, source, 10);
    const auto score = player.score("train", 100, 1);
    CHECK(score.unit == "mean squared error");
    double sum = 0;
    int count = 0;
    for (int batch = 0; batch < 10; ++batch)
        player.play("train", 1, batch, [&](int, const given_answer& answer) {
            sum += (answer.given - answer.wanted) * (answer.given - answer.wanted);
            ++count;
        });
    CHECK(count == 100);
    CHECK(score.mean == doctest::Approx(sum / 100));
    const auto b = traced<truncated, cpu<float>>(source, 7);
    CHECK_THROWS_WITH(training_loop<truncated_update<cpu<float>>>({1, 1, 0}, b, source, sequence_settings{4}, quick()),
                      "learner.unroll: an unroll of 7 steps is longer than a sequence of add, which has 6");
}
