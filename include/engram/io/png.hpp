#pragma once
// SPDX-License-Identifier: MIT

// PNG (W3C, third edition), what this library needs of it. Read: 1-bit and 8-bit grey, 8-bit RGB, all five row filters,
// not interlaced. Written: 8-bit grey or RGB. Pixels are bytes [height, width, channels].

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "engram/core/error.hpp"
#include "engram/io/file.hpp"
#include "engram/io/gzip.hpp"

namespace engram {

struct picture {
    int height = 0, width = 0, channels = 1;
    bytes pixels;
};

constexpr std::array<std::uint8_t, 8> png_signature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

/// Undoes the row filters: [height, 1 + row] with a filter number before each row becomes [height, row].
inline bytes unfilter_png(std::span<const std::uint8_t> raw, std::size_t height, std::size_t row, std::size_t step,
                          const std::string& name) {
    bytes out(height * row);
    for (std::size_t y = 0; y < height; ++y) {
        const int filter = raw[y * (row + 1)];
        require(filter <= 4, name, ": row filter ", filter, ", expected 0 to 4");
        for (std::size_t x = 0; x < row; ++x) {
            const int left = x >= step ? out[y * row + x - step] : 0;
            const int up = y > 0 ? out[(y - 1) * row + x] : 0;
            const int corner = x >= step && y > 0 ? out[(y - 1) * row + x - step] : 0;
            const int p = left + up - corner;
            const int a = std::abs(p - left), b = std::abs(p - up), c = std::abs(p - corner);
            const int paeth = a <= b && a <= c ? left : b <= c ? up : corner;
            const std::array<int, 5> predicted{0, left, up, (left + up) / 2, paeth};
            out[y * row + x] =
                static_cast<std::uint8_t>(raw[y * (row + 1) + 1 + x] + predicted[static_cast<std::size_t>(filter)]);
        }
    }
    return out;
}

/// A picture from the bytes of a PNG; `name` is what errors call it.
inline picture decode_png(std::span<const std::uint8_t> content, const std::string& name) {
    require(content.size() >= 8 && std::equal(png_signature.begin(), png_signature.end(), content.begin()), name,
            ": not a PNG file");
    byte_reader in(content.subspan(8), name);
    picture image;
    int depth = 0;
    bytes packed;
    for (bool first = true;; first = false) {
        const std::uint32_t size = in.big32();
        const auto chunk = in.take(std::size_t{4} + size);
        require(::crc32(0, chunk.data(), static_cast<uInt>(chunk.size())) == in.big32(), name,
                ": a chunk's checksum does not fit; the file is corrupt");
        const std::string_view type(reinterpret_cast<const char*>(chunk.data()), 4);
        require(first == (type == "IHDR"), name, ": IHDR must be the first chunk, and only that");
        if (type == "IEND") break;
        if (type == "IDAT") packed.insert(packed.end(), chunk.begin() + 4, chunk.end());
        require(type != "PLTE" || image.channels == 3, name, ": palettes are not supported");
        if (type != "IHDR") continue;
        require(size == 13, name, ": IHDR of ", size, " bytes, expected 13");
        byte_reader header(chunk.subspan(4), name);
        const std::uint32_t width = header.big32(), height = header.big32();
        const auto rest = header.take(5);
        require(width >= 1 && height >= 1 && width <= 65536 && height <= 65536, name, ": an image of ", width, " x ",
                height, ", expected 1 to 65536");
        depth = rest[0];
        const bool grey = rest[1] == 0 && (depth == 1 || depth == 8), rgb = rest[1] == 2 && depth == 8;
        require(grey || rgb, name, ": colour type ", int{rest[1]}, " with ", depth,
                " bits, expected grey of 1 or 8 bits or RGB of 8 bits");
        require(rest[2] == 0 && rest[3] == 0 && rest[4] == 0, name, ": interlaced or of an unknown compression");
        image.width = static_cast<int>(width);
        image.height = static_cast<int>(height);
        image.channels = rgb ? 3 : 1;
    }
    const auto height = static_cast<std::size_t>(image.height), width = static_cast<std::size_t>(image.width);
    const auto channels = static_cast<std::size_t>(image.channels);
    const std::size_t row = depth == 1 ? (width + 7) / 8 : width * channels;
    const bytes raw = inflate(packed, deflate_format::zlib, height * (row + 1), name);
    require(raw.size() == height * (row + 1), name, ": ", raw.size(), " bytes of pixels, expected ",
            height * (row + 1));
    image.pixels = unfilter_png(raw, height, row, depth == 1 ? 1 : channels, name);
    if (depth == 8) return image;
    bytes grey(height * width);
    for (std::size_t y = 0; y < height; ++y)
        for (std::size_t x = 0; x < width; ++x)
            grey[y * width + x] = (image.pixels[y * row + x / 8] >> (7 - x % 8)) & 1 ? 255 : 0;
    image.pixels = std::move(grey);
    return image;
}

/// The bytes of a PNG.
inline bytes encode_png(const picture& image) {
    const auto height = static_cast<std::size_t>(std::max(image.height, 0));
    const auto row = static_cast<std::size_t>(std::max(image.width, 0)) * static_cast<std::size_t>(image.channels);
    require(
        height >= 1 && row >= 1 && (image.channels == 1 || image.channels == 3) && image.pixels.size() == height * row,
        "png: ", image.pixels.size(), " bytes do not make an image of ", image.height, " x ", image.width, " x ",
        image.channels, " (1 or 3 channels)");
    bytes raw;
    raw.reserve(height * (row + 1));
    for (std::size_t y = 0; y < height; ++y) {
        raw.push_back(0);
        raw.insert(raw.end(), image.pixels.begin() + static_cast<std::ptrdiff_t>(y * row),
                   image.pixels.begin() + static_cast<std::ptrdiff_t>((y + 1) * row));
    }
    uLongf size = ::compressBound(static_cast<uLong>(raw.size()));
    bytes packed(size);
    require(::compress(packed.data(), &size, raw.data(), static_cast<uLong>(raw.size())) == Z_OK,
            "png: zlib could not compress the image");
    packed.resize(size);

    bytes out(png_signature.begin(), png_signature.end());
    const auto big32 = [&](std::uint32_t x) {
        for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(x >> shift));
    };
    const auto chunk = [&](std::string_view type, auto write) {
        const std::size_t start = out.size();
        big32(0);
        out.insert(out.end(), type.begin(), type.end());
        write();
        const std::size_t length = out.size() - start - 8;
        for (std::size_t i = 0; i < 4; ++i) out[start + i] = static_cast<std::uint8_t>(length >> (24 - 8 * i));
        big32(static_cast<std::uint32_t>(::crc32(0, out.data() + start + 4, static_cast<uInt>(length + 4))));
    };
    chunk("IHDR", [&] {
        big32(static_cast<std::uint32_t>(image.width));
        big32(static_cast<std::uint32_t>(image.height));
        for (const int x : {8, image.channels == 3 ? 2 : 0, 0, 0, 0}) out.push_back(static_cast<std::uint8_t>(x));
    });
    chunk("IDAT", [&] { out.insert(out.end(), packed.begin(), packed.end()); });
    chunk("IEND", [] {});
    return out;
}

/// Reads a PNG.
inline picture read_png(const std::string& path) {
    return decode_png(read_file(path), path);
}
/// Writes a PNG.
inline void write_png(const std::string& path, const picture& image) {
    write_file(path, encode_png(image));
}

}  // namespace engram
