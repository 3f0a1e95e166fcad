#pragma once
// SPDX-License-Identifier: MIT

// The memory of an emulated device: the host's, up to a limit that a test may set, so that the sentence for a device
// with too little of it is provoked where no device is. The same sentence serves CUDA (device/memory.cuh).

#include <atomic>
#include <cstddef>
#include <limits>
#include <vector>

#include <engram/core/aligned.hpp>
#include <engram/core/error.hpp>

namespace engram {

/// Throws what is said of an allocation that a device refused: what was asked for and what there is, in bytes.
[[noreturn]] inline void refuse_allocation(const char* device, std::size_t asked, std::size_t total, std::size_t free) {
    fail("device '", device, "': ", (asked >> 20) + 1, " MiB were asked for, of ", total >> 20, " MiB ", free >> 20,
         " MiB are free; use a smaller batch, a shorter unroll or fewer memory slots");
}

/// Of all emulated devices of a process together, bytes.
struct emulated_memory {
    static inline std::atomic<std::size_t> limit = std::numeric_limits<std::size_t>::max(), used = 0;
};

template <class T>
struct emulated_allocator {
    using value_type = T;

    emulated_allocator() = default;
    template <class U>
    emulated_allocator(const emulated_allocator<U>&) {}

    T* allocate(std::size_t n) {
        const std::size_t asked = n * sizeof(T), before = emulated_memory::used.fetch_add(asked);
        const std::size_t all = emulated_memory::limit, left = all > before ? all - before : 0;
        if (asked > left) {
            emulated_memory::used -= asked;
            refuse_allocation("emulated", asked, all, left);
        }
        return aligned_allocator<T>().allocate(n);
    }
    void deallocate(T* p, std::size_t n) {
        emulated_memory::used -= n * sizeof(T);
        aligned_allocator<T>().deallocate(p, n);
    }
    bool operator==(const emulated_allocator&) const { return true; }
};

/// Numbers in the memory of an emulated device.
template <class T>
using emulated_vector = std::vector<T, emulated_allocator<T>>;

}  // namespace engram
