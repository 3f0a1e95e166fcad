#pragma once
// SPDX-License-Identifier: MIT

// A table of presets: values of settings, each line of which says by name which policies it is of.
//
//     table.of({.memory = {"fifo_knn", "fifo_knn_no_jumpy"}}, {{"memory.slots", "128"}, {"memory.key", "64"}});
//     table.of({.controller = "lstm", .learner = "variational", .task = "rotation"}, {{"controller.hidden", "528"}});
//     table.of({}, {{"optimiser.kind", "adam"}});
//
// A line holds for agents that have all the policies that it names, as policy_name() gives them, where those are the
// library's: a policy of one's own gets nothing, whatever its settings are called. A setting of a slot needs the policy
// of that slot in its line, one of the wiring the learner; a setting of the run (rollout, optimiser, sequence, task,
// phases, and `steps`, how long it is) needs none. Later lines win.
//
// Values are text as after --set; `T` and `5T` are the steps of the task's sequences, once and five times.
// docs/decisions/0014.

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <engram/core/error.hpp>

namespace engram {

/// Names, one of which must be there; none: no matter which.
class one_of {
public:
    one_of() = default;
    one_of(const char* name) : names_{name} {}
    one_of(std::initializer_list<const char*> names) : names_(names.begin(), names.end()) {}

    bool empty() const { return names_.empty(); }
    bool fits(std::string_view name) const {
        return names_.empty() || std::find(names_.begin(), names_.end(), name) != names_.end();
    }
    const std::vector<std::string>& names() const { return names_; }

private:
    std::vector<std::string> names_;
};

/// Slots and the names of what fills them.
using slot_names = std::vector<std::pair<std::string, std::string>>;

/// What a preset is asked for. Names of policies that are not the library's are empty.
struct preset_case {
    slot_names policies;
    std::string task;
    int steps = 0;   // of the task's sequences, T; 0: it has none
    int length = 0;  // task.length
};

/// Which cases a line of a preset is for.
struct preset_scope {
    one_of encoder{}, controller{}, memory{}, auxiliary{}, learner{}, task{};
    int steps = 0;   // where the task's sequences have so many; 0: no matter how many
    int length = 0;  // where task.length is that; 0: no matter which

    std::vector<std::pair<const char*, const one_of*>> slots() const {
        return {{"encoder", &encoder},
                {"controller", &controller},
                {"memory", &memory},
                {"auxiliary", &auxiliary},
                {"learner", &learner}};
    }
    bool covers(const preset_case& c) const {
        if (!task.fits(c.task) || (steps != 0 && steps != c.steps) || (length != 0 && length != c.length)) return false;
        for (const auto& [slot, wanted] : slots()) {
            if (wanted->empty()) continue;
            const auto at = std::find_if(c.policies.begin(), c.policies.end(),
                                         [&, name = slot](const auto& p) { return p.first == name; });
            if (at == c.policies.end() || !wanted->fits(at->second)) return false;
        }
        return true;
    }
    bool of_a_task() const { return !task.empty() || steps != 0 || length != 0; }
};

struct preset_line {
    preset_scope scope;
    std::string setting, value;

    /// Whether the value depends on the task.
    bool of_a_task() const { return scope.of_a_task() || value.ends_with('T'); }
    /// The value in a case: numbers for `T` and `5T`.
    std::string value_in(const preset_case& c) const {
        if (!value.ends_with('T')) return value;
        require(c.steps > 0, "preset: ", setting, " follows the steps of sequences, and ", c.task, " has none");
        return std::to_string((value == "T" ? 1 : std::stoi(value)) * c.steps);
    }
};

/// Lines in order.
class preset_table {
public:
    using values = std::initializer_list<std::pair<const char*, std::string>>;

    preset_table& of(const preset_scope& scope, values all) {
        for (const auto& [setting, value] : all) lines_.push_back({scope, setting, value});
        return *this;
    }
    preset_table& then(const preset_table& more) {
        lines_.insert(lines_.end(), more.lines_.begin(), more.lines_.end());
        return *this;
    }
    const std::vector<preset_line>& lines() const { return lines_; }

private:
    std::vector<preset_line> lines_;
};

/// A policy that lines may name, with its settings by their whole names; a learner's with those of its wiring.
struct presettable_policy {
    std::string slot, name;
    std::vector<std::string> settings;
};

/// Throws a sentence for a line that can never hold: it names a policy or a task that there is not, a setting that its
/// policy has not, or a setting without a policy to have it.
inline void check_preset_lines(const std::string& preset, const std::vector<preset_line>& lines,
                               const std::vector<presettable_policy>& policies,
                               const std::vector<std::string>& run_settings, const std::vector<std::string>& tasks) {
    const auto has = [](const std::vector<std::string>& all, const std::string& one) {
        return std::find(all.begin(), all.end(), one) != all.end();
    };
    for (const auto& line : lines) {
        const std::string where = "preset " + preset + ", line " + line.setting + "=" + line.value + ": ";
        const std::string group = line.setting.substr(0, line.setting.find('.'));
        const std::string owner = group == "wiring" ? "learner" : group;
        for (const auto& task : line.scope.task.names())
            require(has(tasks, task), where, "there is no task '", task, "'", instead_of(task, tasks));
        bool owned = line.setting == "steps" || has(run_settings, line.setting);
        for (const auto& [slot, wanted] : line.scope.slots()) {
            std::vector<std::string> known;
            for (const auto& p : policies)
                if (p.slot == slot) known.push_back(p.name);
            for (const auto& name : wanted->names()) {
                const auto found = std::find(known.begin(), known.end(), name);
                require(found != known.end(), where, "there is no ", slot, " '", name, "'", instead_of(name, known));
                if (owner != slot) continue;
                owned = true;
                for (const auto& p : policies)
                    if (p.slot == slot && p.name == name)
                        require(has(p.settings, line.setting), where, "the ", slot, " ", name, " has no such setting",
                                instead_of(line.setting, p.settings));
            }
        }
        require(owned, where, "no policy is named that could have the setting");
    }
}

}  // namespace engram
