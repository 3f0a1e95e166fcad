#pragma once
// SPDX-License-Identifier: MIT

// Images that an agent has to remember: [count, side, side, 3] in [0, 1], train ids first, holdout ids after them.
// The two splits share no image, compared by pixels: a set is built through `stimulus_collector`, which refuses an
// image that it already holds.
//
// The built-in set is drawn, one Philox stream an image: two to four strokes, discs, rings and triangles in random
// colours on a light ground. As in the source (facts 2.2) even ids are trained on and odd ids are held out. Pixels are
// rounded to 1/255, so that they equal what a PNG of them holds.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engram/core/error.hpp"
#include "engram/core/philox.hpp"

namespace engram {

enum class split { train, holdout };

/// An immutable set of images, shared by all environments.
class stimulus_set {
public:
    stimulus_set(std::string source, int side, int train, std::vector<float> pixels)
        : source_(std::move(source)), side_(side), train_(train), pixels_(std::move(pixels)) {
        count_ = static_cast<int>(pixels_.size()) / image_shape();
    }

    const std::string& source() const { return source_; }
    int side() const { return side_; }
    int image_shape() const { return side_ * side_ * 3; }
    int size() const { return count_; }
    /// First id and number of ids of a split.
    int first(split s) const { return s == split::train ? 0 : train_; }
    int count(split s) const { return s == split::train ? train_ : count_ - train_; }
    std::span<const float> pixels() const { return pixels_; }
    std::span<const float> image(int id) const {
        require(id >= 0 && id < count_, "stimulus ", id, " does not exist; the ", source_, " set has ", count_);
        return std::span(pixels_).subspan(static_cast<std::size_t>(id) * static_cast<std::size_t>(image_shape()),
                                          static_cast<std::size_t>(image_shape()));
    }

private:
    std::string source_;
    int side_, train_, count_ = 0;
    std::vector<float> pixels_;
};

/// Gathers images of both splits and keeps them distinct.
class stimulus_collector {
public:
    explicit stimulus_collector(int side) : side_(side) {
        require(side >= 4 && side <= 256, "stimuli: a side of ", side, " pixels was asked for; expected 4 to 256");
    }

    int count(split s) const { return count_[index(s)]; }

    /// Rounds the image to 1/255 and keeps it, unless it is already there; says whether it was kept.
    bool add(split s, std::span<const float> image) {
        require(static_cast<int>(image.size()) == side_ * side_ * 3, "stimuli: an image of ", image.size(),
                " numbers, expected ", side_ * side_ * 3);
        std::string key(image.size(), '\0');
        std::transform(image.begin(), image.end(), key.begin(), [](float x) {
            return static_cast<char>(static_cast<unsigned char>(std::lround(std::clamp(x, 0.0f, 1.0f) * 255.0f)));
        });
        const auto [kept, fresh] = seen_.insert(std::move(key));
        if (!fresh) return false;
        for (const char c : *kept)
            pixels_[index(s)].push_back(static_cast<float>(static_cast<unsigned char>(c)) / 255.0f);
        ++count_[index(s)];
        return true;
    }

    stimulus_set finish(const std::string& source) && {
        auto& [train, holdout] = pixels_;
        train.insert(train.end(), holdout.begin(), holdout.end());
        return {source, side_, count_[0], std::move(train)};
    }

private:
    static std::size_t index(split s) { return s == split::train ? 0 : 1; }

    int side_;
    std::array<int, 2> count_{};
    std::array<std::vector<float>, 2> pixels_;
    std::unordered_set<std::string> seen_;
};

/// One drawing on the unit square, painted pixel by pixel from signed distances (negative inside).
class drawing {
public:
    drawing(int side, philox random)
        : side_(side), random_(random), pixels_(static_cast<std::size_t>(side * side * 3)) {
        const std::array<float, 3> ground{between(0.8f, 1), between(0.8f, 1), between(0.8f, 1)};
        for (std::size_t i = 0; i < pixels_.size(); ++i) pixels_[i] = ground[i % 3];
        const int parts = 2 + random_.below(3);
        for (int i = 0; i < parts; ++i) paint_part();
    }
    std::span<const float> pixels() const { return pixels_; }

private:
    struct point {
        float x, y;
    };

    float between(float low, float high) { return low + (high - low) * random_.uniform(); }
    point anywhere() {
        const float x = between(0.08f, 0.92f);
        return {x, between(0.08f, 0.92f)};
    }

    static float to_segment(point p, point a, point b) {
        const point ab{b.x - a.x, b.y - a.y}, ap{p.x - a.x, p.y - a.y};
        const float length = ab.x * ab.x + ab.y * ab.y + 1e-12f;
        const float t = std::clamp((ap.x * ab.x + ap.y * ab.y) / length, 0.0f, 1.0f);
        return std::hypot(ap.x - t * ab.x, ap.y - t * ab.y);
    }

    void paint_part() {
        // One channel bright, one dark, one between, in random order: saturated colours, all unlike the ground.
        std::array<float, 3> colour{between(0.6f, 1), between(0, 0.25f), between(0, 0.9f)};
        std::swap(colour[2], colour[static_cast<std::size_t>(random_.below(3))]);
        std::swap(colour[1], colour[static_cast<std::size_t>(random_.below(2))]);
        const point a = anywhere(), b = anywhere(), c = anywhere();
        const float thick = between(0.04f, 0.09f), radius = between(0.1f, 0.3f);
        switch (random_.below(5)) {
            case 0:  // a curve: quadratic Bezier arc in eight pieces
                paint(colour, [&](point p) {
                    float nearest = 2;
                    point from = a;
                    for (int i = 1; i <= 8; ++i) {
                        const float t = static_cast<float>(i) / 8, s = 1 - t;
                        const point to{s * s * a.x + 2 * s * t * b.x + t * t * c.x,
                                       s * s * a.y + 2 * s * t * b.y + t * t * c.y};
                        nearest = std::min(nearest, to_segment(p, from, to));
                        from = to;
                    }
                    return nearest - thick;
                });
                break;
            case 1:  // an angle
                paint(colour, [&](point p) { return std::min(to_segment(p, a, b), to_segment(p, b, c)) - thick; });
                break;
            case 2:  // a disc
                paint(colour, [&](point p) { return std::hypot(p.x - a.x, p.y - a.y) - radius; });
                break;
            case 3:  // a ring
                paint(colour, [&](point p) { return std::abs(std::hypot(p.x - a.x, p.y - a.y) - radius) - thick; });
                break;
            default:  // a triangle
                paint(colour, [&](point p) {
                    const auto side_of = [&](point u, point v) {
                        return ((v.x - u.x) * (p.y - u.y) - (v.y - u.y) * (p.x - u.x)) /
                               (std::hypot(v.x - u.x, v.y - u.y) + 1e-6f);
                    };
                    const float turn = (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x) > 0 ? 1.0f : -1.0f;
                    return -std::min({turn * side_of(a, b), turn * side_of(b, c), turn * side_of(c, a)}) - 0.5f * thick;
                });
        }
    }

    template <class Distance>
    void paint(const std::array<float, 3>& colour, Distance distance) {
        const float pixel = 1.0f / static_cast<float>(side_);
        for (int y = 0; y < side_; ++y)
            for (int x = 0; x < side_; ++x) {
                const point centre{(static_cast<float>(x) + 0.5f) * pixel, (static_cast<float>(y) + 0.5f) * pixel};
                const float cover = std::clamp(0.5f - distance(centre) / pixel, 0.0f, 1.0f);
                float* out = pixels_.data() + (y * side_ + x) * 3;
                for (std::size_t c = 0; c < 3; ++c) out[c] += cover * (colour[c] - out[c]);
            }
    }

    int side_;
    philox random_;
    std::vector<float> pixels_;
};

/// `count` drawings for each split, the same for every caller with the same side and seed.
inline stimulus_set builtin_stimuli(int count = 1200, int side = 12, std::uint64_t seed = 0) {
    require(count >= 1, "stimuli: the built-in set was asked for ", count, " images a split; expected at least 1");
    stimulus_collector images(side);
    for (std::uint32_t id = 0; images.count(split::train) < count || images.count(split::holdout) < count; ++id) {
        const split s = id % 2 == 0 ? split::train : split::holdout;
        if (images.count(s) < count) images.add(s, drawing(side, philox(seed, stream_id("stimulus", id))).pixels());
    }
    return std::move(images).finish("builtin");
}

}  // namespace engram
