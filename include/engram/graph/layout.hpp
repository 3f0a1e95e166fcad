#pragma once
// SPDX-License-Identifier: MIT

// The layout: where each value and each gradient of a plan lies in the arena, and which gradients are stored to.
//
// A carried state is T + 1 blocks [B, F], which the values at its two ends share, or two blocks where one operation
// carries it through all steps, or, where it is written in place, three: as it enters the unroll, as it is at a step,
// and as it leaves. On the host rows that are alike are one row, to whose gradient all rows add; a device
// has each, since its rows add at the same time. Gradients that must be cleared before they are added to lie together,
// so that clearing them is one memset.

#include <algorithm>
#include <vector>

#include <engram/graph/plan.hpp>

namespace engram {

template <class Backend>
struct memory_layout {
    /// A persistent state: its first block, what lies from there to its last one, and the length of a block.
    struct carried {
        std::ptrdiff_t base, last, block;
        bool in_place;  // its second block is what a step sees
    };
    /// Part of the flat parameter gradient.
    struct range {
        std::ptrdiff_t first, count;
    };

    std::vector<char> used;                    // per value: read or written in memory by a live operation
    std::vector<char> stored;                  // per value: its gradient writers store
    std::vector<std::ptrdiff_t> base, d_base;  // per value: elements from the arena's start, or -1
    std::vector<std::ptrdiff_t> last_block;    // per value: from the first block of a persistent state to its last
    std::vector<carried> states;               // persistent states
    std::vector<int> parameter_writers;        // per parameter: operations that write its gradient
    std::vector<range> cleared_parameters;     // what nobody stores to
    std::ptrdiff_t cleared_first = 0, cleared_count = 0, size = 0;

    memory_layout(const graph<Backend>& g, const plan& p, const plan_options& options,
                  const parameters<typename Backend::real>& store)
        : graph_(g), plan_(p), options_(options) {
        find_used();
        find_stored(store);
        place_values();
        place_gradients();
    }

    /// Whether a value is one row, whatever there are of steps and rows.
    bool one_row(int v) const { return !device_backend<Backend> && graph_.value(v).rows_alike; }
    /// Numbers of a value.
    std::ptrdiff_t length(int v) const {
        const value_info& info = graph_.value(v);
        if (one_row(v)) return info.width;
        return std::ptrdiff_t{options_.batch} * info.width * (info.rows == extent::batch ? 1 : options_.steps);
    }

private:
    static std::size_t at(int value) { return static_cast<std::size_t>(value); }

    template <class Body>
    void each_state(Body body) const {
        for (const auto& scan : graph_.scans())
            for (const carried_state& s : scan)
                if (used[at(s.entering)]) body(s);
    }
    std::ptrdiff_t block(const carried_state& s) const {
        return std::ptrdiff_t{options_.batch} * graph_.value(s.entering).width;
    }
    bool in_place(const carried_state& s) const { return plan_.in_place[at(s.entering)]; }
    /// Steps that a state goes through, as far as they are kept.
    int kept_steps(const carried_state& s) const { return plan_.scanned[at(s.entering)] ? 1 : options_.steps; }
    /// Blocks of the state's gradient.
    int slope_blocks(const carried_state& s) const { return in_place(s) ? 1 : kept_steps(s) + 1; }
    // Every buffer starts on a cache line.
    std::ptrdiff_t take(std::ptrdiff_t count) {
        const std::ptrdiff_t start = size;
        size += (count + 15) / 16 * 16;
        return start;
    }

    void find_used() {
        used.assign(graph_.values().size(), 0);
        for (std::size_t i = 0; i < plan_.live.size(); ++i) {
            if (!plan_.live[i]) continue;
            for (const view& in : graph_.operations()[i]->inputs) used[at(in.value)] = 1;
            for (const int out : graph_.operations()[i]->outputs) used[at(out)] = 1;
        }
        for (const auto& scan : graph_.scans())
            for (const carried_state& s : scan)
                if (used[at(s.entering)]) used[at(s.initial.value)] = 1;
        for (std::size_t v = 0; v < used.size(); ++v)
            if (plan_.looked_up[v] >= 0) used[v] = 0;
    }

    // A gradient is stored to when its writers cover each column exactly once, all rows in the same sweep.
    void find_stored(const parameters<typename Backend::real>& store) {
        struct interval {
            int first, last;
        };
        const auto& ops = graph_.operations();
        std::vector<std::vector<interval>> writers(graph_.values().size());
        stored.assign(graph_.values().size(), 0);
        parameter_writers.assign(store.entries().size(), 0);
        for (std::size_t i = 0; i < ops.size(); ++i) {
            if (!plan_.backward[i]) continue;
            for (const int p : ops[i]->parameters) ++parameter_writers[at(p)];
            for (const view& in : ops[i]->inputs) {
                if (in.detached) continue;
                writers[at(in.value)].push_back({in.offset, in.offset + in.width});
                const int embedding = plan_.looked_up[at(in.value)];
                if (embedding >= 0) ++parameter_writers[at(ops[at(embedding)]->table)];
            }
        }
        for (std::size_t v = 0; v < stored.size(); ++v) {
            if (!plan_.active[v] || plan_.state_of[v] >= 0 || graph_.values()[v].rows == extent::batch ||
                one_row(static_cast<int>(v)))
                continue;
            auto& w = writers[v];
            std::sort(w.begin(), w.end(), [](const interval& a, const interval& b) { return a.first < b.first; });
            int covered = 0;
            bool exact = true;
            for (const interval& x : w) {
                exact &= x.first == covered;
                covered = x.last;
            }
            stored[v] = exact && covered == graph_.values()[v].width;
        }
        for (std::size_t p = 0; p < parameter_writers.size(); ++p)
            if (parameter_writers[p] != 1)
                cleared_parameters.push_back({store.entries()[p].offset, store.entries()[p].size()});
    }

    void place_values() {
        base.assign(graph_.values().size(), -1);
        last_block.assign(graph_.values().size(), 0);
        each_state([&](const carried_state& s) {
            const std::ptrdiff_t last = block(s) * (in_place(s) ? 2 : kept_steps(s));
            const std::ptrdiff_t start = take(last + block(s));
            base[at(s.entering)] = in_place(s) ? start + block(s) : start;
            base[at(s.leaving)] = start + block(s);
            const value_info& from = graph_.info(s.initial);
            if (from.kind != value_info::origin::persistent || s.initial.width != from.width) return;
            base[at(s.initial.value)] = start;
            last_block[at(s.initial.value)] = last;
            states.push_back({start, last, block(s), in_place(s)});
        });
        for (std::size_t v = 0; v < base.size(); ++v)
            if (used[v] && base[v] < 0) base[v] = take(length(static_cast<int>(v)));
    }

    void place_gradients() {
        d_base.assign(graph_.values().size(), -1);
        cleared_first = size;
        each_state([&](const carried_state& s) {
            if (!plan_.active[at(s.entering)] && !plan_.active[at(s.leaving)]) return;
            const std::ptrdiff_t start = take(block(s) * slope_blocks(s));
            d_base[at(s.entering)] = start;
            d_base[at(s.leaving)] = in_place(s) ? start : start + block(s);
        });
        for (std::size_t v = 0; v < d_base.size(); ++v)
            if (plan_.active[v] && d_base[v] < 0 && !stored[v]) d_base[v] = take(length(static_cast<int>(v)));
        cleared_count = size - cleared_first;
        for (std::size_t v = 0; v < d_base.size(); ++v)
            if (plan_.active[v] && d_base[v] < 0) d_base[v] = take(length(static_cast<int>(v)));
    }

    const graph<Backend>& graph_;
    const plan& plan_;
    const plan_options& options_;
};

}  // namespace engram
