#pragma once
// SPDX-License-Identifier: MIT

// Vectors that start on a cache line, so that SIMD loads never straddle one. On Linux the large ones ask for huge
// pages: a sweep over a memory of many megabytes otherwise waits for the page table, and prefetching ends at every 4
// KB.

#include <cstddef>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <engram/version.hpp>

namespace engram {

template <class T>
struct aligned_allocator {
    using value_type = T;
    static constexpr std::align_val_t cache_line{64}, huge_page{std::size_t{1} << 21};

    aligned_allocator() = default;
    template <class U>
    aligned_allocator(const aligned_allocator<U>&) {}

    T* allocate(std::size_t n) {
        void* const p = ::operator new(n * sizeof(T), alignment(n));
#if defined(__linux__)
        // Whole pages alone, since the rest belongs to others as well. A refusal changes nothing but the speed.
        constexpr auto page = static_cast<std::size_t>(huge_page);
        if (alignment(n) == huge_page) madvise(p, n * sizeof(T) / page * page, MADV_HUGEPAGE);
#endif
        return static_cast<T*>(p);
    }
    void deallocate(T* p, std::size_t n) {
        ::operator delete(p, alignment(n));
    }
    bool operator==(const aligned_allocator&) const {
        return true;
    }

private:
    /// From four huge pages on at the start of one.
    static constexpr std::align_val_t alignment(std::size_t n) {
        return n * sizeof(T) >= 4 * static_cast<std::size_t>(huge_page) ? huge_page : cache_line;
    }
};

template <class T>
using aligned_vector = std::vector<T, aligned_allocator<T>>;

}  // namespace engram
