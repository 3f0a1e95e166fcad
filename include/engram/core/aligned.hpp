#pragma once
// SPDX-License-Identifier: MIT

// Vectors that start on a cache line, so that SIMD loads never straddle one.

#include <cstddef>
#include <new>
#include <vector>

#include <engram/version.hpp>

namespace engram {

template <class T>
struct aligned_allocator {
    using value_type = T;
    static constexpr std::align_val_t alignment{64};

    aligned_allocator() = default;
    template <class U>
    aligned_allocator(const aligned_allocator<U>&) {}

    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), alignment)); }
    void deallocate(T* p, std::size_t) { ::operator delete(p, alignment); }
    bool operator==(const aligned_allocator&) const { return true; }
};

template <class T>
using aligned_vector = std::vector<T, aligned_allocator<T>>;

}  // namespace engram
