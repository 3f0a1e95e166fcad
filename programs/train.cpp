// SPDX-License-Identifier: MIT

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <thread>

#include <engram/program/commands.hpp>
#include <engram/program/progress.hpp>
#include <engram/program/run_files.hpp>
#include <engram/train/asynchronous.hpp>

namespace engram {

namespace {

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

std::int64_t whole_number(const char* flag, const std::string& text, std::int64_t least) {
    const auto number = parse<std::int64_t>(flag, text);
    require(number >= least, flag, ": expected ", least, " or more, got ", number);
    return number;
}

/// The configuration that the command line asks for, on top of a folder's own when it is resumed.
void configure(configuration& config, const arguments& a, run_paths& paths) {
    if (a.task) require_known("task", *a.task, task_names());
    if (a.out) paths.folder = *a.out;
    const bool known_folder = a.out || a.task;
    require(known_folder, "train: --task is missing; the tasks are ", [] {
        std::string all;
        for (const auto& name : task_names()) all += (all.empty() ? "" : ", ") + name;
        return all;
    }());
    if (a.seed) config.seed = whole_number("--seed", *a.seed, 0);
    if (!a.out) paths.folder = "runs/" + *a.task + "/" + config.model().name() + "-" + std::to_string(config.seed);

    const bool again = a.resume && file_exists(paths.config());
    if (again) config.from_json(read_json(paths.config()), paths.config());
    require(again || a.task,
            a.resume ? "train: there is no run to resume in " + paths.folder : std::string("train: --task is missing"));
    if (a.task) config.task = *a.task;
    if (a.preset ? !again || *a.preset != config.preset : !again) config.apply_preset(a.preset.value_or("small"));
    if (a.seed) config.seed = whole_number("--seed", *a.seed, 0);
    if (a.steps) config.steps = whole_number("--steps", *a.steps, 1);
    if (a.evaluate) config.evaluation_episodes = whole_number("--evaluate", *a.evaluate, 0);
    if (a.checkpoint_every) config.checkpoint_every = whole_number("--checkpoint-every", *a.checkpoint_every, 1);
    if (a.mode) config.mode = *a.mode;
    if (a.device) config.device = *a.device;
    if (a.data) config.set({{"task.data", *a.data}});
    if (a.stimuli) config.set({{"task.stimuli", *a.stimuli}});
    config.assign(a.set);
    require_known("mode", config.mode, std::vector<std::string>{"synchronous", "asynchronous"});
    require_known("device", config.device, std::vector<std::string>{"cpu", "cuda"});
    require(config.device == "cpu", "--device cuda: this build has no CUDA; use --device cpu");
    if (a.threads)
        config.threads = parse<int>("--threads", *a.threads);
    else if (!again)
        config.threads =
            std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, config.run.rollout.environments);
}

/// "learner.policy_loss" is policy_loss, "auxiliary.image" auxiliary_image.
std::string column_of(const std::string& loss) {
    if (loss.starts_with("learner.")) return loss.substr(8);
    std::string name = loss;
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
}

/// Names of a trainer's losses, before its first update.
std::vector<std::string> loss_names(trainer<cpu<float>>& t) {
    std::vector<std::string> names;
    for (const auto& loss : t.shard(0).learner.losses()) names.push_back(loss.first);
    return names;
}
std::vector<std::string> loss_names(asynchronous_trainer<cpu<float>>& t) {
    std::vector<std::string> names;
    for (const auto& loss : t.learner().losses()) names.push_back(loss.first);
    return names;
}

template <class Trainer>
class training_run {
public:
    training_run(const configuration& config, const run_paths& paths, bool resume, bool quiet)
        : config_(config),
          paths_(paths),
          quiet_(quiet),
          run_(config),
          trainer_(std::make_unique<Trainer>(
              run_.agent,
              [this](int count, int first) {
                  return make_environment(run_.info.name, run_.info.levels.front(), count,
                                          static_cast<std::uint64_t>(config_.seed), static_cast<std::uint32_t>(first),
                                          run_.options, run_.stimuli);
              },
              trainer_settings{config.run.rollout, config.run.optimiser, config.run.asynchronous},
              static_cast<std::uint64_t>(config.seed), config.threads, config.steps)) {
        const bool has_checkpoint = file_exists(paths.checkpoint());
        if (has_checkpoint && !resume)
            fail(paths.folder,
                 " already holds a run with a checkpoint; continue it with --resume or choose another --out");
        if (has_checkpoint) load();
        make_folder(paths.folder + "/checkpoint");
        remove_leftovers(paths);
        if (!has_checkpoint)
            for (const auto& old : {paths.summary(), paths.retrieval()}) std::filesystem::remove(old);
        else if (file_exists(paths.summary()))
            summary_ = read_json(paths.summary());
        seconds_before_ = summary_.value("wall_seconds", 0.0);
        write_json(paths.config(), config.to_json());
        losses_ = loss_names(*trainer_);
        metrics_.emplace(paths.metrics(), columns(), trainer_->steps());
    }

    int go() {
        const auto start = clock::now();
        row_start_ = start;
        row_first_step_ = trainer_->steps();
        saved_step_ = file_exists(paths_.checkpoint()) ? trainer_->steps() : -1;
        const bool trains = trainer_->steps() < config_.steps;
        const auto seconds = [&] {
            return seconds_before_ + std::chrono::duration<double>(clock::now() - start).count();
        };
        try {
            train(seconds);
        } catch (const error& problem) {
            const std::string kept =
                saved_step_ >= 0 ? message("; the checkpoint of step ", saved_step_, " is kept") : "";
            throw run_error(problem.what() + kept);
        }
        if (interrupted()) {
            std::fprintf(stderr,
                         "engram-%s: interrupted at step %lld; continue with: engram-%s train --resume --out %s\n",
                         config_.model().name().c_str(), static_cast<long long>(trainer_->steps()),
                         config_.model().name().c_str(), paths_.folder.c_str());
            return 130;
        }
        trainer_.reset();  // an asynchronous one would go on acting
        const bool evaluated = !trains && summary_.contains("levels") && !summary_["levels"].empty();
        try {
            if (config_.evaluation_episodes > 0 && !evaluated) {
                const auto episodes = static_cast<int>(std::min<std::int64_t>(config_.evaluation_episodes, 1'000'000));
                if (!evaluate_levels(run_, {}, episodes, static_cast<std::uint64_t>(config_.seed), interrupted,
                                     summary_))
                    return 130;
                record_retrieval(run_, config_.model().name(), static_cast<std::uint64_t>(config_.seed),
                                 paths_.retrieval());
                write_json(paths_.summary(), summary_);
            }
        } catch (const error& problem) {
            throw run_error(problem.what());
        }
        if (!quiet_ && summary_.contains("levels")) std::fputs(level_table(summary_).c_str(), stdout);
        return 0;
    }

private:
    using clock = std::chrono::steady_clock;

    template <class Seconds>
    void train(Seconds seconds) {
        progress_bar bar(quiet_, trainer_->steps(), config_.steps,
                         static_cast<double>(run_.info.maximum_reward(run_.info.levels.front())));
        // Multiples of fixed intervals, so that a resumed run stops at the same places.
        const auto after = [&](std::int64_t interval) { return (trainer_->steps() / interval + 1) * interval; };
        const auto& rollout = config_.run.rollout;
        const std::int64_t row_interval =
            std::max(std::int64_t{5} * rollout.unroll * rollout.environments, config_.steps / 400);
        std::int64_t next_row = after(row_interval), next_checkpoint = after(config_.checkpoint_every);
        while (trainer_->steps() < config_.steps && !interrupted()) {
            trainer_->iterate();
            const bool last = trainer_->steps() >= config_.steps || interrupted();
            if (trainer_->steps() >= next_row || last) {
                write_row();
                next_row = after(row_interval);
                // Only behind a row: no episode is between the table and the checkpoint.
                if (trainer_->steps() >= next_checkpoint || last) {
                    save(seconds());
                    next_checkpoint = after(config_.checkpoint_every);
                }
            }
            bar.show(trainer_->steps(), reward_.value());
        }
        if (saved_step_ != trainer_->steps()) save(seconds());
    }

    std::vector<std::string> columns() const {
        std::vector<std::string> names{"step", "update", "episodes", "reward", "reward_smooth", "loss"};
        bool auxiliary = false;
        for (const auto& name : losses_) {
            names.push_back(column_of(name));
            auxiliary |= name.starts_with("auxiliary.");
        }
        if (auxiliary && std::find(names.begin(), names.end(), "auxiliary_loss") == names.end())
            names.push_back("auxiliary_loss");
        names.insert(names.end(), {"gradient_norm", "learning_rate", "steps_per_second", "lag"});
        return names;
    }

    void write_row() {
        const training_window w = trainer_->take_window();
        double sum = 0;
        for (const double r : w.episodes) {
            reward_.add(r);
            sum += r;
        }
        const double reward = w.episodes.empty() ? std::numeric_limits<double>::quiet_NaN()
                                                 : sum / static_cast<double>(w.episodes.size());
        std::vector<double> row{static_cast<double>(trainer_->steps()),
                                static_cast<double>(trainer_->updates()),
                                static_cast<double>(reward_.episodes),
                                reward,
                                reward_.value(),
                                w.loss};
        double auxiliary = 0;
        bool whole = true;  // no column auxiliary_loss yet
        bool any = false;
        for (const auto& [name, value] : w.losses) {
            row.push_back(value);
            if (!name.starts_with("auxiliary.")) continue;
            any = true;
            auxiliary += value;
            whole &= column_of(name) != "auxiliary_loss";
        }
        if (any && whole) row.push_back(auxiliary);
        const auto now = clock::now();
        const double seconds = std::chrono::duration<double>(now - row_start_).count();
        const double rate = seconds > 0 ? static_cast<double>(trainer_->steps() - row_first_step_) / seconds : 0;
        row_start_ = now;
        row_first_step_ = trainer_->steps();
        row.insert(row.end(), {w.gradient_norm, w.learning_rate, std::round(rate), w.lag});
        metrics_->write(row);
    }

    void save(double seconds) {
        const auto& store = *run_.agent.store;
        for (const auto& e : store.entries()) {
            const auto bad = first_non_finite(store.flat().data() + e.offset, e.size());
            require(bad < 0, "training stopped at step ", trainer_->steps(), ": entry ", bad, " of ", e.name,
                    " is not finite");
        }
        metrics_->flush();
        safetensors file;
        trainer_->save(file);
        file.add<std::int64_t>("progress.episodes", {1}, std::vector<std::int64_t>{reward_.episodes});
        file.add<double>("progress.reward", {1}, std::vector<double>{reward_.sum});
        stamp_checkpoint(file, config_);
        file.write(paths_.checkpoint());
        saved_step_ = trainer_->steps();
        json summary = {{"ablation", config_.model().name()},
                        {"task", config_.task},
                        {"preset", config_.preset},
                        {"seed", config_.seed},
                        {"steps", trainer_->steps()},
                        {"parameters", store.total()},
                        {"device", config_.device},
                        {"threads", config_.threads},
                        {"mode", config_.mode},
                        {"steps_per_second", seconds > 0 ? static_cast<double>(trainer_->steps()) / seconds : 0.0},
                        {"wall_seconds", seconds},
                        {"updates", trainer_->updates()},
                        {"episodes", reward_.episodes},
                        {"finished", trainer_->steps() >= config_.steps},
                        {"levels", json::object()}};
        if (reward_.episodes > 0) summary["reward_smooth"] = reward_.value();
        summary_ = std::move(summary);
        write_json(paths_.summary(), summary_);
    }

    void load() {
        const auto file = safetensors::read(paths_.checkpoint());
        check_checkpoint(file, config_, true);
        const auto episodes = file.values<std::int64_t>("progress.episodes", {1});
        const auto reward = file.values<double>("progress.reward", {1});
        trainer_->load(file);
        reward_.episodes = episodes[0];
        reward_.sum = reward[0];
    }

    const configuration& config_;
    run_paths paths_;
    bool quiet_;
    prepared_run run_;
    std::unique_ptr<Trainer> trainer_;
    smoothed_reward reward_;
    std::optional<metrics_file> metrics_;
    std::vector<std::string> losses_;
    json summary_ = json::object();
    double seconds_before_ = 0;
    std::int64_t saved_step_ = -1, row_first_step_ = 0;
    clock::time_point row_start_{};
};

}  // namespace

int train(ablation& model, const arguments& a) {
    catch_interrupts();
    configuration config(model);
    run_paths paths;
    configure(config, a, paths);
    if (config.mode == "asynchronous")
        return training_run<asynchronous_trainer<cpu<float>>>(config, paths, a.resume, a.quiet).go();
    return training_run<trainer<cpu<float>>>(config, paths, a.resume, a.quiet).go();
}

}  // namespace engram
