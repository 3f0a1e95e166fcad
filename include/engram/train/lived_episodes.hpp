#pragma once
// SPDX-License-Identifier: MIT

// Episodes that an agent has lived through, read from a replay, in the layout of random play
// (task/played_episodes.hpp): sequences for a memory that learns while its agent acts.
//
// Whoever asks for the `index`-th one gets an episode drawn uniformly from those that the replay holds from their first
// step to their last at that time. Row index % rows keeps what it got until it asks for the next one, and so does a
// checkpoint: what is drawn depends on the past of the run, not on the seed and the index alone.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <engram/core/error.hpp>
#include <engram/core/philox.hpp>
#include <engram/task/sequence.hpp>
#include <engram/train/replay.hpp>

namespace engram {

template <class Real>
class lived_episodes final : public sequence_source {
public:
    /// `info` of the random play of the same task. The replay is held, not copied; `discount` of the returns.
    lived_episodes(const replay<Real>& lived, sequence_info info, int rows, double discount)
        : lived_(&lived), info_(std::move(info)), discount_(discount), kept_(static_cast<std::size_t>(rows)) {
        require(lived.steps() > info_.steps, "phases.detector.replay.capacity: of every environment ",
                lived.steps() - 1, " steps are kept, but an episode of ", info_.name, " has up to ", info_.steps,
                "; a memory that learns while its agent acts expects room for one");
        observation_.resize(kept_.size() * steps() * width());
        target_.resize(kept_.size() * steps());
    }

    const sequence_info& info() const override { return info_; }

    /// Looks for whole episodes; to be called when the replay has grown. True when there are any.
    bool look() {
        whole_.clear();
        std::vector<std::int64_t> begun(static_cast<std::size_t>(lived_->rows()), -1);
        for (std::int64_t t = lived_->oldest(); t < lived_->pushed(); ++t)
            for (int b = 0; b < lived_->rows(); ++b) {
                auto& first = begun[static_cast<std::size_t>(b)];
                const auto now = lived_->at(t, b);
                if (now.last_action < 0) first = t;
                if (now.done && first >= 0) whole_.push_back({first, static_cast<int>(t - first + 1), b});
            }
        return !whole_.empty();
    }

    // Rows differ, so threads may call these at the same time.
    void draw(const std::string&, std::uint64_t seed, std::uint64_t index, const sequence_place& to) const override {
        const std::size_t row = keep(seed, index);
        const auto F = static_cast<std::ptrdiff_t>(width());
        for (std::size_t t = 0; t < steps(); ++t) {
            const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(t) * to.rows;
            const std::size_t from = row * steps() + t;
            const bool there = static_cast<std::int64_t>(t) < kept_[row].length;
            if (to.observation) std::copy_n(observation_.data() + from * width(), F, to.observation + at * F);
            if (to.target) to.target[at] = target_[from];
            if (to.weight) to.weight[at] = there ? 1.0f : 0.0f;
            if (to.origin) to.origin[t] = -1;
            if (to.label) to.label[t] = -1;
        }
    }
    int length(const std::string&, std::uint64_t seed, std::uint64_t index) const override {
        return static_cast<int>(kept_[keep(seed, index)].length);
    }

    /// What a checkpoint keeps besides the replay.
    template <class Body>
    void each_part(Body body) {
        body("lived.kept", std::as_writable_bytes(std::span(kept_)));
        body("lived.observation", std::as_writable_bytes(std::span(observation_)));
        body("lived.target", std::as_writable_bytes(std::span(target_)));
    }
    /// body(bytes) of the same of the rows first ... last - 1.
    template <class Body>
    void each_row_part(int first, int last, Body body) {
        const auto rows = [&](auto& all, std::size_t each) {
            body(std::as_writable_bytes(std::span(all).subspan(static_cast<std::size_t>(first) * each,
                                                               static_cast<std::size_t>(last - first) * each)));
        };
        rows(kept_, 1), rows(observation_, steps() * width()), rows(target_, steps());
    }

private:
    struct episode {
        std::int64_t first;
        int length, row;
    };
    struct kept {
        std::int64_t index = -1, length = 0;
    };

    std::size_t steps() const { return static_cast<std::size_t>(info_.steps); }
    std::size_t width() const { return static_cast<std::size_t>(info_.observation.size()); }

    /// The row that has this episode now.
    std::size_t keep(std::uint64_t seed, std::uint64_t index) const {
        const std::size_t row = index % kept_.size();
        kept& k = kept_[row];
        if (k.index == static_cast<std::int64_t>(index)) return row;
        require(!whole_.empty(), info_.name, ": no whole episode has been lived through yet");
        philox random(seed, stream_id("lived episode", 0) + index);
        const episode& e = whole_[static_cast<std::size_t>(random.below(static_cast<int>(whole_.size())))];
        k = {static_cast<std::int64_t>(index), e.length};
        float* o = observation_.data() + row * steps() * width();
        std::fill_n(o, steps() * width(), 0.0f);
        std::fill_n(target_.data() + row * steps(), steps(), 0.0f);
        const int seen = lived_->width(), actions = (info_.observation.size() - seen) / 2;
        const bool with_reward = info_.observation.size() > seen + 2 * actions;
        double sum = 0;
        for (int t = e.length - 1; t >= 0; --t) {
            const auto now = lived_->at(e.first + t, e.row);
            float* to = o + static_cast<std::size_t>(t) * width();
            lived_->observe(e.first + t, e.row, to);
            if (now.last_action >= 0) to[seen + now.last_action] = 1;
            to[seen + actions + now.action] = 1;
            if (with_reward && t > 0)
                to[seen + 2 * actions] = static_cast<float>(lived_->at(e.first + t - 1, e.row).reward);
            sum = static_cast<double>(now.reward) + discount_ * sum;
            target_[row * steps() + static_cast<std::size_t>(t)] = static_cast<float>(sum);
        }
        return row;
    }

    const replay<Real>* lived_;
    sequence_info info_;
    double discount_;
    std::vector<episode> whole_;  // in the replay, in order of their last step
    mutable std::vector<kept> kept_;
    mutable std::vector<float> observation_, target_;  // [rows, T, .]
};

}  // namespace engram
