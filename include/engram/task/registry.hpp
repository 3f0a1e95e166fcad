#pragma once
// SPDX-License-Identifier: MIT

// Every task by name: what programs, the documentation and the tests enumerate. A task of one's own joins the list with
// `add_task<my_environment>()` before anything asks for it; every command then knows it by its name.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <engram/core/error.hpp>
#include <engram/tasks.hpp>

namespace engram {

/// The images that the options ask for, for tasks that name none of their own. `auto` takes what the data folder has,
/// Omniglot before MNIST (it has more classes), and the built-in set where there is no folder. Their side is 12 pixels
/// at the small fidelity, at the paper's 32 (MNIST: 28, which is all that it has; ours).
inline std::shared_ptr<const stimulus_set> load_stimuli(const task_options& options) {
    require_known("stimuli", options.stimuli, std::vector<std::string>{"auto", "builtin", "mnist", "omniglot"});
    require(options.stimulus_count >= 0, "stimulus_count is ", options.stimulus_count, ", expected 0 (all) or more");
    std::string source = options.stimuli;
    if (source == "auto") {
        source = "builtin";
        if (!options.data.empty()) {
            source.clear();
            for (const char* name : {"mnist", "omniglot"})
                if (std::filesystem::is_directory(options.data + "/" + name)) source = name;
            require(!source.empty(), "data folder '", options.data,
                    "' has neither a folder mnist nor a folder omniglot");
        }
    }
    require_known("fidelity", options.fidelity, std::vector<std::string>{"small", "paper"});
    const int side = options.fidelity == "small" ? 12 : source == "mnist" ? 28 : 32;
    const int count = options.stimulus_count;
    if (source == "builtin") return std::make_shared<const stimulus_set>(builtin_stimuli(count, side));
    require(!options.data.empty(), "stimuli '", source, "' need a data folder that holds ", source, "/");
    const std::string folder = options.data + "/" + source;
    return std::make_shared<const stimulus_set>(source == "mnist" ? mnist_stimuli(folder, count, side)
                                                                  : omniglot_stimuli(folder, count, side));
}

/// One line of the registry.
struct registered_task {
    std::optional<std::vector<std::string>> reads;  // the options, where it says
    std::function<task_info(const task_options&)> describe;
    std::function<std::shared_ptr<const stimulus_set>(const task_options&)> stimuli;
    std::function<std::unique_ptr<batch_environment>(const std::string& level, int count, std::uint64_t seed,
                                                     std::uint32_t first_stream, const task_options& options,
                                                     std::shared_ptr<const stimulus_set> stimuli)>
        make;
};

/// The images of an environment: its own where it has `E::load_stimuli`, the general ones where it uses any.
template <environment E>
std::shared_ptr<const stimulus_set> stimuli_of(const task_options& options) {
    if constexpr (requires { E::load_stimuli(options); })
        return E::load_stimuli(options);
    else
        return E::uses_stimuli ? load_stimuli(options) : nullptr;
}

/// The entry of one environment.
template <environment E>
registered_task register_task() {
    return {options_read<E>(), &E::describe, &stimuli_of<E>,
            [](const std::string& level, int count, std::uint64_t seed, std::uint32_t first_stream,
               const task_options& options,
               std::shared_ptr<const stimulus_set> stimuli) -> std::unique_ptr<batch_environment> {
                require_known(E::describe(options).name + " level", level, E::describe(options).levels);
                if (!stimuli) stimuli = stimuli_of<E>(options);
                return std::make_unique<batch_of<E>>(level, count, seed, first_stream, options, std::move(stimuli));
            }};
}

/// What `add_task` has added.
inline std::vector<registered_task>& added_tasks() {
    static std::vector<registered_task> added;
    return added;
}

template <environment... E>
struct task_list {
    /// body.template operator()<E>() for each.
    template <class Body>
    static void each(Body body) {
        (body.template operator()<E>(), ...);
    }
};

/// The entries of a list.
template <environment... E>
std::vector<registered_task> register_all(task_list<E...>) {
    return {register_task<E>()...};
}

/// The tasks of the library.
using library_tasks = task_list<
    // The Memory Tasks Suite (facts 2), in the order of the paper's tables.
    arbitrary_visuomotor_mapping, continuous_recognition, change_detection, what_then_where, spot_diff,
    spot_diff_passive, spot_diff_multi, spot_diff_motion, visible_goal_with_buildings, invisible_goal_with_buildings,
    invisible_goal_empty_arena, procedural_maze, transitive_inference,
    // Facts 3.7.
    t_maze, two_colors,
    // POPGym (docs/decisions/0027).
    popgym::repeat_first, popgym::repeat_previous, popgym::autoencode, popgym::count_recall, popgym::higher_lower,
    popgym::concentration, popgym::battleship, popgym::mine_sweeper, popgym::multiarmed_bandit,
    popgym::stateless_cart_pole, popgym::noisy_stateless_cart_pole, popgym::stateless_pendulum,
    popgym::noisy_stateless_pendulum, popgym::labyrinth_escape, popgym::labyrinth_explore>;

/// Every task of the library, and those that were added.
inline std::vector<registered_task> registered_tasks() {
    auto all = register_all(library_tasks());
    all.insert(all.end(), added_tasks().begin(), added_tasks().end());
    return all;
}

/// All tasks as they are under the options.
inline std::vector<task_info> all_tasks(const task_options& options = {}) {
    std::vector<task_info> infos;
    for (const auto& task : registered_tasks()) infos.push_back(task.describe(options));
    return infos;
}

/// Their names, in order.
inline std::vector<std::string> task_names() {
    std::vector<std::string> names;
    for (const auto& info : all_tasks()) names.push_back(info.name);
    return names;
}

/// Makes a task that is put together at run time known by its name. Not while other threads use the registry.
inline void add_task(const registered_task& task) {
    const task_info info = task.describe({});
    require(!info.name.empty() && info.actions > 0 && info.observation.size() > 0 && !info.levels.empty(),
            "add_task: task '", info.name, "' has ", info.actions, " actions, ", info.observation.size(),
            " observed numbers and ", info.levels.size(), " levels; expected a name and at least one of each");
    for (const auto& name : task_names()) require(name != info.name, "add_task: there is already a task '", name, "'");
    added_tasks().push_back(task);
}

/// Makes a task of one's own known by its name: an `environment`, or a smaller struct as `plugged` takes it. Not while
/// other threads use the registry.
template <class E>
void add_task() {
    using whole =
        typename std::conditional_t<environment<E>, std::type_identity<E>, std::type_identity<plugged<E>>>::type;
    add_task(register_task<whole>());
}

/// The entry called `name`; throws with the nearest name when there is none.
inline registered_task find_task(const std::string& name) {
    require_known("task", name, task_names());
    for (const auto& task : registered_tasks())
        if (task.describe({}).name == name) return task;
    fail("unknown task '", name, "'");
}

/// What a task shows, how many actions it has, its levels.
inline task_info describe_task(const std::string& name, const task_options& options = {}) {
    return find_task(name).describe(options);
}

/// The images that a task shows under the options; none where it needs none. Load once, share among all batches.
inline std::shared_ptr<const stimulus_set> task_stimuli(const std::string& name, const task_options& options = {}) {
    return find_task(name).stimuli(options);
}

/// `count` environments of a level; row i draws from stream first_stream + i of the seed. Without `stimuli` the task's
/// own are loaded.
inline std::unique_ptr<batch_environment> make_environment(const std::string& name, const std::string& level, int count,
                                                           std::uint64_t seed, std::uint32_t first_stream = 0,
                                                           const task_options& options = {},
                                                           std::shared_ptr<const stimulus_set> stimuli = nullptr) {
    return find_task(name).make(level, count, seed, first_stream, options, std::move(stimuli));
}

}  // namespace engram
