#pragma once
// SPDX-License-Identifier: MIT

// The three phases of an agent that acts on a memory trained before it (learner/memup_ppo.hpp), as one trainer with the
// face of `trainer`: detector, memory, policy, each for a number of steps of its own. What a phase has learnt is handed
// to the next one and stays: the detector's weights measure the uncertainties of phase 2, the moving averages of phase
// 2 are the frozen memory of phase 3.
//
// With phases.joint there is one phase for all three (train/joint_memory.hpp): the policy acts with the moving averages
// of the memory as they are after every unroll.
//
// A checkpoint is the running phase's own, with what later phases need of the ones before it; the trainer that loads it
// goes on in that phase. Random play is that of task/played_episodes.hpp.
//
// On a device every phase leaves its weights there until the next one needs them, through the host's stores.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <engram/train/detector_trainer.hpp>
#include <engram/train/joint_memory.hpp>
#include <engram/train/memup_trainer.hpp>
#include <engram/train/trainer.hpp>

namespace engram {

enum class training_phase { detector, memory, policy };
/// Its name in files and messages.
inline const char* phase_name(training_phase p) {
    return p == training_phase::detector ? "detector" : p == training_phase::memory ? "memory" : "policy";
}

/// What the phases are made of. `trace` gives the model for a purpose, `play` the random episodes.
template <class Backend>
struct phase_parts {
    std::function<traced_agent<Backend>(purpose)> trace;
    environment_maker environments;
    std::shared_ptr<const sequence_source> play;
    bool detects = true;  // false: the memory learns from its own errors, and there is no first phase
};

template <class Backend>
class phased_trainer {
public:
    using real = typename Backend::real;

    /// `policy` is traced for learning; `total_steps` are those of all phases.
    phased_trainer(const traced_agent<Backend>& policy, phase_parts<Backend> parts, const phase_settings& phases,
                   const trainer_settings& s, std::uint64_t seed, int threads, std::int64_t total_steps)
        : policy_(&policy),
          parts_(std::move(parts)),
          phases_(phases),
          settings_(s),
          seed_(seed),
          threads_(threads),
          total_steps_(total_steps),
          detector_(parts_.trace(purpose::detecting)),
          fast_(parts_.trace(purpose::remembering)),
          slow_(parts_.trace(purpose::generating)) {
        phases_.check();
        if (!parts_.detects || phases_.joint) phases_.detector_steps = 0;
        if (phases_.joint) phases_.memory.steps = 0;
        // Known now, not only when the phase begins.
        require(fast_.schedule->rollout <= parts_.play->info().steps, "learner.memory.rollout: a rollout of ",
                fast_.schedule->rollout, " steps is longer than a sequence of ", parts_.play->info().name,
                ", which has ", parts_.play->info().steps);
        const std::int64_t before = phases_.detector_steps + phases_.memory.steps;
        require(total_steps > before, "phases: the detector and the memory take ", before, " steps, and the run has ",
                total_steps, "; expected more, for the policy");
        begin(phases_.detector_steps > 0 ? training_phase::detector
              : phases_.memory.steps > 0 ? training_phase::memory
                                         : training_phase::policy);
    }

    /// One update of the running phase, after which the next one may begin.
    void iterate() {
        if (detecting_) {
            detecting_->iterate();
            done_[0] = detecting_->steps();
            if (done_[0] >= phases_.detector_steps)
                begin(phases_.memory.steps > 0 ? training_phase::memory : training_phase::policy);
        } else if (remembering_) {
            remembering_->iterate();
            done_[1] = remembering_->steps();
            if (done_[1] >= phases_.memory.steps) begin(training_phase::policy);
        } else {
            acting_->iterate();
            if (!joint_) return;
            joint_->follow(*acting_);
            settle();
            hand_over_memory();
        }
    }

    /// The newest weights of the running phase are in the stores; on a device they are elsewhere while it trains.
    void settle() {
        if (detecting_) detecting_->settle();
        if (remembering_) remembering_->settle();
        if (acting_) acting_->settle();
        if (joint_) joint_->settle();
    }

    training_phase phase() const { return phase_; }
    /// Steps of all phases so far; and of those that a whole run has.
    std::int64_t steps() const { return done_[0] + done_[1] + (acting_ ? acting_->steps() : 0); }
    std::int64_t total_steps() const { return total_steps_; }
    std::int64_t updates() const {
        return detecting_ ? detecting_->updates() : remembering_ ? remembering_->updates() : acting_->updates();
    }
    double progress() const {
        return total_steps() > 0 ? static_cast<double>(steps()) / static_cast<double>(total_steps()) : 0;
    }
    /// The running phase's numbers; losses of the others are NaN.
    training_window take_window() {
        training_window w;
        const double none = std::numeric_limits<double>::quiet_NaN();
        double quantile = none, chosen = none, current = none;
        if (acting_) w = acting_->take_window();
        if (auto* t = joint_ ? &joint_->remembering : remembering_.get()) {
            const memup_window m = t->take_window();
            if (!joint_) w.loss = m.loss, w.gradient_norm = m.gradient_norm, w.learning_rate = m.learning_rate;
            chosen = m.chosen_loss, current = m.current_loss;
        }
        if (auto* t = joint_ ? &joint_->detecting : detecting_.get()) {
            training_window d = t->take_window();
            quantile = d.loss;
            if (!joint_) w = std::move(d);
        }
        auto losses = std::move(w.losses);
        w.losses = {{"detector_loss", quantile}, {"memory_uncertain_loss", chosen}, {"memory_current_loss", current}};
        for (const char* name : {"learner.policy_loss", "learner.value_loss", "learner.entropy_loss"}) {
            double value = none;
            for (const auto& [known, number] : losses)
                if (known == name) value = number;
            w.losses.emplace_back(name, value);
        }
        return w;
    }
    const traced_agent<Backend>& agent() const { return *policy_; }
    const traced_agent<Backend>& detector() const { return detector_; }
    /// The prediction of every step, with the moving averages.
    const traced_agent<Backend>& memory() const { return slow_; }

    /// Adds everything that the next iteration depends on.
    void save(safetensors& file) {
        if (detecting_) detecting_->save(file);
        if (remembering_) remembering_->save(file);
        if (acting_) acting_->save(file);
        if (joint_) joint_->save(file);
        if (remembering_ && parts_.detects) save_values(file, detector_before, *detector_.store);
        if (acting_ && !joint_) save_values(file, memory_before, *slow_.store);
        file.add("phases.steps", {2}, std::vector<std::int64_t>{done_[0], done_[1]});
    }
    /// Goes on where save() was; throws before anything changes when the file belongs to another model.
    void load(const safetensors& file) {
        const std::string mode = file.text_at("training_mode");
        require(joint_memory<Backend>::wrote(file) == phases_.joint, file.source(), ": is a checkpoint of training ",
                phases_.joint ? "in phases; this run trains all at once" : "all at once; this run trains in phases");
        const auto done = file.values<std::int64_t>("phases.steps", {2});
        const training_phase wanted = mode == "detector" ? training_phase::detector
                                      : mode == "memup"  ? training_phase::memory
                                                         : training_phase::policy;
        if (wanted == training_phase::memory && parts_.detects) load_values(file, detector_before, *detector_.store);
        if (wanted == training_phase::policy && !phases_.joint) load_values(file, memory_before, *slow_.store);
        forget_after(wanted);
        begin(wanted);
        if (detecting_) detecting_->load(file);
        if (remembering_) remembering_->load(file);
        if (acting_) acting_->load(file);
        if (joint_) joint_->load(file);
        done_[0] = done[0], done_[1] = done[1];
    }

private:
    static constexpr const char* detector_before = "detector.";
    static constexpr const char* memory_before = "trained.";

    void begin(training_phase next) {
        settle();
        phase_ = next;
        detecting_.reset(), remembering_.reset(), acting_.reset(), joint_.reset();
        const int rows = phases_.memory.batch;
        if (next == training_phase::detector) {
            detecting_ = std::make_unique<detector_trainer<Backend>>(detector_, parts_.environments, phases_.detector,
                                                                     seed_, phases_.detector_steps);
        } else if (next == training_phase::memory) {
            remembering_ = std::make_unique<memup_trainer<Backend>>(fast_, slow_, parts_.play, sequence_settings{rows},
                                                                    phases_.memory.optimiser, seed_,
                                                                    std::min(threads_, rows), phases_.memory.steps);
            remembering_->leave_out_below(phases_.memory.least_loss);
            if (!parts_.detects) return;
            const auto meter = std::make_shared<return_uncertainty<Backend>>(detector_, parts_.play->info().steps);
            remembering_->measure_with(
                [meter](const sequence_rows& all, int b, std::span<float> s) { (*meter)(all, b, s); });
        } else {
            hand_over_memory();
            acting_ = std::make_unique<trainer<Backend>>(*policy_, parts_.environments, settings_, seed_, threads_,
                                                         total_steps_ - phases_.detector_steps - phases_.memory.steps);
            if (!phases_.joint) return;
            joint_ = std::make_unique<joint_memory<Backend>>(
                detector_, fast_, slow_, parts_.environments(1, 0)->info(), parts_.play->info(), parts_.detects,
                phases_, settings_.rollout.environments, seed_, threads_, total_steps_);
        }
    }

    /// Later phases begin as they would in a new run, whatever this one has trained.
    void forget_after(training_phase wanted) {
        if (wanted == training_phase::policy) return;
        const auto restore = [](parameters<real>& to, const parameters<real>& from) {
            auto edit = to.edit();
            std::copy(from.flat().begin(), from.flat().end(), edit.flat().begin());
        };
        restore(*policy_->store, *parts_.trace(purpose::learning).store);
        if (wanted == training_phase::memory) return;
        restore(*fast_.store, *parts_.trace(purpose::remembering).store);
        restore(*slow_.store, *parts_.trace(purpose::generating).store);
    }

    /// The policy's memory becomes what was trained; nothing trains it from here on.
    void hand_over_memory() {
        auto edit = policy_->store->edit();
        each_parameter(*slow_.store, [&](const std::string& name, const auto&, std::ptrdiff_t at, std::size_t n) {
            if (!name.starts_with("memory.")) return;
            const auto to = policy_->store->find(name);
            std::copy_n(slow_.store->flat().data() + at, n, edit.values(to));
        });
    }

    const traced_agent<Backend>* policy_;
    phase_parts<Backend> parts_;
    phase_settings phases_;
    trainer_settings settings_;
    std::uint64_t seed_;
    int threads_;
    std::int64_t total_steps_;
    traced_agent<Backend> detector_, fast_, slow_;
    training_phase phase_ = training_phase::detector;
    std::int64_t done_[2] = {0, 0};  // steps of the first two phases
    std::unique_ptr<detector_trainer<Backend>> detecting_;
    std::unique_ptr<memup_trainer<Backend>> remembering_;
    std::unique_ptr<trainer<Backend>> acting_;
    std::unique_ptr<joint_memory<Backend>> joint_;
};

}  // namespace engram