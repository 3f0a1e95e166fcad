// SPDX-License-Identifier: MIT

#include <cstdio>

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
    const auto seed = a.seed ? parse<std::int64_t>("--seed", *a.seed) : config.seed;
    const int episodes = a.episodes ? parse<int>("--episodes", *a.episodes) : 100;
    require(episodes > 0, "--episodes: expected 1 or more, got ", episodes);
    const task_info info = describe_task(config.task, config.run.task);
    for (const auto& level : a.level) require_known("level", level, info.levels);
    require(file_exists(paths.checkpoint()), paths.folder, " holds no checkpoint yet; train it first");
    const auto file = safetensors::read(paths.checkpoint());
    check_checkpoint(file, config, false);
    const prepared_run run(config);
    load_weights(file, *run.agent.store);

    json summary = file_exists(paths.summary()) ? read_json(paths.summary())
                                                : json{{"ablation", model.name()}, {"task", config.task}};
    if (!evaluate_levels(run, a.level, episodes, static_cast<std::uint64_t>(seed), interrupted, summary)) return 130;
    try {
        write_json(paths.summary(), summary);
        record_retrieval(run, model.name(), static_cast<std::uint64_t>(seed), paths.retrieval());
    } catch (const error& problem) {
        throw run_error(problem.what());
    }
    if (!a.quiet) std::fputs(level_table(summary).c_str(), stdout);
    return 0;
}

}  // namespace engram
