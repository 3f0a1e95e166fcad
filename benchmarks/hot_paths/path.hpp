#pragma once
// SPDX-License-Identifier: MIT

// What a hot path is to a benchmark, and the numbers that it runs on.

#include <functional>
#include <initializer_list>
#include <string>

#include <engram/core/aligned.hpp>
#include <engram/core/float_maths.hpp>
#include <engram/core/pack.hpp>
#include <engram/core/philox.hpp>

namespace benchmarks {

using namespace engram;
using numbers = aligned_vector<float>;

/// Time steps, rows of the batch, slots of a memory; a path takes those that it knows.
struct sizes {
    int T, B, N;
};

/// One path at one size. Operations are multiplications and additions, two to a fused one; bytes are those that it has
/// to read and to write, those of an operand that is updated twice. Zero where a count says nothing.
struct path {
    std::string shape;
    double operations, bytes;
    std::function<void()> run;
    double memory = 0;  // bytes of all operands together, where that is not `bytes`
};

struct hot_path {
    std::string name;
    std::string grows;  // of T, B and N, those that it is asked to grow with
    sizes usual;
    std::function<path(const sizes&)> make;
};

/// Normal numbers, the same in every run.
inline numbers draw(std::ptrdiff_t count, double scale = 1) {
    numbers x(static_cast<std::size_t>(count));
    philox random(7, static_cast<std::uint64_t>(count));
    for (float& number : x) number = static_cast<float>(scale * random.normal());
    return x;
}
/// Numbers in (0, 1).
inline numbers draw_shares(std::ptrdiff_t count) {
    numbers x = draw(count);
    for (float& number : x) number = logistic(number);
    return x;
}
inline std::string by(std::initializer_list<int> extents) {
    std::string text;
    for (const int n : extents) text += (text.empty() ? "" : " x ") + std::to_string(n);
    return text;
}

}  // namespace benchmarks
