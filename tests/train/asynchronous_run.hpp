#pragma once
// SPDX-License-Identifier: MIT

// What tests of asynchronous training look at, whoever acts: importance ratios, and environments that something is done
// to before each step.

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <engram/train/asynchronous_update.hpp>

#include "small_agent.hpp"

namespace asynchronous_run {

using namespace small;

inline var<backend> find(const traced_agent<backend>& a, const std::string& name) {
    for (std::size_t v = 0; v < a.g->values().size(); ++v)
        if (a.g->values()[v].name == name) return a.g->variable_of(static_cast<int>(v));
    FAIL("no value " << name);
    return {};
}

/// Number of log importance ratios of the last update, of unrolls of 7 steps, that are not exactly zero.
inline int ratios_off(training_loop<asynchronous_update<backend>>& t) {
    const auto ratio = t->learner().output(find(t->agent(), "log_ratio"));
    int off = 0;
    for (int i = 0; i < 7 * t->learner().options().batch; ++i) off += ratio.data[i * ratio.stride] != 0;
    return off;
}

/// Environments that wait, count or throw before each step.
class watched final : public batch_environment {
public:
    watched(std::unique_ptr<batch_environment> e, std::function<void()> before_step)
        : inner_(std::move(e)), before_step_(std::move(before_step)) {}
    int size() const override { return inner_->size(); }
    const task_info& info() const override { return inner_->info(); }
    void reset(int first, int count) override { inner_->reset(first, count); }
    void observe(int row, float* pixels) const override { inner_->observe(row, pixels); }
    outcome step(int row, int action) override {
        before_step_();
        return inner_->step(row, action);
    }
    std::optional<trial_event> event(int row) const override { return inner_->event(row); }
    int oracle(int row) const override { return inner_->oracle(row); }
    std::span<const std::byte> state(int row) const override { return inner_->state(row); }
    void restore(int row, std::span<const std::byte> saved) override { inner_->restore(row, saved); }

private:
    std::unique_ptr<batch_environment> inner_;
    std::function<void()> before_step_;
};

}  // namespace asynchronous_run
