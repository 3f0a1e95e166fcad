#pragma once
// SPDX-License-Identifier: MIT

// Device tags, and the annotations that let a function body serve the host and CUDA.
//
// ENGRAM_HD marks functions that run on both. On the CPU it also forces inlining: without it neither g++ nor clang
// vectorises a functor called on packs or duals (measured: 20 times slower). ENGRAM_HD_CALL marks those that are called
// instead, on both: the longer parts of environments, of which every inlined copy would be compiled anew (measured: the
// registry of tasks in 50 s instead of 10). ENGRAM_SIMD marks what handles the host's vector registers, which nvcc
// refuses in device code. ENGRAM_UNROLL: the loop behind it counts to a constant and its arrays are to lie in
// registers.

#include <engram/version.hpp>

#if defined(__CUDACC__)
#define ENGRAM_HD __host__ __device__ __forceinline__
#define ENGRAM_HD_CALL __host__ __device__ __noinline__ inline
#define ENGRAM_SIMD __attribute__((always_inline)) inline
#else
#define ENGRAM_HD __attribute__((always_inline)) inline
#define ENGRAM_HD_CALL __attribute__((noinline)) inline
#define ENGRAM_SIMD ENGRAM_HD
#endif
#if defined(__CUDA_ARCH__)
#define ENGRAM_UNROLL _Pragma("unroll")
#else
#define ENGRAM_UNROLL
#endif

namespace engram {

/// The host processor, with numbers of type Real (float to train, double to check gradients).
template <class Real>
struct cpu {
    using real = Real;
    static constexpr const char* name = "cpu";
};

/// A CUDA device; its executor lives in .cuh files that a host-only build never sees.
template <class Real>
struct cuda {
    using real = Real;
    static constexpr const char* name = "cuda";
    static constexpr bool launches = true;
};

/// The kernels of a CUDA device run as loops on the host: what tests compare with cpu where there is no GPU.
template <class Real>
struct emulated {
    using real = Real;
    static constexpr const char* name = "emulated";
    static constexpr bool launches = true;
};

/// Backends whose operations are launched as grids of threads (engram/device) instead of called.
template <class Backend>
concept device_backend = requires {
    requires Backend::launches;
};

}  // namespace engram
