// SPDX-License-Identifier: MIT
#include "engram/io/png.hpp"

#include <doctest/doctest.h>

#include "engram/core/philox.hpp"
#include "temporary.hpp"

using namespace engram;

namespace {

picture noise(int height, int width, int channels) {
    picture image{height, width, channels, {}};
    philox random(1, 2);
    for (int i = 0; i < height * width * channels; ++i)
        image.pixels.push_back(static_cast<std::uint8_t>(random.below(256)));
    return image;
}

/// A PNG from its parts, with right checksums.
bytes assemble(int width, int height, int depth, int type, const bytes& raw, int interlace = 0) {
    bytes out(png_signature.begin(), png_signature.end());
    const auto big32 = [](bytes& to, std::size_t x) {
        for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<std::uint8_t>(x >> shift));
    };
    const auto chunk = [&](const char* name, const bytes& content) {
        big32(out, content.size());
        bytes body(name, name + 4);
        body.insert(body.end(), content.begin(), content.end());
        out.insert(out.end(), body.begin(), body.end());
        big32(out, crc32(0, body.data(), static_cast<uInt>(body.size())));
    };
    bytes header;
    big32(header, static_cast<std::size_t>(width));
    big32(header, static_cast<std::size_t>(height));
    for (const int x : {depth, type, 0, 0, interlace}) header.push_back(static_cast<std::uint8_t>(x));
    chunk("IHDR", header);
    uLongf size = compressBound(static_cast<uLong>(raw.size()));
    bytes packed(size);
    compress(packed.data(), &size, raw.data(), static_cast<uLong>(raw.size()));
    packed.resize(size);
    const auto middle = packed.begin() + static_cast<std::ptrdiff_t>(packed.size() / 2);
    chunk("tIME", bytes(7));
    chunk("IDAT", bytes(packed.begin(), middle));
    chunk("IDAT", bytes(middle, packed.end()));
    chunk("IEND", {});
    return out;
}

/// The row filters of the specification, applied as a writer would.
bytes filter_rows(const picture& image) {
    bytes raw;
    const int row = image.width * image.channels, step = image.channels;
    const auto at = [&](int y, int x) {
        return y < 0 || x < 0 ? 0 : int{image.pixels[static_cast<std::size_t>(y * row + x)]};
    };
    for (int y = 0; y < image.height; ++y) {
        const int filter = y % 5;
        raw.push_back(static_cast<std::uint8_t>(filter));
        for (int x = 0; x < row; ++x) {
            const int a = at(y, x - step), b = at(y - 1, x), c = x < step ? 0 : at(y - 1, x - step), p = a + b - c;
            const int pa = std::abs(p - a), pb = std::abs(p - b), pc = std::abs(p - c);
            int predicted = 0;
            if (filter == 1) predicted = a;
            if (filter == 2) predicted = b;
            if (filter == 3) predicted = (a + b) / 2;
            if (filter == 4) predicted = pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
            raw.push_back(static_cast<std::uint8_t>(at(y, x) - predicted));
        }
    }
    return raw;
}

}  // namespace

TEST_CASE("grey and RGB survive a round trip through a file") {
    const temporary_folder folder;
    for (const int channels : {1, 3}) {
        const auto image = noise(7, 5, channels);
        write_png(folder / "a.png", image);
        const auto back = read_png(folder / "a.png");
        CHECK(back.height == 7);
        CHECK(back.width == 5);
        CHECK(back.channels == channels);
        CHECK(back.pixels == image.pixels);
    }
    CHECK(has(sentence([] { encode_png({2, 2, 1, bytes(5)}); }), "5 bytes do not make an image of 2 x 2 x 1"));
}

TEST_CASE("all five row filters, and an image in two IDAT chunks") {
    for (const int channels : {1, 3}) {
        const auto image = noise(11, 6, channels);
        const auto file = assemble(6, 11, 8, channels == 3 ? 2 : 0, filter_rows(image));
        CHECK(decode_png(file, "f").pixels == image.pixels);
    }
}

TEST_CASE("one bit a pixel: the leftmost pixel is the highest bit") {
    const auto image = decode_png(assemble(10, 2, 1, 0, {0, 0b10100000, 0b01000000, 0, 0, 0}), "f");
    CHECK(image.width == 10);
    CHECK(image.pixels[0] == 255);
    CHECK(image.pixels[1] == 0);
    CHECK(image.pixels[2] == 255);
    CHECK(image.pixels[8] == 0);
    CHECK(image.pixels[9] == 255);
    CHECK(image.pixels[10] == 0);
}

TEST_CASE("what is not supported or damaged is a sentence") {
    const auto said = [](const bytes& file) { return sentence([&] { decode_png(file, "f"); }); };
    CHECK(said({1, 2, 3}) == "f: not a PNG file");
    CHECK(has(said(assemble(2, 1, 8, 3, {0, 0, 0})), "f: colour type 3 with 8 bits"));
    CHECK(has(said(assemble(2, 1, 8, 0, {0, 0, 0}, 1)), "f: interlaced"));
    CHECK(has(said(assemble(2, 1, 8, 0, {5, 0, 0})), "f: row filter 5, expected 0 to 4"));
    CHECK(has(said(assemble(2, 1, 8, 0, {0, 0})), "f: 2 bytes of pixels, expected 3"));
    CHECK(has(said(assemble(2, 1, 8, 0, {0, 0, 0, 0})), "f: more than the expected 3 bytes"));
    CHECK(has(said(assemble(0, 1, 8, 0, {0})), "an image of 0 x 1"));
    CHECK(has(said(assemble(65536, 65536, 8, 0, {0})), "bytes of pixels, expected"));  // without allocating them
    const auto good = assemble(2, 1, 8, 0, {0, 1, 2});
    CHECK(said(good) == "no error");
    for (std::size_t size = 0; size < good.size(); ++size)
        CHECK(said(bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))) != "no error");
    for (std::size_t i = 0; i < good.size(); ++i) {
        auto bad = good;
        bad[i] ^= 4;
        CHECK(said(bad) != "no error");
    }
}
