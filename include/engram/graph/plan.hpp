#pragma once
// SPDX-License-Identifier: MIT

// The plan: which operations of a trace run, where, and who writes each gradient.
//
// Four analyses, each a free function: liveness (from outputs, losses and written resources), placement (what of a scan
// hangs on itself one step before runs in a time loop, everything else over all steps at once, before the loop, after
// it, or between two loops: layers that nothing feeds back have a loop each), lookups (an embedding that only affine
// maps read is not written out: they multiply its table) and gradient activity (a value is active when it depends on
// something trained and a loss depends on it).

#include <algorithm>
#include <utility>
#include <vector>

#include <engram/core/device.hpp>
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

enum class placement { once, before, loop, after };

/// What runs where; indices are those of the graph.
struct plan {
    std::vector<char> live;        // per operation
    std::vector<placement> place;  // per operation
    std::vector<int> stage;        // per operation of a scan: the time loop that it runs in, or ahead of
    std::vector<char> chained;     // per operation in a device's time loop: it hangs on itself alone, nothing on it
    std::vector<int> loop_of;      // per value: the time loop in which it comes to be, or -1
    std::vector<char> active;      // per value: has a gradient
    std::vector<char> backward;    // per operation: passes or makes a gradient
    std::vector<int> state_of;     // per value: index of the carried state it is an end of, or -1
    std::vector<char> scanned;     // per value: an end of a state of which only the first and the last step are kept
    std::vector<char> in_place;    // per value: an end of a state that is one block through all steps
    std::vector<char> puts_back;   // per operation: the one that writes such a block
    std::vector<int> looked_up;    // per value: the embedding whose rows no buffer holds, or -1
    struct segment {
        int scan = -1;  // -1: operations outside scans
        std::vector<int> once, before, loop, after;
        bool first = true;  // of its scan
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

namespace internal {

/// Operations of a scan that hang on each other, whatever the step, found dependencies first (Tarjan).
class dependence {
public:
    /// needs[i]: what operation i of the scan hangs on.
    explicit dependence(const std::vector<std::vector<int>>& needs)
        : component(needs.size(), -1), needs_(needs), found_(needs.size(), -1), low_(needs.size()) {
        for (std::size_t i = 0; i < needs.size(); ++i)
            if (found_[i] < 0) visit(i);
    }
    std::vector<int> component;             // per operation
    std::vector<std::vector<int>> members;  // per component, in trace order

private:
    void visit(std::size_t i) {
        low_[i] = found_[i] = count_++;
        open_.push_back(static_cast<int>(i));
        for (const int j : needs_[i]) {
            const auto k = static_cast<std::size_t>(j);
            if (found_[k] < 0) visit(k);
            if (component[k] < 0) low_[i] = std::min(low_[i], low_[k]);
        }
        if (low_[i] != found_[i]) return;
        auto& own = members.emplace_back();
        do {
            own.push_back(open_.back());
            component[static_cast<std::size_t>(open_.back())] = static_cast<int>(members.size()) - 1;
            open_.pop_back();
        } while (own.back() != static_cast<int>(i));
        std::sort(own.begin(), own.end());
    }
    const std::vector<std::vector<int>>& needs_;
    std::vector<int> found_, low_, open_;
    int count_ = 0;
};

}  // namespace internal

/// Whether operation i carries its state through all steps in one call, and nobody else wants to see what it carries.
/// Of the host alone: a device has more rows than it can keep states near.
template <class Backend>
bool scans_alone(const graph<Backend>& g, const plan_options& options, const std::vector<view>& roots, const plan& p,
                 std::size_t i) {
    const auto& ops = g.operations();
    const auto& op = *ops[i];
    if (device_backend<Backend> || !options.hoist || !op.scans || op.scan < 0) return false;
    const int entering = op.inputs.front().value, leaving = op.outputs.back();
    const auto& states = g.scans()[static_cast<std::size_t>(op.scan)];
    const auto one_of = [&](const view& v) { return v.value == entering || v.value == leaving; };
    if (std::none_of(states.begin(), states.end(), [&](const carried_state& s) {
            return s.entering == entering && s.leaving == leaving && op.inputs.front().width == g.value(entering).width;
        }))
        return false;
    for (std::size_t k = 0; k < ops.size(); ++k)
        if (p.live[k] && std::any_of(ops[k]->inputs.begin() + (k == i), ops[k]->inputs.end(), one_of)) return false;
    return std::none_of(roots.begin(), roots.end(), one_of);
}

/// Whether operation i, which is in a time loop, may write its state over what it was: the backward sweep, which goes
/// back step by step, is then the only one that sees earlier ones again. Whoever reads the state does so in that loop,
/// what enters ahead of the operation and what leaves behind it. Of the host alone.
template <class Backend>
bool writes_in_place(const graph<Backend>& g, const plan_options& options, const std::vector<view>& roots,
                     const plan& p, std::size_t i) {
    const auto& ops = g.operations();
    const auto& op = *ops[i];
    if (device_backend<Backend> || !options.gradients || !op.in_place || op.scan < 0) return false;
    const view& from = op.inputs.front();
    const int entering = from.value, leaving = op.outputs.back();
    const auto& states = g.scans()[static_cast<std::size_t>(op.scan)];
    if (from.detached || from.width != g.value(entering).width ||
        std::none_of(states.begin(), states.end(),
                     [&](const carried_state& s) { return s.entering == entering && s.leaving == leaving; }))
        return false;
    for (std::size_t k = 0; k < ops.size(); ++k) {
        if (!p.live[k]) continue;
        // A gradient of parameters waits for the end of the loop.
        const bool beside = p.place[k] == placement::loop && ops[k]->scan == op.scan && p.stage[k] == p.stage[i] &&
                            ops[k]->parameters.empty();
        for (std::size_t n = k == i; n < ops[k]->inputs.size(); ++n) {
            const int value = ops[k]->inputs[n].value;
            if ((value == entering && !(beside && k < i)) || (value == leaving && !(beside && k > i))) return false;
        }
    }
    const auto one_of = [&](int value) { return value == entering || value == leaving; };
    return std::none_of(roots.begin(), roots.end(), [&](const view& v) { return one_of(v.value); }) &&
           std::none_of(g.held().begin(), g.held().end(), one_of);
}

/// Where the operations of a scan run: fills place, stage and loop_of, and adds its segments to the plan.
template <class Backend>
void place_scan(const graph<Backend>& g, const plan_options& options, const std::vector<view>& roots, int scan,
                plan& p) {
    const auto& ops = g.operations();
    const auto& states = g.scans()[static_cast<std::size_t>(scan)];
    std::vector<int> own, writer(g.values().size(), -1);  // writer: place in `own`
    for (std::size_t i = 0; i < ops.size(); ++i)
        if (p.live[i] && ops[i]->scan == scan) {
            for (const int out : ops[i]->outputs) writer[static_cast<std::size_t>(out)] = static_cast<int>(own.size());
            own.push_back(static_cast<int>(i));
        }
    for (const carried_state& s : states)
        writer[static_cast<std::size_t>(s.entering)] = writer[static_cast<std::size_t>(s.leaving)];
    const auto op_of = [&](int k) -> const operation<Backend>& {
        return *ops[static_cast<std::size_t>(own[static_cast<std::size_t>(k)])];
    };
    const auto written_by = [&](const view& v) { return writer[static_cast<std::size_t>(v.value)]; };

    std::vector<std::vector<int>> needs(own.size());
    std::vector<int> last_user(g.resources().size(), -1);
    for (int k = 0; k < static_cast<int>(own.size()); ++k) {
        auto& list = needs[static_cast<std::size_t>(k)];
        for (const view& in : op_of(k).inputs)
            if (written_by(in) >= 0) list.push_back(written_by(in));
        // Whoever uses a resource does so in the order of the trace, step by step.
        for (const int r : op_of(k).resources)
            if (const int before = std::exchange(last_user[static_cast<std::size_t>(r)], k); before >= 0) {
                list.push_back(before);
                needs[static_cast<std::size_t>(before)].push_back(k);
            }
    }
    const internal::dependence found(needs);

    const std::size_t components = found.members.size();
    std::vector<char> looped(components, 0), chained(components, 0);
    std::vector<int> stage(components, 0);
    int loops = 0;
    for (std::size_t c = 0; c < components; ++c) {
        const auto& members = found.members[c];
        looped[c] = members.size() > 1 || !options.hoist;
        for (const int k : members) {
            const auto& op = op_of(k);
            const auto i = static_cast<std::size_t>(own[static_cast<std::size_t>(k)]);
            if (members.size() == 1 && scans_alone(g, options, roots, p, i)) {
                p.scanned[static_cast<std::size_t>(op.inputs.front().value)] = 1;
                p.scanned[static_cast<std::size_t>(op.outputs.back())] = 1;
                continue;
            }
            looped[c] |= !op.resources.empty() || !op.row_wise;
            for (const view& in : op.inputs) looped[c] |= written_by(in) == k || g.info(in).rows == extent::batch;
        }
        // A device runs a chain by one launch, so that no other loop has to wait for its steps.
        chained[c] = device_backend<Backend> && options.hoist && looped[c] && members.size() == 1;
        for (const int k : members)
            for (const view& in : op_of(k).inputs) {
                if (written_by(in) < 0) continue;
                const auto d = static_cast<std::size_t>(found.component[static_cast<std::size_t>(written_by(in))]);
                if (d == c) continue;
                // A loop of its own is worth a product over all steps.
                const bool apart = looped[d] && (!looped[c] || op_of(k).splits || chained[c] || chained[d]);
                stage[c] = std::max(stage[c], stage[d] + (apart && options.hoist));
            }
        // What shares a loop with others does so in trace order, whatever of them comes first.
        if (looped[c]) loops = std::max(loops, stage[c] + 1);
    }

    // On the host all loops are one where matrices are carried: those of a step stay in a cache between layers, those
    // of T steps do not.
    constexpr int matrix = 512;  // columns
    const bool wide = std::any_of(states.begin(), states.end(), [&](const carried_state& s) {
        return g.value(s.entering).width >= matrix && !p.scanned[static_cast<std::size_t>(s.entering)];
    });
    if (!device_backend<Backend> && wide && loops > 1) {
        std::vector<char> read_in_loop(components, 0);
        for (std::size_t c = components; c-- > 0;) {
            if (stage[c] > 0) looped[c] |= read_in_loop[c];
            stage[c] = std::min(stage[c], looped[c] ? 0 : 1);
            for (const int k : found.members[c])
                for (const int j : needs[static_cast<std::size_t>(k)])
                    read_in_loop[static_cast<std::size_t>(found.component[static_cast<std::size_t>(j)])] |= looped[c];
        }
        loops = 1;
    }

    std::vector<plan::segment> segments(static_cast<std::size_t>(std::max(1, loops)));
    for (std::size_t s = 0; s < segments.size(); ++s) segments[s].scan = scan, segments[s].first = s == 0;
    for (std::size_t c = 0; c < components; ++c)
        for (const int k : found.members[c]) {
            const auto i = static_cast<std::size_t>(own[static_cast<std::size_t>(k)]);
            const bool after = stage[c] >= static_cast<int>(segments.size());
            auto& segment = after ? segments.back() : segments[static_cast<std::size_t>(stage[c])];
            p.stage[i] = stage[c];
            p.place[i] = looped[c] ? placement::loop : after ? placement::after : placement::before;
            (looped[c] ? segment.loop : after ? segment.after : segment.before).push_back(static_cast<int>(i));
            p.chained[i] = chained[c];
            if (!looped[c]) continue;
            for (const int out : ops[i]->outputs) p.loop_of[static_cast<std::size_t>(out)] = stage[c];
            for (const carried_state& s : states)
                if (written_by({s.leaving, 0, 0, false}) == k)
                    p.loop_of[static_cast<std::size_t>(s.entering)] = stage[c];
        }
    for (const int i : own)
        if (p.place[static_cast<std::size_t>(i)] == placement::loop &&
            writes_in_place(g, options, roots, p, static_cast<std::size_t>(i))) {
            const auto& op = *ops[static_cast<std::size_t>(i)];
            p.puts_back[static_cast<std::size_t>(i)] = 1;
            p.in_place[static_cast<std::size_t>(op.inputs.front().value)] = 1;
            p.in_place[static_cast<std::size_t>(op.outputs.back())] = 1;
        }
    for (auto& segment : segments) {
        std::sort(segment.loop.begin(), segment.loop.end());
        p.segments.push_back(std::move(segment));
    }
}

/// Whether input i of an operation in a time loop is known before it and can be summed ahead of it.
template <class Backend>
bool summed_ahead(const graph<Backend>& g, const plan_options& options, const plan& p, std::size_t op, std::size_t i) {
    const auto& o = *g.operations()[op];
    const view& in = o.inputs[i];
    return p.place[op] == placement::loop && options.hoist && o.splits &&
           p.loop_of[static_cast<std::size_t>(in.value)] != p.stage[op] && g.info(in).rows == extent::sequence;
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
        p.backward[i] |= p.puts_back[i];
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
    const auto& ops = g.operations();
    plan p;
    p.live = live_operations(g, options, roots);
    p.place.assign(ops.size(), placement::once);
    p.stage.assign(ops.size(), -1);
    p.chained.assign(ops.size(), 0);
    p.loop_of.assign(g.values().size(), -1);
    p.scanned.assign(g.values().size(), 0);
    p.in_place.assign(g.values().size(), 0);
    p.puts_back.assign(ops.size(), 0);
    for (std::size_t i = 0; i < ops.size(); ++i) {
        if (!p.live[i]) continue;
        const int scan = ops[i]->scan;
        if (!p.segments.empty() && p.segments.back().scan == scan) {
            if (scan < 0) p.segments.back().once.push_back(static_cast<int>(i));
        } else if (scan < 0) {
            p.segments.push_back({-1, {static_cast<int>(i)}, {}, {}, {}});
        } else {
            place_scan(g, options, roots, scan, p);
        }
    }
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
    return p;
}

}  // namespace engram
