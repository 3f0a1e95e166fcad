#pragma once
// SPDX-License-Identifier: MIT

// The step of a generative temporal model (facts 4.2, errata G1, G15, G16, G24).
//
//   with a memory     h_t = control([z_{t-1}, c_t (, reads of t-1)]);  read;  C_t = [reads, h_t];  infer z_t;
//   write([z_t, h_t]) without (VRNN)    C_t = [h_{t-1}, c_t];  infer z_t;  h_t = control([feat(x_t), feat(z_t), c_t])
//
// c_t is the condition: given, never modelled. A memory that says `replaces_held` leaves h_t out of C_t. The frame's
// likelihood comes from the encoder's decoder on [z_t, C_t]. In a generating trace use_prior says at which steps z_t is
// drawn from the prior; a VRNN then also feeds on the frame that it expects instead of the one that was shown.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include <engram/graph/scan.hpp>
#include <engram/model/traced_agent.hpp>
#include <engram/operations/concatenate.hpp>

namespace engram {

template <class Controller, class Memory, class Var>
struct generative_state {
    BOOST_HANA_DEFINE_STRUCT(generative_state, (Controller, controller), (Memory, memory), (Var, latent), (Var, reads));
};

namespace internal {

/// Settings of an encoder as a generating trace has them: statistics of batches stay as training left them.
template <class Settings>
Settings settings_for(purpose why, Settings s) {
    if constexpr (requires { s.frozen = true; })
        if (why == purpose::generating) s.frozen = true;
    return s;
}

template <class Memory>
inline constexpr bool replaces_held = requires {
    requires Memory::replaces_held;
};

}  // namespace internal

/// Traces a step that controls, reads, infers and writes.
template <class Backend, class Agent>
traced_agent<Backend> wire(controls_reads_infers_writes, const typename Agent::settings& s, const task_shape& task,
                           std::uint64_t seed, purpose why) {
    using variable = var<Backend>;
    using variables = std::vector<variable>;
    using encoder = typename Agent::encoder;
    using controller = typename Agent::controller;
    using memory = typename Agent::memory;
    using learner = typename Agent::learner;
    using state = generative_state<typename controller::template state<variable>,
                                   typename memory::template state<variable>, variable>;
    auto out = internal::begun_trace<Backend>(task, seed);
    graph<Backend>& g = *out.g;
    const auto in = [&g](const char* name, auto&& body) { return internal::traced_in(g, name, body); };
    const auto vision = internal::settings_for(why, s.encoder);

    const variable observation = g.input("observation", task.observation.size()), reset = g.input("reset", 1);
    variables condition;
    if (task.actions > 0) condition.push_back(g.input("condition", task.actions));
    std::optional<variable> use_prior;
    if (why == purpose::generating) use_prior = g.input("use_prior", 1);

    const auto encoder_weights = in("encoder", [&] { return encoder::declare(g, vision, task.observation); });
    const auto encode = [&](const variable& frame) {
        return in("encoder", [&] { return encoder::encode(vision, encoder_weights, frame, task.observation); });
    };
    out.x = encode(observation);
    const int latent = learner::latent_width(s.learner), held = controller::width(s.controller);
    const memory_sizes sizes{latent, held};
    if constexpr (requires { memory::capacity(s.memory); }) out.capacity = memory::capacity(s.memory);
    const int reads = memory::context_width(s.memory, sizes);
    const bool remembers = reads > 0;
    const bool with_held = !remembers || !internal::replaces_held<memory>;
    const bool feeds_reads = remembers && s.wiring.previous_reads;
    const int context = reads + (with_held ? held : 0) + (remembers ? 0 : task.actions);
    const int inputs = task.actions + (remembers ? latent + (feeds_reads ? reads : 0) : 2 * s.wiring.features);

    const auto memory_weights = in("memory", [&] { return memory::declare(g, s.memory, sizes); });
    const auto controller_weights = in("controller", [&] { return controller::declare(g, s.controller, inputs); });
    const auto learner_weights = in("learner", [&] { return learner::declare(g, s.learner, context, out.x.width); });
    const auto decoder_weights =
        in("decoder", [&] { return encoder::declare_decoder(g, vision, task.observation, latent + context); });
    std::vector<linear> features;
    if (!remembers)
        for (const auto& [name, width] :
             std::initializer_list<std::pair<const char*, int>>{{"x_features", out.x.width}, {"z_features", latent}})
            features.push_back(g.declare_linear(name, width, s.wiring.features,
                                                initial::fan_in<typename Backend::real>(std::sqrt(2.0))));
    const auto feature = [&](const std::string& name, const variable& v, const linear& w) {
        return map(name + ".relu", rectify{}, affine(name, v, w));
    };
    const auto decode = [&](const variables& code) {
        return in("decoder", [&] {
            return encoder::decode(vision, decoder_weights, concatenate("code", code), task.observation);
        });
    };

    const state start{in("controller", [&] { return controller::begin(g, s.controller); }),
                      in("memory", [&] { return memory::begin(g, s.memory, sizes); }), g.state("latent", latent),
                      g.state("reads", std::max(reads, 1))};
    typename learner::template beliefs<variable> beliefs;
    variables code;
    std::optional<variable> decoded;
    out.h = scan(g, start, [&](state& now) {
        reset_rows(now, reset);
        in("memory", [&] { memory::forget(memory_weights, reset, now.memory); });
        const auto control = [&](variables to) {
            to.insert(to.end(), condition.begin(), condition.end());
            return in("controller",
                      [&] { return controller::step(s.controller, controller_weights, to, now.controller); });
        };
        const auto infer = [&](const variables& given) {
            beliefs = in("learner", [&] { return learner::infer(g, s.learner, learner_weights, given, out.x, seed); });
            now.latent = use_prior ? map("chosen.latent", choose{}, *use_prior, beliefs.prior_latent, beliefs.latent)
                                   : beliefs.latent;
            code = {now.latent};
            code.insert(code.end(), given.begin(), given.end());
        };
        if (!remembers) {
            variables given{controller::held(now.controller)};
            given.insert(given.end(), condition.begin(), condition.end());
            infer(given);
            variable x = out.x;
            if (use_prior) {
                decoded = decode(code);
                const variable frame = learner::expected_frame(s.learner, *decoded);
                x = encode(map("chosen.frame", choose{}, *use_prior, frame, observation));
            }
            return control({feature("x_features", x, features[0]), feature("z_features", now.latent, features[1])});
        }
        variables to{now.latent};
        if (feeds_reads) to.push_back(now.reads);
        const variable before = now.latent, h = control(to);
        const auto read = in("memory", [&] {
            return memory::read(s.memory, memory_weights, variables{before, h}, now.memory);
        });
        variables given = read.context;
        if (with_held) given.push_back(h);
        infer(given);
        if (feeds_reads) now.reads = concatenate("reads", read.context);
        in("memory", [&] { memory::write(s.memory, memory_weights, variables{now.latent, h}, now.memory); });
        internal::note_memory(out, read, now.memory);
        return h;
    });

    generative_variables<variable> v;
    v.latent = code[0];
    if (!decoded) decoded = decode(code);
    in("learner", [&] {
        v.divergence = learner::divergence(beliefs);
        v.log_likelihood = learner::log_likelihood(s.learner, *decoded, observation);
        v.frame = learner::expected_frame(s.learner, *decoded);
        learner::add_losses(s.learner, v.divergence, v.log_likelihood);
    });
    out.generative = v;
    out.watched = {{"h", out.h}, {"latent", v.latent}, {"frame", v.frame}, {"divergence", v.divergence}};
    out.records = internal::recorded_values(g);
    return out;
}

}  // namespace engram
