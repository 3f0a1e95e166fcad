#pragma once
// SPDX-License-Identifier: MIT

// Labelled grey images for sequence tasks: [count, side, side] in [0, 1], ink = 1, train ids first, holdout ids after
// them. Pixels are kept as bytes (60000 digits of 28 x 28 are 47 MB) and become numbers when a frame is written.
//
// A set is built through `glyph_collector`, which drops an image that it already holds: the two splits share no image,
// compared by pixels, and two ids never look the same.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engram/core/error.hpp"
#include "engram/task/stimulus.hpp"

namespace engram {

/// An immutable set of labelled images, shared by all sequences. Labels are 0 to classes - 1.
class glyph_set {
public:
    const std::string& source() const { return source_; }
    int side() const { return side_; }
    int classes() const { return classes_; }
    int image_size() const { return side_ * side_; }
    int size() const { return static_cast<int>(labels_.size()); }
    /// First id and number of ids of a split.
    int first(split s) const { return s == split::train ? 0 : train_; }
    int count(split s) const { return s == split::train ? train_ : size() - train_; }

    int label(int id) const { return labels_[checked(id)]; }
    /// 255 = ink.
    std::span<const std::uint8_t> image(int id) const {
        const auto n = static_cast<std::size_t>(image_size());
        return std::span(pixels_).subspan(checked(id) * n, n);
    }
    /// The ids of a class in a split, ascending; empty for a class that the split does not show.
    std::span<const int> of(split s, int label) const {
        require(label >= 0 && label < classes_, "glyph class ", label, " does not exist; the ", source_, " set has ",
                classes_);
        return members_[static_cast<std::size_t>(2 * label + (s == split::train ? 0 : 1))];
    }
    /// Writes image_size() numbers in [0, 1].
    void write(int id, float* to) const {
        for (const std::uint8_t ink : image(id)) *to++ = static_cast<float>(ink) / 255.0f;
    }

private:
    friend class glyph_collector;
    glyph_set() = default;

    std::size_t checked(int id) const {
        require(id >= 0 && id < size(), "glyph ", id, " does not exist; the ", source_, " set has ", size());
        return static_cast<std::size_t>(id);
    }

    std::string source_;
    int side_ = 0, classes_ = 0, train_ = 0;
    std::vector<std::uint8_t> pixels_;       // [size, side, side]
    std::vector<int> labels_;                // [size]
    std::vector<std::vector<int>> members_;  // [classes, 2]: ids
};

/// Gathers labelled images of both splits and keeps them distinct.
class glyph_collector {
public:
    glyph_collector(int side, int classes) : side_(side), classes_(classes) {
        require(side >= 4 && side <= 256, "glyphs: a side of ", side, " pixels was asked for; expected 4 to 256");
        require(classes >= 1, "glyphs: ", classes, " classes, expected at least 1");
    }

    void reserve(split s, int count) {
        pixels_[index(s)].reserve(static_cast<std::size_t>(count) * image_size());
        labels_[index(s)].reserve(static_cast<std::size_t>(count));
    }

    void add(split s, int label, std::span<const std::uint8_t> image) {
        require(image.size() == image_size(), "glyphs: an image of ", image.size(), " pixels, expected ", image_size());
        require(label >= 0 && label < classes_, "glyphs: class ", label, ", expected 0 to ", classes_ - 1);
        pixels_[index(s)].insert(pixels_[index(s)].end(), image.begin(), image.end());
        labels_[index(s)].push_back(label);
    }

    /// The set of what was added; of equal images the first stays, and a train image stays before a holdout image.
    glyph_set finish(std::string source) && {
        std::array<std::vector<bool>, 2> fresh;
        {
            std::unordered_set<std::string_view> seen;
            seen.reserve(labels_[0].size() + labels_[1].size());
            for (std::size_t s = 0; s < 2; ++s)
                for (std::size_t i = 0; i < labels_[s].size(); ++i)
                    fresh[s].push_back(
                        seen.emplace(reinterpret_cast<const char*>(pixels_[s].data() + i * image_size()), image_size())
                            .second);
        }
        for (std::size_t s = 0; s < 2; ++s) drop_unless(fresh[s], s);

        glyph_set set;
        set.source_ = std::move(source);
        set.side_ = side_;
        set.classes_ = classes_;
        set.train_ = static_cast<int>(labels_[0].size());
        set.pixels_ = std::move(pixels_[0]);
        set.pixels_.insert(set.pixels_.end(), pixels_[1].begin(), pixels_[1].end());
        set.labels_ = std::move(labels_[0]);
        set.labels_.insert(set.labels_.end(), labels_[1].begin(), labels_[1].end());
        set.members_.resize(2 * static_cast<std::size_t>(classes_));
        for (int id = 0; id < set.size(); ++id)
            set.members_[static_cast<std::size_t>(2 * set.label(id) + (id < set.train_ ? 0 : 1))].push_back(id);
        return set;
    }

private:
    static std::size_t index(split s) { return s == split::train ? 0 : 1; }
    std::size_t image_size() const { return static_cast<std::size_t>(side_) * static_cast<std::size_t>(side_); }

    void drop_unless(const std::vector<bool>& keep, std::size_t s) {
        const auto offset = [&](std::size_t i) { return static_cast<std::ptrdiff_t>(i * image_size()); };
        std::size_t kept = 0;
        for (std::size_t i = 0; i < keep.size(); ++i) {
            if (!keep[i]) continue;
            if (kept != i) {
                const auto from = pixels_[s].begin();
                std::copy(from + offset(i), from + offset(i + 1), from + offset(kept));
                labels_[s][kept] = labels_[s][i];
            }
            ++kept;
        }
        pixels_[s].resize(kept * image_size());
        labels_[s].resize(kept);
    }

    int side_, classes_;
    std::array<std::vector<std::uint8_t>, 2> pixels_;
    std::array<std::vector<int>, 2> labels_;
};

}  // namespace engram
