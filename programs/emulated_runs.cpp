// SPDX-License-Identifier: MIT

// The runs on an emulated device: a CUDA device's kernels as loops on the host, slow, for tests where there is no GPU.

#include <engram/device/operations.hpp>

#include "runs.hpp"

namespace engram {

template <>
std::string about_device<emulated<float>>::about() {
    return "the kernels of a device as loops on the host, for tests";
}
template <>
std::string about_device<emulated<float>>::refusal() {
    return "";
}

template <>
std::unique_ptr<between_devices> about_device<emulated<float>>::links(processes& others) {
    return std::make_unique<emulated_links<float>>(others);
}

template const device_runs& runs_on<emulated<float>>();

}  // namespace engram
