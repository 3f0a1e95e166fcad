#pragma once
// SPDX-License-Identifier: MIT

// Checkpoints compared bit for bit.

#include <engram/io/safetensors.hpp>

inline bool same(const engram::safetensors& a, const engram::safetensors& b) {
    if (a.tensors.size() != b.tensors.size()) return false;
    for (const auto& [name, t] : a.tensors)
        if (!b.contains(name) || b.at(name).data != t.data) return false;
    return a.metadata == b.metadata;
}
