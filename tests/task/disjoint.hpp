#pragma once
// SPDX-License-Identifier: MIT

// What every set of stimuli must be: all images different, numbers from 0 to 1.

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "engram/task/stimulus.hpp"

inline void check_disjoint(const engram::stimulus_set& set) {
    std::set<std::vector<float>> distinct;
    for (int id = 0; id < set.size(); ++id) distinct.emplace(set.image(id).begin(), set.image(id).end());
    CHECK(static_cast<int>(distinct.size()) == set.size());
    const auto [low, high] = std::minmax_element(set.pixels().begin(), set.pixels().end());
    CHECK(*low >= 0.0f);
    CHECK(*low < 0.1f);
    CHECK(*high <= 1.0f);
}
