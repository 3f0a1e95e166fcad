// SPDX-License-Identifier: MIT

// A program whose environment takes a millisecond a step, as a simulator does, and no processor: what processes that
// act apart are for. The task is that of examples/own_environment.hpp.
//
//   benchmarks/processes/run.sh actors      # synchronously, then asynchronously with 1 to 4 acting processes

#include <chrono>
#include <thread>

#include <engram/catalogue.hpp>
#include <engram/program/ablation.hpp>
#include <engram/task/registry.hpp>

#include "../../examples/own_environment.hpp"

namespace {

struct slow_match {
    static constexpr engram::own_task specification{.name = "slow_match",
                                                    .observation = {1, 1, 12},
                                                    .actions = 2,
                                                    .longest_episode = 4,
                                                    .maximum_reward = 1,
                                                    .random_reward = 0.5f};
    own::match_to_sample inner;

    void reset(engram::philox& random) { inner.reset(random); }
    engram::outcome step(int action) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return inner.step(action);
    }
    void observe(float* numbers) const { inner.observe(numbers); }
    int oracle() const { return inner.oracle(); }
    bool valid() const { return inner.valid(); }
};

}  // namespace

int main(int argc, char** argv) {
    engram::add_task<slow_match>();
    return engram::run_ablation<engram::catalogue::lstm_mem>("lstm_mem", argc, argv);
}
