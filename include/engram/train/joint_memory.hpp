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

#include <engram/train/detector_trainer.hpp>
#include <engram/train/lived_episodes.hpp>
#include <engram/train/memup_trainer.hpp>
#include <engram/train/trainer.hpp>

namespace engram {

template <class Backend>
class joint_memory {
public:
    using real = typename Backend::real;

    /// `detects` false: the memory learns from its own errors, and there is only the detector's replay.
    joint_memory(const traced_agent<Backend>& detector, const traced_agent<Backend>& fast,
                 const traced_agent<Backend>& slow, const task_info& task, const sequence_info& play, bool detects,
                 const phase_settings& s, int environments, std::uint64_t seed, int threads, std::int64_t total_steps)
        : detecting(detector, task, settings_of(s.detector, environments, detects), seed, total_steps),
          episodes_(std::make_shared<lived_episodes<real>>(detecting.lived(), play, s.memory.batch, slow.discount)),
          remembering(fast, slow, episodes_, sequence_settings{s.memory.batch}, s.memory.optimiser, seed,
                      std::min(threads, s.memory.batch), total_steps),
          start_(s.detector.start),
          environments_(static_cast<std::size_t>(environments)) {
        remembering.leave_out_below(s.memory.least_loss);
        if (!detects) return;
        const auto meter = std::make_shared<return_uncertainty<Backend>>(detector, play.steps);
        remembering.measure_with(
            [meter](const sequence_rows& all, int b, std::span<float> s_k) { (*meter)(all, b, s_k); });
    }

    /// Learns from the unroll that the policy has just made.
    void follow(trainer<Backend>& acting) {
        see(acting);
        if (!episodes_->look() || acting.steps() < start_) return;
        while (remembering.steps() < acting.steps()) remembering.iterate();
    }

    void settle() {
        detecting.settle();
        remembering.settle();
    }
    /// Both trainers' checkpoints under names of their own.
    void save(safetensors& file) {
        safetensors detector, memory;
        detecting.save(detector);
        remembering.save(memory);
        for (auto& [name, t] : detector.tensors) file.tensors[detector_part + name] = std::move(t);
        for (auto& [name, t] : memory.tensors) file.tensors[memory_part + name] = std::move(t);
        episodes_->each_part([&](const std::string& name, auto part) { save_bytes(file, name, part); });
    }
    void load(const safetensors& file) {
        episodes_->each_part([&](const std::string& name, auto part) { check_bytes(file, name, part); });
        const auto detector = part_of(file, detector_part, "detector"), memory = part_of(file, memory_part, "memup");
        detecting.load(detector);
        // The rows of the memory draw their episodes again when it is loaded.
        episodes_->each_part([&](const std::string& name, auto part) { load_bytes(file, name, part); });
        remembering.load(memory);
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

    void see(trainer<Backend>& acting) {
        const auto blocks = [&](std::size_t i) -> auto& {
            return acting.shard(i).inputs;
        };
        std::size_t rows = 0;
        for (std::size_t i = 0; i < acting.shards(); ++i)
            rows += static_cast<std::size_t>(acting.shard(i).behaviour.batch());
        require(rows == environments_, "joint training: ", rows, " environments act, expected ", environments_);
        const std::size_t steps =
            blocks(0).continues.data.size() / static_cast<std::size_t>(acting.shard(0).behaviour.batch());
        std::vector<real> shown, action, reward;
        std::vector<char> done;
        for (std::size_t t = 0; t < steps; ++t) {
            shown.clear(), action.clear(), reward.clear(), done.clear();
            for (std::size_t i = 0; i < acting.shards(); ++i) {
                const auto append = [&](const char* name, std::vector<real>& to) {
                    for (const auto& block : blocks(i).steps) {
                        if (block.name != name) continue;
                        const auto row = block.data.subspan(t * (block.data.size() / steps), block.data.size() / steps);
                        to.insert(to.end(), row.begin(), row.end());
                    }
                };
                append("observation", shown), append("action", action), append("reward", reward);
                const auto all = blocks(i).continues.data;
                for (std::size_t b = 0; b < all.size() / steps; ++b)
                    done.push_back(all[t * (all.size() / steps) + b] == real(0));
            }
            detecting.see(shown, action, reward, done);
        }
    }

public:
    detector_trainer<Backend> detecting;

private:
    std::shared_ptr<lived_episodes<real>> episodes_;

public:
    memup_trainer<Backend> remembering;

private:
    std::int64_t start_;
    std::size_t environments_;
};

}  // namespace engram
