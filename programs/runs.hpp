#pragma once
// SPDX-License-Identifier: MIT

// The runs of a program on one backend. A device trains whatever the host trains; synchronous training of one loop has
// its environments there too, where the task is the library's.

#include <memory>
#include <string>
#include <type_traits>

#include <engram/program/device_runs.hpp>

#include "acting_job.hpp"
#include "memup_runs.hpp"
#include "sequence_runs.hpp"

namespace engram {

/// What a line of text can say of a backend here; specialised beside its runs.
template <class Backend>
struct about_device {
    static std::string about();
    static std::string refusal();
    /// What carries numbers between the devices of processes; null: they go through the host.
    static std::unique_ptr<between_devices> links(processes& others);
};

template <class Backend>
class runs final : public device_runs {
public:
    std::string name() const override { return Backend::name; }
    std::string about() const override { return about_device<Backend>::about(); }
    std::string refusal() const override { return about_device<Backend>::refusal(); }

    int train(const configuration& config, const run_paths& paths, const arguments& a) const override {
        if (config.others) config.others->devices = about_device<Backend>::links(*config.others);
        const learning_kind learns = config.model().learns();
        if (learns == learning_kind::sequences || learns == learning_kind::unrolls)
            return sequence_runs<Backend>::train(config, paths, a);
        if (learns == learning_kind::predictions) return memup_runs<Backend>::train(config, paths, a);
        return training_run<acting_job<Backend>>(config, paths, a).go();
    }

    std::unique_ptr<prepared_run> prepare(const configuration& config) const override {
        return std::make_unique<prepared_agent<Backend>>(config);
    }
    std::unique_ptr<prepared_sequences> prepare_sequences(const configuration& config) const override {
        return sequence_runs<Backend>::prepare(config);
    }
};

template <class Backend>
const device_runs& runs_on() {
    static const runs<Backend> only;
    return only;
}

}  // namespace engram
