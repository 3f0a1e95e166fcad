// SPDX-License-Identifier: MIT

// The runs on a GPU. This is the one source of engram_program_cuda.

#include <engram/device/cuda.cuh>

#include "runs.hpp"

namespace engram {

template <>
std::string about_device<cuda<float>>::about() {
    return describe_cuda();
}
template <>
std::string about_device<cuda<float>>::refusal() {
    std::string why;
    return cuda_is_usable(why) ? "" : why + "; use --device cpu";
}

template const device_runs& runs_on<cuda<float>>();

}  // namespace engram
