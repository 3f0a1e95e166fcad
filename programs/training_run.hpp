#pragma once
// SPDX-License-Identifier: MIT

// What every training run does, whatever is trained: the run folder, rows of metrics, checkpoints, the progress bar,
// Ctrl-C, the evaluations on the way and at the end. A job says what one update is and which numbers describe it.

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>

#include <engram/evaluate/level_curve.hpp>
#include <engram/io/event_file.hpp>
#include <engram/program/commands.hpp>
#include <engram/program/launch.hpp>
#include <engram/program/progress.hpp>
#include <engram/program/run_files.hpp>

namespace engram {

/// "learner.policy_loss" is policy_loss, "auxiliary.image" auxiliary_image.
inline std::string column_of(const std::string& loss) {
    if (loss.starts_with("learner.")) return loss.substr(8);
    std::string name = loss;
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
}

/// What the process has used so far: seconds of all its threads, and the most bytes it held in memory.
struct process_use {
    double cpu_seconds = 0, peak_bytes = 0;
};
inline process_use used_so_far() {
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return {seconds(use.ru_utime) + seconds(use.ru_stime), 1024.0 * static_cast<double>(use.ru_maxrss)};
}

template <class Job>
class training_run {
public:
    /// Of several processes all train and evaluate, and the first one reads, writes and shows.
    training_run(const configuration& config, const run_paths& paths, const arguments& a)
        : config_(config),
          paths_(paths),
          first_(!config.others || config.others->rank() == 0),
          quiet_(a.quiet || !first_),
          job_(begin(config)) {
        agree(config.others, "");
        if (config.others) require_alike(config.others, {{"data set", job_.data()}});
        alike([&] { open(a); });
        if (config.others) config.others->broadcast(std::as_writable_bytes(std::span(&evaluated_step_, 1)), 0);
    }

private:
    void open(const arguments& a) {
        const configuration& config = config_;
        const run_paths& paths = paths_;
        const bool has_checkpoint = any_of_them(config.others, first_ && file_exists(paths.checkpoint()));
        if (has_checkpoint && !a.resume)
            fail(paths.folder,
                 " already holds a run with a checkpoint; continue it with --resume or choose another --out");
        if (has_checkpoint) {
            load();
            if (first_ && file_exists(paths.config())) {
                // Runs end on whole updates, a little behind what they were begun for: that number asks for no more.
                const auto begun = read_json(paths.config()).value("steps", std::int64_t{0});
                require(config.steps >= std::min(begun, job_.steps()), "--steps ", config.steps, ": the run in ",
                        paths.folder, " is at step ", job_.steps(), ", and was begun for ", begun,
                        "; expected as many or more");
            }
        } else if (!config.weights.empty())
            begin_with(config.weights);
        if (!first_) return;
        make_folder(paths.folder + "/checkpoint");
        remove_leftovers(paths);
        const bool writes_events = a.tensorboard || (a.resume && file_exists(paths.events()));
        if (!has_checkpoint)
            for (const auto& old : {paths.summary(), paths.retrieval(), paths.levels(), paths.events()})
                std::filesystem::remove(old);
        else if (file_exists(paths.summary()))
            summary_ = read_json(paths.summary());
        if (writes_events) events_.emplace(paths.events(), job_.steps(), seconds_since_1970());
        seconds_before_ = summary_.value("wall_seconds", 0.0);
        used_before_ = {summary_.value("cpu_seconds", 0.0), summary_.value("peak_memory_bytes", 0.0)};
        write_json(paths.config(), config.to_json());
        auto columns = job_.columns();
        columns.insert(columns.begin(), {"step", "update"});
        columns.insert(columns.end(), {"gradient_norm", "learning_rate", "steps_per_second"});
        for (const auto& name : job_.last_columns()) columns.push_back(name);
        metrics_.emplace(paths.metrics(), columns, job_.steps());
        columns_ = std::move(columns);
        // Also where no more rows follow: those behind the checkpoint must go.
        if (config.evaluate_every > 0 || file_exists(paths.levels())) {
            levels_.emplace(paths.levels(), std::vector<std::string>{level_curve_header}, job_.steps());
            evaluated_step_ = levels_->last_kept();
        }
    }

public:
    int go() {
        if (first_) config_.note_slow_products();
        const auto start = clock::now();
        row_start_ = start;
        row_first_step_ = job_.steps();
        saved_step_ = first_ && file_exists(paths_.checkpoint()) ? job_.steps() : -1;
        const bool trains = !is_over();
        const auto seconds = [&] {
            return seconds_before_ + std::chrono::duration<double>(clock::now() - start - evaluating_).count();
        };
        try {
            train(seconds);
        } catch (const error& problem) {
            const std::string kept =
                saved_step_ >= 0 ? message("; the checkpoint of step ", saved_step_, " is kept") : "";
            // What is not finite all processes find alike; anything else is one's own.
            if (config_.others && dynamic_cast<const agreed_error*>(&problem))
                throw agreed_run_error(problem.what() + kept);
            throw run_error(problem.what() + kept);
        }
        if (stopped_) {
            if (!first_) return 130;
            std::fprintf(stderr,
                         "engram-%s: interrupted at step %lld; continue with: engram-%s train --resume --out %s\n",
                         config_.model().name().c_str(), static_cast<long long>(job_.steps()),
                         config_.model().name().c_str(), paths_.folder.c_str());
            return 130;
        }
        if (role() == process_role::acts) return 0;
        const bool evaluated = any_of_them(together(), !trains && is_evaluated());
        try {
            if (config_.evaluation_episodes > 0 && !evaluated) {
                const auto episodes = static_cast<int>(std::min<std::int64_t>(config_.evaluation_episodes, 1'000'000));
                if (!job_.evaluate(episodes, paths_, summary_, together())) return 130;
                if (first_) write_json(paths_.summary(), summary_);
            }
        } catch (const error& problem) {
            throw run_error(problem.what());
        }
        if (!quiet_ && summary_.contains("levels")) std::fputs(level_table(summary_).c_str(), stdout);
        if constexpr (requires { job_.remark(); })
            if (!quiet_) std::fputs(job_.remark().c_str(), stdout);
        return 0;
    }

private:
    using clock = std::chrono::steady_clock;

    template <class Seconds>
    void train(Seconds seconds) {
        if (role() == process_role::acts) return act();
        progress_bar bar(quiet_, job_.steps(), config_.steps, job_.headline_name(), job_.headline_best(),
                         "; everything is written to " + paths_.folder);
        if constexpr (requires { job_.serve(); })
            if (learns_alone()) (void)job_.serve();
        // Multiples of fixed intervals, so that a resumed run stops at the same places.
        const auto after = [&](std::int64_t interval) { return (job_.steps() / interval + 1) * interval; };
        std::int64_t row_interval = std::max(5 * job_.steps_an_update(), config_.steps / 400);
        if constexpr (requires { Job::steps_a_row_at_most; })
            row_interval =
                std::min(row_interval, std::max<std::int64_t>(Job::steps_a_row_at_most, job_.steps_an_update()));
        std::int64_t next_row = after(row_interval), next_checkpoint = after(config_.checkpoint_every);
        evaluate_if_due();  // a run that was interrupted while it evaluated left that to its next part
        stopped_ = told_to_stop();
        while (!is_over() && !stopped_) {
            job_.iterate();
            evaluate_if_due();
            stopped_ = told_to_stop();
            if (job_.steps() >= next_row || is_over() || stopped_) {
                write_row();
                next_row = after(row_interval);
                // Only behind a row: no episode is between the table and the checkpoint.
                if (job_.steps() >= next_checkpoint || is_over() || stopped_) {
                    save(seconds());
                    next_checkpoint = after(config_.checkpoint_every);
                }
            }
            bar.show(job_.steps(), job_.headline());
        }
        // A life that ended between the checkpoint and the summary has left an older summary, and its scores.
        // So has one that was asked for more than is asked for now.
        const bool summarised =
            summary_.value("steps", std::int64_t{-1}) == job_.steps() && summary_.value("finished", false) == is_over();
        const bool unsaved = first_ && (saved_step_ != job_.steps() || !summarised);
        if (learns_alone() ? unsaved : any_of_them(config_.others, unsaved)) save(seconds());
    }

    /// Whether the summary has scores of all levels, of as many episodes as are asked for.
    bool is_evaluated() const {
        const auto scores = summary_.value("levels", json::object());
        const auto levels = config_.model().learns_sequences()
                                ? describe_sequence(config_.task, config_.run.task).levels
                                : describe_task(config_.task, config_.run.task).judged_levels();
        return std::all_of(levels.begin(), levels.end(), [&](const std::string& level) {
            return scores.contains(level) && scores[level].value("episodes", std::int64_t{0}) >=
                                                 std::min<std::int64_t>(config_.evaluation_episodes, 1'000'000);
        });
    }

    bool is_over() const {
        if constexpr (requires { job_.best_reward(); })
            if (config_.until_reward && job_.best_reward() >= *config_.until_reward) return true;
        return job_.steps() >= config_.steps;
    }

    process_role role() const {
        if constexpr (requires { job_.role(); })
            return job_.role();
        else
            return process_role::trains;
    }
    /// The processes that train, and evaluate, as this one does.
    processes* together() const { return role() == process_role::trains ? config_.others : nullptr; }
    /// Whether the other processes do what this one calls them for.
    bool learns_alone() const { return role() == process_role::learns; }
    bool told_to_stop() {
        if constexpr (requires { job_.told_to_stop(); })
            if (learns_alone()) return interrupted() || job_.told_to_stop();
        return any_of_them(config_.others, interrupted());
    }
    /// Acts for the process that learns, and gives it this one's part of a checkpoint when it wants one.
    void act() {
        if constexpr (requires { job_.serve(); }) {
            for (bool told = false; true;) {
                const process_call call = job_.serve();
                if (call == process_call::over) break;
                if (call == process_call::checkpoint) save(0);
                if (interrupted() && !std::exchange(told, true)) job_.tell_to_stop();
            }
            stopped_ = interrupted();
        }
    }

    /// Evaluates once a multiple of the interval has been reached since the last rows of levels.csv. It comes before
    /// the checkpoint of its step, so that a checkpoint never lacks rows; rows that it does not know are dropped on
    /// resuming.
    void evaluate_if_due() {
        if constexpr (requires { job_.score_levels(1, together()); }) {
            const std::int64_t every = config_.evaluate_every;
            if (every == 0 || job_.steps() / every <= evaluated_step_ / every) return;
            const auto start = clock::now();
            const auto rows = job_.score_levels(
                static_cast<int>(std::min<std::int64_t>(config_.evaluate_episodes, 1'000'000)), together());
            if (!rows.empty()) evaluated_step_ = job_.steps();
            if (!rows.empty() && first_) {
                levels_->append(rows);
                write_level_events(rows);
            }
            evaluating_ += clock::now() - start;
            row_start_ += clock::now() - start;
        }
    }

    void write_row() {
        const metrics_row now = job_.take_row();
        if (!first_) return;
        std::vector<double> row{static_cast<double>(job_.steps()), static_cast<double>(job_.updates())};
        row.insert(row.end(), now.values.begin(), now.values.end());
        const auto time = clock::now();
        const double seconds = std::chrono::duration<double>(time - row_start_).count();
        const double rate = seconds > 0 ? static_cast<double>(job_.steps() - row_first_step_) / seconds : 0;
        row_start_ = time;
        row_first_step_ = job_.steps();
        row.insert(row.end(), {now.gradient_norm, now.learning_rate, std::round(rate)});
        row.insert(row.end(), now.last_values.begin(), now.last_values.end());
        metrics_->write(row);
        if (!events_) return;
        std::vector<scalar_value> scalars;
        for (std::size_t i = 1; i < row.size(); ++i) scalars.push_back({"train/" + columns_[i], row[i]});
        events_->write(seconds_since_1970(), job_.steps(), scalars);
    }

    /// `rows` of levels.csv once more.
    void write_level_events(const std::string& rows) {
        if (!events_) return;
        std::vector<scalar_value> scalars;
        for (const auto& curve : parse_level_curves(std::string(level_curve_header) + "\n" + rows, paths_.levels()))
            scalars.push_back({"evaluate/" + curve.level, curve.mean.back()});
        events_->write(seconds_since_1970(), job_.steps(), scalars);
    }

    static double seconds_since_1970() {
        return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    }

    void save(double seconds) {
        const auto& store = job_.store();
        for (const auto& e : store.entries()) {
            const auto bad = first_non_finite(store.flat().data() + e.offset, e.size());
            require(bad < 0, "training stopped at step ", job_.steps(), ": entry ", bad, " of ", e.name,
                    " is not finite");
        }
        if (metrics_) metrics_->flush();
        if (levels_) levels_->flush();
        if (events_) events_->flush();
        safetensors file;
        job_.save(file);
        const process_use used = used_by_all();
        if (!first_) return;
        stamp_checkpoint(file, config_);
        file.write(paths_.checkpoint());
        saved_step_ = job_.steps();
        json summary = {{"engram", library_version()},
                        {"ablation", config_.model().name()},
                        {"task", config_.task},
                        {"preset", config_.preset},
                        {"seed", config_.seed},
                        {"steps", job_.steps()},
                        {"parameters", store.total()},
                        {"device", config_.device},
                        {"products", config_.products},
                        {"threads", config_.threads},
                        {"mode", config_.mode},
                        {"steps_per_second", seconds > 0 ? static_cast<double>(job_.steps()) / seconds : 0.0},
                        {"wall_seconds", seconds},
                        {"cpu_seconds", used_before_.cpu_seconds + used.cpu_seconds},
                        {"peak_memory_bytes", std::max(used_before_.peak_bytes, used.peak_bytes)},
                        {"updates", job_.updates()},
                        {"finished", is_over()},
                        {"levels", json::object()}};
        job_.describe_training(summary);
        summary_ = std::move(summary);
        write_json(paths_.summary(), summary_);
    }

    /// Of all processes that train together.
    process_use used_by_all() const {
        const process_use own = used_so_far();
        process_use all;
        for (const auto& use : rows_of_all(config_.others, {{own.cpu_seconds, own.peak_bytes}})) {
            all.cpu_seconds += use[0];
            all.peak_bytes += use[1];
        }
        return all;
    }

    /// A file that the first process reads.
    safetensors read(const std::string& path) const {
        if (!config_.others) return safetensors::read(path);
        bytes content;
        std::string trouble;
        try {
            if (first_) content = read_file(path);
        } catch (const error& problem) {
            trouble = problem.what();
        }
        agree(config_.others, trouble);
        std::uint64_t size = content.size();
        config_.others->broadcast(std::as_writable_bytes(std::span(&size, 1)), 0);
        content.resize(size);
        config_.others->broadcast(std::as_writable_bytes(std::span(content)), 0);
        return safetensors::from_bytes(content, path);
    }

    void load() {
        const safetensors file = read(paths_.checkpoint());
        check_checkpoint(file, config_, true);
        job_.load(file);
    }

    /// Puts another run's weights, and nothing else of it, into the state that this run would begin with. Moving
    /// averages are weights too; statistics of batches are gathered anew.
    void begin_with(const std::string& folder) {
        const run_paths other{folder};
        require(any_of_them(config_.others, first_ && file_exists(other.checkpoint())), "--weights ", folder,
                ": there is no checkpoint in this folder");
        const safetensors from = read(other.checkpoint());
        const auto& ablation = from.text_at("ablation");
        require(ablation == config_.model().name(), "--weights ", folder, ": this is a run of engram-", ablation,
                ", expected one of engram-", config_.model().name());
        safetensors own;
        job_.save(own);
        for (const auto& e : job_.store().entries())
            for (const auto& name : std::array<std::string, 2>{e.name, "slow." + e.name}) {
                if (!own.contains(name)) continue;
                (void)from.values<float>(name, {e.rows, e.columns});
                own.tensors.at(name) = from.at(name);
            }
        job_.load(own);
    }

    /// What body throws in some process all throw.
    template <class Body>
    void alike(Body body) {
        std::string trouble;
        try {
            return (void)(body(), agree(config_.others, ""));
        } catch (const agreed_error&) {
            throw;
        } catch (const error& problem) {
            if (!config_.others) throw;
            trouble = problem.what();
        }
        agree(config_.others, trouble);
    }
    static Job begin(const configuration& config) {
        try {
            return Job(config);
        } catch (const error& problem) {
            if (!config.others) throw;
            agree(config.others, problem.what());
            throw;
        }
    }

    const configuration& config_;
    run_paths paths_;
    bool first_;
    bool quiet_;
    Job job_;
    bool stopped_ = false;              // some process was interrupted
    std::vector<std::string> columns_;  // of metrics.csv
    std::optional<metrics_file> metrics_, levels_;
    std::optional<event_file> events_;
    json summary_ = json::object();
    double seconds_before_ = 0;
    process_use used_before_;
    std::int64_t saved_step_ = -1, row_first_step_ = 0, evaluated_step_ = 0;
    clock::time_point row_start_{};
    clock::duration evaluating_{};  // not counted as time of training
};

}  // namespace engram
