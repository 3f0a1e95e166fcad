#pragma once
// SPDX-License-Identifier: MIT

// The three phases of an agent that acts on a memory trained before it (learner/memup_ppo.hpp): detector, memory,
// policy. The detector's weights measure the uncertainties of phase 2, the moving averages of phase 2 are the frozen
// memory of phase 3.
//
// With phases.joint there is one phase for all three (train/joint_update.hpp): the policy acts with the moving averages
// of the memory as they are after every unroll.
//
// Random play is that of task/played_episodes.hpp. On a device every phase leaves its weights there until the next one
// needs them, through the host's stores.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <engram/train/joint_update.hpp>
#include <engram/train/phased_training.hpp>

namespace engram {

/// What the phases are made of. `trace` gives the model for a purpose, `play` the random episodes.
template <class Backend>
struct phase_parts {
    std::function<traced_agent<Backend>(purpose)> trace;
    environment_maker environments;
    std::shared_ptr<const sequence_source> play;
    bool detects = true;  // false: the memory learns from its own errors, and there is no first phase
};

/// What all phases share.
template <class Backend>
struct phase_models {
    using real = typename Backend::real;

    phase_models(const traced_agent<Backend>& to_act, phase_parts<Backend> of, const phase_settings& s,
                 const acting_settings& a, const loop_settings& whole)
        : policy(&to_act),
          parts(std::move(of)),
          phases(s),
          acting(a),
          loop(whole),
          detector(parts.trace(purpose::detecting)),
          fast(parts.trace(purpose::remembering)),
          slow(parts.trace(purpose::generating)) {
        phases.check();
        if (!parts.detects || phases.joint) phases.detector_steps = 0;
        if (phases.joint) phases.memory.steps = 0;
        // Known now, not only when the phase begins.
        require(fast.schedule->rollout <= parts.play->info().steps, "learner.memory.rollout: a rollout of ",
                fast.schedule->rollout, " steps is longer than a sequence of ", parts.play->info().name, ", which has ",
                parts.play->info().steps);
        require(loop.total_steps > before_the_policy(), "phases: the detector and the memory take ",
                before_the_policy(), " steps, and the run has ", loop.total_steps, "; expected more, for the policy");
    }
    std::int64_t before_the_policy() const { return phases.detector_steps + phases.memory.steps; }
    loop_settings loop_of(std::int64_t steps) const { return {loop.seed, loop.threads, steps, loop.others}; }

    /// Weights as a new run has them.
    void forget(const traced_agent<Backend>& model, purpose why) const {
        const auto anew = parts.trace(why);
        auto edit = model.store->edit();
        std::copy(anew.store->flat().begin(), anew.store->flat().end(), edit.flat().begin());
    }

    const traced_agent<Backend>* policy;
    phase_parts<Backend> parts;
    phase_settings phases;
    acting_settings acting;
    loop_settings loop;
    traced_agent<Backend> detector, fast, slow;
};

template <class Backend>
class memup_phases final : public phased_training {
    using models = phase_models<Backend>;

public:
    /// `policy` is traced for learning; the loop's steps are those of all phases.
    memup_phases(const loop_settings& loop, const traced_agent<Backend>& policy, phase_parts<Backend> parts,
                 const phase_settings& phases, const acting_settings& s)
        : memup_phases(std::make_shared<models>(policy, std::move(parts), phases, s, loop)) {}

    void load(const safetensors& file) override {
        const bool joint = all_->phases.joint;
        require(joint_update<Backend>::wrote(file) == joint, file.source(), ": is a checkpoint of training ",
                joint ? "in phases; this run trains all at once" : "all at once; this run trains in phases");
        phased_training::load(file);
    }

    const traced_agent<Backend>& agent() const { return *all_->policy; }
    const traced_agent<Backend>& detector() const { return all_->detector; }
    /// The prediction of every step, with the moving averages.
    const traced_agent<Backend>& memory() const { return all_->slow; }

private:
    explicit memup_phases(std::shared_ptr<models> all)
        : phased_training(list(all),
                          {{"detector_loss", "detector_loss"},
                           {"memory_uncertain_loss", "chosen_loss"},
                           {"memory_current_loss", "current_loss"},
                           {"learner.policy_loss", "learner.policy_loss"},
                           {"learner.value_loss", "learner.value_loss"},
                           {"learner.entropy_loss", "learner.entropy_loss"}},
                          all->loop.total_steps),
          all_(std::move(all)) {}

    // The phases hold the models, so that these outlive what runs.
    static std::vector<phase_of_training> list(const std::shared_ptr<models>& all) {
        std::vector<phase_of_training> found;
        if (all->phases.detector_steps > 0)
            found.push_back({"detector",
                             detector_update<Backend>::mode,
                             all->phases.detector_steps,
                             [all]() -> std::unique_ptr<training> {
                                 return std::make_unique<training_loop<detector_update<Backend>>>(
                                     all->loop_of(all->phases.detector_steps), all->detector, all->parts.environments,
                                     all->phases.detector);
                             },
                             [all] { all->forget(all->detector, purpose::detecting); },
                             {}});
        if (all->phases.memory.steps > 0)
            found.push_back({"memory", memup_update<Backend>::mode, all->phases.memory.steps,
                             [all] { return remember(all); },
                             [all] {
                                 all->forget(all->fast, purpose::remembering);
                                 all->forget(all->slow, purpose::generating);
                             },
                             [all](safetensors& file) {
                                 if (all->parts.detects) save_values(file, "detector.", *all->detector.store);
                             },
                             [all](const safetensors& file) {
                                 if (all->parts.detects) load_values(file, "detector.", *all->detector.store);
                             }});
        found.push_back({"policy", acting_update<Backend>::mode, 0, [all] { return act(all); },
                         [all] { all->forget(*all->policy, purpose::learning); },
                         [all](safetensors& file) {
                             if (!all->phases.joint) save_values(file, "trained.", *all->slow.store);
                         },
                         [all](const safetensors& file) {
                             if (!all->phases.joint) load_values(file, "trained.", *all->slow.store);
                         }});
        return found;
    }

    static std::unique_ptr<training> remember(const std::shared_ptr<models>& all) {
        const int rows = all->phases.memory.batch, shards = all->acting.rollout.shards;
        auto loop = std::make_unique<training_loop<memup_update<Backend>>>(
            all->loop_of(all->phases.memory.steps), all->fast, all->slow, all->parts.play,
            sequence_settings{rows, std::min(shards > 0 ? shards : all->loop.carriers(), rows)},
            all->phases.memory.optimiser);
        (*loop)->leave_out_below(all->phases.memory.least_loss);
        if (!all->parts.detects) return loop;
        const auto meter = std::make_shared<return_uncertainty<Backend>>(all->detector, all->parts.play->info().steps);
        (*loop)->measure_with(
            [meter](const sequence_rows& rows_of, int b, std::span<float> s) { (*meter)(rows_of, b, s); });
        return loop;
    }

    static std::unique_ptr<training> act(const std::shared_ptr<models>& all) {
        hand_over_memory(all->slow, *all->policy);
        const auto loop = all->loop_of(all->loop.total_steps - all->before_the_policy());
        if (!all->phases.joint)
            return std::make_unique<training_loop<acting_update<Backend>>>(loop, *all->policy, all->parts.environments,
                                                                           all->acting);
        return std::make_unique<training_loop<joint_update<Backend>>>(
            loop, *all->policy, all->parts.environments, all->acting,
            joint_models<Backend>{&all->detector, &all->fast, &all->slow, all->parts.detects}, all->parts.play->info(),
            all->phases);
    }

    std::shared_ptr<models> all_;
};

}  // namespace engram
