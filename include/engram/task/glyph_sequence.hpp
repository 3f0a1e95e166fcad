#pragma once
// SPDX-License-Identifier: MIT

// One sequence of glyphs while it is put together: frames are either fresh, which means that their image has not been
// shown in this sequence, or repeat an earlier step. `origin` and `label` are then what they say without exception.

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "engram/core/error.hpp"
#include "engram/core/philox.hpp"
#include "engram/task/glyphs.hpp"
#include "engram/task/sequence.hpp"

namespace engram {

/// Whose images a level shows; an unknown level is a sentence.
inline split split_of(const sequence_info& info, const std::string& level) {
    require_known(info.name + " level", level, info.known_levels());
    return level == "train" ? split::train : split::holdout;
}

/// Both splits have at least `images`, so that fresh frames do not run out.
inline void require_glyphs(const glyph_set& glyphs, const sequence_info& info, int images) {
    require(glyphs.side() == info.observation.height, info.name, ": glyphs of ", glyphs.side(), " pixels, expected ",
            info.observation.height);
    for (const split s : {split::train, split::holdout})
        require(glyphs.count(s) >= images, info.name, ": a sequence shows up to ", images, " images, but the ",
                glyphs.source(), " set has ", glyphs.count(s), " to ", s == split::train ? "train on" : "hold out");
}

class glyph_sequence {
public:
    glyph_sequence(const glyph_set& glyphs, split from, philox random)
        : glyphs_(&glyphs), split_(from), random_(random) {}

    int size() const { return static_cast<int>(shown_.size()); }
    /// Class of what step t shows.
    int label(int t) const { return glyphs_->label(shown_[static_cast<std::size_t>(t)]); }
    /// Uniform in {0, ..., n - 1}.
    int below(int n) { return random_.below(n); }

    /// A step with an image that this sequence has not shown, uniform over the split.
    void fresh() {
        show(unseen(glyphs_->count(split_), [&](int i) { return glyphs_->first(split_) + i; }));
    }
    /// The same, uniform over a class.
    void fresh(int label) {
        const auto ids = glyphs_->of(split_, label);
        show(unseen(static_cast<int>(ids.size()), [&](int i) { return ids[static_cast<std::size_t>(i)]; }));
    }
    /// A step with a given image.
    void show(int id, int origin = -1) {
        shown_.push_back(id);
        origin_.push_back(origin);
    }
    /// A step with the image of step t.
    void repeat(int t) { show(shown_[static_cast<std::size_t>(t)], t); }

    /// Writes frames, origins and labels; no step has a supervised target, so a weight is 0.
    void write(const sequence_place& to) const {
        const std::ptrdiff_t frame = to.rows * glyphs_->image_size();
        for (int t = 0; t < size(); ++t) {
            if (to.observation) glyphs_->write(shown_[static_cast<std::size_t>(t)], to.observation + t * frame);
            if (to.weight) to.weight[t * to.rows] = 0;
            if (to.origin) to.origin[t] = origin_[static_cast<std::size_t>(t)];
            if (to.label) to.label[t] = label(t);
        }
    }

private:
    template <class Id>
    int unseen(int count, Id id_of) {
        for (;;) {
            const int id = id_of(random_.below(count));
            if (std::find(shown_.begin(), shown_.end(), id) == shown_.end()) return id;
        }
    }

    const glyph_set* glyphs_;
    split split_;
    philox random_;
    std::vector<int> shown_, origin_;  // [t]
};

}  // namespace engram
