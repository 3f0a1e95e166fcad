#pragma once
// SPDX-License-Identifier: MIT

// Glyphs drawn with a pen, for sequence tasks without data: ten digits from templates, and characters of invented
// alphabets, each made of random strokes from its own Philox stream. Drawings are numbered, one stream each, and are
// the same for every caller with the same side and seed.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "engram/core/philox.hpp"
#include "engram/task/glyphs.hpp"
#include "engram/task/strokes.hpp"

namespace engram {

/// How a digit is written: strokes of points `xxyy` in hundredths of the side, smooth where they begin with `~`.
inline stroke_figure digit_figure(int digit) {
    static constexpr std::array<std::string_view, 10> written{
        "~ 5012 3324 2750 3377 5088 6777 7350 6724 5012",
        "| 3827 5312 5188",
        "~ 2730 3416 5212 6820 6937 5656 4072 2587 | 2587 7686",
        "~ 2820 4612 6518 6734 5745 4348 ~ 4348 6352 7366 6682 4788 2780",
        "| 5412 2560 7760 | 6336 6089",
        "| 7113 3613 3246 ~ 3246 5141 6951 7170 5786 3887 2680",
        "~ 6312 4526 3348 3070 4187 5986 6971 6256 4654 3265",
        "| 2614 7414 4488",
        "~ 5148 3536 3520 5112 6720 6636 5148 3363 3380 5088 6880 6863 5148",
        "~ 6830 5714 4014 3130 3946 5645 6830 6752 6272 5489"};
    stroke_figure figure;
    const std::string_view text = written[static_cast<std::size_t>(digit)];
    for (std::size_t i = 0; i < text.size(); i += 2) {
        if (text[i] == '~' || text[i] == '|') {
            figure.push_back({text[i] == '~', {}});
            continue;
        }
        const auto two = [&](std::size_t at) {
            return static_cast<float>(10 * (text[at] - '0') + text[at + 1] - '0') / 100;
        };
        figure.back().points.push_back({two(i), two(i + 2)});
        i += 3;
    }
    return figure;
}

/// A character of an invented alphabet: two to four strokes between places of a 3 x 3 grid, bars, corners, arcs and
/// loops, that do not run along one another. An alphabet has its own liking for each kind of stroke and for many
/// strokes, drawn from its own stream, so that its characters look akin.
inline stroke_figure invented_character(std::uint64_t seed, int alphabet, int character) {
    philox style(seed, stream_id("invented alphabet", static_cast<std::uint32_t>(alphabet)));
    std::array<float, 4> liking;  // bar, corner, arc, loop
    for (auto& each : liking) each = 0.15f + style.uniform();
    liking[3] *= 0.5f;
    const int fewest = 2 + style.below(2);

    philox random(seed, stream_id("invented character", static_cast<std::uint32_t>(alphabet * 4096 + character)));
    const auto around = [&](float middle, float spread) { return middle + spread * (2 * random.uniform() - 1); };
    const auto place = [&] {
        const float x = around(0.16f + 0.34f * static_cast<float>(random.below(3)), 0.05f);
        return stroke_point{x, around(0.16f + 0.34f * static_cast<float>(random.below(3)), 0.05f)};
    };
    const auto apart = [](stroke_point a, stroke_point b) { return std::hypot(a.x - b.x, a.y - b.y); };
    const auto place_off = [&](stroke_point from) {
        stroke_point to = place();
        while (apart(from, to) < 0.25f) to = place();
        return to;
    };
    const auto any_stroke = [&](stroke_point from) {
        float pick = random.uniform() * (liking[0] + liking[1] + liking[2] + liking[3]);
        std::size_t kind = 0;
        while (kind < 3 && pick >= liking[kind]) pick -= liking[kind++];
        if (kind == 3) {  // round a centre that lies well inside
            const stroke_point centre{around(0.5f, 0.22f), around(0.5f, 0.22f)};
            const float across = around(0.2f, 0.06f), down = around(0.2f, 0.06f);
            stroke loop{true, {}};
            for (int i = 0; i <= 8; ++i) {
                const float angle = 0.785398f * static_cast<float>(i);
                loop.points.push_back({centre.x + across * std::cos(angle), centre.y + down * std::sin(angle)});
            }
            return loop;
        }
        const stroke_point next = place_off(from);
        if (kind == 0) return stroke{false, {from, next}};
        return stroke{kind == 2, {from, next, place_off(next)}};
    };

    stroke_figure figure;
    std::vector<stroke_point> inked;  // points along what is drawn, at most 0.04 apart
    const int strokes = fewest + random.below(5 - fewest);
    for (int tried = 0; static_cast<int>(figure.size()) < strokes && tried < 40; ++tried) {
        // Two strokes of three begin on what is already there, as letters hang together.
        stroke_point from = place();
        if (!inked.empty() && random.below(3) > 0)
            from = inked[static_cast<std::size_t>(random.below(static_cast<int>(inked.size())))];
        stroke next = any_stroke(from);
        std::vector<stroke_point> along;
        const auto path = next.path();
        for (std::size_t i = 0; i + 1 < path.size(); ++i) {
            const int pieces = 1 + static_cast<int>(apart(path[i], path[i + 1]) / 0.04f);
            for (int k = 0; k < pieces; ++k) {
                const float t = static_cast<float>(k) / static_cast<float>(pieces);
                along.push_back(
                    {path[i].x + t * (path[i + 1].x - path[i].x), path[i].y + t * (path[i + 1].y - path[i].y)});
            }
        }
        const auto crowded = std::count_if(along.begin(), along.end(), [&](stroke_point p) {
            return std::any_of(inked.begin(), inked.end(), [&](stroke_point q) { return apart(p, q) < 0.13f; });
        });
        if (3 * crowded > static_cast<std::ptrdiff_t>(along.size())) continue;
        inked.insert(inked.end(), along.begin(), along.end());
        figure.push_back(std::move(next));
    }

    // In the middle of the square, its longer side 0.74, but not enlarged by more than a half.
    stroke_point low{2, 2}, high{-2, -2};
    for (const auto p : inked) {
        low = {std::min(low.x, p.x), std::min(low.y, p.y)};
        high = {std::max(high.x, p.x), std::max(high.y, p.y)};
    }
    const float scale = std::min(0.74f / std::max({high.x - low.x, high.y - low.y, 0.1f}), 1.5f);
    for (auto& each : figure)
        for (auto& p : each.points)
            p = {0.5f + scale * (p.x - 0.5f * (low.x + high.x)), 0.5f + scale * (p.y - 0.5f * (low.y + high.y))};
    return figure;
}

/// Ten classes of digits: `train` and `holdout` drawings of each.
inline glyph_set builtin_digits(int side, int train = 1000, int holdout = 200, std::uint64_t seed = 0) {
    glyph_collector glyphs(side, 10);
    for (int digit = 0; digit < 10; ++digit) {
        const auto figure = digit_figure(digit);
        for (const split s : {split::train, split::holdout})
            for (int i = 0; i < (s == split::train ? train : holdout); ++i) {
                const int drawing = 20 * i + 2 * digit + (s == split::train ? 0 : 1);
                glyphs.add(s, digit,
                           draw_strokes(figure, side,
                                        philox(seed, stream_id("drawn digit", static_cast<std::uint32_t>(drawing)))));
            }
    }
    return std::move(glyphs).finish("builtin");
}

/// Characters of invented alphabets, 20 an alphabet and 20 drawings a character as in Omniglot. Of each alphabet the
/// last `held_out` characters make the holdout split: their order says nothing.
inline glyph_set builtin_characters(int side, int alphabets = 50, int held_out = 3, std::uint64_t seed = 0) {
    constexpr int characters = 20, drawings = 20;
    glyph_collector glyphs(side, alphabets * characters);
    for (int alphabet = 0; alphabet < alphabets; ++alphabet)
        for (int character = 0; character < characters; ++character) {
            const auto figure = invented_character(seed, alphabet, character);
            const int label = alphabet * characters + character;
            for (int i = 0; i < drawings; ++i)
                glyphs.add(character < characters - held_out ? split::train : split::holdout, label,
                           draw_strokes(figure, side,
                                        philox(seed, stream_id("drawn character",
                                                               static_cast<std::uint32_t>(label * drawings + i))),
                                        0.036f));
        }
    return std::move(glyphs).finish("builtin");
}

}  // namespace engram
