// SPDX-License-Identifier: MIT

#include <cstdio>

#include <fmt/format.h>

#include <engram/program/commands.hpp>
#include <engram/program/configuration.hpp>
#include <engram/program/presets.hpp>

namespace engram {

namespace {

std::string with_separators(std::int64_t n) {
    std::string digits = std::to_string(n);
    for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
        digits.insert(static_cast<std::size_t>(at), " ");
    return digits;
}

}  // namespace

std::string description(ablation& model, const arguments& a) {
    if (a.device) {
        const device_runs& on = find_device(model, *a.device);
        return fmt::format("{}: {}\n", on.name(), on.about());
    }
    configuration config(model);
    config.ask_for_world(a);
    config.join();
    const auto tasks = tasks_of(model);
    if (!config.elsewhere) config.task = a.task.value_or(tasks.front());
    require_task(model, config.task);
    config.refuse_foreign(parse_assignments(a.set));
    config.apply_preset(a.preset.value_or("small"), parse_assignments(a.set));
    const auto agent = model.trace(config.shape(), 1);

    std::string out = fmt::format("{} (preset {}, task {})\n\npolicies\n", model.name(), config.preset, config.task);
    for (const auto& [slot, policy] : model.policies()) out += fmt::format("  {:<12}{}\n", slot, policy);
    if (config.joined) out += "\nworld\n" + config.joined->about();
    out += "\nparameters\n";
    std::size_t width = 5;
    for (const auto& e : agent.store->entries()) width = std::max(width, e.name.size());
    for (const auto& e : agent.store->entries())
        out += fmt::format("  {:<{}}  {:>14}{:>14}\n", e.name, width, fmt::format("[{}, {}]", e.rows, e.columns),
                           with_separators(e.size()));
    out += fmt::format("  {:<{}}  {:>14}{:>14}\n", "total", width, "", with_separators(agent.store->total()));
    for (const auto& p : published_totals())
        if (config.preset == "paper" && p.ablation == model.name() && p.rotation == (config.task == "rotation"))
            out += fmt::format(
                "  {:<{}}  {:>14}{:>14}   {:+.2f} %\n", "total in the paper's Table 1", width, "",
                with_separators(p.parameters),
                100.0 * static_cast<double>(agent.store->total() - p.parameters) / static_cast<double>(p.parameters));
    // What every row of the batch carries from step to step; an unroll holds it once a step.
    std::int64_t carried = 0;
    for (const auto& v : agent.g->values())
        if (v.kind == value_info::origin::persistent) carried += v.width;
    out += fmt::format("\nstate of a row\n  {} numbers, {} bytes\n", with_separators(carried),
                       with_separators(carried * static_cast<std::int64_t>(sizeof(float))));
    out += "\nsettings\n";
    width = 0;
    std::size_t values = 0;
    const auto settings = config.settings();
    for (const auto& s : settings) {
        width = std::max(width, s.name.size());
        values = std::max(values, s.value.size());
    }
    for (const auto& s : settings)
        out += fmt::format("  {:<{}}  {:<{}}  {}\n", s.name, width, s.value, std::min<std::size_t>(values, 24),
                           config.origin_of(s.name));
    out += "\ndevices\n";
    for (const auto* on : devices_of(model))
        out += fmt::format("  {:<12}{}\n", on->name(), on->refusal().empty() ? on->about() : on->refusal());
    out += "\ntasks\n";
    if (model.learns_sequences()) {
        for (const auto& name : tasks) {
            // Numbers of steps and items are meant for the task that was named.
            task_options options = config.run.task;
            if (name != config.task) options.steps = options.items = options.recalled = 0;
            const auto t = describe_sequence(name, options);
            out += fmt::format(
                "  {:<32}{:>4} steps of {:>12} numbers{:>4} condition columns   levels:", t.name, t.steps,
                fmt::format("{} x {} x {}", t.observation.height, t.observation.width, t.observation.channels),
                t.actions);
            for (const auto& level : t.levels) out += " " + level;
            out += "\n";
        }
        return out;
    }
    for (const auto& t : all_tasks(config.run.task)) {
        out += fmt::format(
            "  {:<32}{:>12} numbers{:>4} actions   levels:", t.name,
            fmt::format("{} x {} x {}", t.observation.height, t.observation.width, t.observation.channels), t.actions);
        for (const auto& level : t.levels) out += " " + level;
        out += "\n";
    }
    return out;
}

int describe(ablation& model, const arguments& a) {
    std::fputs(description(model, a).c_str(), stdout);
    return 0;
}

}  // namespace engram
