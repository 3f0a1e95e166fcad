#pragma once
// SPDX-License-Identifier: MIT

// Every sequence task by name: what programs, the documentation and the tests enumerate. A task of one's own joins the
// list with `add_sequence<my_sequences>()` before anything asks for it; every command then knows it by its name.

#include <concepts>
#include <memory>
#include <string>
#include <vector>

#include <engram/core/error.hpp>
#include <engram/tasks.hpp>

namespace engram {

/// One line of the registry.
struct registered_sequence {
    std::optional<std::vector<std::string>> reads;  // the options, where it says
    sequence_info (*describe)(const task_options&);
    std::shared_ptr<const sequence_source> (*make)(const task_options&);
};

/// The entry of one sequence task.
template <class Task>
registered_sequence register_sequence() {
    return {options_read<Task>(), &Task::describe,
            [](const task_options& options) -> std::shared_ptr<const sequence_source> {
                return std::make_shared<const Task>(options);
            }};
}

/// What `add_sequence` has added.
inline std::vector<registered_sequence>& added_sequences() {
    static std::vector<registered_sequence> added;
    return added;
}

template <class... Task>
struct sequence_list {};

/// The entries of a list.
template <class... Task>
std::vector<registered_sequence> register_all(sequence_list<Task...>) {
    return {register_sequence<Task>()...};
}

/// The sequence tasks of the library.
using library_sequences =
    sequence_list<recall_task<perfect_recall>, recall_task<parity_recall>, recall_task<one_shot_recall>,
                  recall_task<dynamic_dependency>, recall_task<similarity_cued_recall>, digit_map, rotation_task,
                  bit_copy, copy_task<false>, copy_task<true>, add_marked, permuted_mnist>;

/// Every sequence task of the library, and those that were added.
inline std::vector<registered_sequence> registered_sequences() {
    auto all = register_all(library_sequences());
    all.insert(all.end(), added_sequences().begin(), added_sequences().end());
    return all;
}

/// Their names, in order.
inline std::vector<std::string> sequence_names() {
    std::vector<std::string> names;
    for (const auto& task : registered_sequences()) names.push_back(task.describe({}).name);
    return names;
}

/// Makes sequences of one's own known by their name: a `sequence_source` with `static sequence_info describe(const
/// task_options&)`, which reads no data, and a constructor from the options, which may. Not while other threads use the
/// registry.
template <class Task>
void add_sequence() {
    constexpr bool describes = requires(const task_options& options) {
        { Task::describe(options) } -> std::same_as<sequence_info>;
    };
    constexpr bool is_made = std::derived_from<Task, sequence_source> && std::constructible_from<Task, task_options>;
    static_assert(describes, "own sequences: they need `static sequence_info describe(const task_options&)`");
    static_assert(is_made, "own sequences: they are a sequence_source with a constructor from `const task_options&`");
    if constexpr (describes && is_made) {
        const sequence_info info = Task::describe({});
        require(!info.name.empty() && info.steps > 0 && info.observation.size() > 0 && !info.levels.empty(),
                "add_sequence: task '", info.name, "' has ", info.steps, " steps, ", info.observation.size(),
                " observed numbers and ", info.levels.size(), " levels; expected a name and at least one of each");
        for (const auto& name : sequence_names())
            require(name != info.name, "add_sequence: there is already a task '", name, "'");
        added_sequences().push_back(register_sequence<Task>());
    }
}

/// The entry called `name`; throws with the nearest name when there is none.
inline registered_sequence find_sequence(const std::string& name) {
    require_known("sequence task", name, sequence_names());
    for (const auto& task : registered_sequences())
        if (task.describe({}).name == name) return task;
    fail("unknown sequence task '", name, "'");
}

/// A task as it is under the options; reads no data.
inline sequence_info describe_sequence(const std::string& name, const task_options& options = {}) {
    return find_sequence(name).describe(options);
}

/// A task with its data. Load once, share among all threads.
inline std::shared_ptr<const sequence_source> make_sequence(const std::string& name, const task_options& options = {}) {
    return find_sequence(name).make(options);
}

}  // namespace engram
