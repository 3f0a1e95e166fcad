#pragma once
// A small agent under the synchronous trainer.

#include <utility>

#include <engram/train/trainer.hpp>

#include "small_agent.hpp"

namespace small {

/// Six environments, unrolls of seven steps.
inline trainer_settings six_by_seven(int epochs = 1, int minibatches = 1) {
    trainer_settings s;
    s.rollout = {.environments = 6, .unroll = 7, .epochs = epochs, .minibatches = minibatches};
    s.optimiser.learning_rate = 1e-3;
    return s;
}

template <class Backend>
struct training {
    training(traced_agent<Backend> agent, int threads, int epochs = 1, int minibatches = 1)
        : a(std::move(agent)), t(a, maker(), six_by_seven(epochs, minibatches), 3, threads, 10000) {}
    void iterate(int n) {
        for (int i = 0; i < n; ++i) t.iterate();
    }
    safetensors saved() {
        safetensors f;
        t.save(f);
        return f;
    }
    traced_agent<Backend> a;
    trainer<Backend> t;
};

}  // namespace small
