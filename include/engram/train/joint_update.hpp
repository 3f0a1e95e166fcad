#pragma once
// SPDX-License-Identifier: MIT

// Detector and memory that learn from what a policy does while the policy learns (docs/decisions/0009): after every
// unroll the replay takes its steps, the detector makes an update for each of them, and the memory goes through as many
// steps of whole episodes of the replay as were lived. Nothing of it reaches the policy but the weights of the memory's
// moving averages, and no gradient of the policy reaches the memory.

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <engram/train/acting_update.hpp>
#include <engram/train/detector_update.hpp>
#include <engram/train/lived_episodes.hpp>
#include <engram/train/memup_update.hpp>

namespace engram {

/// The policy's memory becomes what was trained; nothing trains it from here on.
template <class Backend>
void hand_over_memory(const traced_agent<Backend>& trained, const traced_agent<Backend>& policy) {
    auto edit = policy.store->edit();
    each_parameter(*trained.store, [&](const std::string& name, const auto&, std::ptrdiff_t at, std::size_t n) {
        if (!name.starts_with("memory.")) return;
        std::copy_n(trained.store->flat().data() + at, n, edit.values(policy.store->find(name)));
    });
}

/// The models that learn while a policy acts.
template <class Backend>
struct joint_models {
    const traced_agent<Backend>*detector, *fast, *slow;
    bool detects = true;  // false: the memory learns from its own errors, and there is only the detector's replay
};

template <class Backend>
class joint_update : public acting_update<Backend> {
    using acting = acting_update<Backend>;

public:
    using real = typename Backend::real;

    joint_update(const loop_settings& loop, const traced_agent<Backend>& policy, const environment_maker& make,
                 const acting_settings& a, const joint_models<Backend>& models, const sequence_info& play,
                 const phase_settings& s)
        : acting(loop, policy, make, a),
          policy_(&policy),
          slow_(models.slow),
          environments_(a.rollout.environments),
          start_(s.detector.start),
          detecting_(loop, *models.detector, make(1, 0)->info(),
                     settings_of(s.detector, environments_, models.detects)),
          episodes_(
              std::make_shared<lived_episodes<real>>(detecting_->lived(), play, s.memory.batch, models.slow->discount)),
          remembering_(loop, *models.fast, *models.slow, episodes_,
                       sequence_settings{s.memory.batch, std::min(s.memory.batch, this->shards_a_part())},
                       s.memory.optimiser) {
        require(!loop.others, "phases.joint: training all at once is one process, not ", loop.process_count());
        remembering_->leave_out_below(s.memory.least_loss);
        if (!models.detects) return;
        const auto meter = std::make_shared<return_uncertainty<Backend>>(*models.detector, play.steps);
        remembering_->measure_with(
            [meter](const sequence_rows& all, int b, std::span<float> s_k) { (*meter)(all, b, s_k); });
    }

    void iterate(training_context<Backend>& by) {
        acting::iterate(by);
        see();
        if (episodes_->look() && by.steps >= start_)
            while (remembering_.steps() < by.steps) remembering_.iterate();
        fetch_weights(this->learner(0), *this->store());
        settle();
        hand_over_memory(*slow_, *policy_);
    }

    std::vector<std::string> loss_names() const {
        auto names = acting::loss_names();
        for (const char* name : {"detector_loss", "chosen_loss", "current_loss"}) names.emplace_back(name);
        return names;
    }
    /// The others' numbers are means of theirs.
    void describe(training_context<Backend>& by) {
        training_window& w = by.window;
        const training_window detector = detecting_.take_window(), memory = remembering_.take_window();
        for (auto& [name, value] : w.losses) {
            if (name == "detector_loss") value = w.iterations * detector[name];
            if (name == "chosen_loss" || name == "current_loss") value = w.iterations * memory[name];
        }
    }
    void settle() {
        detecting_.settle();
        remembering_.settle();
    }

    /// The others' checkpoints have names of their own.
    void save(safetensors& file) {
        acting::save(file);
        safetensors detector, memory;
        detecting_.save(detector);
        remembering_.save(memory);
        for (auto& [name, t] : detector.tensors) file.tensors[detector_part + name] = std::move(t);
        for (auto& [name, t] : memory.tensors) file.tensors[memory_part + name] = std::move(t);
        episodes_->each_part([&](const std::string& name, auto part) { save_bytes(file, name, part); });
    }
    void check(const safetensors& file) {
        episodes_->each_part([&](const std::string& name, auto part) { check_bytes(file, name, part); });
    }
    void load(const safetensors& file) {
        acting::load(file);
        detecting_.load(part_of(file, detector_part, "detector"));
        // The rows of the memory draw their episodes again when it is loaded.
        episodes_->each_part([&](const std::string& name, auto part) { load_bytes(file, name, part); });
        remembering_.load(part_of(file, memory_part, "memup"));
    }
    /// Whether a checkpoint is one of training all at once.
    static bool wrote(const safetensors& file) { return file.contains("lived.kept"); }

private:
    static constexpr const char *detector_part = "joint.detector.", *memory_part = "joint.memory.";

    static detector_settings settings_of(detector_settings s, int environments, bool detects) {
        s.environments = environments;
        if (!detects) s.start = std::numeric_limits<std::int64_t>::max();
        return s;
    }
    static safetensors part_of(const safetensors& file, const std::string& prefix, const char* mode) {
        safetensors part;
        for (const auto& [name, t] : file.tensors)
            if (name.starts_with(prefix)) part.tensors[name.substr(prefix.size())] = t;
        part.metadata["training_mode"] = mode;
        return part;
    }

    /// The detector sees every step of the unroll.
    void see() {
        auto& first = this->shard(0);
        const std::size_t steps =
            first.inputs.continues.data.size() / static_cast<std::size_t>(first.behaviour.batch());
        std::vector<real> shown, action, reward;
        std::vector<char> done;
        for (std::size_t t = 0; t < steps; ++t) {
            shown.clear(), action.clear(), reward.clear(), done.clear();
            for (int i = 0; i < this->shards(); ++i) {
                const auto& inputs = this->shard(i).inputs;
                const auto append = [&](const char* name, std::vector<real>& to) {
                    for (const auto& block : inputs.steps) {
                        if (block.name != name) continue;
                        const auto row = block.data.subspan(t * (block.data.size() / steps), block.data.size() / steps);
                        to.insert(to.end(), row.begin(), row.end());
                    }
                };
                append("observation", shown), append("action", action), append("reward", reward);
                const auto all = inputs.continues.data;
                for (std::size_t b = 0; b < all.size() / steps; ++b)
                    done.push_back(all[t * (all.size() / steps) + b] == real(0));
            }
            detecting_->see(shown, action, reward, done);
            detecting_.iterate();
        }
    }

    const traced_agent<Backend>*policy_, *slow_;
    int environments_;
    std::int64_t start_;
    training_loop<detector_update<Backend>> detecting_;
    std::shared_ptr<lived_episodes<real>> episodes_;
    training_loop<memup_update<Backend>> remembering_;
};

}  // namespace engram
