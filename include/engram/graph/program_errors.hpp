#pragma once
// SPDX-License-Identifier: MIT

// What a program says when something is wrong: a name that it does not know, a batch that may not be split, a number
// that is not finite.

#include <cmath>
#include <string>
#include <vector>

#include <engram/graph/program.hpp>

namespace engram {

template <class Backend>
std::string program<Backend>::first_non_finite() const {
    const auto bad = [&](int op, int t, int steps) -> std::string {
        for (const int out : graph_.operations()[static_cast<std::size_t>(op)]->outputs) {
            const operand<const real> o = const_cast<program*>(this)->shown(whole(out), false);
            if (!o) continue;
            const bool timeless = o.step == 0;
            const int rows = layout_.one_row(out) ? 1 : options_.batch;
            for (int s = t; s < (timeless ? t + 1 : t + steps); ++s)
                for (int i = 0; i < rows * o.width; ++i)
                    if (!std::isfinite(o.at(s)[i])) return graph_.value(out).name;
        }
        return {};
    };
    const auto scan_list = [&](const std::vector<int>& list, int t, int steps) -> std::string {
        for (const int op : list)
            if (auto name = bad(op, t, steps); !name.empty()) return name;
        return {};
    };
    for (const auto& s : plan_.segments) {
        if (auto name = scan_list(s.once, 0, options_.steps); !name.empty()) return name;
        if (auto name = scan_list(s.before, 0, options_.steps); !name.empty()) return name;
        for (int t = 0; t < options_.steps; ++t)
            if (auto name = scan_list(s.loop, t, 1); !name.empty()) return name;
        if (auto name = scan_list(s.after, 0, options_.steps); !name.empty()) return name;
    }
    return {};
}

template <class Backend>
void program<Backend>::refuse_sharded_mixing() const {
    if (options_.whole_batch() == options_.batch) return;
    for (std::size_t i = 0; i < plan_.live.size(); ++i)
        if (plan_.live[i] && graph_.operations()[i]->mixes_batch)
            fail(graph_.operations()[i]->name,
                 ": rows of the batch meet in it, so the batch cannot be split; expected a single shard");
}

template <class Backend>
int program<Backend>::find_value(const std::string& name, value_info::origin kind, const char* what) const {
    std::vector<std::string> names;
    for (std::size_t v = 0; v < graph_.values().size(); ++v) {
        const bool right =
            kind == value_info::origin::input ? is_input(static_cast<int>(v)) : graph_.values()[v].kind == kind;
        if (!right) continue;
        if (graph_.values()[v].name == name) return static_cast<int>(v);
        names.push_back(graph_.values()[v].name);
    }
    fail("unknown ", what, " '", name, "'", instead_of(name, names));
}

}  // namespace engram
