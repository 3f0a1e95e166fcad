#pragma once
// SPDX-License-Identifier: MIT

// GIF 89a, written only: pictures [height, width, 1 or 3] as an animation that repeats for ever, packed with the
// format's LZW. A frame holds just the rectangle in which it differs from the one before.
//
// GIF knows 256 colours. One palette serves all frames, found by median cut (Heckbert 1982) over colours that agree in
// their five highest bits: a box of colours, cut at the median of its longest side until there are 256, gives their
// mean. An animation of no more than 256 such colours, none of which share those bits, keeps every pixel exactly.

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engram/core/error.hpp"
#include "engram/io/file.hpp"
#include "engram/io/png.hpp"

namespace engram {

/// At most 256 colours, and which of them stands for a colour.
class gif_palette {
public:
    using colour = std::array<std::uint8_t, 3>;

    explicit gif_palette(std::span<const picture> frames) : index_(32768) {
        std::vector<cell> cells(32768);
        for (const auto& frame : frames)
            for (std::size_t i = 0; i < frame.pixels.size(); i += static_cast<std::size_t>(frame.channels))
                cells[key(pixel(frame, i))].add(pixel(frame, i));
        std::erase_if(cells, [](const cell& c) { return c.count == 0; });
        using range = std::pair<std::size_t, std::size_t>;
        std::vector<range> boxes{{0, cells.size()}};
        while (boxes.size() < 256) {
            // The box whose longest side weighs most: its length times how many pixels it stands for.
            std::size_t chosen = 0, axis = 0;
            double most = 0;
            for (std::size_t b = 0; b < boxes.size(); ++b) {
                double pixels = 0;
                for (auto c = boxes[b].first; c < boxes[b].second; ++c) pixels += static_cast<double>(cells[c].count);
                for (std::size_t d = 0; d < 3; ++d) {
                    const auto [low, high] =
                        std::minmax_element(cells.begin() + static_cast<std::ptrdiff_t>(boxes[b].first),
                                            cells.begin() + static_cast<std::ptrdiff_t>(boxes[b].second),
                                            [&](const cell& x, const cell& y) { return x.mean()[d] < y.mean()[d]; });
                    const double weight = pixels * (high->mean()[d] - low->mean()[d]);
                    if (weight > most) most = weight, chosen = b, axis = d;
                }
            }
            if (most == 0) break;
            const auto [first, last] = boxes[chosen];
            std::sort(cells.begin() + static_cast<std::ptrdiff_t>(first),
                      cells.begin() + static_cast<std::ptrdiff_t>(last), [&](const cell& x, const cell& y) {
                          const int a = x.mean()[axis], b = y.mean()[axis];
                          return a != b ? a < b : key(x.mean()) < key(y.mean());
                      });
            std::uint64_t all = 0, below = 0;
            for (auto c = first; c < last; ++c) all += cells[c].count;
            auto middle = first;
            while (2 * below < all) below += cells[middle++].count;
            middle = std::clamp(middle, first + 1, last - 1);
            boxes[chosen] = {first, middle};
            boxes.emplace_back(middle, last);
        }
        for (const auto& [first, last] : boxes) {
            cell together;
            for (auto c = first; c < last; ++c) {
                index_[key(cells[c].mean())] = static_cast<std::uint8_t>(colours_.size());
                together.add(cells[c]);
            }
            colours_.push_back(together.mean());
        }
    }

    const std::vector<colour>& colours() const { return colours_; }
    /// Of a colour of the frames that the palette was made for.
    std::uint8_t index(const colour& c) const { return index_[key(c)]; }

    static colour pixel(const picture& image, std::size_t at) {
        const std::uint8_t* p = image.pixels.data() + at;
        return image.channels == 3 ? colour{p[0], p[1], p[2]} : colour{p[0], p[0], p[0]};
    }

private:
    /// The colours that share their highest bits; their mean shares them too.
    struct cell {
        std::uint64_t count = 0;
        std::array<std::uint64_t, 3> sum{};
        void add(const colour& c) {
            ++count;
            for (std::size_t d = 0; d < 3; ++d) sum[d] += c[d];
        }
        void add(const cell& c) {
            count += c.count;
            for (std::size_t d = 0; d < 3; ++d) sum[d] += c.sum[d];
        }
        colour mean() const {
            colour m{};
            for (std::size_t d = 0; d < 3 && count > 0; ++d) m[d] = static_cast<std::uint8_t>(sum[d] / count);
            return m;
        }
    };
    static std::size_t key(const colour& c) {
        return std::size_t{c[0]} >> 3 << 10 | std::size_t{c[1]} >> 3 << 5 | std::size_t{c[2]} >> 3;
    }

    std::vector<std::uint8_t> index_;
    std::vector<colour> colours_;
};

/// The LZW codes of bytes: 9 to 12 bits each, lowest bit first, in blocks of at most 255 bytes with their lengths.
inline void append_gif_codes(bytes& out, std::span<const std::uint8_t> content) {
    constexpr int clear = 256, end = 257, most = 4096;
    bytes packed;
    std::uint32_t held = 0;
    int bits = 0, width = 9, next = end + 1;
    const auto put = [&](int code) {
        held |= static_cast<std::uint32_t>(code) << bits;
        for (bits += width; bits >= 8; bits -= 8, held >>= 8) packed.push_back(static_cast<std::uint8_t>(held));
    };
    // follow[code * 256 + byte]: the code of that word and one more byte; 0: there is none yet.
    std::vector<std::uint16_t> follow(std::size_t{most} * 256);
    const auto begin_anew = [&] {
        put(clear);
        std::fill(follow.begin(), follow.end(), std::uint16_t{0});
        width = 9;
        next = end + 1;
    };
    begin_anew();
    int word = content[0];
    for (const std::uint8_t byte : content.subspan(1)) {
        auto& longer = follow[static_cast<std::size_t>(word) * 256 + byte];
        if (longer != 0) {
            word = longer;
            continue;
        }
        put(word);
        if (next < most) {
            // The reader learns a word one code later, and so widens its codes one later.
            if (next == 1 << width) ++width;
            longer = static_cast<std::uint16_t>(next++);
        } else {
            begin_anew();
        }
        word = byte;
    }
    put(word);
    if (next < most && next == 1 << width) ++width;
    put(end);
    if (bits > 0) packed.push_back(static_cast<std::uint8_t>(held));
    out.push_back(8);  // bits of a byte
    for (std::size_t at = 0; at < packed.size(); at += 255) {
        const std::size_t size = std::min<std::size_t>(255, packed.size() - at);
        out.push_back(static_cast<std::uint8_t>(size));
        out.insert(out.end(), packed.begin() + static_cast<std::ptrdiff_t>(at),
                   packed.begin() + static_cast<std::ptrdiff_t>(at + size));
    }
    out.push_back(0);
}

/// Every frame is shown for `delay` hundredths of a second. All frames have the size and channels of the first.
inline bytes encode_gif(std::span<const picture> frames, int delay) {
    require(!frames.empty(), "gif: an animation needs at least one frame");
    require(delay >= 1 && delay <= 65535, "gif: a delay of ", delay, " hundredths of a second, expected 1 to 65535");
    const int height = frames[0].height, width = frames[0].width, channels = frames[0].channels;
    require(height >= 1 && height <= 65535 && width >= 1 && width <= 65535 && (channels == 1 || channels == 3),
            "gif: frames of ", height, " x ", width, " x ", channels,
            ", expected 1 to 65535 pixels and 1 or 3 channels");
    for (std::size_t f = 0; f < frames.size(); ++f) {
        const auto& frame = frames[f];
        require(frame.height == height && frame.width == width && frame.channels == channels, "gif: frame ", f, " is ",
                frame.height, " x ", frame.width, " x ", frame.channels, ", but the first is ", height, " x ", width,
                " x ", channels);
        const auto expected = static_cast<std::size_t>(height) * static_cast<std::size_t>(width * channels);
        require(frame.pixels.size() == expected, "gif: frame ", f, " has ", frame.pixels.size(), " bytes, expected ",
                expected);
    }
    const gif_palette palette(frames);

    bytes out;
    const auto text = [&](std::string_view t) { out.insert(out.end(), t.begin(), t.end()); };
    const auto small = [&](std::initializer_list<int> list) {
        for (const int x : list) out.push_back(static_cast<std::uint8_t>(x));
    };
    const auto little16 = [&](int x) { small({x & 255, x >> 8}); };
    text("GIF89a");
    little16(width);
    little16(height);
    small({0xF7, 0, 0});  // a palette of 256 colours follows
    for (std::size_t i = 0; i < 256; ++i)
        for (std::size_t d = 0; d < 3; ++d) out.push_back(i < palette.colours().size() ? palette.colours()[i][d] : 0);
    small({0x21, 0xFF, 11});
    text("NETSCAPE2.0");
    small({3, 1, 0, 0, 0});  // repeat for ever

    bytes shown, now(static_cast<std::size_t>(height) * static_cast<std::size_t>(width)), changed;
    for (const auto& frame : frames) {
        for (std::size_t i = 0; i < now.size(); ++i)
            now[i] = palette.index(gif_palette::pixel(frame, i * static_cast<std::size_t>(channels)));
        int top = 0, left = 0, bottom = height, right = width;
        if (!shown.empty()) {
            top = height, left = width, bottom = right = 0;
            for (int y = 0; y < height; ++y)
                for (int x = 0; x < width; ++x) {
                    const auto at =
                        static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x);
                    if (now[at] == shown[at]) continue;
                    top = std::min(top, y), bottom = std::max(bottom, y + 1);
                    left = std::min(left, x), right = std::max(right, x + 1);
                }
            if (bottom == 0) top = left = 0, bottom = right = 1;  // nothing changed: one pixel once more
        }
        small({0x21, 0xF9, 4, 1 << 2});  // what is drawn stays
        little16(delay);
        small({0, 0, 0x2C});
        little16(left);
        little16(top);
        little16(right - left);
        little16(bottom - top);
        small({0});
        changed.clear();
        for (int y = top; y < bottom; ++y) {
            const auto row = now.begin() + static_cast<std::ptrdiff_t>(y) * width;
            changed.insert(changed.end(), row + left, row + right);
        }
        append_gif_codes(out, changed);
        shown = now;
    }
    small({0x3B});
    return out;
}

/// Writes an animation; `delay` between frames in hundredths of a second.
inline void write_gif(const std::string& path, std::span<const picture> frames, int delay) {
    write_file(path, encode_gif(frames, delay));
}

}  // namespace engram
