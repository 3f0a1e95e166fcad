// SPDX-License-Identifier: MIT

// The runs on a GPU. This is the one source of engram_program_cuda.

#include <cstdio>

#include <engram/device/cuda.cuh>
#if defined(ENGRAM_NCCL)
#include <engram/train/nccl_links.cuh>
#endif

#include "runs.hpp"

namespace engram {

template <>
std::string about_device<cuda<float>>::about() {
#if defined(ENGRAM_NCCL)
    return describe_cuda() + "; between processes NCCL " + nccl_version();
#else
    return describe_cuda() + "; between processes through the host (compiled without NCCL)";
#endif
}
template <>
std::string about_device<cuda<float>>::refusal() {
    std::string why;
    return cuda_is_usable(why) ? "" : why + "; use --device cpu";
}

template <>
std::unique_ptr<between_devices> about_device<cuda<float>>::links([[maybe_unused]] processes& others) {
#if defined(ENGRAM_NCCL)
    require_alike(&others, {{"NCCL", nccl_version()}});
    cudaDeviceProp about;
    check_cuda(cudaGetDeviceProperties(&about, 0), "device", "cudaGetDeviceProperties");
    if (one_device_each(others, std::as_bytes(std::span(about.uuid.bytes))))
        return std::make_unique<nccl_links<cuda<float>>>(others);
    if (others.rank() == 0)
        std::fputs("engram: two processes share a GPU, which NCCL refuses; gradients go through the host\n", stderr);
#endif
    return nullptr;
}

template const device_runs& runs_on<cuda<float>>();

}  // namespace engram
