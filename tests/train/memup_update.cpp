// SPDX-License-Identifier: MIT
// MemUP's training: the gradient of an update is that of plain BPTT where both say the same, and central differences
// everywhere; threads, resumption, memory that does not grow with T, what it learns in seconds.

#include "engram/train/memup_update.hpp"

#include <doctest/doctest.h>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/stacked_lstm.hpp>
#include <engram/encoder/token_embedding.hpp>
#include <engram/learner/memup.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/agent.hpp>
#include <engram/task/add_marked.hpp>
#include <engram/task/copy_sequences.hpp>

#include "same_file.hpp"

using namespace engram;

namespace {

using model = agent<token_embedding, stacked_lstm, no_memory, no_auxiliary, memup>;

model::settings tiny(int rollout, int every, int selected, double current_weight) {
    model::settings s;
    s.encoder.width = 4;
    s.controller.hidden = 5;
    s.controller.layers = 2;
    s.learner.rollout = rollout;
    s.learner.every = every;
    s.learner.selected = selected;
    s.learner.current_weight = current_weight;
    s.learner.hidden = {6};
    return s;
}

/// Episodes of the task's own length, or of 5, 6, ... steps by index.
class of_lengths final : public sequence_source {
public:
    explicit of_lengths(int T, bool equal = false) : task_({.items = 2, .steps = T}), equal_(equal) {}
    const sequence_info& info() const override { return task_.info(); }
    void draw(const std::string& level, std::uint64_t seed, std::uint64_t index,
              const sequence_place& to) const override {
        task_.draw(level, seed, index, to);
    }
    int length(const std::string&, std::uint64_t, std::uint64_t index) const override {
        return equal_ ? info().steps : 5 + static_cast<int>(index) % (info().steps - 4);
    }

private:
    copy_task<true> task_;
    bool equal_;
};

optimiser_settings still() {
    optimiser_settings o;
    o.learning_rate = 0;
    o.clip = 0;
    o.epsilon = 1e-8;
    return o;
}

template <class Real>
struct trained {
    trained(const model::settings& s, std::shared_ptr<const sequence_source> source, const optimiser_settings& o,
            int batch = 3, int threads = 1, std::uint64_t seed = 1)
        : fast(model::trace<cpu<Real>>(s, shape_of(source->info()), seed)),
          slow(model::trace<cpu<Real>>(s, shape_of(source->info()), seed, purpose::generating)),
          trainer({seed, threads, 0}, fast, slow, source, sequence_settings{batch}, o) {}
    traced_agent<cpu<Real>> fast, slow;
    training_loop<memup_update<cpu<Real>>> trainer;
    std::vector<Real> weights() const { return {fast.store->flat().begin(), fast.store->flat().end()}; }
};

/// Gradient of plain BPTT through whole sequences of the predictions that every step makes of itself, weighted.
std::vector<double> plain(const model::settings& s, const std::shared_ptr<const sequence_source>& source, int batch,
                          bool only_last) {
    const auto a = model::trace<cpu<double>>(s, shape_of(source->info()), 1, purpose::generating);
    add_loss("plain", map("plain_rows", times{}, *a.row_loss, a.g->input("plain_weight", 1)));
    const int T = source->info().steps;
    program<cpu<double>> p(*a.g, a.store, {.steps = T, .batch = batch, .gradients = true});
    sequence_rows rows(source, "train", 1, batch, 0, batch);
    rows.draw();
    rows.fill(p, T);
    const auto weight = p.input("plain_weight");
    for (int t = 0; t < T; ++t)
        for (int b = 0; b < batch; ++b)
            weight[static_cast<std::size_t>(t * batch + b)] =
                only_last ? (t == T - 1 ? 1.0 / batch : 0.0) : 1.0 / (batch * T);
    std::fill(p.input("memory_gradient").begin(), p.input("memory_gradient").end(), 0.0);
    p.forward();
    p.backward();
    return {p.gradient().begin(), p.gradient().end()};
}

template <class Trainer>
std::vector<double> gradient_of(Trainer& t) {
    const auto g = t->learner(0).gradient();  // the sum of both programs
    return {g.begin(), g.end()};
}

double difference(const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    double worst = 0, largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        worst = std::max(worst, std::abs(a[i] - b[i]));
        largest = std::max(largest, std::abs(b[i]));
    }
    REQUIRE(largest > 1e-3);
    return worst / largest;
}

}  // namespace

TEST_CASE("r = T, f = T, K = all is plain BPTT of what the last step predicts") {
    const auto source = std::make_shared<const of_lengths>(12, true);
    for (const int K : {1, 12}) {
        const auto s = tiny(12, 12, K, 0);
        trained<double> t(s, source, still());
        t.trainer.iterate();
        CHECK(difference(gradient_of(t.trainer), plain(s, source, 3, true)) < 1e-10);
    }
}

TEST_CASE("r = T and every step predicting itself is plain BPTT of all steps") {
    const auto source = std::make_shared<const of_lengths>(12, true);
    auto s = tiny(12, 1, 12, 0);
    s.learner.selection = "current";
    trained<double> t(s, source, still());
    t.trainer.iterate();
    CHECK(difference(gradient_of(t.trainer), plain(s, source, 3, false)) < 1e-10);
    // The current-step loss beside a prediction of the last step is the sum of both.
    const auto both = tiny(12, 12, 3, 1);
    trained<double> u(both, source, still());
    u.trainer.iterate();
    auto sum = plain(both, source, 3, false);
    const auto last = plain(both, source, 3, true);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += last[i];
    CHECK(difference(gradient_of(u.trainer), sum) < 1e-10);
}

// Weights and moving averages start equal, and what is chosen depends on the averages alone.
TEST_CASE("the gradient of an update is what central differences say, in the middle of episodes of many lengths") {
    const auto source = std::make_shared<const of_lengths>(17);
    for (const bool retraced : {false, true})
        for (const int rollouts : {1, 3}) {
            auto s = tiny(4, 3, 2, 0.7);
            s.learner.context.layers = 2 * retraced;
            s.learner.context.hidden = 3;
            s.learner.context.retraced = retraced;
            trained<double> t(s, source, still());
            for (int i = 0; i < rollouts; ++i) t.trainer.iterate();
            const auto analytic = gradient_of(t.trainer);
            // The state that the last rollout entered with came from the unperturbed weights: it is put back each time.
            const auto loss_with = [&](std::size_t at, double by) {
                trained<double> u(s, source, still());
                for (int i = 0; i + 1 < rollouts; ++i) u.trainer.iterate();
                u.fast.store->edit().flat()[at] += by;
                u.trainer.iterate();
                return u.trainer->pair_program(0).loss();
            };
            double worst = 0;
            int compared = 0;
            for (const auto& e : t.fast.store->entries())
                for (std::ptrdiff_t i = 0; i < e.size(); i += 1 + e.size() / 3) {
                    const auto at = static_cast<std::size_t>(e.offset + i);
                    const double width = 1e-5;  // within one linear piece of the head
                    const double slope = (loss_with(at, -2 * width) - 8 * loss_with(at, -width) +
                                          8 * loss_with(at, width) - loss_with(at, 2 * width)) /
                                         (12 * width);
                    worst = std::max(worst, std::abs(slope - analytic[at]));
                    ++compared;
                }
            CHECK(compared > 20);
            CHECK(worst < 1e-8);
        }
}

// With a context the chosen pairs see what the averages hold, or what the weights do where it is retraced, the current
// steps what the weights do.
TEST_CASE(
    "with contexts: plain BPTT, with a gradient from what is chosen to the context network where it is retraced") {
    for (const bool retraced : {false, true}) {
        auto s = tiny(12, 1, 12, 1);
        s.learner.selection = "current";
        s.learner.context.layers = 2;
        s.learner.context.hidden = 3;
        s.learner.context.retraced = retraced;
        const auto equal = std::make_shared<const of_lengths>(12, true);
        trained<double> t(s, equal, still());
        t.trainer.iterate();
        // The two losses are equal here.
        const auto all = gradient_of(t.trainer), once = plain(s, equal, 3, false);
        double worst = 0;
        int contexts = 0;
        for (const auto& e : t.fast.store->entries()) {
            const bool of_context = e.name.starts_with("predictor.context") || e.name.starts_with("predictor.encoder");
            contexts += of_context;
            for (std::ptrdiff_t i = 0; i < e.size(); ++i) {
                const auto at = static_cast<std::size_t>(e.offset + i);
                worst = std::max(worst, std::abs(all[at] - (of_context && !retraced ? 1 : 2) * once[at]));
            }
        }
        CHECK(contexts == 5);
        CHECK(worst < 1e-12);
    }
}

TEST_CASE("by turns: the predictor, then the memory, each with moments of its own") {
    auto s = tiny(4, 2, 3, 1);
    s.learner.pretrain = 3;
    s.learner.block = 2;
    s.learner.context.layers = 1;
    s.learner.context.hidden = 3;
    optimiser_settings o;
    o.learning_rate = 1e-2;
    o.epsilon = 1e-8;
    trained<float> t(s, std::make_shared<const of_lengths>(17), o);
    for (int i = 0; i < 11; ++i) {
        const auto before = t.weights();
        t.trainer.iterate();
        const auto after = t.weights();
        const bool predictor = i < 3 || (i - 3) / 2 % 2 == 1;
        for (const auto& e : t.fast.store->entries()) {
            const auto at = static_cast<std::ptrdiff_t>(e.offset);
            const bool same = std::equal(before.begin() + at, before.begin() + at + e.size(), after.begin() + at);
            CAPTURE(e.name);
            CAPTURE(i);
            CHECK(same == (e.name.starts_with("predictor.") != predictor));
        }
    }
}

TEST_CASE("a head that sees the step beside its context: the gradient is that of plain BPTT") {
    const auto source = std::make_shared<const of_lengths>(12, true);
    for (const bool and_step : {false, true}) {
        auto s = tiny(12, 12, 1, 1);
        s.learner.context = {.layers = 1, .hidden = 3, .and_step = and_step};
        s.learner.pretrain = 1;  // an update of the predictor: every step predicts itself
        trained<double> t(s, source, still());
        t.trainer.iterate();
        const auto found = gradient_of(t.trainer), expected = plain(s, source, 3, false);
        std::vector<double> a, b;
        int head = 0;
        for (const auto& e : t.fast.store->entries()) {
            if (e.name == "predictor.hidden.0.weight") head = e.rows;
            if (!e.name.starts_with("predictor.")) continue;
            a.insert(a.end(), found.begin() + e.offset, found.begin() + e.offset + e.size());
            b.insert(b.end(), expected.begin() + e.offset, expected.begin() + e.offset + e.size());
        }
        CHECK(difference(a, b) < 1e-10);
        CHECK(head == 3 + 5 + (and_step ? 4 : 0));  // c_k, m_i, e_k
    }
    auto none = tiny(12, 12, 1, 1);
    none.learner.context.and_step = true;
    CHECK_THROWS_WITH(none.learner.check(),
                      "learner.context.and_step: there is no context; set learner.context.layers");
}

TEST_CASE("the chosen targets' loss counts as much as it is told to") {
    const auto source = std::make_shared<const of_lengths>(12, true);
    auto s = tiny(12, 12, 12, 0);
    trained<double> whole(s, source, still());
    s.learner.chosen_weight = 0.25;
    trained<double> part(s, source, still());
    whole.trainer.iterate();
    part.trainer.iterate();
    auto quarter = gradient_of(whole.trainer);
    for (double& x : quarter) x *= 0.25;
    CHECK(difference(gradient_of(part.trainer), quarter) < 1e-12);
}

// Three rollouts a sequence. In the predictor's turn the last two steps alone have targets: a rollout without them is
// no update, and the turn lasts until there was one.
TEST_CASE("a rollout without a target, or with a loss below the limit, leaves weights and moments alone") {
    const auto source = std::make_shared<const of_lengths>(12, true);
    auto s = tiny(4, 4, 1, 1);
    s.learner.block = 1;
    s.learner.last = 2;
    optimiser_settings o;
    o.learning_rate = 1e-2;
    o.epsilon = 1e-8;
    trained<float> t(s, source, o);
    std::vector<std::int64_t> updates;
    auto before = t.weights();
    for (int i = 0; i < 6; ++i) {
        t.trainer.iterate();
        const auto after = t.weights();
        CHECK((after != before) == (t.trainer.updates() > (updates.empty() ? 0 : updates.back())));
        updates.push_back(t.trainer.updates());
        before = after;
    }
    // Memory, no target, predictor; memory, no target, predictor.
    CHECK(updates == std::vector<std::int64_t>{1, 1, 2, 3, 3, 4});
    const auto steps = t.trainer.steps();
    t.trainer->leave_out_below(1e9);
    t.trainer.iterate();
    CHECK(t.weights() == before);
    CHECK(t.trainer.updates() == 4);
    CHECK(t.trainer.steps() > steps);
    t.trainer->leave_out_below(0);
    t.trainer.iterate();
    CHECK(t.trainer.updates() == 5);
}

TEST_CASE("a resumed run is the run that was never stopped, threads and averages included") {
    optimiser_settings o;
    o.learning_rate = 3e-3;
    o.epsilon = 1e-8;
    auto s = tiny(4, 2, 3, 1);
    s.learner.period = 3;
    s.learner.dropout = 0.2;
    s.controller.dropout = 0.2;
    const auto source = std::make_shared<const of_lengths>(17);
    for (const int threads : {1, 2}) {
        s.learner.context.layers = threads - 1;  // the second time with contexts, and by turns
        s.learner.context.hidden = 3;
        s.learner.context.retraced = threads == 2;
        s.learner.block = 3 * (threads - 1);
        trained<float> whole(s, source, o, 5, threads), part(s, source, o, 5, threads), rest(s, source, o, 5, threads);
        for (int i = 0; i < 23; ++i) whole.trainer.iterate();
        for (int i = 0; i < 13; ++i) part.trainer.iterate();
        const auto file = saved(part.trainer);
        rest.fast.store->edit().flat()[0] += 1;
        rest.trainer.load(file);
        CHECK(rest.trainer.updates() == 13);
        for (int i = 0; i < 10; ++i) rest.trainer.iterate();
        CHECK(rest.weights() == whole.weights());
        CHECK(std::equal(rest.slow.store->flat().begin(), rest.slow.store->flat().end(),
                         whole.slow.store->flat().begin()));
        CHECK(rest.trainer.steps() == whole.trainer.steps());
    }
}

TEST_CASE("threads split the rows and nothing else") {
    const auto s = tiny(4, 2, 3, 1);
    const auto source = std::make_shared<const of_lengths>(17);
    trained<double> one(s, source, still(), 5, 1), two(s, source, still(), 5, 2);
    for (int i = 0; i < 6; ++i) {
        one.trainer.iterate();
        two.trainer.iterate();
        CHECK(difference(gradient_of(two.trainer), gradient_of(one.trainer)) < 1e-12);
        CHECK(two.trainer.take_window()["chosen_loss"] ==
              doctest::Approx(one.trainer.take_window()["chosen_loss"]).epsilon(1e-12));
    }
}

TEST_CASE("memory does not grow with T") {
    const auto bytes = [](int T, int selected, int every) {
        const auto source = std::make_shared<const copy_task<false>>(task_options{.steps = T});
        trained<float> t(tiny(20, every, selected, 1), source, still());
        t.trainer.iterate();
        return t.trainer->memory();
    };
    CHECK(bytes(40, 5, 5) == bytes(40000, 5, 5));
    CHECK(bytes(40, 50, 5) > bytes(40, 5, 5));
    CHECK(bytes(40, 50, 5) > bytes(40, 50, 20));
}

TEST_CASE("bad input is one sentence") {
    const auto source = std::make_shared<const copy_task<false>>(task_options{.steps = 40});
    const auto fails = [&](const model::settings& s) { trained<float> t(s, source, still()); };
    CHECK_THROWS_WITH(fails(tiny(10, 11, 1, 0)),
                      "learner.every: predictions every 11 steps, but a rollout has 10; expected 1 to 10");
    CHECK_THROWS_WITH(fails(tiny(10, 10, 0, 0)),
                      "learner.selected: expected at least one target of a prediction, got 0");
    CHECK_THROWS_WITH(fails(tiny(41, 10, 1, 0)),
                      "learner.rollout: a rollout of 41 steps is longer than a sequence of copy, which has 40");
    CHECK_THROWS_WITH(trained<float>(tiny(4, 4, 1, 0), source, still(), 3, 4),
                      doctest::Contains("threads: expected 1 to 3"));
    auto without = tiny(4, 4, 1, 0);
    without.learner.context.retraced = true;
    CHECK_THROWS_WITH(fails(without), "learner.context.retraced: there is no context; set learner.context.layers");
    trained<float> t(tiny(4, 4, 1, 0), source, still());
    auto file = saved(t.trainer);
    file.metadata["training_mode"] = "sequences";
    CHECK_THROWS_WITH(t.trainer.load(file),
                      doctest::Contains("is a checkpoint of sequences training; this run is memup"));
}

// Two digits over a gap of 16 steps, rollouts of 5: no rollout sees digit and query. Chance is 12.5 %.
TEST_CASE("it learns over gaps longer than a rollout, which its averages are asked about") {
    const auto source =
        std::make_shared<const copy_task<false>>(task_options{.items = 2, .steps = 20, .markers = "distinct"});
    model::settings s;
    s.encoder.width = 16;
    s.controller.hidden = 32;
    s.controller.forget_bias = 3;
    s.learner.rollout = 5;
    s.learner.every = 1;
    s.learner.selected = 2;
    s.learner.hidden = {32};
    optimiser_settings o;
    o.learning_rate = 1e-2;
    o.epsilon = 1e-8;
    o.clip = 1;
    trained<float> t(s, source, o, 16);
    for (int i = 0; i < 1200; ++i) t.trainer.iterate();
    program<cpu<float>> play(*t.slow.g, t.slow.store, {.steps = 20, .batch = 200}, {t.slow.logits});
    sequence_rows rows(source, "holdout_interpolate", 9, 200, 0, 200);
    rows.draw();
    rows.fill(play, 20);
    play.forward();
    const auto answers = play.output(t.slow.logits);
    int right = 0;
    for (int b = 0; b < 200; ++b)
        for (int k = 18; k < 20; ++k) {
            const float* row = answers.at(k) + b * answers.stride;
            right += std::max_element(row, row + 10) - row == static_cast<int>(*rows.target(b, k));
        }
    MESSAGE(right, " of 400 right");
    CHECK(right > 360);
}
