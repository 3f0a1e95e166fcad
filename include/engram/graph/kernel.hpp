#pragma once
// SPDX-License-Identifier: MIT

// What an operation becomes when a program binds it: operands in memory, and a kernel over ranges of time steps.

#include <cstddef>

#include <engram/version.hpp>

namespace engram {

/// Where some columns of a value lie: row b of step t starts at data + t * step + b * stride.
template <class Real>
struct operand {
    Real* data = nullptr;
    std::ptrdiff_t stride = 0;
    std::ptrdiff_t step = 0;
    int width = 0;
    bool accumulate = false;  // for gradients: add instead of store

    constexpr Real* at(int t) const { return data + t * step; }
    constexpr explicit operator bool() const { return data != nullptr; }
};

/// An operation bound to buffers. Ranges are `steps` time steps from t on; outside time loops that is all of them.
template <class Backend>
struct kernel {
    virtual ~kernel() = default;
    /// The share that can be summed over all steps ahead of the time loop.
    virtual void before() {}
    virtual void forward(int t, int steps) = 0;
    virtual void backward(int /*t*/, int /*steps*/) {}
    /// What was put off until the backward time loop had ended.
    virtual void after() {}
    /// Of a chain (plan::chained), whether one call runs all of its time loop: forward from the first step on, backward
    /// from the last.
    virtual bool runs_loop() const { return false; }
};

}  // namespace engram
