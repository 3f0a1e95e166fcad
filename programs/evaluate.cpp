// SPDX-License-Identifier: MIT

#include <cstdio>
#include <memory>

#include <engram/program/commands.hpp>
#include <engram/program/run_files.hpp>

namespace engram {

int evaluate(ablation& model, const arguments& a) {
    catch_interrupts();
    require(a.from.has_value(), "evaluate: --from is missing; name a run folder");
    const run_paths paths{*a.from};
    configuration config(model);
    require(file_exists(paths.config()), paths.folder, " is no run folder: it has no config.json");
    config.from_json(read_json(paths.config()), paths.config());
    if (a.data) config.set({{"task.data", *a.data}});
    config.ask_for_world(a);
    if (a.products) config.products = *a.products;
    const device_runs& on = find_device(model, a.device.value_or(config.device));
    (void)config.products_on(on.name());
    const auto seed = a.seed ? whole_number("--seed", *a.seed, 0) : config.seed;
    const int episodes = a.episodes ? parse<int>("--episodes", *a.episodes) : 100;
    require(episodes > 0, "--episodes: expected 1 or more, got ", episodes);
    const auto changed = parse_assignments(a.set);
    for (const auto& [name, value] : changed)
        require(name.starts_with("task."), "evaluate: --set ", name, ": a model is evaluated as it was trained; only ",
                "options of its task can be others, such as task.length");
    config.refuse_foreign(changed);
    config.join();
    require(file_exists(paths.checkpoint()), paths.folder, " holds no checkpoint yet; train it first");
    const auto file = safetensors::read(paths.checkpoint());
    check_checkpoint(file, config, false);
    config.set(changed);
    const bool sequences = model.learns_sequences();
    const auto known = sequences ? describe_sequence(config.task, config.run.task).known_levels()
                                 : describe_task(config.task, config.run.task).levels;
    for (const auto& level : a.level) require_known("level", level, known);
    config.note_slow_products();
    const auto kept_summary = [&] {
        return file_exists(paths.summary()) ? read_json(paths.summary())
                                            : json{{"ablation", model.name()}, {"task", config.task}};
    };
    json summary = kept_summary();
    const json before = summary;
    // What was played otherwise than trained stands beside the run's levels, under what was changed.
    std::string other;
    for (const auto& [name, value] : changed) other += (other.empty() ? "" : " ") + name + "=" + value;
    json scores = other.empty() ? summary : json{{"levels", json::object()}};
    const auto episode_seed = static_cast<std::uint64_t>(seed);
    std::unique_ptr<prepared_run> acting;
    if (sequences) {
        const auto run = on.prepare_sequences(config);
        run->load_weights(file);
        if (!evaluate_levels(*run, a.level, episodes, episode_seed, interrupted, scores)) return 130;
    } else {
        acting = on.prepare(config);
        load_weights(file, acting->store());
        try {
            if (!evaluate_levels(*acting, a.level, episodes, episode_seed, interrupted, scores)) return 130;
        } catch (const error& problem) {
            if (config.elsewhere) throw run_error(problem.what());
            throw;
        }
    }
    json kept = scores;
    if (sequences)
        for (const auto& level : describe_sequence(config.task, config.run.task).asked_levels)
            kept["levels"].erase(level);
    if (other.empty())
        summary = kept;
    else
        summary["changed"][other] = kept["levels"];
    std::string lost;
    try {
        require(
            kept_summary() == before, paths.summary(),
            " has changed since the evaluation began, so these scores are not in it: the run goes on, or somebody else "
            "evaluates it");
        write_json(paths.summary(), summary);
    } catch (const error& problem) {
        lost = problem.what();
    }
    // Once they are written: a table that fails loses no scores. Those that could not be written are seen at least.
    if (!a.quiet) std::fputs(level_table(scores).c_str(), stdout);
    if (!lost.empty()) throw run_error(lost);
    try {
        if (acting && other.empty() && !config.elsewhere)
            record_retrieval(*acting, model.name(), episode_seed, paths.retrieval());
    } catch (const error& problem) {
        throw run_error(problem.what());
    }
    return 0;
}

}  // namespace engram
