// SPDX-License-Identifier: MIT
#include "engram/io/gif.hpp"

#include <doctest/doctest.h>

#include <set>

#include "engram/core/philox.hpp"
#include "temporary.hpp"

using namespace engram;

namespace {

/// The words that LZW codes stand for, as the format defines it: the reader knows a code's word from the code before.
bytes decode_lzw(const bytes& packed, int start_bits) {
    bytes out;
    const int clear = 1 << start_bits, end = clear + 1;
    std::vector<bytes> words;
    int width = start_bits + 1;
    bytes before;
    std::size_t at = 0;
    for (;;) {
        int code = 0;
        for (int b = 0; b < width; ++b, ++at) {
            REQUIRE(at / 8 < packed.size());
            code |= (packed[at / 8] >> (at % 8) & 1) << b;
        }
        if (code == end) break;
        if (code == clear) {
            words.assign(static_cast<std::size_t>(end) + 1, {});
            for (int i = 0; i < clear; ++i) words[static_cast<std::size_t>(i)] = {static_cast<std::uint8_t>(i)};
            width = start_bits + 1;
            before.clear();
            continue;
        }
        REQUIRE(static_cast<std::size_t>(code) <= words.size());
        REQUIRE((static_cast<std::size_t>(code) < words.size() || !before.empty()));
        bytes word = static_cast<std::size_t>(code) < words.size() ? words[static_cast<std::size_t>(code)] : before;
        if (static_cast<std::size_t>(code) == words.size()) word.push_back(before[0]);
        if (!before.empty() && words.size() < 4096) {
            before.push_back(word[0]);
            words.push_back(before);
        }
        if (words.size() == std::size_t{1} << width && width < 12) ++width;
        out.insert(out.end(), word.begin(), word.end());
        before = word;
    }
    CHECK(packed.size() - (at + 7) / 8 == 0);
    return out;
}

struct decoded {
    std::vector<bytes> frames;  // RGB, as a viewer would show them
    int width = 0, height = 0, delay = 0, drawn = 0;
    bool repeats = false;
};

decoded decode(const bytes& file) {
    byte_reader in(file, "gif");
    decoded d;
    const auto head = in.take(6);
    REQUIRE(std::string(head.begin(), head.end()) == "GIF89a");
    d.width = static_cast<int>(in.little16());
    d.height = static_cast<int>(in.little16());
    REQUIRE(in.take(3)[0] == 0xF7);
    const auto palette = in.take(768);
    bytes canvas(static_cast<std::size_t>(d.width * d.height * 3));
    for (;;) {
        const int kind = in.take(1)[0];
        if (kind == 0x3B) break;
        if (kind == 0x21) {
            const int label = in.take(1)[0];
            for (int size = in.take(1)[0]; size > 0; size = in.take(1)[0]) {
                const auto block = in.take(static_cast<std::size_t>(size));
                if (label == 0xF9) d.delay = block[1] | block[2] << 8;
                if (label == 0xFF && size == 3) d.repeats = block[0] == 1 && block[1] == 0 && block[2] == 0;
            }
            continue;
        }
        REQUIRE(kind == 0x2C);
        const int left = static_cast<int>(in.little16()), top = static_cast<int>(in.little16());
        const int width = static_cast<int>(in.little16()), height = static_cast<int>(in.little16());
        REQUIRE(in.take(1)[0] == 0);
        const int bits = in.take(1)[0];
        bytes packed;
        for (int size = in.take(1)[0]; size > 0; size = in.take(1)[0]) {
            const auto block = in.take(static_cast<std::size_t>(size));
            packed.insert(packed.end(), block.begin(), block.end());
        }
        const bytes indices = decode_lzw(packed, bits);
        REQUIRE(static_cast<int>(indices.size()) == width * height);
        REQUIRE((left + width <= d.width && top + height <= d.height));
        d.drawn += width * height;
        for (int i = 0; i < width * height; ++i)
            for (int c = 0; c < 3; ++c)
                canvas[static_cast<std::size_t>(((top + i / width) * d.width + left + i % width) * 3 + c)] =
                    palette[static_cast<std::size_t>(indices[static_cast<std::size_t>(i)] * 3 + c)];
        d.frames.push_back(canvas);
    }
    CHECK(in.left() == 0);
    return d;
}

/// What the palette makes of a frame.
bytes quantised(const gif_palette& palette, const picture& image) {
    bytes out;
    for (std::size_t i = 0; i < image.pixels.size(); i += static_cast<std::size_t>(image.channels)) {
        const auto& c = palette.colours()[palette.index(gif_palette::pixel(image, i))];
        out.insert(out.end(), c.begin(), c.end());
    }
    return out;
}

picture noise(int height, int width, int channels, int levels, std::uint64_t stream) {
    picture image{height, width, channels, {}};
    philox random(1, stream);
    for (int i = 0; i < height * width * channels; ++i)
        image.pixels.push_back(static_cast<std::uint8_t>(random.below(levels) * 255 / (levels - 1)));
    return image;
}

}  // namespace

TEST_CASE("what a reader shows are the quantised frames") {
    // 40,000 pixels of noise fill the table of codes several times over.
    std::vector<picture> frames{noise(200, 200, 3, 256, 1), noise(200, 200, 3, 256, 2), noise(200, 200, 3, 256, 2)};
    const gif_palette palette(frames);
    CHECK(palette.colours().size() == 256);
    const decoded d = decode(encode_gif(frames, 7));
    CHECK(d.width == 200);
    CHECK(d.height == 200);
    CHECK(d.delay == 7);
    CHECK(d.repeats);
    REQUIRE(d.frames.size() == 3);
    for (std::size_t f = 0; f < 3; ++f) CHECK(d.frames[f] == quantised(palette, frames[f]));
    CHECK(d.drawn == 200 * 200 * 2 + 1);  // the third frame is the second
    double error = 0;
    for (std::size_t i = 0; i < d.frames[0].size(); ++i) error += std::abs(d.frames[0][i] - frames[0].pixels[i]);
    CHECK(error / static_cast<double>(d.frames[0].size()) < 16);  // 256 boxes of the cube: 21 a side if all were equal
}

TEST_CASE("few colours are kept exactly, and only what changed is drawn") {
    std::vector<picture> frames{noise(30, 50, 3, 4, 1)};
    frames.push_back(frames[0]);
    for (int x = 10; x < 14; ++x)
        for (int c = 0; c < 3; ++c) {
            auto& pixel = frames[1].pixels[static_cast<std::size_t>((20 * 50 + x) * 3 + c)];
            pixel = static_cast<std::uint8_t>(255 - pixel);
        }
    const decoded d = decode(encode_gif(frames, 10));
    REQUIRE(d.frames.size() == 2);
    CHECK(d.frames[0] == frames[0].pixels);
    CHECK(d.frames[1] == frames[1].pixels);
    CHECK(d.drawn == 30 * 50 + 4);
}

TEST_CASE("any number of pixels, grey and of one colour") {
    for (const int width : {1, 2, 3, 100, 254, 255, 256, 257, 258, 511, 512, 513, 4000, 70 * 70}) {
        CAPTURE(width);
        const std::vector<picture> grey{noise(1, width, 1, 30, 3)};
        bytes expected;
        for (const auto x : grey[0].pixels) expected.insert(expected.end(), 3, x);
        CHECK(decode(encode_gif(grey, 1)).frames[0] == expected);
        const std::vector<picture> flat{{1, width, 3, bytes(static_cast<std::size_t>(width) * 3, std::uint8_t{77})}};
        CHECK(decode(encode_gif(flat, 1)).frames[0] == flat[0].pixels);
    }
}

TEST_CASE("mistakes are sentences, and leave no file") {
    const temporary_folder folder;
    std::vector<picture> frames;
    CHECK(sentence([&] { write_gif(folder / "a.gif", frames, 5); }) == "gif: an animation needs at least one frame");
    frames = {noise(2, 3, 3, 9, 1), noise(3, 2, 3, 9, 1)};
    CHECK(sentence([&] { write_gif(folder / "a.gif", frames, 5); }) ==
          "gif: frame 1 is 3 x 2 x 3, but the first is 2 x 3 x 3");
    frames.pop_back();
    CHECK(sentence([&] { write_gif(folder / "a.gif", frames, 0); }) ==
          "gif: a delay of 0 hundredths of a second, expected 1 to 65535");
    frames[0].pixels.pop_back();
    CHECK(sentence([&] { write_gif(folder / "a.gif", frames, 5); }) == "gif: frame 0 has 17 bytes, expected 18");
    frames[0].channels = 2;
    CHECK(sentence([&] { write_gif(folder / "a.gif", frames, 5); }) ==
          "gif: frames of 2 x 3 x 2, expected 1 to 65535 pixels and 1 or 3 channels");
    CHECK(folder.files() == 0);
    frames = {noise(2, 3, 3, 9, 1)};
    write_gif(folder / "a.gif", frames, 5);
    CHECK(read_file(folder / "a.gif") == encode_gif(frames, 5));
}
