#pragma once
// SPDX-License-Identifier: MIT

// Trainings one after the other, each for a number of steps of its own, as one training. What a phase has learnt is in
// the stores from which the next one begins. A checkpoint is the running phase's own, with what it needs of those
// before it; a training that loads it goes on in that phase.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <engram/core/error.hpp>
#include <engram/train/training_loop.hpp>

namespace engram {

struct phase_of_training {
    std::string name;
    std::string mode;        // of its checkpoints
    std::int64_t steps = 0;  // the last phase: until the run ends
    std::function<std::unique_ptr<training>()> begin;
    std::function<void()> forget;                    // puts back what a new run has before this phase
    std::function<void(safetensors&)> save;          // what phases before it left to it; may be empty
    std::function<void(const safetensors&)> load{};  // the same from a file
};

class phased_training : public training {
public:
    /// `columns`: the losses of all phases; a pair says what a phase calls one. `total_steps` are those of all phases.
    phased_training(std::vector<phase_of_training> phases, std::vector<std::pair<std::string, std::string>> columns,
                    std::int64_t total_steps)
        : phases_(std::move(phases)), columns_(std::move(columns)), total_steps_(total_steps), done_(phases_.size()) {
        begin(0);
    }

    /// One update of the running phase, after which the next one may begin.
    void iterate() override {
        running_->iterate();
        done_[at_] = running_->steps();
        if (at_ + 1 < phases_.size() && done_[at_] >= phases_[at_].steps) begin(at_ + 1);
    }
    std::int64_t steps() const override {
        std::int64_t sum = 0;
        for (const std::int64_t steps : done_) sum += steps;
        return sum;
    }
    std::int64_t total_steps() const override { return total_steps_; }
    /// Of the running phase.
    std::int64_t updates() const override { return running_->updates(); }
    std::vector<std::string> loss_names() const override {
        std::vector<std::string> names;
        for (const auto& column : columns_) names.push_back(column.first);
        return names;
    }
    /// The running phase's numbers, or, before its first update, those of the phase that has ended; losses of no phase
    /// since the last window are NaN.
    training_window take_window() override {
        training_window w = running_->take_window(), before = std::exchange(ended_, {});
        std::vector<std::pair<std::string, double>> losses;
        for (const auto& [name, in_phase] : columns_)
            losses.emplace_back(name, w.iterations > 0 && w.has(in_phase) ? w[in_phase] : before[in_phase]);
        if (w.iterations == 0) std::swap(w, before);
        w.losses = std::move(losses);
        return w;
    }
    void sync_weights() override { running_->sync_weights(); }

    void save(safetensors& file) override {
        running_->save(file);
        if (phases_[at_].save) phases_[at_].save(file);
        file.add(steps_of_phases, {static_cast<std::int64_t>(done_.size())}, done_);
    }
    void load(const safetensors& file) override {
        const auto& mode = file.text_at("training_mode");
        std::size_t wanted = 0;
        while (wanted < phases_.size() && phases_[wanted].mode != mode) ++wanted;
        require(wanted < phases_.size(), file.source(), ": is a checkpoint of ", mode,
                " training; this run has no such phase");
        const auto done = file.values<std::int64_t>(steps_of_phases, {static_cast<std::int64_t>(done_.size())});
        if (phases_[wanted].load) phases_[wanted].load(file);
        for (std::size_t later = wanted + 1; later < phases_.size(); ++later) phases_[later].forget();
        begin(wanted);
        running_->load(file);
        ended_ = {};
        done_.assign(done.begin(), done.end());
    }

    const std::string& phase() const { return phases_[at_].name; }

private:
    static constexpr const char* steps_of_phases = "phases.steps";

    void begin(std::size_t phase) {
        if (running_) running_->sync_weights(), ended_ = running_->take_window();
        running_.reset();
        at_ = phase;
        running_ = phases_[at_].begin();
    }

    std::vector<phase_of_training> phases_;
    std::vector<std::pair<std::string, std::string>> columns_;
    std::int64_t total_steps_;
    std::vector<std::int64_t> done_;  // steps of each phase
    std::size_t at_ = 0;
    std::unique_ptr<training> running_;
    training_window ended_;  // of the phase before, since the last window was taken
};

}  // namespace engram
