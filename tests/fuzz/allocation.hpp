#pragma once
// SPDX-License-Identifier: MIT

// Counts what operator new has given and not got back, and the most of it at once. For one source file of a program.

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace allocation {

// Each piece begins with its size; sanitizers still see the end of it.
inline constexpr std::size_t prefix = alignof(std::max_align_t);
inline std::size_t now = 0, peak = 0;

/// From its construction on, the most that was held beyond what was held then.
class watch {
public:
    watch() : before_(now) { peak = now; }
    std::size_t most() const { return peak - before_; }

private:
    std::size_t before_;
};

inline void* take(std::size_t size) {
    auto* piece = static_cast<std::size_t*>(std::malloc(size + prefix));
    if (!piece) throw std::bad_alloc();
    *piece = size;
    now += size;
    peak = std::max(peak, now);
    return reinterpret_cast<std::byte*>(piece) + prefix;
}

inline void give_back(void* at) {
    if (!at) return;
    auto* piece = reinterpret_cast<std::size_t*>(static_cast<std::byte*>(at) - prefix);
    now -= *piece;
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
