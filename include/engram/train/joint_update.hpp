#pragma once
// SPDX-License-Identifier: MIT

// Detector and memory that learn from what a policy does while the policy learns (docs/decisions/0009): after every
// unroll the replay takes its steps, the detector makes an update for each of them, and the memory goes through as many
// steps of whole episodes of the replay as were lived. Nothing of it reaches the policy but the weights of the memory's
// moving averages, and no gradient of the policy reaches the memory.
//
// Of several processes each acts in its shards and shows the others what was lived there, so that all have the whole
// replay and train the same detector; of the memory each carries some shards, and keeps the episodes of their rows.

#include <algorithm>
#include <cstring>
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
          loop_(loop),
          rollout_(a.rollout),
          memory_rows_(s.memory.batch),
          start_(s.detector.start),
          detecting_(loop, *models.detector, make(1, 0)->info(),
                     settings_of(s.detector, a.rollout.environments, models.detects)),
          episodes_(
              std::make_shared<lived_episodes<real>>(detecting_->lived(), play, s.memory.batch, models.slow->discount)),
          remembering_(loop, *models.fast, *models.slow, episodes_,
                       sequence_settings{s.memory.batch, std::min(s.memory.batch, this->shards_a_part())},
                       s.memory.optimiser) {
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
        sync_weights();
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
    void sync_weights() {
        detecting_.sync_weights();
        remembering_.sync_weights();
    }

    /// The others' checkpoints have names of their own.
    void save_whole(safetensors& file) {
        acting::save_whole(file);
        safetensors detector, memory;
        detecting_.save(detector);
        remembering_.save(memory);
        for (auto& [name, t] : detector.tensors) file.tensors[detector_part + name] = std::move(t);
        for (auto& [name, t] : memory.tensors) file.tensors[memory_part + name] = std::move(t);
        if (loop_.others) collect_episodes();
        episodes_->each_part([&](const std::string& name, auto part) { save_bytes(file, name, part); });
    }
    void check(const safetensors& file) {
        acting::check(file);
        detecting_.check(part_of(file, detector_part, "detector"));
        remembering_.check(part_of(file, memory_part, "memup"));
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

    /// What environments showed and did in an unroll, and what that gave, step by step: [T, rows, .].
    struct lived_unroll {
        std::vector<real> shown, action, reward, continues;
        template <class Body>
        void each(Body body) {
            for (auto* part : {&shown, &action, &reward, &continues}) body(*part);
        }
    };
    static lived_unroll lived_in(program<Backend>& learner) {
        const auto block = [&](const char* name) {
            const auto numbers = learner.input(name);
            return std::vector<real>(numbers.begin(), numbers.end());
        };
        return {block("observation"), block("action"), block("reward"), block("continues")};
    }

    /// What was lived in the shards of a minibatch, in their order: in all of them, wherever they are carried.
    std::vector<lived_unroll> lived_in_part(int minibatch) {
        const auto mine = loop_.mine(this->shards_a_part());
        std::vector<lived_unroll> own;
        for (int i = 0; i < mine.count(); ++i)
            own.push_back(lived_in(this->shard(minibatch * mine.count() + i).learner));
        if (!loop_.others) return own;
        std::vector<real> sent;
        for (auto& shard : own)
            shard.each([&](std::vector<real>& part) { sent.insert(sent.end(), part.begin(), part.end()); });
        const auto T = static_cast<std::size_t>(rollout_.unroll);
        const std::size_t width = own[0].shown.size() / own[0].continues.size();
        std::vector<lived_unroll> all;
        const auto came = loop_.others->gather(std::as_bytes(std::span(sent)));
        for (int rank = 0, i = 0; rank < loop_.process_count(); ++rank) {
            const std::byte* from = came[static_cast<std::size_t>(rank)].data();
            for (const int last = shards_of(rank, loop_.process_count(), mine.all).last; i < last; ++i) {
                const int rows = rollout_.part(), first = first_row(i, mine.all, rows);
                const std::size_t n = T * static_cast<std::size_t>(first_row(i + 1, mine.all, rows) - first);
                all.emplace_back();
                all.back().shown.resize(n * width);
                for (auto* part : {&all.back().action, &all.back().reward, &all.back().continues}) part->resize(n);
                all.back().each([&](std::vector<real>& part) {
                    std::memcpy(part.data(), from, part.size() * sizeof(real));
                    from += part.size() * sizeof(real);
                });
            }
        }
        return all;
    }

    /// The detector sees every step of the unroll.
    void see() {
        std::vector<lived_unroll> all;
        for (int m = 0; m < rollout_.minibatches; ++m)
            for (auto& shard : lived_in_part(m)) all.push_back(std::move(shard));
        const auto T = static_cast<std::size_t>(rollout_.unroll);
        std::vector<real> shown, action, reward;
        std::vector<char> done;
        for (std::size_t t = 0; t < T; ++t) {
            shown.clear(), action.clear(), reward.clear(), done.clear();
            for (const auto& shard : all) {
                const auto append = [&](const std::vector<real>& from, std::vector<real>& to) {
                    const std::size_t n = from.size() / T;
                    to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(t * n),
                              from.begin() + static_cast<std::ptrdiff_t>((t + 1) * n));
                };
                append(shard.shown, shown), append(shard.action, action), append(shard.reward, reward);
                const std::size_t n = shard.continues.size() / T;
                for (std::size_t b = 0; b < n; ++b) done.push_back(shard.continues[t * n + b] == real(0));
            }
            detecting_->see(shown, action, reward, done);
            detecting_.iterate();
        }
    }

    /// The episodes of the memory's rows that other processes carry.
    void collect_episodes() {
        const int all = remembering_->shards();
        const auto rows_of = [&](int rank) {
            const auto shards = shards_of(rank, loop_.process_count(), all);
            return std::pair{first_row(shards.first, all, memory_rows_), first_row(shards.last, all, memory_rows_)};
        };
        std::vector<std::byte> sent;
        const auto [first, last] = rows_of(loop_.others->rank());
        episodes_->each_row_part(first, last,
                                 [&](std::span<std::byte> part) { sent.insert(sent.end(), part.begin(), part.end()); });
        const auto came = loop_.others->gather(sent);
        for (int rank = 0; rank < loop_.process_count(); ++rank) {
            const auto rows = rows_of(rank);
            const std::byte* from = came[static_cast<std::size_t>(rank)].data();
            episodes_->each_row_part(rows.first, rows.second, [&](std::span<std::byte> part) {
                std::memcpy(part.data(), from, part.size());
                from += part.size();
            });
        }
    }

    const traced_agent<Backend>*policy_, *slow_;
    loop_settings loop_;
    rollout_settings rollout_;
    int memory_rows_;
    std::int64_t start_;
    training_loop<detector_update<Backend>> detecting_;
    std::shared_ptr<lived_episodes<real>> episodes_;
    training_loop<memup_update<Backend>> remembering_;
};

}  // namespace engram
