#pragma once
// SPDX-License-Identifier: MIT

// Copying bits, the first task of the NTM and DNC papers: a start flag, n rows of 8 random bits, a delimiter, and then
// n steps without input at which the rows are to be given back in order. n is uniform on {1, ..., L}; L = `items`, 20
// by default. T = 2 L + 2; the steps after the last row given back are empty.
//
//   observation [8 bits, start flag, delimiter flag], target [8 bits], weight 1 at the n output steps and 0 elsewhere
//   t = 0: start;  1 .. n: rows;  n + 1: delimiter;  n + 2 .. 2 n + 1: outputs
//
// The frame of an output step is empty, so its `origin` is the step of the row that it gives back. `recall` is -1, as
// the first output step moves with n. Levels: `train`, and `length_<n>` for every n from 1 to L.

#include <array>
#include <string>

#include "engram/core/error.hpp"
#include "engram/core/philox.hpp"
#include "engram/task/environment.hpp"
#include "engram/task/sequence.hpp"
#include "engram/task/sequence_stream.hpp"

namespace engram {

class bit_copy final : public sequence_source {
public:
    static constexpr int bits = 8, columns = bits + 2;

    static constexpr std::array reads{"items"};
    static sequence_info describe(const task_options& options) {
        const int longest = longest_of(options);
        require(longest >= 1 && longest <= 1000, "bit_copy: ", longest, " items were asked for; expected 1 to 1000");
        sequence_info info{.name = "bit_copy",
                           .steps = 2 * longest + 2,
                           .observation = {1, columns, 1},
                           .targets = bits,
                           .levels = {"train"}};
        for (int n = 1; n <= longest; ++n) info.levels.push_back(level_of(n));
        return info;
    }

    explicit bit_copy(const task_options& options) : info_(describe(options)), longest_(longest_of(options)) {}

    const sequence_info& info() const override { return info_; }

    void draw(const std::string& level, std::uint64_t seed, std::uint64_t index,
              const sequence_place& to) const override {
        require_known("bit_copy level", level, info_.levels);
        philox random = sequence_stream(info_.name, level, seed, index);
        const int n = level == "train" ? 1 + random.below(longest_) : std::stoi(level.substr(level.find('_') + 1));
        for (int t = 0; t < info_.steps; ++t) write_empty(t, to);
        const auto flag = [&](int t, int column) {
            if (to.observation) to.observation[t * to.rows * columns + column] = 1;
        };
        flag(0, bits);
        flag(n + 1, bits + 1);
        for (int i = 0; i < n; ++i) {
            const int shown = 1 + i, asked = n + 2 + i;
            const std::uint32_t row = random.next();
            for (int b = 0; b < bits; ++b) {
                if (!(row >> b & 1u)) continue;
                flag(shown, b);
                if (to.target) to.target[asked * to.rows * bits + b] = 1;
            }
            if (to.weight) to.weight[asked * to.rows] = 1;
            if (to.origin) to.origin[asked] = shown;
        }
    }

private:
    static int longest_of(const task_options& options) { return options.items == 0 ? 20 : options.items; }
    static std::string level_of(int n) { return "length_" + std::to_string(n); }

    static void write_empty(int t, const sequence_place& to) {
        for (int c = 0; to.observation && c < columns; ++c) to.observation[t * to.rows * columns + c] = 0;
        for (int b = 0; to.target && b < bits; ++b) to.target[t * to.rows * bits + b] = 0;
        if (to.weight) to.weight[t * to.rows] = 0;
        if (to.origin) to.origin[t] = -1;
        if (to.label) to.label[t] = -1;
    }

    sequence_info info_;
    int longest_;
};

}  // namespace engram
