// SPDX-License-Identifier: MIT

// The runs on the host, and the choice between devices.

#include <thread>

#include <fmt/format.h>

#include "runs.hpp"

namespace engram {

template <>
std::string about_device<cpu<float>>::about() {
    return fmt::format("the host, {} hardware threads, packs of {} floats{}", std::thread::hardware_concurrency(),
                       pack<float>::width, bfloat16_products ? ", products of bfloat16 in one instruction" : "");
}
template <>
std::string about_device<cpu<float>>::refusal() {
    return "";
}

template <>
std::unique_ptr<between_devices> about_device<cpu<float>>::links(processes&) {
    return nullptr;
}

template const device_runs& runs_on<cpu<float>>();

std::vector<const device_runs*> devices_of(const ablation& model) {
    std::vector<const device_runs*> all{&runs_on<cpu<float>>()};
    for (const auto* on : model.devices()) all.push_back(on);
    return all;
}

const device_runs& find_device(const ablation& model, const std::string& name) {
    std::vector<std::string> names{"cpu", "cuda"};
    for (const auto* on : devices_of(model)) {
        if (on->name() == name) {
            require(on->refusal().empty(), on->refusal());
            return *on;
        }
        names.push_back(on->name());
    }
    require_known("device", name, names);
    fail("--device cuda: engram-", model.name(),
         " was built without CUDA; configure with -DENGRAM_CUDA_PROGRAMS=ON where nvcc is, or use --device cpu");
}

}  // namespace engram
