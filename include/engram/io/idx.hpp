#pragma once
// SPDX-License-Identifier: MIT

// IDX, the format of MNIST: big-endian 32-bit header, then one byte an item or pixel; plain or gzip.
//   images: 2051, count, rows, columns, pixels [count, rows, columns]; labels: 2049, count, labels [count]

#include <cstdint>
#include <span>
#include <string>

#include "engram/core/error.hpp"
#include "engram/io/file.hpp"
#include "engram/io/gzip.hpp"

namespace engram {

struct idx_images {
    int count = 0, rows = 0, columns = 0;
    bytes pixels;  // [count, rows, columns], 0 = background

    std::span<const std::uint8_t> image(int i) const {
        const auto size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
        return std::span(pixels).subspan(static_cast<std::size_t>(i) * size, size);
    }
};

/// Checks that `count` items of `item` bytes are exactly what is left.
inline void require_idx_content(const std::string& path, std::uint64_t count, std::uint64_t item, std::uint64_t left) {
    require(item >= 1 && count <= 0x7fffffffu, path, ": an impossible IDX header (", count, " items of ", item,
            " bytes)");
    require(count * item == left, path, ": the header promises ", count, " items of ", item, " bytes, but ", left,
            " bytes follow, expected ", count * item);
}

/// Images [count, height, width] of bytes; the file may be gzipped.
inline idx_images read_idx_images(const std::string& path) {
    const bytes content = read_maybe_gzip(path);
    byte_reader in(content, path);
    const std::uint32_t magic = in.big32();
    require(magic == 2051, path, ": magic number ", magic, ", expected 2051 (IDX images)");
    const std::uint32_t count = in.big32(), rows = in.big32(), columns = in.big32();
    require(rows <= 8192 && columns <= 8192, path, ": images of ", rows, " x ", columns,
            ", expected at most 8192 x 8192");
    require_idx_content(path, count, std::uint64_t{rows} * columns, in.left());
    const auto pixels = in.take(in.left());
    return {static_cast<int>(count), static_cast<int>(rows), static_cast<int>(columns), {pixels.begin(), pixels.end()}};
}

/// Labels [count] of bytes; the file may be gzipped.
inline bytes read_idx_labels(const std::string& path) {
    const bytes content = read_maybe_gzip(path);
    byte_reader in(content, path);
    const std::uint32_t magic = in.big32(), count = in.big32();
    require(magic == 2049, path, ": magic number ", magic, ", expected 2049 (IDX labels)");
    require_idx_content(path, count, 1, in.left());
    const auto labels = in.take(in.left());
    return {labels.begin(), labels.end()};
}

}  // namespace engram
