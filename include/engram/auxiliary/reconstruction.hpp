#pragma once
// SPDX-License-Identifier: MIT

// Reconstruction as auxiliary loss (REC; facts 1.7, errata M11 to M13): h_t must give back what was just seen and done.
//
//   L = c_image sum_pixels BCE(i_t, sigma(logit)) + c_action 1/2 |a_{t-1} - a^|^2 + c_reward 1/2 (r_{t-1} - r^)^2
//
// Logits come from the encoder's own decoder applied to h_t; pixels are in [0, 1], rewards as they were paid: a goal of
// 10 is not one of 1. Terms are summed over the unroll. Where `wiring.last_action_reward` feeds the controller what two
// of the three terms ask for, they are learnt by copying; the preset `paper` does not (errata M11, M43).

#include <engram/model/slots.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/softmax.hpp>

namespace engram {

/// softplus(l) - i l = -i log sigma(l) - (1 - i) log(1 - sigma(l)).
struct bernoulli_cross_entropy {
    constexpr auto operator()(auto logit, auto target) const { return softplus(logit) - target * logit; }
};
struct half_squared_error {
    constexpr auto operator()(auto a, auto b) const { return 0.5f * square(a - b); }
};

struct reconstruction {
    using role = auxiliary_role;

    struct settings {
        double image = 1;   // weight of the pixels
        double action = 1;  // weight of the last action
        double reward = 1;  // weight of the last reward
        double weight = 1;  // of all three together
        void check() const {
            require(image >= 0, "auxiliary.image: expected zero or more, got ", image);
            require(action >= 0, "auxiliary.action: expected zero or more, got ", action);
            require(reward >= 0, "auxiliary.reward: expected zero or more, got ", reward);
            require(weight >= 0, "auxiliary.weight: expected zero or more, got ", weight);
        }
    };

    template <class Encoder, class Backend>
        requires can_decode<Encoder>
    static void add_losses(graph<Backend>& g, const settings& s, const typename Encoder::settings& encoder,
                           const trajectory<var<Backend>>& seen, const task_shape& task) {
        require(task.actions > 0, "reconstruction: it predicts the last action and reward, and the task has none");
        const auto decoder = [&] {
            const auto scope = g.scope("image");
            return Encoder::declare_decoder(g, encoder, task.observation, seen.h.width);
        }();
        const auto to_action = g.declare_linear("action", seen.h.width, task.actions);
        const auto to_reward = g.declare_linear("reward", seen.h.width, 1);
        const auto logits = [&] {
            const auto scope = g.scope("image");
            return Encoder::decode(encoder, decoder, seen.h, task.observation);
        }();
        const auto pixels = map("image.error", bernoulli_cross_entropy{}, logits, stop_gradient(seen.observation));
        add_loss("image", sum_columns("image.sum", pixels), s.weight * s.image);
        const auto action =
            map("action.error", half_squared_error{}, affine("action.guess", seen.h, to_action), seen.last_action);
        add_loss("action", sum_columns("action.sum", action), s.weight * s.action);
        add_loss("reward",
                 map("reward.error", half_squared_error{}, affine("reward.guess", seen.h, to_reward), seen.last_reward),
                 s.weight * s.reward);
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::reconstruction::settings, image, action, reward, weight);

static_assert(engram::auxiliary_policy<engram::reconstruction>);
