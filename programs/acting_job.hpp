#pragma once
// SPDX-License-Identifier: MIT

// Training an agent in environments, synchronously, asynchronously, or in the phases of an agent whose memory is
// trained before it acts.

#include <limits>
#include <memory>

#include <engram/evaluate/level_curve.hpp>
#include <engram/evaluate/mmer.hpp>
#include <engram/program/resident_tasks.hpp>
#include <engram/task/played_episodes.hpp>
#include <engram/train/asynchronous_update.hpp>
#include <engram/train/memup_phases.hpp>
#include <engram/train/rows_on_device.hpp>

#include "data_checksum.hpp"
#include "prepared_agent.hpp"
#include "training_run.hpp"

namespace engram {

// Exponential moving average of episode rewards, corrected for its start (facts 1.11).
struct smoothed_reward {
    static constexpr double alpha = 0.05;
    std::int64_t episodes = 0;
    double sum = 0;

    void add(double reward) {
        ++episodes;
        sum += alpha * (reward - sum);
    }
    double value() const {
        return episodes > 0 ? sum / (1 - std::pow(1 - alpha, static_cast<double>(episodes)))
                            : std::numeric_limits<double>::quiet_NaN();
    }
};

/// A run's training, and the device that its environments are on.
struct agent_training {
    std::unique_ptr<training> loop;
    std::string environments = cpu<float>::name;
};

/// The training of a run's agent: in phases, where its memory is trained before it acts, or in the run's mode.
template <class Backend>
agent_training make_training(const configuration& config, const prepared_agent<Backend>& run) {
    const loop_settings loop{static_cast<std::uint64_t>(config.seed), config.threads, config.steps, config.others};
    const auto make = [&run, seed = loop.seed](int count, int first) {
        return make_environment(run.info.name, run.info.levels.front(), count, seed, static_cast<std::uint32_t>(first),
                                run.options, run.stimuli);
    };
    const acting_settings settings{config.run.rollout, config.run.optimiser, config.run.asynchronous};
    if (config.model().learns() != learning_kind::phases) {
        if (config.mode == "asynchronous")
            return {std::make_unique<training_loop<asynchronous_update<Backend>>>(loop, run.agent, make, settings)};
        if constexpr (device_backend<Backend>)
            if (const auto resident =
                    find_resident<Backend>(run.info.name, run.info.levels.front(), loop.seed, run.options, run.stimuli))
                return {std::make_unique<training_loop<acting_update<Backend>>>(
                            loop, run.agent, on_device(run.agent, resident, loop.seed), settings),
                        Backend::name};
        return {std::make_unique<training_loop<acting_update<Backend>>>(loop, run.agent, make, settings)};
    }
    phase_parts<Backend> parts;
    parts.trace = [&config, shape = run.agent.task](purpose why) { return traced<Backend>(config, shape, why); };
    parts.environments = make;
    bool sees_reward = false;
    for (const auto& s : config.model().settings()) {
        if (s.name == "learner.memory.uncertainty") parts.detects = s.value == "quantiles";
        if (s.name == "wiring.last_reward") sees_reward = s.value == "true";
    }
    parts.play = std::make_shared<played_episodes>(
        run.info,
        [&run](const std::string& level, std::uint64_t own, std::uint32_t stream) {
            return make_environment(run.info.name, level, 1, own, stream, run.options, run.stimuli);
        },
        parts.trace(purpose::generating).discount, sees_reward);
    return {std::make_unique<memup_phases<Backend>>(loop, run.agent, parts, config.run.phases, settings)};
}

template <class Backend>
class acting_job {
public:
    static constexpr std::int64_t steps_a_row_at_most = 65'536;  // evaluate/mmer.hpp

    explicit acting_job(const configuration& config)
        : config_(config),
          run_(config),
          training_(make_training(config_, run_)),
          losses_(training_.loop->loss_names()) {}

    std::string data() const { return data_checksum(run_.stimuli.get()); }
    void iterate() { training_.loop->iterate(); }
    process_role role() const { return training_.loop->role(); }
    process_call serve() { return training_.loop->serve(); }
    void tell_to_stop() { training_.loop->tell_to_stop(); }
    bool told_to_stop() const { return training_.loop->told_to_stop(); }
    std::int64_t steps() const { return training_.loop->steps(); }
    std::int64_t updates() const { return training_.loop->updates(); }
    std::int64_t steps_an_update() const {
        return std::int64_t{config_.run.rollout.unroll} * config_.run.rollout.environments;
    }
    const parameters<float>& store() {
        training_.loop->sync_weights();
        return *run_.agent.store;
    }
    std::string headline_name() const { return "reward"; }
    double headline_best() const { return static_cast<double>(run_.info.maximum_reward(run_.info.levels.front())); }
    double headline() const { return reward_.value(); }
    /// The highest mean of the episodes of a row, a hundred at least; minus infinity before there is one.
    double best_reward() const { return best_; }

    std::vector<std::string> columns() const {
        std::vector<std::string> names{"episodes", "reward", "reward_smooth", "loss"};
        bool auxiliary = false;
        for (const auto& name : losses_) {
            names.push_back(column_of(name));
            auxiliary |= name.starts_with("auxiliary.");
        }
        if (auxiliary && std::find(names.begin(), names.end(), "auxiliary_loss") == names.end())
            names.push_back("auxiliary_loss");
        return names;
    }
    std::vector<std::string> last_columns() const { return {"lag"}; }

    metrics_row take_row() {
        const training_window w = training_.loop->take_window();
        double sum = 0;
        for (const double r : w.episodes) {
            reward_.add(r);
            sum += r;
        }
        const double reward = w.episodes.empty() ? std::numeric_limits<double>::quiet_NaN()
                                                 : sum / static_cast<double>(w.episodes.size());
        if (static_cast<double>(w.episodes.size()) >= mmer_episodes) best_ = std::max(best_, reward);
        metrics_row row{{static_cast<double>(reward_.episodes), reward, reward_.value(), w.loss},
                        {w.lag},
                        w.gradient_norm,
                        w.learning_rate};
        double auxiliary = 0;
        bool whole = true;  // no column auxiliary_loss yet
        bool any = false;
        for (const auto& [name, value] : w.losses) {
            row.values.push_back(value);
            if (!name.starts_with("auxiliary.")) continue;
            any = true;
            auxiliary += value;
            whole &= column_of(name) != "auxiliary_loss";
        }
        if (any && whole) row.values.push_back(auxiliary);
        return row;
    }

    void save(safetensors& file) {
        training_.loop->save(file);
        file.add<std::int64_t>("progress.episodes", {1}, std::vector<std::int64_t>{reward_.episodes});
        file.add<double>("progress.reward", {1}, std::vector<double>{reward_.sum});
        file.add<double>("progress.best_reward", {1}, std::vector<double>{best_});
    }
    void load(const safetensors& file) {
        const auto episodes = file.values<std::int64_t>("progress.episodes", {1});
        const auto reward = file.values<double>("progress.reward", {1});
        // Runs from before there was such a tensor have none.
        const std::string best = "progress.best_reward";
        const double kept = file.contains(best) ? file.values<double>(best, {1})[0] : best_;
        training_.loop->load(file);
        reward_.episodes = episodes[0];
        reward_.sum = reward[0];
        best_ = kept;
    }
    void describe_training(json& summary) const {
        summary["episodes"] = reward_.episodes;
        if (reward_.episodes > 0) summary["reward_smooth"] = reward_.value();
        summary["environments"] = training_.environments;
        if (!config_.joined) return;
        const world_counts counts = config_.joined->counts();
        summary["world"] = {{"addresses", config_.elsewhere->addresses},
                            {"interrupted_episodes", counts.interrupted},
                            {"lost_episodes", counts.lost},
                            {"joined", counts.joined},
                            {"resuming", world_remark}};
    }
    /// What the table at the end says besides.
    std::string remark() const {
        if (!config_.joined) return "";
        const world_counts counts = config_.joined->counts();
        return message("world: ", counts.interrupted, " episodes interrupted by the world, ", counts.lost,
                       " lost with their connection; ", world_remark, "\n");
    }
    /// What the weights of now earn on every judged level, as rows of levels.csv; empty when it was interrupted. The
    /// episodes are others at every step, `others` play some of them, and training is left as it was.
    std::string score_levels(int episodes, processes* others) {
        const std::uint64_t seed =
            evaluation_seed(static_cast<std::uint64_t>(config_.seed), "step " + std::to_string(steps()));
        std::string rows;
        for (const auto& level : run_.info.judged_levels()) {
            const auto score = run_.score(level, episodes, seed, interrupted, others);
            if (score.episodes == 0) return "";
            rows += level_curve_row(steps(), level, score.episodes, score.mean, score.standard_error);
        }
        return rows;
    }
    /// Scores every level, together with `others`, and notes one episode; false when it was interrupted.
    bool evaluate(int episodes, const run_paths& paths, json& summary, processes* others) {
        training_.loop.reset();  // an asynchronous one would go on acting
        const auto seed = static_cast<std::uint64_t>(config_.seed);
        if (!evaluate_levels(run_, {}, episodes, seed, interrupted, summary, others)) return false;
        if (others && others->rank() > 0) return true;
        if (!config_.elsewhere) record_retrieval(run_, config_.model().name(), seed, paths.retrieval());
        return true;
    }

private:
    // Counts are those of this process since it was started.
    static constexpr const char* world_remark =
        "a world elsewhere is not in the checkpoint: a resumed run begins new episodes, not those that it left";

    const configuration& config_;
    prepared_agent<Backend> run_;
    agent_training training_;
    std::vector<std::string> losses_;
    smoothed_reward reward_;
    double best_ = -std::numeric_limits<double>::infinity();
};

}  // namespace engram
