#pragma once
// SPDX-License-Identifier: MIT

// An ablation with the settings of a real agent and no network.

#include <engram/auxiliary/cpc.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/impala_resnet.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/program/configuration.hpp>

namespace fuzz {

class settings_only final : public engram::ablation {
    using agent = engram::agent<engram::impala_resnet, engram::lstm, engram::fifo_knn, engram::cpc, engram::vtrace>;

public:
    std::string name() const override { return "fuzz"; }
    std::vector<std::pair<std::string, std::string>> policies() const override { return {}; }
    std::vector<engram::setting> settings() const override { return engram::list_settings(settings_); }
    void set(const std::vector<std::pair<std::string, std::string>>& pairs) override { engram::set(settings_, pairs); }
    engram::learning_kind learns() const override { return engram::learning_kind::acting; }
    engram::traced_agent<engram::cpu<float>> trace(const engram::task_shape&, std::uint64_t,
                                                   engram::purpose) const override {
        engram::fail("fuzz: there is nothing to trace");
    }

private:
    agent::settings settings_;
};

}  // namespace fuzz
