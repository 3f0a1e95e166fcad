#pragma once
// SPDX-License-Identifier: MIT

// The rows of a batch, each somewhere in an episode of its own, for learners that go through sequences piece by piece.
//
// A row plays one episode after the other: row b of a batch of B the sequences b, B + b, 2 B + b, ... of the seed,
// whatever rows other threads hold. A piece is the next n steps, or what is left of the episode; the piece after its
// last step begins the next episode. A checkpoint keeps where each row stands and draws the sequences again.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <engram/graph/program.hpp>
#include <engram/task/sequence.hpp>

namespace engram {

class sequence_rows {
public:
    /// Rows first_row ... first_row + rows - 1 of a batch of `total`.
    sequence_rows(std::shared_ptr<const sequence_source> source, std::string level, std::uint64_t seed, int rows,
                  int first_row, int total)
        : source_(std::move(source)),
          level_(std::move(level)),
          seed_(seed),
          rows_(rows),
          first_row_(first_row),
          total_(total),
          place_(static_cast<std::size_t>(3 * rows)),
          drawn_(static_cast<std::size_t>(rows), 0) {
        const auto& info = source_->info();
        const auto cells = static_cast<std::size_t>(info.steps) * static_cast<std::size_t>(rows);
        observation_.resize(cells * static_cast<std::size_t>(info.observation.size()));
        target_.resize(cells * static_cast<std::size_t>(info.targets));
        weight_.resize(cells);
        query_.assign(cells, -1);
    }

    int rows() const { return rows_; }
    const sequence_info& info() const { return source_->info(); }
    /// Of row b: the next step, the steps of its episode, and the episodes before it.
    std::int64_t position(int b) const { return place_[at(3 * b)]; }
    int length(int b) const { return static_cast<int>(place_[at(3 * b + 1)]); }
    std::int64_t episode(int b) const { return place_[at(3 * b + 2)]; }
    /// Steps of row b in a piece of n.
    int left(int b, int n) const { return std::min<int>(n, length(b) - static_cast<int>(position(b))); }

    /// Draws the episodes of the rows that begin one; true when there are any.
    bool draw() {
        bool any = false;
        for (int b = 0; b < rows_; ++b) {
            any |= position(b) == 0;
            if (!drawn_[at(b)]) draw(b);
        }
        return any;
    }
    /// Behind the piece of n steps.
    void advance(int n) {
        for (int b = 0; b < rows_; ++b) {
            place_[at(3 * b)] += left(b, n);
            if (position(b) < length(b)) continue;
            place_[at(3 * b)] = 0;
            ++place_[at(3 * b + 2)];
            drawn_[at(b)] = 0;
        }
    }
    /// Other episodes for all rows, from the `first` of them on.
    void restart(const std::string& level, std::uint64_t seed, std::int64_t first) {
        level_ = level;
        seed_ = seed;
        for (int b = 0; b < rows_; ++b) {
            place_[at(3 * b)] = 0;
            place_[at(3 * b + 2)] = first;
            drawn_[at(b)] = 0;
        }
    }

    /// Of step k of row b.
    const float* observation(int b, int k) const {
        return observation_.data() + cell(b, k) * size(info().observation.size());
    }
    const float* target(int b, int k) const { return target_.data() + cell(b, k) * size(info().targets); }
    float weight(int b, int k) const { return weight_[cell(b, k)]; }
    /// Whether a step of the next piece of n has a target.
    bool asks(int n) const {
        for (int b = 0; b < rows_; ++b)
            for (int k = static_cast<int>(position(b)), end = k + left(b, n); k < end; ++k)
                if (weight(b, k) != 0) return true;
        return false;
    }
    /// Whether its answer is judged.
    bool judged(int b, int k) const {
        const int query = query_[cell(b, k)];
        return query < 0 ? weight(b, k) != 0 : query > 0;
    }

    /// The piece of n steps as a program's inputs "observation" and "reset", and "target" and "weight" where it has
    /// them. What is behind an episode's end is zero.
    template <class Backend>
    void fill(program<Backend>& p, int n) const {
        fill(p, n, [this](int b) { return static_cast<int>(position(b)); });
    }
    /// The same of the piece that begins at first(b) in row b.
    template <class Backend, class First>
    void fill(program<Backend>& p, int n, First first) const {
        using real = typename Backend::real;
        const auto copy = [&](const char* name, int width, auto from) {
            if (!p.has_input(name)) return;
            const auto to = p.input(name);
            require(to.size() == size(n) * size(rows_) * size(width), info().name, ": '", name, "' has ", width,
                    " columns, the model expects ", to.size() / (size(n) * size(rows_)));
            for (int j = 0; j < n; ++j)
                for (int b = 0; b < rows_; ++b) {
                    real* row = to.data() + (size(j) * size(rows_) + size(b)) * size(width);
                    const int k = first(b) + j;
                    if (k >= length(b)) {
                        std::fill_n(row, width, real(0));
                        continue;
                    }
                    const float* numbers = from(b, k);
                    for (int f = 0; f < width; ++f) row[f] = static_cast<real>(numbers[f]);
                }
        };
        copy("observation", info().observation.size(), [this](int b, int k) { return observation(b, k); });
        copy("target", info().targets, [this](int b, int k) { return target(b, k); });
        copy("weight", 1, [this](int b, int k) { return weight_.data() + cell(b, k); });
        if (!p.has_input("reset")) return;
        const auto reset = p.input("reset");
        std::fill(reset.begin(), reset.end(), real(0));
        for (int b = 0; b < rows_; ++b) reset[at(b)] = first(b) == 0 ? real(1) : real(0);
    }

    /// Where the rows stand, for checkpoints; loading draws the episodes that are under way again. The others are drawn
    /// when they begin: what a source gives may depend on the time.
    std::span<std::int64_t> places() { return place_; }
    void redraw() {
        std::fill(drawn_.begin(), drawn_.end(), char{0});
        for (int b = 0; b < rows_; ++b)
            if (position(b) > 0) draw(b);
    }

private:
    static std::size_t at(int i) { return static_cast<std::size_t>(i); }
    static std::size_t size(int n) { return static_cast<std::size_t>(n); }
    std::size_t cell(int b, int k) const { return size(k) * size(rows_) + size(b); }
    void draw(int b) {
        const auto index = static_cast<std::uint64_t>(episode(b) * total_ + first_row_ + b);
        put(b, index);
        place_[at(3 * b + 1)] = source_->length(level_, seed_, index);
        require(length(b) > 0 && length(b) <= info().steps, info().name, ": a sequence of ", length(b),
                " steps, expected 1 to ", info().steps);
        drawn_[at(b)] = 1;
    }
    void put(int b, std::uint64_t index) {
        const auto put_at = [&](std::vector<float>& v, int width) {
            return v.empty() ? nullptr : v.data() + size(b) * size(width);
        };
        std::vector<int> query(size(info().steps), -1);
        source_->draw(level_, seed_, index,
                      {.observation = put_at(observation_, info().observation.size()),
                       .target = put_at(target_, info().targets),
                       .weight = put_at(weight_, 1),
                       .rows = rows_,
                       .query = query.data()});
        for (int k = 0; k < info().steps; ++k) query_[cell(b, k)] = query[at(k)];
    }

    std::shared_ptr<const sequence_source> source_;
    std::string level_;
    std::uint64_t seed_;
    int rows_, first_row_, total_;
    std::vector<std::int64_t> place_;  // [B, 3]: position, length, episode
    std::vector<char> drawn_;
    std::vector<float> observation_, target_, weight_;  // [T, B, .]
    std::vector<int> query_;                            // [T, B]
};

}  // namespace engram
