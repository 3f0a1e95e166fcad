// SPDX-License-Identifier: MIT
// The learner and the Update of docs/guide/own-learner.md: an agent that does as somebody did whose episodes were
// logged.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/agent.hpp>
#include <engram/model/laws.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/pick.hpp>
#include <engram/operations/softmax.hpp>
#include <engram/train/training_loop.hpp>

#include "same_file.hpp"

namespace own {

// [learner]
struct negative {
    constexpr auto operator()(auto x) const { return -x; }
};

/// Cloning: L = - sum over t and b of cost log pi(a_t), a_t being what was done.
struct cloning {
    using role = engram::learner_role;

    struct settings {
        double cost = 1;
        void check() const { engram::require(cost > 0, "learner.cost: expected a positive number, got ", cost); }
    };

    /// What acting needs: logits and log-probabilities [T, B, A], value [T, B, 1].
    template <class Var>
    struct heads {
        Var logits, value, log_policy;
    };

    template <class Backend>
    static heads<engram::var<Backend>> add_heads(engram::graph<Backend>& g, const settings&,
                                                 const engram::var<Backend>& h, const engram::task_shape& task) {
        const auto logits = engram::affine("policy", h, g.declare_linear("policy", h.width, task.actions));
        const auto value = engram::affine("value", h, g.declare_linear("value", h.width, 1));
        return {logits, value, engram::log_softmax("log_policy", logits)};
    }

    template <class Backend>
    static void add_losses(engram::graph<Backend>& g, const settings& s, const heads<engram::var<Backend>>& out) {
        const auto action = g.input("action", 1);  // [T, B, 1], of the trajectory
        const auto right = engram::pick("right", out.log_policy, action);
        engram::add_loss("cloning_loss", engram::map("wrong", negative{}, right), s.cost);
    }
};

}  // namespace own
ENGRAM_REFLECT(own::cloning::settings, cost);
static_assert(engram::learner_policy<own::cloning>);
// [learner]

namespace own {

// [log]
/// What somebody saw and did, one episode after the other.
struct logged_episode {
    std::vector<std::vector<float>> seen;  // a step
    std::vector<int> done;
};
// [log]

// [update]
/// Learns from unrolls that are drawn from a log. Every row begins with an episode and holds none but that one.
template <class Backend>
class logged_update {
public:
    using backend = Backend;
    using real = typename Backend::real;
    static constexpr const char* mode = "logged";

    /// `agent` and `log` must outlive it.
    logged_update(const engram::loop_settings& loop, const engram::traced_agent<Backend>& agent,
                  const std::vector<logged_episode>& log, int steps, int batch, int shards,
                  const engram::optimiser_settings& o)
        : agent_(&agent), log_(&log), steps_(steps), batch_(batch), seed_(loop.seed), optimiser_(o) {
        engram::require(!log.empty(), "log: it has no episode");
        for (const auto& e : log)
            engram::require(std::min(e.seen.size(), e.done.size()) >= static_cast<std::size_t>(steps),
                            "log: an episode of ", e.seen.size(), " frames and ", e.done.size(),
                            " actions, expected at least ", steps);
        mine_ = loop.mine(loop.count(shards, "shards", batch, "rows"));
        for (int i = mine_.first; i < mine_.last; ++i) {
            const int first = engram::first_row(i, mine_.all, batch);
            const int rows = engram::first_row(i + 1, mine_.all, batch) - first;
            learners_.push_back(std::make_unique<engram::program<Backend>>(
                *agent.g, agent.store,
                engram::plan_options{
                    .steps = steps, .batch = rows, .gradients = true, .total_batch = batch, .first_row = first}));
        }
    }

    void iterate(engram::training_context<Backend>& by) {
        by.each_shard(mine_.count(), [&](int i) {
            auto& p = learner(static_cast<std::size_t>(i));
            fill(p, by.iterations);
            p.forward();
            p.backward();
        });
        std::vector<engram::program<Backend>*> all;
        for (auto& p : learners_) all.push_back(p.get());
        const double loss = by.sum_losses(all);
        by.note(loss, by.step(all, mine_.all, loss));
        by.steps += std::int64_t{steps_} * batch_;
    }

    const engram::optimiser_settings& optimiser() const { return optimiser_; }
    const std::shared_ptr<engram::parameters<real>>& store() const { return agent_->store; }
    int shards() const { return mine_.all; }
    std::vector<std::string> loss_names() const { return engram::names_of_losses(*learners_[0]); }
    engram::program<Backend>& learner(std::size_t i) { return *learners_[i]; }
    template <class Body>
    void each_part(Body) {}  // what is drawn depends on the iteration alone: a checkpoint keeps no more

private:
    /// The trajectory of the shard's rows: row b of iteration n is a pure function of seed, n and b.
    void fill(engram::program<Backend>& p, std::int64_t iteration) {
        const int rows = p.options().batch;
        for (int b = 0; b < rows; ++b) {
            const auto number = iteration * batch_ + p.options().first_row + b;
            engram::philox draw(seed_, engram::stream_id("log", 0) + static_cast<std::uint64_t>(number));
            const auto& episode = (*log_)[static_cast<std::size_t>(draw.below(static_cast<int>(log_->size())))];
            for (int t = 0; t < steps_; ++t) {
                const auto at = static_cast<std::size_t>(t),
                           row = at * static_cast<std::size_t>(rows) + static_cast<std::size_t>(b);
                const auto& seen = episode.seen[at];
                std::copy(seen.begin(), seen.end(),
                          p.input("observation").begin() + static_cast<std::ptrdiff_t>(row * seen.size()));
                put(p, "last_action", row, t == 0 ? -1 : episode.done[at - 1]);
                put(p, "last_reward", row, 0);
                put(p, "reset", row, t == 0);
                put(p, "action", row, episode.done[at]);
            }
        }
    }

    /// An input that no part of this agent reads does not exist.
    static void put(engram::program<Backend>& p, const char* name, std::size_t row, int value) {
        if (p.has_input(name)) p.input(name)[row] = static_cast<real>(value);
    }

    const engram::traced_agent<Backend>* agent_;
    const std::vector<logged_episode>* log_;
    int steps_, batch_;
    std::uint64_t seed_;
    engram::optimiser_settings optimiser_;
    engram::shard_range mine_;  // what this process carries
    std::vector<std::unique_ptr<engram::program<Backend>>> learners_;
};
// [update]

}  // namespace own

static_assert(engram::training_update<own::logged_update<engram::cpu<float>>>);

namespace {

using namespace engram;

template <class Controller>
using cloned = agent<mlp, Controller, no_memory, no_auxiliary, own::cloning>;

template <class Controller, class Backend>
traced_agent<Backend> trace() {
    typename cloned<Controller>::settings s;
    s.encoder.layers = {8};
    s.encoder.centre = false;
    if constexpr (requires { s.controller.hidden; }) s.controller.hidden = 16;
    return cloned<Controller>::template trace<Backend>(s, {{1, 1, 2}, 2}, 1);
}

/// Who was logged does at the last of four steps what the first one showed.
std::vector<own::logged_episode> log_of(int episodes) {
    std::vector<own::logged_episode> log;
    for (int i = 0; i < episodes; ++i) {
        const int shown = i % 2;
        log.push_back(
            {{{shown == 0 ? 1.0f : 0.0f, shown == 1 ? 1.0f : 0.0f}, {0, 0}, {0, 0}, {0, 0}}, {0, 0, 0, shown}});
    }
    return log;
}

template <class Controller>
double loss_after(int iterations) {
    const auto log = log_of(64);
    const auto model = trace<Controller, cpu<float>>();
    // [loop]
    training_loop<own::logged_update<cpu<float>>> training({.seed = 1, .threads = 2}, model, log, 4, 32, 2,
                                                           optimiser_settings{.learning_rate = 1e-2});
    while (training.updates() < iterations) training.iterate();
    // [loop]
    training.take_window();
    training.iterate();
    const auto window = training.take_window();
    CHECK(window.losses[0].first == "cloning_loss");
    return window.loss / 32;
}

}  // namespace

TEST_CASE("gradients of the own learner are its loss's slopes, and the laws hold") {
    // [check]
    const auto model = trace<lstm, cpu<double>>();
    for (const std::string& sentence : broken_laws(model)) FAIL_CHECK(sentence);
    const auto report = check_gradients(model);
    CHECK_MESSAGE(report.worst < 1e-6, report.where);
    // [check]
    CHECK(report.compared > 40);
}

TEST_CASE("the own Update clones what needs memory, and without memory it cannot") {
    CHECK(loss_after<lstm>(300) < 0.05);
    const double forgets = loss_after<feed_forward>(300);  // a coin at the last step: log 2, if the others were free
    CHECK(forgets > 0.6);
}

TEST_CASE("a log that is too short is refused") {
    const auto model = trace<lstm, cpu<float>>();
    const auto on = [&](const std::vector<own::logged_episode>& log, int steps) {
        training_loop<own::logged_update<cpu<float>>>({.seed = 1}, model, log, steps, 4, 1, optimiser_settings{});
    };
    CHECK_THROWS_WITH(on({}, 4), "log: it has no episode");
    CHECK_THROWS_WITH(on(log_of(2), 5), "log: an episode of 4 frames and 4 actions, expected at least 5");
}

TEST_CASE("the own Update keeps the laws of Updates") {
    const auto log = log_of(64);
    const auto run = [&](int threads) {
        auto model = std::make_shared<traced_agent<cpu<float>>>(trace<lstm, cpu<float>>());
        return std::pair{model, std::make_unique<training_loop<own::logged_update<cpu<float>>>>(
                                    loop_settings{1, threads, 0}, *model, log, 4, 16, 8, optimiser_settings{})};
    };
    const auto one = run(1), four = run(4), resumed = run(2);
    for (int i = 0; i < 10; ++i) one.second->iterate(), four.second->iterate();
    CHECK(same(saved(*one.second), saved(*four.second)));
    resumed.second->load(saved(*four.second));
    for (int i = 0; i < 5; ++i) one.second->iterate(), resumed.second->iterate();
    CHECK(same(saved(*one.second), saved(*resumed.second)));
}
