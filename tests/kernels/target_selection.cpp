// SPDX-License-Identifier: MIT
#include "engram/kernels/target_selection.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <vector>

#include "engram/core/philox.hpp"

using namespace engram;

namespace {

/// Picks the best of what is left, K times over, by looking at everything; starts anew when nothing is left.
std::vector<int> by_force(const std::vector<double>& s, int first, int K) {
    std::vector<int> chosen;
    std::set<int> taken;
    while (static_cast<int>(chosen.size()) < K) {
        int best = -1;
        for (int k = first; k < static_cast<int>(s.size()); ++k) {
            const double value = s[static_cast<std::size_t>(k)];
            if (std::isnan(value) || value == no_target<double> || taken.count(k)) continue;
            if (best < 0 || value > s[static_cast<std::size_t>(best)]) best = k;
        }
        if (best < 0 && taken.empty()) return {};
        if (best < 0)
            taken.clear();
        else
            chosen.push_back(best), taken.insert(best);
    }
    return chosen;
}

}  // namespace

// Values from {0, ..., n - 1} / n tie often; a tenth of the steps has no target, a few are NaN.
TEST_CASE("random uncertainties with ties") {
    philox random(7, 1);
    int repeated = 0, tied = 0;
    for (int trial = 0; trial < 20000; ++trial) {
        const int T = 1 + random.below(30), K = 1 + random.below(12), first = random.below(T),
                  values = 1 + random.below(9);
        std::vector<double> s;
        for (int k = 0; k < T; ++k)
            s.push_back(random.below(10) == 0   ? no_target<double>
                        : random.below(40) == 0 ? std::nan("")
                                                : random.below(values) / 3.0 - 1);
        std::vector<int> chosen(static_cast<std::size_t>(K), -1);
        const int different = select_uncertain<double>(s, first, chosen);
        const auto expected = by_force(s, first, K);
        if (expected.empty()) {
            CHECK(different == 0);
            continue;
        }
        CHECK(chosen == expected);
        CHECK(different == static_cast<int>(std::set<int>(chosen.begin(), chosen.end()).size()));
        repeated += different < K;
        std::set<double> seen;
        for (int i = 0; i < different; ++i)
            tied += !seen.insert(s[static_cast<std::size_t>(chosen[static_cast<std::size_t>(i)])]).second;
    }
    CHECK(repeated > 1000);
    CHECK(tied > 1000);
}

TEST_CASE("selectors") {
    const std::vector<float> s{5, 1, 3, 3, 2};
    const auto targets = [&](target_selector selector, int step, int K) {
        std::vector<int> chosen(static_cast<std::size_t>(targets_of(selector, K)), 99);
        select_targets<float>(selector, s, step, chosen);
        return chosen;
    };
    CHECK(targets(target_selector::top, 1, 3) == std::vector<int>{2, 3, 4});
    CHECK(targets(target_selector::top, 0, 1) == std::vector<int>{0});
    CHECK(targets(target_selector::top, 3, 5) == std::vector<int>{3, 4, 3, 4, 3});
    CHECK(targets(target_selector::current, 1, 3) == std::vector<int>{1});
    CHECK(targets(target_selector::top_and_current, 1, 2) == std::vector<int>{2, 3, 1});
    CHECK(targets(target_selector::top_and_current, 4, 2) == std::vector<int>{4, 4, 4});
    const std::vector<float> none(3, no_target<float>);
    std::vector<int> chosen(3);
    select_targets<float>(target_selector::top_and_current, none, 1, chosen);
    CHECK(chosen == std::vector<int>{-1, -1, -1});
}
