#pragma once
// SPDX-License-Identifier: MIT

// A task and small generative models for the tests of training on a device.

#include <memory>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/learner/variational.hpp>
#include <engram/model/agent.hpp>
#include <engram/task/sequence.hpp>

namespace device_run {

using namespace engram;

/// Three random patterns of 4 x 4, then the same three again.
class echo final : public sequence_source {
public:
    echo() {
        info_.name = "echo";
        info_.steps = 6;
        info_.observation = {4, 4, 1};
        info_.recall = 3;
    }
    const sequence_info& info() const override { return info_; }
    void draw(const std::string& level, std::uint64_t seed, std::uint64_t index,
              const sequence_place& to) const override {
        philox random(seed, stream_id("echo." + level, static_cast<std::uint32_t>(index)));
        for (int t = 0; t < 6; ++t) {
            float* frame = to.observation + t * to.rows * 16;
            for (int i = 0; i < 16; ++i)
                frame[i] = t < 3 ? static_cast<float>(random.below(2)) : to.observation[(t - 3) * to.rows * 16 + i];
            if (to.origin) to.origin[t] = t < 3 ? -1 : t - 3;
        }
    }

private:
    sequence_info info_;
};

const auto task = std::make_shared<const echo>();

template <class Encoder, class Memory>
using generative = agent<Encoder, lstm, Memory, no_auxiliary, variational>;

template <class Agent>
typename Agent::settings small_settings() {
    typename Agent::settings s;
    s.controller.hidden = 6;
    s.learner.latent = 3;
    s.learner.hidden = 5;
    s.wiring.features = 6;
    s.memory.slots = 6;
    s.memory.word = 3;
    if constexpr (requires { s.encoder.layers; }) s.encoder.layers = {8};
    if constexpr (requires { s.encoder.maps; }) s.encoder.stream_maps = 1, s.encoder.maps = {2};
    return s;
}

}  // namespace device_run
