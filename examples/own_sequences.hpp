#pragma once
// SPDX-License-Identifier: MIT

// Sequence data of one's own, outside the library: windows of a series that lies in a file. Every line of series.csv is
// "seen,wanted"; a model sees the first number of T rows, one a step, and answers the second. The first half of a
// window is for looking around, the answers of the second half count. Four fifths of the rows are trained on.

#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <engram/task/sequence.hpp>
#include <engram/task/sequence_stream.hpp>

namespace own {

// [sequences]
class csv_series final : public engram::sequence_source {
public:
    // What it looks like; asked for often, so the file is not read here.
    static engram::sequence_info describe(const engram::task_options& options) {
        engram::sequence_info info{.name = "csv_series",
                                   .steps = options.steps == 0 ? 40 : options.steps,  // --set task.steps=
                                   .observation = {1, 1, 1},
                                   .targets = 1};
        info.numbers = true;  // the target is a number, not a class: squared error
        return info;
    }

    explicit csv_series(const engram::task_options& options) : info_(describe(options)) {
        const std::string path = options.data + "/series.csv";  // --data
        std::ifstream file(path);
        engram::require(file.good(), path, ": cannot be read; name its folder with --data");
        for (std::string line; std::getline(file, line);) {
            float seen = 0, wanted = 0;
            char comma = 0;
            std::istringstream words(line);
            engram::require(words >> seen >> comma >> wanted && comma == ',', path, ", line ", rows_.size() + 1, ": '",
                            line, "', expected two numbers, seen,wanted");
            rows_.emplace_back(seen, wanted);
        }
        engram::require(info_.steps > 0 && size() >= 5 * info_.steps, path, ": ", size(), " rows, expected at least ",
                        5 * info_.steps, " for windows of ", info_.steps);
    }

    const engram::sequence_info& info() const override { return info_; }

    // Any thread, any order: what is drawn depends on level, seed and index alone.
    void draw(const std::string& level, std::uint64_t seed, std::uint64_t index,
              const engram::sequence_place& to) const override {
        engram::require_known("csv_series level", level, info_.levels);
        engram::philox random = engram::sequence_stream(info_.name, level, seed, index);
        const int trained = size() / 5 * 4, windows = (level == "train" ? trained : size() - trained) - info_.steps + 1;
        const int first = (level == "train" ? 0 : trained) + random.below(windows);
        for (int t = 0; t < info_.steps; ++t) {
            const auto [seen, wanted] = rows_[static_cast<std::size_t>(first + t)];
            const bool counts = 2 * t >= info_.steps;
            if (to.observation) to.observation[t * to.rows] = seen;  // one of B = to.rows sequences
            if (to.target) to.target[t * to.rows] = wanted;
            if (to.weight) to.weight[t * to.rows] = counts ? 1.0f : 0.0f;
            if (to.query) to.query[t] = counts;
            if (to.origin) to.origin[t] = -1;
            if (to.label) to.label[t] = -1;
        }
    }

private:
    int size() const { return static_cast<int>(rows_.size()); }

    engram::sequence_info info_;
    std::vector<std::pair<float, float>> rows_;
};
// [sequences]

}  // namespace own
