#pragma once
// SPDX-License-Identifier: MIT

// zero_subnormals: while one lives, its thread takes floats too small for a full significand (below 1.2e-38; doubles
// below 2.2e-308) for zero, as operands and as results.
//
//   const zero_subnormals fast;
//   model.backward();
//
// Some processors compute with such numbers many times slower, and the gradients of answers that are surely right are
// full of them: a model that has learnt then trains several times slower than one that has not (docs/decisions/0042).
// A thread begins in the mode of the one that made it; the calls of a thread_pool have the mode of who calls run().

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <engram/version.hpp>

namespace engram {

/// A thread's floating point mode on construction, restored at the end. Where the processor's mode is not known
/// (neither x86-64 nor AArch64) nothing changes.
class zero_subnormals {
public:
    /// As zero, or, with false, as the numbers that they are.
    explicit zero_subnormals(bool wanted = true) : before_(mode()) {
        set_mode(wanted ? before_ | as_zero : before_ & ~as_zero);
    }
    zero_subnormals(const zero_subnormals&) = delete;
    zero_subnormals& operator=(const zero_subnormals&) = delete;
    ~zero_subnormals() { set_mode(before_); }

    /// Whether this thread takes them for zero now.
    static bool here() { return (mode() & as_zero) != 0; }
    /// Whether it can.
    static constexpr bool available() { return as_zero != 0; }

private:
#if defined(__x86_64__)
    using word = unsigned int;
    static constexpr word as_zero = 0x8040;  // MXCSR: results to zero (bit 15), operands (bit 6)
    static word mode() {
        return _mm_getcsr();
    }
    static void set_mode(word m) {
        _mm_setcsr(m);
    }
#elif defined(__aarch64__)
    using word = std::uint64_t;
    static constexpr word as_zero = word{1} << 24;  // FPCR.FZ: both
    static word mode() {
        word m;
        asm volatile("mrs %0, fpcr" : "=r"(m));
        return m;
    }
    static void set_mode(word m) {
        asm volatile("msr fpcr, %0" : : "r"(m));
    }
#else
    using word = unsigned int;
    static constexpr word as_zero = 0;
    static word mode() {
        return 0;
    }
    static void set_mode(word) {}
#endif

    word before_;
};

}  // namespace engram
