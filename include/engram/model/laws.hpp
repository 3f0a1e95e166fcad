#pragma once
// SPDX-License-Identifier: MIT

// The laws of a policy, as a check: whoever writes one calls broken_laws() on a small agent that has it, and
// check_gradients() on the same agent in double.
//
//   the same state and input give the same bits
//   a row of a batch gives the bits that it gives alone
//   a row whose episode begins equals a row of a new program, whatever its state held before, NaN included
//   states and resources that were saved and loaded go on with the same bits
//
// Rows may not mix, and every part of a resource must hold one block of equal size a batch row.

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <engram/core/philox.hpp>
#include <engram/graph/check_gradients.hpp>
#include <engram/graph/snapshot.hpp>
#include <engram/model/agent.hpp>

namespace engram {

/// Numbers that a trajectory could hold in every input of `p`; no episode begins.
template <class Backend>
void fill_randomly(program<Backend>& p, const traced_agent<Backend>& a, std::uint64_t seed) {
    philox random(seed, 17);
    const auto draw = [&](const std::string& name) -> double {
        if (name == "observation" || name == "weight" || name == "use_prior")
            return static_cast<double>(random.uniform());
        if (name == "action" || name == "last_action" || name == "target")
            return random.below(static_cast<std::uint32_t>(a.task.actions));
        if (name == "continues") return random.below(4) > 0;
        if (name == "reset") return 0;
        if (name == "behaviour_log_probability") return -1 + 0.3 * static_cast<double>(random.normal());
        return static_cast<double>(random.normal());
    };
    for (const auto& v : a.g->values())
        if (p.has_input(v.name))
            for (auto& x : p.input(v.name)) x = static_cast<typename Backend::real>(draw(v.name));
}

/// Random inputs, and states and memories as a few unrolls of other inputs left them.
template <class Backend>
void warm_up(program<Backend>& p, const traced_agent<Backend>& a, std::uint64_t seed, int unrolls = 2) {
    for (int i = 0; i < unrolls; ++i) {
        fill_randomly(p, a, seed + 100 + static_cast<std::uint64_t>(i));
        p.forward();
        p.carry();
    }
    fill_randomly(p, a, seed);
}

/// backward() of the agent's whole update against central differences, as check_gradients() of a graph does it: random
/// inputs, states and memories as two unrolls of other inputs left them, episodes that begin in the middle, what a
/// memory stores given as an input. All of it, rings and counts of noise included, stands at the same place again
/// before every evaluation. Weights are those of the agent, each moved a little in a copy: zero biases behind dead
/// units leave a ReLU exactly at its corner. `seed` chooses the numbers; another one helps where a ReLU or a selection
/// stands within a difference of its corner, at one place and by tenths.
template <class Backend>
gradient_report check_gradients(const traced_agent<Backend>& a, std::uint64_t seed = 4,
                                const std::function<bool(const std::string&)>& only = {}, int T = 5, int B = 2,
                                int samples = 16) {
    using real = typename Backend::real;
    require(T > 1 && B > 0, "check_gradients: expected two steps and a row at least, got ", T, " and ", B);
    const auto store = std::make_shared<parameters<real>>(*a.store);
    {
        philox random(2, 2);
        auto edit = store->edit();
        for (auto& w : edit.flat()) w += static_cast<real>(0.1 * static_cast<double>(random.normal()));
    }
    const plan_options options{.steps = T, .batch = B, .gradients = true, .replay = true};
    program<Backend> warm(*a.g, store, options);
    warm_up(warm, a, seed);
    if (warm.has_input("reset"))
        for (const int row : {2 * B - 1, (T - 2) * B}) warm.input("reset")[static_cast<std::size_t>(row)] = 1;
    const program_snapshot<Backend> start(warm, *a.g);
    return check_gradients<Backend>(
        *a.g, store, options, [&](program<Backend>& p) { start.restore(p); }, samples, 1e-4, only);
}

/// Row `from_row` of one program, from step `first` on, into row `to_row` of another.
template <class Backend>
void copy_row(program<Backend>& from, int from_row, program<Backend>& to, int to_row, const graph<Backend>& g,
              int first = 0, bool with_state = true) {
    const auto copy = [](auto source, int B, int b, auto target, int C, int c, int steps, int skip) {
        const std::size_t width = target.size() / static_cast<std::size_t>(steps * C);
        for (int t = 0; t < steps; ++t)
            std::copy_n(source.data() + static_cast<std::size_t>((t + skip) * B + b) * width, width,
                        target.data() + static_cast<std::size_t>(t * C + c) * width);
    };
    const int B = from.options().batch, C = to.options().batch, T = to.options().steps;
    for (const auto& v : g.values()) {
        if (!from.has_input(v.name) || !to.has_input(v.name)) continue;
        const bool timeless = v.rows == extent::batch;
        copy(from.input(v.name), B, from_row, to.input(v.name), C, to_row, timeless ? 1 : T, timeless ? 0 : first);
    }
    if (!with_state) return;
    for (const auto& name : to.state_names()) copy(from.state(name), B, from_row, to.state(name), C, to_row, 1, 0);
    for (std::size_t r = 0; r < to.resource_count(); ++r) {
        const auto source = from.bound_resource(r)->bytes(), target = to.bound_resource(r)->bytes();
        for (std::size_t i = 0; i < target.size(); ++i) copy(source[i], B, from_row, target[i], C, to_row, 1, 0);
    }
}

/// One sentence for each law that the agent's policies break; empty when they keep all.
template <class Backend>
std::vector<std::string> broken_laws(const traced_agent<Backend>& a, std::uint64_t seed = 1, int T = 5, int B = 3) {
    using real = typename Backend::real;
    const auto& watched = a.watched;
    std::vector<var<Backend>> outputs;
    for (const auto& [name, v] : watched) outputs.push_back(v);
    const auto make = [&](int steps, int rows, int first_row, int first_step = 0) {
        return std::make_unique<program<Backend>>(
            *a.g, a.store,
            plan_options{.steps = steps, .batch = rows, .first_row = first_row, .first_step = first_step}, outputs);
    };
    std::vector<std::string> broken;
    // Steps [first, steps) of row b of p against all steps of row c of q, bit by bit.
    const auto compare = [&](const std::string& law, const program<Backend>& p, int b, int first,
                             const program<Backend>& q, int c) {
        for (const auto& [name, v] : watched) {
            const auto x = p.output(v), y = q.output(v);
            for (int t = 0; t < q.options().steps; ++t)
                if (std::memcmp(x.at(t + first) + b * x.stride, y.at(t) + c * y.stride,
                                sizeof(real) * static_cast<std::size_t>(v.width)) != 0) {
                    broken.push_back(message(law, ": ", name, " of row ", b, " differs at step ", t + first));
                    return;
                }
        }
    };

    const auto whole = make(T, B, 0), again = make(T, B, 0);
    warm_up(*whole, a, seed);
    const program_snapshot<Backend> start(*whole, *a.g);
    whole->forward();
    start.restore(*again);
    again->forward();
    for (int b = 0; b < B; ++b) compare("saved and loaded", *whole, b, 0, *again, b);
    start.restore(*again);
    again->forward();
    for (int b = 0; b < B; ++b) compare("the same state and input", *whole, b, 0, *again, b);

    for (int b = 0; b < B; ++b) {
        const auto single = make(T, 1, b);
        start.restore(*again);
        copy_row(*again, b, *single, 0, *a.g);
        single->replay_count() = again->replay_count();
        single->forward();
        compare("a row alone", *whole, b, 0, *single, 0);
    }

    // Episodes begin in row 0 at once, over a state of NaN, and in row 1 in the middle of the unroll.
    start.restore(*again);
    for (int b = 0; b < std::min(B, 2); ++b) {
        const int first = b == 0 ? 0 : T / 2;
        if (again->has_input("reset")) again->input("reset")[static_cast<std::size_t>(first * B + b)] = 1;
        if (b > 0) continue;
        for (const auto& name : again->state_names()) {
            const auto s = again->state(name);
            std::fill_n(s.begin(), s.size() / static_cast<std::size_t>(B), std::numeric_limits<real>::quiet_NaN());
        }
    }
    const program_snapshot<Backend> dead(*again, *a.g);
    again->forward();
    for (int b = 0; b < std::min(B, 2); ++b) {
        const int first = b == 0 ? 0 : T / 2;
        const auto fresh = make(T - first, 1, b, first), source = make(T, B, 0);
        dead.restore(*source);
        copy_row(*source, b, *fresh, 0, *a.g, first, false);
        fresh->replay_count() = source->replay_count();
        fresh->forward();
        compare("an episode's start", *again, b, first, *fresh, 0);
    }
    for (int b = 2; b < B; ++b) compare("a reset of other rows", *again, b, 0, *whole, b);
    return broken;
}

}  // namespace engram
