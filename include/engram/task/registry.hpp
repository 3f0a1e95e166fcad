#pragma once
// SPDX-License-Identifier: MIT

// Every task by name: what programs, the documentation and the tests enumerate.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engram/core/error.hpp"
#include "engram/task/arbitrary_visuomotor_mapping.hpp"
#include "engram/task/continuous_recognition.hpp"
#include "engram/task/environment.hpp"
#include "engram/task/stimulus_data.hpp"
#include "engram/task/t_maze.hpp"

namespace engram {

/// The images that the options ask for. `auto` takes what the data folder has, Omniglot before MNIST (it has more
/// classes), and the built-in set where there is no folder. Load once, share among all batches.
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
    if (source == "builtin") return std::make_shared<const stimulus_set>(builtin_stimuli(options.stimulus_count));
    require(!options.data.empty(), "stimuli '", source, "' need a data folder that holds ", source, "/");
    const std::string folder = options.data + "/" + source;
    return std::make_shared<const stimulus_set>(source == "mnist" ? mnist_stimuli(folder, options.stimulus_count)
                                                                  : omniglot_stimuli(folder, options.stimulus_count));
}

/// One line of the registry.
struct registered_task {
    task_info (*describe)(const task_options&);
    std::unique_ptr<batch_environment> (*make)(const std::string& level, int count, std::uint64_t seed,
                                               std::uint32_t first_stream, const task_options& options,
                                               std::shared_ptr<const stimulus_set> stimuli);
};

template <environment E>
registered_task register_task() {
    return {&E::describe,
            [](const std::string& level, int count, std::uint64_t seed, std::uint32_t first_stream,
               const task_options& options,
               std::shared_ptr<const stimulus_set> stimuli) -> std::unique_ptr<batch_environment> {
                require_known(E::describe(options).name + " level", level, E::describe(options).levels);
                if (E::uses_stimuli && !stimuli) stimuli = load_stimuli(options);
                return std::make_unique<batch_of<E>>(level, count, seed, first_stream, options, std::move(stimuli));
            }};
}

inline std::vector<registered_task> registered_tasks() {
    return {register_task<arbitrary_visuomotor_mapping>(), register_task<continuous_recognition>(),
            register_task<t_maze>()};
}

/// All tasks as they are under the options.
inline std::vector<task_info> all_tasks(const task_options& options = {}) {
    std::vector<task_info> infos;
    for (const auto& task : registered_tasks()) infos.push_back(task.describe(options));
    return infos;
}

inline std::vector<std::string> task_names() {
    std::vector<std::string> names;
    for (const auto& info : all_tasks()) names.push_back(info.name);
    return names;
}

inline task_info describe_task(const std::string& name, const task_options& options = {}) {
    require_known("task", name, task_names());
    for (auto& info : all_tasks(options))
        if (info.name == name) return info;
    fail("unknown task '", name, "'");
}

/// `count` environments of a level; row i draws from stream first_stream + i of the seed. Without `stimuli` the images
/// are loaded as the options say.
inline std::unique_ptr<batch_environment> make_environment(const std::string& name, const std::string& level, int count,
                                                           std::uint64_t seed, std::uint32_t first_stream = 0,
                                                           const task_options& options = {},
                                                           std::shared_ptr<const stimulus_set> stimuli = nullptr) {
    require_known("task", name, task_names());
    for (const auto& task : registered_tasks())
        if (task.describe(options).name == name)
            return task.make(level, count, seed, first_stream, options, std::move(stimuli));
    fail("unknown task '", name, "'");
}

}  // namespace engram
