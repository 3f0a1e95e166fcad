#pragma once
// SPDX-License-Identifier: MIT

// Counts what has been allocated and not given back, and the most of it at once: everything from malloc where the
// address sanitizer watches, everything from operator new elsewhere. For one source file of a program, and one thread.

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ENGRAM_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ENGRAM_ADDRESS_SANITIZER
#endif
#ifdef ENGRAM_ADDRESS_SANITIZER
#if __has_include(<sanitizer/allocator_interface.h>)
#include <sanitizer/allocator_interface.h>
#else  // g++ has the functions and no header of them
extern "C" std::size_t __sanitizer_get_allocated_size(const volatile void* at);
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*taken)(const volatile void*, std::size_t),
                                                         void (*given_back)(const volatile void*));
#endif
#endif

namespace allocation {

// Signed: what was allocated before the counting began may be given back.
inline std::ptrdiff_t now = 0, peak = 0;

inline void count(std::ptrdiff_t size) {
    now += size;
    peak = std::max(peak, now);
}

#ifdef ENGRAM_ADDRESS_SANITIZER
inline void begin() {
    [[maybe_unused]] static const int installed = __sanitizer_install_malloc_and_free_hooks(
        [](const volatile void*, std::size_t size) { count(static_cast<std::ptrdiff_t>(size)); },
        [](const volatile void* at) {
            if (at) count(-static_cast<std::ptrdiff_t>(__sanitizer_get_allocated_size(const_cast<const void*>(at))));
        });
}
#else
inline void begin() {}
#endif

/// From its construction on, the most that was held beyond what was held then.
class watch {
public:
    watch() {
        begin();
        before_ = peak = now;
    }
    std::size_t most() const { return static_cast<std::size_t>(peak - before_); }

private:
    std::ptrdiff_t before_;
};

}  // namespace allocation

#ifndef ENGRAM_ADDRESS_SANITIZER

namespace allocation {

// Each piece begins with its size.
inline constexpr std::size_t prefix = alignof(std::max_align_t);

inline void* take(std::size_t size) {
    auto* piece = static_cast<std::size_t*>(std::malloc(size + prefix));
    if (!piece) throw std::bad_alloc();
    *piece = size;
    count(static_cast<std::ptrdiff_t>(size));
    return reinterpret_cast<std::byte*>(piece) + prefix;
}

inline void give_back(void* at) {
    if (!at) return;
    auto* piece = reinterpret_cast<std::size_t*>(static_cast<std::byte*>(at) - prefix);
    count(-static_cast<std::ptrdiff_t>(*piece));
    std::free(piece);
}

}  // namespace allocation

void* operator new(std::size_t size) {
    return allocation::take(size);
}
void* operator new[](std::size_t size) {
    return allocation::take(size);
}
void operator delete(void* at) noexcept {
    allocation::give_back(at);
}
void operator delete[](void* at) noexcept {
    allocation::give_back(at);
}
void operator delete(void* at, std::size_t) noexcept {
    allocation::give_back(at);
}
void operator delete[](void* at, std::size_t) noexcept {
    allocation::give_back(at);
}

#endif
