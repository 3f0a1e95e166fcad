#pragma once
// SPDX-License-Identifier: MIT

// What acts for a learner: some environments, an agent in each of them, and T steps at a time into the learner's
// inputs. An Update that learns from acting (train/acting_update.hpp) sees this face; where the environments are, on
// the host or on a device (train/rows_on_device.hpp), is behind it, and both leave the same checkpoints.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <engram/train/saved_state.hpp>
#include <engram/train/unroll.hpp>

namespace engram {

/// The environments of a shard, and the agent in each of them.
template <class Backend>
struct acting_rows {
    using part_body = std::function<void(const std::string& name, std::span<std::byte> part)>;

    virtual ~acting_rows() = default;
    /// T steps of every environment, which the learner finds in its inputs at its next forward().
    virtual void act() = 0;
    /// What acts, with its states and memories.
    virtual program<Backend>& acting() = 0;
    virtual environment_rows& environments() = 0;
    /// Rewards of the episodes that ended since this was last asked for, in order of time, then row.
    virtual std::vector<double> take_finished() = 0;
    /// Every block of a checkpoint but the environments' states.
    virtual void each_part(const std::string& prefix, const part_body& body) = 0;
    /// Goes on from what each_part() and the environments were given.
    virtual void loaded() = 0;
};

/// Makes what acts for `learner`, whose rows [first_row, first_row + count) of the batch they are.
template <class Backend>
using rows_maker =
    std::function<std::unique_ptr<acting_rows<Backend>>(program<Backend>& learner, int count, int first_row)>;

/// Environments on the host.
template <class Backend>
class rows_on_host final : public acting_rows<Backend> {
public:
    rows_on_host(const traced_agent<Backend>& agent, program<Backend>& learner,
                 std::unique_ptr<batch_environment> environment, std::uint64_t seed, int first_row)
        : learner_(&learner),
          inputs_(unroll_inputs(agent, learner)),
          recorder_(agent, agent.store, std::move(environment), seed, first_row, inputs_) {}

    void act() override {
        ask_for(*learner_, inputs_);
        recorder_.record(inputs_);
    }
    program<Backend>& acting() override { return recorder_.acting().program(); }
    environment_rows& environments() override { return recorder_.acting().environment(); }
    std::vector<double> take_finished() override { return std::exchange(recorder_.acting().finished(), {}); }
    void each_part(const std::string& prefix, const typename acting_rows<Backend>::part_body& body) override {
        engram::each_part(recorder_.acting(), prefix, body);
    }
    void loaded() override {
        actor<Backend>& a = recorder_.acting();
        a.finished().clear();
        if (!a.environment().resumes()) a.begin_anew();
    }

private:
    program<Backend>* learner_;
    unroll_blocks<typename Backend::real> inputs_;
    recording_actor<Backend> recorder_;
};

/// The maker of rows on the host; the agent must outlive it and what it makes.
template <class Backend>
rows_maker<Backend> on_host(const traced_agent<Backend>& agent, environment_maker make, std::uint64_t seed) {
    return [&agent, make = std::move(make), seed](program<Backend>& learner, int count, int first_row) {
        return std::make_unique<rows_on_host<Backend>>(agent, learner, make(count, first_row), seed, first_row);
    };
}

}  // namespace engram
