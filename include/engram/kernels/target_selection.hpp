#pragma once
// SPDX-License-Identifier: MIT

// Which future steps a prediction of MemUP is about (facts 3.2, errata U10, U11): of the steps k >= first that have a
// target, those with the largest uncertainty s_k.
//
//   ties go to the lower index; the steps come in the order of their uncertainty, largest first; where fewer than K are
//   left they are repeated in that order (ours: the paper repeats random ones, which a function of the seed need not)
//
// A step without a target has the uncertainty -infinity and is never chosen, nor is NaN. O(T K) comparisons, no
// allocation.

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include <engram/version.hpp>

namespace engram {

/// The uncertainty of a step that has no target.
template <class Real>
inline constexpr Real no_target = -std::numeric_limits<Real>::infinity();

/// Fills `chosen` (K steps) and returns how many of them are different; 0 when there is none to choose.
template <class Real>
int select_uncertain(std::span<const Real> uncertainty, int first, std::span<int> chosen) {
    const int K = static_cast<int>(chosen.size());
    int found = 0;
    for (int k = first; k < static_cast<int>(uncertainty.size()); ++k) {
        const Real s = uncertainty[static_cast<std::size_t>(k)];
        if (!(s > no_target<Real>)) continue;
        const auto kept = [&](int i) {
            return uncertainty[static_cast<std::size_t>(chosen[static_cast<std::size_t>(i)])];
        };
        if (found == K && !(s > kept(K - 1))) continue;
        int at = found < K ? found++ : K - 1;
        // Strictly larger moves up: of equals, the one that came first stays in front.
        for (; at > 0 && s > kept(at - 1); --at)
            chosen[static_cast<std::size_t>(at)] = chosen[static_cast<std::size_t>(at - 1)];
        chosen[static_cast<std::size_t>(at)] = k;
    }
    for (int i = found; found > 0 && i < K; ++i)
        chosen[static_cast<std::size_t>(i)] = chosen[static_cast<std::size_t>(i - found)];
    return found;
}

/// How the targets of a prediction at step i are chosen.
enum class target_selector {
    top,             // the K most uncertain steps from i on
    current,         // step i itself
    top_and_current  // both: K + 1 targets, step i last
};

/// Targets of one prediction under a selector that has K.
inline int targets_of(target_selector selector, int K) {
    return selector == target_selector::current ? 1 : selector == target_selector::top ? K : K + 1;
}

/// Fills `chosen` with the targets_of(selector, K) steps for a prediction at `step`, -1 where there is none.
template <class Real>
void select_targets(target_selector selector, std::span<const Real> uncertainty, int step, std::span<int> chosen) {
    std::fill(chosen.begin(), chosen.end(), -1);
    if (selector != target_selector::current)
        select_uncertain(uncertainty, step,
                         selector == target_selector::top ? chosen : chosen.first(chosen.size() - 1));
    if (selector != target_selector::top && uncertainty[static_cast<std::size_t>(step)] > no_target<Real>)
        chosen.back() = step;
}

}  // namespace engram
