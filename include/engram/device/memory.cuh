#pragma once
// SPDX-License-Identifier: MIT

// Memory of a CUDA device, of the host where the device copies from it at full speed, and of both; and the check that
// turns a failed call into a sentence that names the call and the operation.

#include <cstddef>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <engram/core/error.hpp>
#include <engram/device/emulated_memory.hpp>

namespace engram {

inline void check_cuda(cudaError_t result, const std::string& who, const char* call) {
    if (result == cudaSuccess) return;
    cudaGetLastError();  // taken note of
    if (result == cudaErrorInsufficientDriver || result == cudaErrorNoDevice)
        fail("device 'cuda': this machine has no usable GPU (", cudaGetErrorString(result), "); run with --device cpu");
    fail(who, ": ", call, " failed on the device 'cuda': ", cudaGetErrorString(result));
}

inline void check_cublas(cublasStatus_t result, const std::string& who, const char* call) {
    require(result == CUBLAS_STATUS_SUCCESS, who, ": ", call,
            " failed on the device 'cuda': ", cublasGetStatusString(result));
}

/// The same for calls that allocate: says what was asked for and what there is.
inline void check_cuda_allocation(cudaError_t result, std::size_t bytes, const char* call) {
    if (result != cudaErrorMemoryAllocation) return check_cuda(result, "device memory", call);
    cudaGetLastError();
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    refuse_allocation("cuda", bytes, total, free);
}

/// Numbers in device memory, zero at first.
template <class T>
class device_array {
public:
    device_array() = default;
    explicit device_array(std::size_t count) : size_(count) {
        if (count == 0) return;
        check_cuda_allocation(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)), count * sizeof(T),
                              "cudaMalloc");
        check_cuda(cudaMemset(data_, 0, count * sizeof(T)), "device memory", "cudaMemset");
        // Streams of programs do not wait for the one that cudaMemset uses.
        check_cuda(cudaStreamSynchronize(nullptr), "device memory", "cudaStreamSynchronize");
    }
    device_array(device_array&& other) noexcept { swap(other); }
    device_array& operator=(device_array&& other) noexcept {
        swap(other);
        return *this;
    }
    ~device_array() { cudaFree(data_); }

    T* data() const { return data_; }
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }

private:
    void swap(device_array& other) {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
    }
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

/// A std::vector's memory by one of CUDA's allocators for the host.
template <class T, bool Managed>
struct cuda_allocator {
    using value_type = T;
    template <class U>
    struct rebind {
        using other = cuda_allocator<U, Managed>;
    };
    cuda_allocator() = default;
    template <class U>
    cuda_allocator(const cuda_allocator<U, Managed>&) {}

    T* allocate(std::size_t count) {
        void* memory = nullptr;
        if constexpr (Managed)
            check_cuda_allocation(cudaMallocManaged(&memory, count * sizeof(T)), count * sizeof(T),
                                  "cudaMallocManaged");
        else
            check_cuda_allocation(cudaMallocHost(&memory, count * sizeof(T)), count * sizeof(T), "cudaMallocHost");
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, std::size_t) { Managed ? cudaFree(memory) : cudaFreeHost(memory); }
    bool operator==(const cuda_allocator&) const { return true; }
};

/// Host memory that the device copies from and to while the host goes on.
template <class T>
using pinned_vector = std::vector<T, cuda_allocator<T, false>>;

/// Memory that moves to whoever touches it: for what kernels use all the time and the host rarely (memory rings).
template <class T>
using managed_vector = std::vector<T, cuda_allocator<T, true>>;

}  // namespace engram
