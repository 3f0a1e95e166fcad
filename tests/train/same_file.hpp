#pragma once
// SPDX-License-Identifier: MIT

// Checkpoints taken and compared bit for bit, and weights by their largest difference.

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include <engram/io/safetensors.hpp>

/// What t.save() writes.
template <class Saves>
engram::safetensors saved(Saves& t) {
    engram::safetensors file;
    t.save(file);
    return file;
}

inline bool same(const engram::safetensors& a, const engram::safetensors& b) {
    if (a.tensors.size() != b.tensors.size()) return false;
    for (const auto& [name, t] : a.tensors)
        if (!b.contains(name) || b.at(name).data != t.data) return false;
    return a.metadata == b.metadata;
}

/// The largest |a - b|; infinity when one is no number, or there are not as many.
template <class A, class B>
double largest_difference(std::span<A> a, std::span<B> b) {
    constexpr double none = std::numeric_limits<double>::infinity();
    if (a.size() != b.size()) return none;
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double wrong = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
        worst = wrong <= worst ? worst : std::isfinite(wrong) ? wrong : none;
    }
    return worst;
}
