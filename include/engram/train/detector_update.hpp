#pragma once
// SPDX-License-Identifier: MIT

// Training of a detector by QR-DQN on uniformly random play (facts 3.8): all environments take a step, it goes into the
// replay, and once there is enough of it a batch is drawn for one update; the target network is a copy of the weights
// made every `target_period` steps, of all environments together, before that step's update (as in the code that facts
// 3.8 is from). With B environments an update follows B steps: the paper's "every 4 steps" is B = 4. The environments
// of a seed, their actions and the draws are pure functions of it; a checkpoint holds the replay too and resumes with
// the same bits. One shard.
//
// On a device the replay stays with the host, which draws from it; weights, gradient and moments are the device's.

#include <cmath>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <engram/core/flag.hpp>
#include <engram/learner/quantile_regression.hpp>
#include <engram/train/phase_settings.hpp>
#include <engram/train/replay.hpp>
#include <engram/train/sequence_rows.hpp>
#include <engram/train/told.hpp>
#include <engram/train/training_loop.hpp>

namespace engram {

/// A variable that a trace names for whoever looks on.
template <class Backend>
var<Backend> watched_variable(const traced_agent<Backend>& a, const std::string& name) {
    for (const auto& [known, v] : a.watched)
        if (name == known) return v;
    fail("no variable '", name, "' in this model; it was traced for another phase");
}

template <class Backend>
class detector_update {
public:
    using backend = Backend;
    using real = typename Backend::real;
    static constexpr const char* mode = "detector";
    static constexpr bool every_process_does_all = true;

    /// `detector` is traced for detecting.
    detector_update(const loop_settings& loop, const traced_agent<Backend>& detector, const environment_maker& make,
                    const detector_settings& s)
        : detector_update(loop, detector, make(s.environments, 0), nullptr, s) {}
    /// The same without environments: it sees what others do in them (see), between its iterations.
    detector_update(const loop_settings& loop, const traced_agent<Backend>& detector, const task_info& task,
                    const detector_settings& s)
        : detector_update(loop, detector, nullptr, &task, s) {}

    /// A step of every environment, and an update when there is enough to learn from.
    void iterate(training_context<Backend>& by) {
        if (environment_) play();
        by.steps = steps();
        const std::int64_t before = steps() - settings_.environments;
        if (steps() / settings_.target_period != before / settings_.target_period) copy_to_target();
        if (replay_.size() > 0 && steps() >= settings_.start) learn(by);
    }

    /// A step of every environment that somebody took: what was shown [B, F], what was done [B] and what that gave [B].
    void see(std::span<const real> shown, std::span<const real> action, std::span<const real> reward,
             std::span<const char> done) {
        replay_.push(shown, last_action_, action, reward, done);
        for (std::size_t i = 0; i < done.size(); ++i)
            last_action_[i] = told_after(action[i], reward[i], done[i] != 0).last_action;
    }
    const replay<real>& lived() const { return replay_; }
    const traced_agent<Backend>& detector() const { return *detector_; }

    const optimiser_settings& optimiser() const { return settings_.optimiser; }
    const std::shared_ptr<parameters<real>>& store() const { return detector_->store; }
    int shards() const { return 1; }
    program<Backend>& learner(std::size_t) { return learner_; }
    std::vector<std::string> loss_names() const { return {"detector_loss"}; }

    /// Means are over the updates: an iteration may have none.
    void describe(training_context<Backend>& by) {
        training_window& w = by.window;
        const double share =
            static_cast<double>(w.iterations) / static_cast<double>(std::max<std::int64_t>(1, window_updates_));
        window_updates_ = 0;
        w.loss *= share, w.gradient_norm *= share, w.losses[0].second *= share;
    }

    template <class Body>
    void each_part(Body body) {
        body("detector.last_action", std::as_writable_bytes(std::span(last_action_)));
        body("detector.random", std::as_writable_bytes(std::span(random_)));
    }
    void save(safetensors& file) {
        save_values(file, target, *target_store_);
        replay_.save(file, "replay");
        for (int b = 0; environment_ && b < settings_.environments; ++b)
            save_bytes(file, message("environment.", b), environment_->state(b));
    }
    void check(const safetensors& file) { check_values(file, target, *target_store_); }
    void load(const safetensors& file) {
        for (int b = 0; environment_ && b < settings_.environments; ++b)
            environment_->restore(b, std::as_bytes(file.values<std::uint8_t>(message("environment.", b))));
        replay_.load(file, "replay");
        load_values(file, target, *target_store_);
    }
    void loaded(training_context<Backend>&) { window_updates_ = 0; }

private:
    static constexpr const char* target = "target.";

    detector_update(const loop_settings& loop, const traced_agent<Backend>& detector,
                    std::unique_ptr<batch_environment> environment, const task_info* task, const detector_settings& s)
        : detector_(&detector),
          settings_(s),
          seed_(loop.seed),
          atoms_(watched_variable(detector, "atoms")),
          environment_(std::move(environment)),
          replay_(environment_ ? environment_->info() : *task, s.environments, s.replay.capacity),
          target_store_(std::make_shared<parameters<real>>(*detector.store)),
          learner_(*detector.g, detector.store, {.steps = 1, .batch = s.batch, .gradients = true}),
          target_(*detector.g, target_store_, {.steps = 1, .batch = s.batch}, {atoms_}),
          last_action_(static_cast<std::size_t>(s.environments), told<real>{}.last_action),
          action_(last_action_.size()),
          reward_(last_action_.size()),
          done_(last_action_.size()),
          shown_(last_action_.size() * static_cast<std::size_t>(detector.task.observation.size())),
          drawn_reward_(static_cast<std::size_t>(s.batch)),
          drawn_continues_(drawn_reward_.size()) {
        s.check();
        for (int b = 0; b < s.environments; ++b)
            random_.emplace_back(loop.seed, stream_id("detector action", static_cast<std::uint32_t>(b)));
    }

    /// Steps that were seen, over all environments.
    std::int64_t steps() const { return replay_.pushed() * settings_.environments; }

    void play() {
        const int width = detector_->task.observation.size();
        for (int b = 0; b < settings_.environments; ++b) {
            const auto i = static_cast<std::size_t>(b);
            environment_->observe(b, shown_.data() + std::ptrdiff_t{b} * width);
            const int a = random_[i].below(detector_->task.actions);
            const outcome got = environment_->step(b, a);
            action_[i] = static_cast<real>(a);
            reward_[i] = static_cast<real>(got.reward);
            done_[i] = got.done;
        }
        see(shown_, action_, reward_, done_);
    }

    void learn(training_context<Backend>& by) {
        philox draw(seed_, stream_id("replay", 0) + static_cast<std::uint64_t>(by.optimiser.updates()));
        replay_.draw(draw,
                     {learner_.input("observation"), input_of(learner_, "last_action"), learner_.input("action"),
                      drawn_reward_, drawn_continues_, target_.input("observation"), input_of(target_, "last_action")});
        target_.forward();
        const auto next = target_.output(atoms_);
        const int atoms = atoms_.width / detector_->task.actions;
        const auto rows = static_cast<std::size_t>(settings_.batch);
        quantile_regression::fill_targets<real>({.atoms = atoms, .discount = detector_->discount}, drawn_reward_,
                                                drawn_continues_,
                                                {next.data, rows * static_cast<std::size_t>(atoms_.width)},
                                                detector_->task.actions, learner_.input("target_atoms"));
        learner_.forward();
        learner_.backward();
        const double loss = learner_.loss();
        by.note(loss, by.step({&learner_}, 1, loss));
        by.note("detector_loss", loss);
        ++window_updates_;
    }

    void copy_to_target() {
        fetch_weights(learner_, *detector_->store);
        auto edit = target_store_->edit();
        std::copy(detector_->store->flat().begin(), detector_->store->flat().end(), edit.flat().begin());
    }

    // A detector that does not see the action before has no such input.
    std::span<real> input_of(program<Backend>& p, const char* name) {
        if (p.has_input(name)) return p.input(name);
        unseen_.resize(static_cast<std::size_t>(settings_.batch));
        return unseen_;
    }

    const traced_agent<Backend>* detector_;
    detector_settings settings_;
    std::uint64_t seed_;
    std::int64_t window_updates_ = 0;
    var<Backend> atoms_;
    std::unique_ptr<batch_environment> environment_;
    replay<real> replay_;
    std::shared_ptr<parameters<real>> target_store_;
    program<Backend> learner_, target_;
    std::vector<real> last_action_, action_, reward_;
    std::vector<char> done_;
    std::vector<real> shown_, drawn_reward_, drawn_continues_, unseen_;
    std::vector<philox> random_;
};

/// What a detector says of the steps of played episodes (task/played_episodes.hpp). May be called by several threads.
template <class Backend>
class return_uncertainty {
public:
    using real = typename Backend::real;

    return_uncertainty(const traced_agent<Backend>& detector, int longest)
        : detector_(&detector),
          uncertainty_(watched_variable(detector, "uncertainty")),
          program_(*detector.g, detector.store, {.steps = 1, .batch = longest}, {uncertainty_}) {}

    void operator()(const sequence_rows& rows, int b, std::span<float> uncertainty) {
        const std::lock_guard lock(mutex_);
        const int O = detector_->task.observation.size(), A = detector_->task.actions;
        const auto index = [&](const float* code) {
            for (int a = 0; a < A; ++a)
                if (is_set(code[a])) return static_cast<real>(a);
            return real(-1);
        };
        const auto seen = program_.input("observation"), action = program_.input("action");
        for (std::size_t k = 0; k < uncertainty.size(); ++k) {
            const float* row = rows.observation(b, static_cast<int>(k));
            std::copy_n(row, O, seen.begin() + static_cast<std::ptrdiff_t>(k) * O);
            if (program_.has_input("last_action")) program_.input("last_action")[k] = index(row + O);
            action[k] = index(row + O + A);
        }
        program_.forward();
        const auto s = program_.output(uncertainty_);
        for (std::size_t k = 0; k < uncertainty.size(); ++k)
            uncertainty[k] = static_cast<float>(s.data[static_cast<std::ptrdiff_t>(k) * s.stride]);
    }

private:
    const traced_agent<Backend>* detector_;
    var<Backend> uncertainty_;
    program<Backend> program_;
    std::mutex mutex_;
};

}  // namespace engram
