#pragma once
// SPDX-License-Identifier: MIT

// The step of an agent (facts 1.1): m = read([x, h_prev]); h = control([x, m, last action, last reward]);
// write([x, h]). The last reward goes in clipped to [-1, 1]; auxiliary losses see it as it was. Supervised models are
// wired alike; without actions nothing of them is fed. A controller of whole sequences sees all steps at once, outside
// a scan, and stands without a memory.

#include <engram/graph/scan.hpp>
#include <engram/model/traced_agent.hpp>
#include <engram/operations/pick.hpp>

namespace engram {

struct clip_reward {
    constexpr auto operator()(auto r) const { return max(min(r, 1), -1); }
};

/// Traces a step that reads, controls and writes.
template <class Backend, class Agent>
traced_agent<Backend> wire(reads_controls_writes, const typename Agent::settings& s, const task_shape& task,
                           std::uint64_t seed, purpose) {
    using variable = var<Backend>;
    using controller = typename Agent::controller;
    using memory = typename Agent::memory;
    using learner = typename Agent::learner;
    auto out = internal::begun_trace<Backend>(task, seed);
    graph<Backend>& g = *out.g;
    const auto in = [&g](const char* name, auto&& body) { return internal::traced_in(g, name, body); };

    trajectory<variable> seen;
    seen.observation = g.input("observation", task.observation.size());
    seen.reset = g.input("reset", 1);
    if (task.actions > 0) {
        seen.last_action = one_hot("last_action_code", g.input("last_action", 1), task.actions);
        seen.last_reward = g.input("last_reward", 1);
    }
    seen.x = in("encoder", [&] {
        return Agent::encoder::encode(s.encoder, Agent::encoder::declare(g, s.encoder, task.observation),
                                      seen.observation, task.observation);
    });
    const memory_sizes sizes{seen.x.width, controller::width(s.controller)};
    const auto memory_weights = in("memory", [&] { return memory::declare(g, s.memory, sizes); });
    std::vector<variable> extra;
    if (s.wiring.last_action_reward && task.actions > 0) {
        extra.push_back(seen.last_action);
        if (s.wiring.last_reward) extra.push_back(map("last_reward_clipped", clip_reward{}, seen.last_reward));
    }
    const int inputs = seen.x.width + memory::context_width(s.memory, sizes) + columns_of(extra);
    const auto controller_weights = in("controller", [&] { return controller::declare(g, s.controller, inputs); });
    if constexpr (can_control_sequence<controller>) {
        std::vector<variable> to{seen.x};
        to.insert(to.end(), extra.begin(), extra.end());
        seen.h =
            in("controller", [&] { return controller::sequence(s.controller, controller_weights, to, seen.reset); });
    } else {
        using state =
            agent_state<typename controller::template state<variable>, typename memory::template state<variable>>;
        const state start{in("controller", [&] { return controller::begin(g, s.controller); }),
                          in("memory", [&] { return memory::begin(g, s.memory, sizes); })};

        seen.h = scan(g, start, [&](state& now) {
            reset_rows(now, seen.reset);
            const auto read = in("memory", [&] {
                memory::forget(memory_weights, seen.reset, now.memory);
                return memory::read(s.memory, memory_weights,
                                    std::vector<variable>{seen.x, controller::held(now.controller)}, now.memory);
            });
            const variable h = in("controller", [&] {
                std::vector<variable> to{seen.x};
                to.insert(to.end(), read.context.begin(), read.context.end());
                to.insert(to.end(), extra.begin(), extra.end());
                return controller::step(s.controller, controller_weights, to, now.controller);
            });
            in("memory", [&] {
                memory::write(s.memory, memory_weights, std::vector<variable>{seen.x, h}, now.memory);
            });
            internal::note_memory(out, read, now.memory);
            return h;
        });
    }

    const auto heads = in("learner", [&] { return learner::add_heads(g, s.learner, seen.h, task); });
    out.logits = heads.logits;
    out.value = heads.value;
    out.log_policy = heads.log_policy;
    if constexpr (requires { s.learner.discount; }) out.discount = s.learner.discount;
    out.x = seen.x;
    out.h = seen.h;
    out.watched = {{"x", out.x}, {"h", out.h}, {"logits", out.logits}, {"value", out.value}};
    learner::add_losses(g, s.learner, heads);
    in("auxiliary",
       [&] { Agent::auxiliary::template add_losses<typename Agent::encoder>(g, s.auxiliary, s.encoder, seen, task); });
    out.records = internal::recorded_values(g);
    return out;
}

}  // namespace engram
