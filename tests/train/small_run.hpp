#pragma once
// A small agent that trains synchronously.

#include <utility>

#include <engram/train/acting_update.hpp>

#include "same_file.hpp"
#include "small_agent.hpp"

namespace small {

/// Six environments, unrolls of seven steps.
inline acting_settings six_by_seven(int epochs = 1, int minibatches = 1) {
    acting_settings s;
    s.rollout = {.environments = 6, .unroll = 7, .epochs = epochs, .minibatches = minibatches};
    s.optimiser.learning_rate = 1e-3;
    return s;
}

template <class Backend>
struct small_training {
    small_training(traced_agent<Backend> agent, int threads, int epochs = 1, int minibatches = 1)
        : a(std::move(agent)), t({3, threads, 10000}, a, maker(), six_by_seven(epochs, minibatches)) {}
    void iterate(int n) {
        for (int i = 0; i < n; ++i) t.iterate();
    }
    safetensors saved() { return ::saved(t); }
    traced_agent<Backend> a;
    training_loop<acting_update<Backend>> t;
};

}  // namespace small
