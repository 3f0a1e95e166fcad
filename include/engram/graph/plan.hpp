#pragma once
// SPDX-License-Identifier: MIT

// The plan: which operations of a trace run, where, and who writes each gradient.
//
// Three analyses, each a free function: liveness (from outputs, losses and written resources), placement (operations of
// a scan that depend on no carried state are hoisted before it, those that feed none are sunk behind it) and gradient
// activity (a value is active when it depends on something trained and a loss depends on it).

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
    for (std::size_t v = 0; v < values; ++v) p.active[v] = needs[v] && reached[v];
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

template <class Backend>
plan make_plan(const graph<Backend>& g, const plan_options& options, const std::vector<view>& roots) {
    plan p;
    p.live = live_operations(g, options, roots);
    p.in_loop = loop_values(g, p.live);
    p.place = place_operations(g, options, p.live, p.in_loop);
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
