#pragma once
// SPDX-License-Identifier: MIT

// The layout: where each value and each gradient of a plan lies in the arena, and which gradients are stored to.
//
// A carried state is T + 1 blocks [B, F], which the values at its two ends share, or two blocks where one operation
// carries it through all steps, or, where it is written in place, three: as it enters the unroll, as it is at a step,
// and as it leaves. On the host rows that are alike are one row, to whose gradient all rows add; a device
// has each, since its rows add at the same time.
//
// A gradient is stored by whoever gives to it first in the backward sweep, and added to by those that follow, where all
// of them give whole columns of all rows. Such a gradient has its memory from the first of them to whoever reads it,
// and another one has it before and after: an update touches less memory, and meets in the cache what was just
// written. Gradients that must be cleared before they are added to have memory of their own, together, so that clearing
// them is one memset; so have those that are looked at afterwards, of inputs and of what a plan names as its outputs.

#include <algorithm>
#include <limits>
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
    std::vector<char> stored;                  // per value: nobody clears its gradient
    std::vector<std::vector<char>> adds;       // per operation and input: it adds to the gradient instead of storing it
    std::vector<char> kept;                    // per value: its gradient is there after the backward sweep
    std::vector<std::ptrdiff_t> base, d_base;  // per value: elements from the arena's start, or -1
    std::vector<std::ptrdiff_t> last_block;    // per value: from the first block of a persistent state to its last
    std::vector<carried> states;               // persistent states
    std::vector<int> parameter_writers;        // per parameter: operations that write its gradient
    std::vector<range> cleared_parameters;     // what nobody stores to
    std::ptrdiff_t cleared_first = 0, cleared_count = 0, size = 0;

    /// `shown`: values whose gradients are looked at after the backward sweep, besides those of inputs.
    memory_layout(const graph<Backend>& g, const plan& p, const plan_options& options,
                  const parameters<typename Backend::real>& store, const std::vector<view>& shown)
        : graph_(g), plan_(p), options_(options) {
        find_used();
        find_stored(store, shown);
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
    static std::ptrdiff_t padded(std::ptrdiff_t count) { return (count + 15) / 16 * 16; }
    std::ptrdiff_t take(std::ptrdiff_t count) {
        const std::ptrdiff_t start = size;
        size += padded(count);
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
        // Kernels count the numbers of a value in an int.
        for (std::size_t v = 0; v < used.size(); ++v)
            if (used[v])
                require(length(static_cast<int>(v)) <= std::numeric_limits<int>::max(), "'", graph_.values()[v].name,
                        "' would have ", length(static_cast<int>(v)), " numbers in ", options_.steps, " steps of ",
                        options_.batch, " rows; expected at most ", std::numeric_limits<int>::max());
    }

    /// Calls body(operation, number) in the order of program::sweep_backward; those that run together have one number.
    template <class Body>
    void each_backward(Body body) const {
        int phase = 0;
        const auto one_by_one = [&](const std::vector<int>& list) {
            for (auto i = list.rbegin(); i != list.rend(); ++i)
                if (plan_.backward[at(*i)]) body(*i, phase++);
        };
        for (auto s = plan_.segments.rbegin(); s != plan_.segments.rend(); ++s) {
            one_by_one(s->after);
            for (const int i : s->loop)
                if (plan_.backward[at(i)]) body(i, phase);
            ++phase;
            one_by_one(s->before);
            one_by_one(s->once);
        }
    }

    struct given {
        int phase, operation;
        std::size_t input;
        int first, last;  // columns
    };
    // Whoever gives in one time loop does so in an order of its own: what an affine map has summed ahead comes last.
    bool in_turn(const std::vector<given>& givers, int width) {
        std::vector<char> there(at(width), 0);
        int phase = -1;
        for (const given& x : givers) {
            if (x.phase == phase) return tiled(givers, width);
            phase = x.phase;
            const auto begin = there.begin() + x.first, end = there.begin() + x.last;
            const auto covered = std::count(begin, end, 1);
            if (covered != 0 && covered != x.last - x.first) return false;
            adds[at(x.operation)][x.input] = covered != 0;
            std::fill(begin, end, 1);
        }
        return std::count(there.begin(), there.end(), 1) == width;
    }
    /// Whether each column is given once.
    bool tiled(std::vector<given> givers, int width) {
        std::sort(givers.begin(), givers.end(), [](const given& a, const given& b) { return a.first < b.first; });
        int covered = 0;
        for (const given& x : givers) {
            if (x.first != covered) return false;
            covered = x.last;
            adds[at(x.operation)][x.input] = 0;
        }
        return covered == width;
    }

    void find_stored(const parameters<typename Backend::real>& store, const std::vector<view>& shown) {
        const auto& ops = graph_.operations();
        std::vector<std::vector<given>> givers(graph_.values().size());
        stored.assign(graph_.values().size(), 0);
        kept.assign(graph_.values().size(), 0);
        begins_.assign(graph_.values().size(), std::numeric_limits<int>::max());
        ends_.assign(graph_.values().size(), -1);
        parameter_writers.assign(store.entries().size(), 0);
        adds.resize(ops.size());
        each_backward([&](int i, int phase) {
            const auto& op = *ops[at(i)];
            adds[at(i)].assign(op.inputs.size(), 1);
            for (const int p : op.parameters) ++parameter_writers[at(p)];
            const auto met = [&](int value) {
                begins_[at(value)] = std::min(begins_[at(value)], phase);
                ends_[at(value)] = std::max(ends_[at(value)], phase);
            };
            for (const int out : op.outputs) met(out);
            for (std::size_t n = 0; n < op.inputs.size(); ++n) {
                const view& in = op.inputs[n];
                if (in.detached) continue;
                met(in.value);
                givers[at(in.value)].push_back({phase, i, n, in.offset, in.offset + in.width});
                const int embedding = plan_.looked_up[at(in.value)];
                if (embedding >= 0) ++parameter_writers[at(ops[at(embedding)]->table)];
            }
        });
        for (std::size_t v = 0; v < stored.size(); ++v) {
            const value_info& info = graph_.values()[v];
            if (!plan_.active[v]) continue;
            stored[v] = plan_.state_of[v] < 0 && info.rows != extent::batch && !one_row(static_cast<int>(v)) &&
                        in_turn(givers[v], info.width);
            kept[v] = !stored[v];
            if (!stored[v])
                for (const given& x : givers[v]) adds[at(x.operation)][x.input] = 1;
        }
        for (const int v : graph_.wanted_gradients()) kept[at(v)] = plan_.active[at(v)];
        for (const view& v : shown) kept[at(v.value)] = plan_.active[at(v.value)];
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
        std::vector<int> shared;
        for (std::size_t v = 0; v < d_base.size(); ++v) {
            if (!plan_.active[v] || d_base[v] >= 0) continue;
            if (kept[v])
                d_base[v] = take(length(static_cast<int>(v)));
            else
                shared.push_back(static_cast<int>(v));
        }
        place_in_turn(shared);
    }

    // The largest first, each as far ahead as those allow that are there at the same time.
    void place_in_turn(std::vector<int> values) {
        struct taken {
            std::ptrdiff_t first, last;
        };
        std::stable_sort(values.begin(), values.end(), [&](int a, int b) { return length(a) > length(b); });
        const std::ptrdiff_t start = size;
        for (std::size_t n = 0; n < values.size(); ++n) {
            const std::size_t v = at(values[n]);
            std::vector<taken> beside;
            for (std::size_t k = 0; k < n; ++k) {
                const std::size_t other = at(values[k]);
                if (begins_[other] <= ends_[v] && begins_[v] <= ends_[other])
                    beside.push_back({d_base[other], d_base[other] + padded(length(values[k]))});
            }
            std::sort(beside.begin(), beside.end(), [](const taken& a, const taken& b) { return a.first < b.first; });
            d_base[v] = start;
            for (const taken& x : beside) {
                if (d_base[v] + padded(length(values[n])) <= x.first) break;
                d_base[v] = std::max(d_base[v], x.last);
            }
            size = std::max(size, d_base[v] + padded(length(values[n])));
        }
    }

    const graph<Backend>& graph_;
    const plan& plan_;
    const plan_options& options_;
    std::vector<int> begins_, ends_;  // per value: when in the backward sweep its gradient is met
};

}  // namespace engram
