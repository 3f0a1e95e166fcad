#pragma once
// SPDX-License-Identifier: MIT

// The runs of a program on one backend. The host trains in every way; a device trains agents synchronously, with the
// environments on the host.

#include <memory>
#include <string>
#include <type_traits>

#include <engram/program/device_runs.hpp>
#include <engram/train/truncated_trainer.hpp>

#include "acting_job.hpp"
#include "memup_job.hpp"
#include "sequence_job.hpp"

namespace engram {

/// What a line of text can say of a backend here; specialised beside its runs.
template <class Backend>
struct about_device {
    static std::string about();
    static std::string refusal();
};

template <class Backend>
class runs final : public device_runs {
public:
    std::string name() const override { return Backend::name; }
    std::string about() const override { return about_device<Backend>::about(); }
    std::string refusal() const override { return about_device<Backend>::refusal(); }

    void check(const configuration& config) const override {
        if constexpr (device_backend<Backend>) {
            const std::string who = "--device " + name() + ": engram-" + config.model().name();
            require(config.model().learns() == learning_kind::acting, who,
                    " is trained on the host alone; a device trains agents that learn as they act; use --device cpu");
            require(config.mode == "synchronous", who, " trains synchronously on a device, not ", config.mode,
                    "; use --mode synchronous or --device cpu");
        }
    }

    int train(const configuration& config, const run_paths& paths, const arguments& a) const override {
        if constexpr (!device_backend<Backend>) {
            switch (config.model().learns()) {
                case learning_kind::sequences:
                    return training_run<sequence_job<sequence_trainer<Backend>>>(config, paths, a).go();
                case learning_kind::unrolls:
                    return training_run<sequence_job<truncated_trainer<Backend>>>(config, paths, a).go();
                case learning_kind::predictions:
                    return training_run<memup_job>(config, paths, a).go();
                case learning_kind::phases:
                    return training_run<acting_job<phased_trainer, Backend>>(config, paths, a).go();
                case learning_kind::acting:
                    break;
            }
            if (config.mode == "asynchronous")
                return training_run<acting_job<asynchronous_trainer, Backend>>(config, paths, a).go();
        }
        return training_run<acting_job<trainer, Backend>>(config, paths, a).go();
    }

    std::unique_ptr<prepared_run> prepare(const configuration& config) const override {
        return std::make_unique<prepared_agent<Backend>>(config);
    }
};

template <class Backend>
const device_runs& runs_on() {
    static const runs<Backend> only;
    return only;
}

}  // namespace engram
