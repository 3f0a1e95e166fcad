#pragma once
// SPDX-License-Identifier: MIT

// The plan: which operations of a trace run, where, and who writes each gradient.
//
// Four analyses, each a free function: liveness (from outputs, losses and written resources), placement (operations of
// a scan that depend on no carried state are hoisted before it, those that feed none are sunk behind it), lookups (an
// embedding that only affine maps read is not written out: they multiply its table) and gradient activity (a value is
// active when it depends on something trained and a loss depends on it).

#include <algorithm>
#include <vector>

#include <engram/graph/graph.hpp>

namespace engram {

/// Sizes and uses of one plan of a graph.
struct plan_options {
    int steps = 1;             // T
    int batch = 1;             // B, the rows of this plan
    bool gradients = false;    // forward only, or backward too
    bool replay = false;       // recorded values are read from the trajectory instead of computed
    bool side_effects = true;  // write resources; a plan without them only looks
    int total_batch = 0;       // rows over all shards (mean losses divide by it); 0: batch
    int first_row = 0;         // number of this plan's first row in the whole batch (noise is keyed by row)
    int first_step = 0;        // number of this plan's first step (noise is keyed by step)
    bool hoist = true;         // off only to measure what hoisting is worth
    bool look_up = true;       // off only to compare: products of a table instead of its rows

    int whole_batch() const { return total_batch > 0 ? total_batch : batch; }
};

enum class placement { once, before, loop, behind };

/// What runs where; indices are those of the graph.
struct plan {
    std::vector<char> live;        // per operation
    std::vector<placement> place;  // per operation
    std::vector<char> in_loop;     // per value: known only inside the time loop
    std::vector<char> active;      // per value: has a gradient
    std::vector<char> backward;    // per operation: passes or makes a gradient
    std::vector<int> state_of;     // per value: index of the carried state it is an end of, or -1
    std::vector<int> looked_up;    // per value: the embedding whose rows no buffer holds, or -1
    struct segment {
        int scan = -1;  // -1: operations outside scans
        std::vector<int> once, before, loop, behind;
    };
    std::vector<segment> segments;
};

/// Operations that must run for `roots`; with gradients also every loss.
template <class Backend>
std::vector<char> live_operations(const graph<Backend>& g, const plan_options& options,
                                  const std::vector<view>& roots) {
    const auto& ops = g.operations();
    std::vector<char> live(ops.size(), 0), wanted(g.values().size(), 0);
    for (const view& v : roots) wanted[static_cast<std::size_t>(v.value)] = 1;
    for (bool changed = true; changed;) {
        changed = false;
        const auto want = [&](int value) {
            changed |= !wanted[static_cast<std::size_t>(value)];
            wanted[static_cast<std::size_t>(value)] = 1;
        };
        for (const auto& scan : g.scans())
            for (const carried_state& s : scan) {
                if (!wanted[static_cast<std::size_t>(s.entering)]) continue;
                if (!wanted[static_cast<std::size_t>(s.leaving)]) want(s.leaving);
                if (!wanted[static_cast<std::size_t>(s.initial.value)]) want(s.initial.value);
            }
        for (std::size_t i = ops.size(); i-- > 0;) {
            const auto& op = *ops[i];
            bool needed = (op.is_loss && options.gradients) || (op.writes_resource && options.side_effects);
            for (const int out : op.outputs) needed |= wanted[static_cast<std::size_t>(out)] != 0;
            if (op.is_loss && !options.gradients) needed = false;
            if (op.is_record && options.replay) needed = false;
            if (op.writes_resource && !options.side_effects) needed = false;
            if (!needed || live[i]) continue;
            live[i] = 1;
            changed = true;
            for (const view& in : op.inputs) want(in.value);
        }
    }
    return live;
}

/// Values of scan bodies that are known only step by step: carried states and all that depends on them or on a
/// resource.
template <class Backend>
std::vector<char> loop_values(const graph<Backend>& g, const std::vector<char>& live) {
    std::vector<char> in_loop(g.values().size(), 0);
    for (const auto& scan : g.scans())
        for (const carried_state& s : scan) in_loop[static_cast<std::size_t>(s.entering)] = 1;
    const auto& ops = g.operations();
    for (std::size_t i = 0; i < ops.size(); ++i) {
        const auto& op = *ops[i];
        if (op.scan < 0 || !live[i]) continue;
        bool loop = !op.resources.empty() || !op.row_wise;
        for (const view& in : op.inputs)
            loop |= in_loop[static_cast<std::size_t>(in.value)] != 0 || g.info(in).rows == extent::batch;
        if (loop)
            for (const int out : op.outputs) in_loop[static_cast<std::size_t>(out)] = 1;
    }
    return in_loop;
}

/// Where each operation runs.
template <class Backend>
std::vector<placement> place_operations(const graph<Backend>& g, const plan_options& options,
                                        const std::vector<char>& live, const std::vector<char>& in_loop) {
    const auto& ops = g.operations();
    std::vector<placement> place(ops.size(), placement::once);
    std::vector<char> feeds_state(g.values().size(), 0);
    for (const auto& scan : g.scans())
        for (const carried_state& s : scan) feeds_state[static_cast<std::size_t>(s.leaving)] = 1;
    // Operations are in trace order, so one reverse pass sees every reader before the writer.
    for (std::size_t i = ops.size(); i-- > 0;) {
        const auto& op = *ops[i];
        if (op.scan < 0 || !live[i]) continue;
        bool loop = !op.resources.empty() || !op.row_wise;
        for (const view& in : op.inputs)
            loop |= in_loop[static_cast<std::size_t>(in.value)] != 0 || g.info(in).rows == extent::batch;
        bool feeds = !op.resources.empty() || !options.hoist;
        for (const int out : op.outputs) feeds |= feeds_state[static_cast<std::size_t>(out)] != 0;
        for (const view& in : op.inputs) feeds |= g.info(in).rows == extent::batch;
        place[i] = !loop && options.hoist ? placement::before : feeds ? placement::loop : placement::behind;
        if (feeds)
            for (const view& in : op.inputs) feeds_state[static_cast<std::size_t>(in.value)] = 1;
    }
    return place;
}

/// Whether input i of an operation in a time loop is known before it and can be summed ahead of it.
template <class Backend>
bool summed_ahead(const graph<Backend>& g, const plan_options& options, const plan& p, std::size_t op, std::size_t i) {
    const auto& o = *g.operations()[op];
    const view& in = o.inputs[i];
    return p.place[op] == placement::loop && options.hoist && o.splits &&
           !p.in_loop[static_cast<std::size_t>(in.value)] && g.info(in).rows == extent::sequence;
}

/// The input of an affine map that begins its sums, where one sweep meets all its rows; -1 otherwise.
template <class Backend>
int first_addend(const graph<Backend>& g, const plan_options& options, const plan& p, std::size_t op) {
    const auto& o = *g.operations()[op];
    if (!o.takes_tables) return -1;
    if (p.place[op] != placement::loop) {
        for (const view& in : o.inputs)
            if (g.info(in).rows == extent::batch) return -1;
        return 0;
    }
    for (std::size_t i = 0; i < o.inputs.size(); ++i)
        if (summed_ahead(g, options, p, op, i)) return static_cast<int>(i);
    return -1;
}

/// Embeddings that nobody needs written out, because every reader is an affine map that begins with them: a product
/// over T * B rows of x = table[token] is then one over the rows of the table. Only where those are few (a quarter:
/// ours), since rows of the product have to be copied and their gradients summed.
template <class Backend>
void find_lookups(const graph<Backend>& g, const plan_options& options, const std::vector<view>& roots, plan& p) {
    const auto& ops = g.operations();
    p.looked_up.assign(g.values().size(), -1);
    if (!options.look_up) return;
    const auto at = [&](int value) -> int& { return p.looked_up[static_cast<std::size_t>(value)]; };
    for (std::size_t i = 0; i < ops.size(); ++i) {
        const auto& op = *ops[i];
        if (!p.live[i] || op.table < 0 || g.info(op.inputs[0]).rows != extent::sequence) continue;
        const std::ptrdiff_t rows = g.store()[parameter{op.table}].rows;
        if (4 * rows <= std::ptrdiff_t{options.steps} * options.batch) at(op.outputs[0]) = static_cast<int>(i);
    }
    for (const view& v : roots) at(v.value) = -1;
    for (const int v : g.held()) at(v) = -1;
    for (const auto& scan : g.scans())
        for (const carried_state& s : scan) at(s.initial.value) = at(s.leaving) = -1;
    for (std::size_t i = 0; i < ops.size(); ++i) {
        if (!p.live[i]) continue;
        const int first = first_addend(g, options, p, i);
        for (std::size_t k = 0; k < ops[i]->inputs.size(); ++k) {
            const view& in = ops[i]->inputs[k];
            if (static_cast<int>(k) != first || in.width != g.info(in).width) at(in.value) = -1;
        }
    }
}

/// Values that have a gradient, and operations that take part in the backward sweep.
template <class Backend>
void find_gradients(const graph<Backend>& g, const plan_options& options, plan& p) {
    const auto& ops = g.operations();
    const std::size_t values = g.values().size();
    std::vector<char> needs(values, 0), reached(values, 0);
    p.active.assign(values, 0);
    p.backward.assign(ops.size(), 0);
    if (!options.gradients) return;
    const auto at = [](auto& flags, int i) -> auto& {
        return flags[static_cast<std::size_t>(i)];
    };

    for (const int v : g.wanted_gradients()) at(needs, v) = 1;
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t i = 0; i < ops.size(); ++i) {
            if (!p.live[i]) continue;
            bool trained = !ops[i]->parameters.empty();
            for (const view& in : ops[i]->inputs) trained |= !in.detached && at(needs, in.value);
            if (trained)
                for (const int out : ops[i]->outputs) changed |= !std::exchange(at(needs, out), char{1});
        }
        for (const auto& scan : g.scans())
            for (const carried_state& s : scan)
                if ((at(needs, s.initial.value) && !s.initial.detached) || at(needs, s.leaving))
                    changed |= !std::exchange(at(needs, s.entering), char{1});
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t i = ops.size(); i-- > 0;) {
            if (!p.live[i]) continue;
            bool passes = ops[i]->is_loss;
            for (const int out : ops[i]->outputs) passes |= at(reached, out) && at(needs, out);
            if (!passes) continue;
            for (const view& in : ops[i]->inputs)
                if (!in.detached && at(needs, in.value)) changed |= !std::exchange(at(reached, in.value), char{1});
        }
        for (const auto& scan : g.scans())
            for (const carried_state& s : scan) {
                if (!at(reached, s.entering)) continue;
                changed |= !std::exchange(at(reached, s.leaving), char{1});
                if (!s.initial.detached) changed |= !std::exchange(at(reached, s.initial.value), char{1});
            }
    }
    for (std::size_t v = 0; v < values; ++v) p.active[v] = needs[v] && reached[v] && p.looked_up[v] < 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
        if (!p.live[i]) continue;
        p.backward[i] = ops[i]->is_loss && at(p.active, ops[i]->inputs[0].value) && !ops[i]->inputs[0].detached;
        for (const int out : ops[i]->outputs) p.backward[i] |= at(p.active, out);
    }
}

/// Whether operation i runs one step at a time: in a time loop, or because only some of its values have time.
template <class Backend>
bool runs_stepwise(const graph<Backend>& g, const plan& p, int i) {
    const auto& op = *g.operations()[static_cast<std::size_t>(i)];
    if (p.place[static_cast<std::size_t>(i)] == placement::loop) return true;
    if (p.place[static_cast<std::size_t>(i)] != placement::once || !op.row_wise) return false;
    bool timeless = false, timed = false;
    for (const view& in : op.inputs) (g.info(in).rows == extent::batch ? timeless : timed) = true;
    for (const int out : op.outputs) (g.value(out).rows == extent::batch ? timeless : timed) = true;
    return timeless && timed;
}

/// What of a graph runs, where and in which order, for these roots.
template <class Backend>
plan make_plan(const graph<Backend>& g, const plan_options& options, const std::vector<view>& roots) {
    plan p;
    p.live = live_operations(g, options, roots);
    p.in_loop = loop_values(g, p.live);
    p.place = place_operations(g, options, p.live, p.in_loop);
    find_lookups(g, options, roots, p);
    find_gradients(g, options, p);
    p.state_of.assign(g.values().size(), -1);
    int state = 0;
    for (const auto& scan : g.scans())
        for (const carried_state& s : scan) {
            p.state_of[static_cast<std::size_t>(s.entering)] = state;
            p.state_of[static_cast<std::size_t>(s.leaving)] = state;
            ++state;
        }
    const auto& ops = g.operations();
    for (std::size_t i = 0; i < ops.size(); ++i) {
        if (!p.live[i]) continue;
        if (p.segments.empty() || p.segments.back().scan != ops[i]->scan)
            p.segments.push_back({ops[i]->scan, {}, {}, {}, {}});
        plan::segment& s = p.segments.back();
        switch (p.place[i]) {
            case placement::once:
                s.once.push_back(static_cast<int>(i));
                break;
            case placement::before:
                s.before.push_back(static_cast<int>(i));
                break;
            case placement::loop:
                s.loop.push_back(static_cast<int>(i));
                break;
            case placement::behind:
                s.behind.push_back(static_cast<int>(i));
                break;
        }
    }
    return p;
}

}  // namespace engram
