#pragma once
// SPDX-License-Identifier: MIT

// Forward sweeps of a program as parts of a longer sweep that its device records as one: T steps of an actor with what
// its environments do in between, for example. A replay of it is one graph launch on CUDA.

#include <engram/device/executor.hpp>
#include <engram/graph/program.hpp>

namespace engram {

template <class Backend>
class recorded_steps {
public:
    explicit recorded_steps(program<Backend>& p) : program_(&p) {}

    /// `body` calls forward() `steps` times, and may carry() the program and launch kernels of its own. The host sends
    /// what it has written before it, and nothing within it. One body a program.
    template <class Body>
    void run(int steps, Body body) {
        program<Backend>& p = *program_;
        p.weights_->refresh(p.executor_, *p.store_);
        p.executor_.send(p.replays_);
        p.losses_known_ = false;
        p.replays_ += static_cast<std::uint64_t>(steps);
        p.executor_.replay(3, p.resources_, body);
        p.executor_.check();
    }
    void forward() {
        program_->executor_.count_replay();
        program_->sweep_forward(typename program<Backend>::untimed{});
    }

private:
    program<Backend>* program_;
};

}  // namespace engram
