#pragma once
// SPDX-License-Identifier: MIT

// Copy and scattered copy of the MemUP paper (facts 3.3, errata U1): n random digits, a long filler, and n queries that
// ask for the digits in order.
//
//   tokens    0 filler, 1 query, 2 .. 9 digits; with `markers` distinct query j is 10 + j instead (as in the
//             authors' positional generator), so that a query says which digit it asks for
//   frames    t < n: digits, then filler; copy: the last n steps are queries; scattered_copy: n steps drawn uniformly
//             without replacement from n .. T - 1
//   target    the digit (2 .. 9) at the queries, the filler class 0 at all other steps; every step has weight 1
//
// n = `items`, 10 by default; T = `steps`, 120 by default (the paper: 120, 520, 1020, 5020). A query's `origin` is the
// step of its digit. Answers are judged at the queries alone; by chance one of eight is right. Every sequence is drawn
// afresh (ours; the paper trains on ten thousand).

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "engram/core/error.hpp"
#include "engram/core/philox.hpp"
#include "engram/task/environment.hpp"
#include "engram/task/sequence.hpp"
#include "engram/task/sequence_stream.hpp"

namespace engram {

template <bool Scattered>
class copy_task final : public sequence_source {
public:
    static constexpr int filler = 0, marker = 1, first_digit = 2, digits = 8;
    static constexpr int symbols = first_digit + digits;

    static constexpr std::array reads{"items", "steps", "markers"};
    static sequence_info describe(const task_options& options) {
        const char* name = Scattered ? "scattered_copy" : "copy";
        const int n = items_of(options), T = options.steps == 0 ? 120 : options.steps;
        require(n >= 1 && n <= 1000, name, ": ", n, " digits were asked for; expected 1 to 1000");
        require(T >= 2 * n && T <= 10'000'000, name, ": ", T, " steps were asked for; expected at least ", 2 * n,
                " for ", n, " digits and as many queries");
        require_known("task.markers", options.markers, std::vector<std::string>{"one", "distinct"});
        sequence_info info{.name = name, .steps = T, .observation = {1, 1, 1}, .targets = 1};
        info.tokens = symbols + (options.markers == "distinct" ? n : 0);
        info.classes = symbols;
        return info;
    }

    explicit copy_task(const task_options& options)
        : info_(describe(options)), items_(items_of(options)), distinct_(options.markers == "distinct") {}

    const sequence_info& info() const override { return info_; }

    void draw(const std::string& level, std::uint64_t seed, std::uint64_t index,
              const sequence_place& to) const override {
        require_known(info_.name + " level", level, info_.levels);
        philox random = sequence_stream(info_.name, level, seed, index);
        for (int t = 0; t < info_.steps; ++t) write(to, t, filler, filler, -1);
        std::vector<int> shown(static_cast<std::size_t>(items_));
        for (int j = 0; j < items_; ++j) {
            shown[static_cast<std::size_t>(j)] = first_digit + random.below(digits);
            write(to, j, shown[static_cast<std::size_t>(j)], filler, -1);
        }
        // Knuth's selection sampling: step t is taken with probability (queries left) / (steps left).
        int j = 0;
        for (int t = items_; j < items_; ++t) {
            const int steps_left = info_.steps - t, queries_left = items_ - j;
            const bool asks = Scattered ? random.below(steps_left) < queries_left : steps_left <= queries_left;
            if (!asks) continue;
            write(to, t, distinct_ ? symbols + j : marker, shown[static_cast<std::size_t>(j)], j);
            ++j;
        }
    }

private:
    static int items_of(const task_options& options) { return options.items == 0 ? 10 : options.items; }

    static void write(const sequence_place& to, int t, int token, int target, int origin) {
        if (to.observation) to.observation[t * to.rows] = static_cast<float>(token);
        if (to.target) to.target[t * to.rows] = static_cast<float>(target);
        if (to.weight) to.weight[t * to.rows] = 1;
        if (to.origin) to.origin[t] = origin;
        if (to.label) to.label[t] = token >= first_digit && token < symbols ? token - first_digit : -1;
        if (to.query) to.query[t] = origin >= 0;
    }

    sequence_info info_;
    int items_;
    bool distinct_;
};

}  // namespace engram
