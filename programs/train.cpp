// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cstdio>
#include <thread>

#include <engram/program/commands.hpp>
#include <engram/program/launch.hpp>
#include <engram/program/run_files.hpp>

namespace engram {

namespace {

/// Throws unless the processes of a launch are one that learns and those that act for it, where any do.
void check_actors(const configuration& config) {
    const int count = config.others ? config.others->count() : 1, actors = config.actors;
    require(actors >= 0, "--actors: expected none or more, got ", actors);
    if (config.mode != "asynchronous")
        return require(actors == 0, "--actors ", actors,
                       ": processes act apart in asynchronous training alone; expected "
                       "--mode asynchronous");
    if (actors == 0)
        return require(count == 1,
                       "asynchronous training is one process that learns, and --actors says how many act for "
                       "it: started as ",
                       count, " processes, expected --actors ", count - 1);
    require(config.device == "cpu", "--actors ", actors,
            ": processes act apart on the host alone, expected --device cpu");
    require(count > 1, "--actors ", actors, ": started as one process, with nobody to act for it; expected mpirun -n ",
            actors + 1, ", or --actors 0");
    require(actors < count, "--actors ", actors, ": started as ", count,
            " processes, one of which learns; expected --actors ", count - 1, ", or mpirun -n ", actors + 1);
    require(actors == count - 1, "--actors ", actors, ": started as ", count, " processes, of which ", count - actors,
            " would learn, but one learns alone; expected --actors ", count - 1, ", or mpirun -n ", actors + 1);
}

/// The configuration that the command line asks for, on top of a folder's own when it is resumed.
void configure(configuration& config, const arguments& a, run_paths& paths) {
    if (a.task && a.world.empty()) require_task(config.model(), *a.task);
    if (a.out) paths.folder = *a.out;
    const bool elsewhere = !a.world.empty();
    if (elsewhere) config.ask_for_world(a);
    const auto no_task = [&] {
        return "train: --task is missing; the tasks are " + in_a_list(tasks_of(config.model()));
    };
    if (!a.out && !a.task && !elsewhere) fail(no_task());
    if (a.seed) config.seed = whole_number("--seed", *a.seed, 0);
    if (!a.out)
        paths.folder = "runs/" + (elsewhere ? config.task : *a.task) + "/" + config.model().name() + "-" +
                       std::to_string(config.seed);

    const bool again = a.resume && file_exists(paths.config());
    if (again) config.from_json(read_json(paths.config()), paths.config());
    if (again || !elsewhere) config.ask_for_world(a);
    require(!again || !elsewhere || config.elsewhere, "--world ", elsewhere ? a.world[0] : "", ": the run in ",
            paths.folder, " is of the task ", config.task);
    if (!again && !a.task && !elsewhere)
        fail(a.resume ? "train: there is no run to resume in " + paths.folder : no_task());
    if (a.task) config.task = *a.task;
    named_texts further;
    if (a.data) further.emplace_back("task.data", *a.data);
    if (a.stimuli) further.emplace_back("task.stimuli", *a.stimuli);
    // A run that goes on says what it was written with.
    if (!again) config.refuse_foreign(parse_assignments(a.set));
    for (const auto& pair : parse_assignments(a.set)) further.push_back(pair);
    if (a.preset ? !again || *a.preset != config.preset : !again)
        config.apply_preset(a.preset.value_or("small"), further);
    else
        config.set(further);
    if (a.seed) config.seed = whole_number("--seed", *a.seed, 0);
    if (a.steps) config.steps = whole_number("--steps", *a.steps, 1);
    if (a.until_reward) config.until_reward = parse<double>("--until-reward", *a.until_reward);
    if (a.evaluate) config.evaluation_episodes = whole_number("--evaluate", *a.evaluate, 0);
    if (a.evaluate_every) config.evaluate_every = whole_number("--evaluate-every", *a.evaluate_every, 0);
    if (a.evaluate_episodes) config.evaluate_episodes = whole_number("--evaluate-episodes", *a.evaluate_episodes, 1);
    if (a.checkpoint_every) config.checkpoint_every = whole_number("--checkpoint-every", *a.checkpoint_every, 1);
    if (a.weights) {
        require(!again || *a.weights == config.weights, "--weights ", *a.weights, ": the run in ", paths.folder,
                " began with ", config.weights.empty() ? "weights of its own" : "those of " + config.weights);
        require(config.model().learns() != learning_kind::phases, "--weights ", *a.weights, ": engram-",
                config.model().name(), " trains in phases, each of which begins with weights of its own");
        config.weights = *a.weights;
    }
    if (a.mode) config.mode = *a.mode;
    if (a.device) config.device = *a.device;
    if (a.products) config.products = *a.products;
    require_known("mode", config.mode, std::vector<std::string>{"synchronous", "asynchronous"});
    (void)find_device(config.model(), config.device);
    (void)config.products_on(config.device);
    const bool sequences = config.model().learns_sequences();
    require(config.model().learns() != learning_kind::phases || config.mode == "synchronous", "--mode ", config.mode,
            ": engram-", config.model().name(), " trains in phases, and each of them is synchronous");
    require(!sequences || config.mode == "synchronous", "--mode ", config.mode, ": engram-", config.model().name(),
            " learns from sequences; only agents act asynchronously");
    if (config.mode == "asynchronous") config.run.rollout.check_asynchronous();
    require(!sequences || config.evaluate_every == 0, "--evaluate-every ", config.evaluate_every, ": engram-",
            config.model().name(), " learns from sequences; only agents are evaluated while they train");
    require(!sequences || !config.until_reward, "--until-reward: engram-", config.model().name(),
            " learns from sequences; only agents have rewards");
    if (a.actors) config.actors = parse<int>("--actors", *a.actors);
    check_actors(config);
    const int rows = sequences ? config.run.sequence.batch : config.run.rollout.part();
    if (a.threads)
        config.threads = parse<int>("--threads", *a.threads);
    else if (!again)
        config.threads = config.others ? 1 : std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, rows);
    const int shards = sequences ? config.run.sequence.shards : config.run.rollout.shards;
    const std::int64_t carried = std::int64_t{config.threads} * (config.others ? config.others->count() : 1);
    require(!config.others || carried <= rows || shards > 0, carried / std::max(1, config.threads), " processes of ",
            config.threads, " threads, but the run has ", rows, " rows to carry (",
            sequences ? "sequence.batch" : "rollout.environments", "); expected at most as many");
}

/// A new run that does not say how many shards it has gets one a thread, or a single one where rows of its batch meet;
/// it keeps them, whatever number of threads carries it later.
void settle_shards(configuration& config) {
    const bool sequences = config.model().learns_sequences();
    int& shards = sequences ? config.run.sequence.shards : config.run.rollout.shards;
    const int rows = sequences ? config.run.sequence.batch : config.run.rollout.part();
    const std::int64_t carried = std::int64_t{config.threads} * (config.others ? config.others->count() : 1);
    if (shards != 0 || config.mode != "synchronous" || carried < 1 || carried > rows) return;
    const bool unknown = config.elsewhere && !config.joined;
    const bool whole = carried > 1 && !unknown && config.model().trace(config.shape(), 1).g->mixes_batch();
    require(
        !whole || !config.others, config.others ? config.others->count() : 1,
        " processes, but rows of a batch meet in this model (standardised advantages, statistics of a batch), so one "
        "process alone can train it");
    shards = whole ? 1 : static_cast<int>(carried);
}

}  // namespace

int train(ablation& model, const arguments& a, processes* others) {
    catch_interrupts();
    configuration config(model);
    config.others = others;
    run_paths paths;
    // One process reads the command line and the run's folder; the others are told.
    const bool first = !others || others->rank() == 0;
    std::string trouble;
    try {
        if (first) configure(config, a, paths);
    } catch (const error& problem) {
        if (!others) throw;
        trouble = problem.what();
    }
    agree(others, trouble);
    if (others) {
        const std::string told = first_text(others, first ? config.to_json().dump() : "");
        if (!first) {
            config.from_json(parse_json(told, "the first process"), "the first process");
            config.be_patient(a);
        }
    }
    if (!a.dry_run) {
        try {
            config.join();
            settle_shards(config);
        } catch (const error& problem) {
            if (!others) throw;
            trouble = problem.what();
        }
        agree(others, trouble);
    }
    if (a.dry_run) {
        if (!first) return 0;
        settle_shards(config);
        std::fputs(json_text(config.to_json()).c_str(), stdout);
        return 0;
    }
    return find_device(model, config.device).train(config, paths, a);
}

}  // namespace engram
