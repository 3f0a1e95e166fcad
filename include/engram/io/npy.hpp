#pragma once
// SPDX-License-Identifier: MIT

// NPY, NumPy's array file, versions 1 to 3: little-endian float32, int32 and uint8, C order.
//   "\x93NUMPY", major, minor, header length (2 bytes, or 4 from version 2), a Python dict, then the numbers

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engram/core/error.hpp"
#include "engram/io/file.hpp"

namespace engram {

static_assert(std::endian::native == std::endian::little, "engram: NPY files are read and written as little-endian");

template <class Number>
concept npy_number =
    std::is_same_v<Number, float> || std::is_same_v<Number, std::int32_t> || std::is_same_v<Number, std::uint8_t>;

template <npy_number Number>
struct npy_array {
    std::vector<int> shape;
    std::vector<Number> values;  // row-major
};

template <npy_number Number>
constexpr std::string_view npy_type = std::is_same_v<Number, float>          ? "<f4"
                                      : std::is_same_v<Number, std::int32_t> ? "<i4"
                                                                             : "|u1";

/// Writes numbers as an array of NumPy's format.
template <npy_number Number>
void write_npy(const std::string& path, std::span<const Number> values, const std::vector<int>& shape) {
    std::size_t count = 1;
    std::string header = message("{'descr': '", npy_type<Number>, "', 'fortran_order': False, 'shape': (");
    for (const int extent : shape) {
        require(extent >= 0, path, ": an extent of ", extent, " in the shape to be written");
        count *= static_cast<std::size_t>(extent);
        header += message(extent, ", ");
    }
    require(count == values.size(), path, ": ", values.size(), " numbers to be written do not fill a shape of ", count);
    header += "), }";
    header.append(63 - (10 + header.size()) % 64, ' ');
    header += '\n';
    const char preamble[10] = {'\x93',
                               'N',
                               'U',
                               'M',
                               'P',
                               'Y',
                               1,
                               0,
                               static_cast<char>(header.size() & 255),
                               static_cast<char>(header.size() >> 8)};
    atomic_file file(path);
    file.write(preamble, sizeof preamble);
    file.write(header.data(), header.size());
    file.write(values.data(), values.size_bytes());
    file.commit();
}

/// Reads an array of NumPy's format: its shape and its numbers.
template <npy_number Number>
npy_array<Number> read_npy(const std::string& path) {
    const bytes content = read_file(path);
    byte_reader in(content, path);
    const auto text = [](std::span<const std::uint8_t> b) {
        return std::string_view(reinterpret_cast<const char*>(b.data()), b.size());
    };
    require(text(in.take(6)) == "\x93NUMPY", path, ": not an NPY file");
    const int version = in.take(2)[0];
    require(version >= 1 && version <= 3, path, ": NPY version ", version, ", expected 1 to 3");
    const std::string_view header = text(in.take(version == 1 ? in.little16() : in.little32()));
    const auto after = [&](std::string_view key) {
        const auto at = header.find(key);
        require(at != header.npos, path, ": the NPY header has no ", key);
        const auto value = header.find_first_not_of(" :", at + key.size());
        require(value != header.npos, path, ": the NPY header has nothing after ", key);
        return header.substr(value);
    };
    const auto type = after("'descr'");
    require(type.size() >= 5 && type.substr(1, 3) == npy_type<Number>, path, ": numbers of type ", type.substr(0, 5),
            ", expected '", npy_type<Number>, "'");
    require(after("'fortran_order'").starts_with("False"), path, ": column-major order, expected row-major");

    npy_array<Number> array;
    std::uint64_t count = 1;
    auto shape = after("'shape'");
    require(shape.starts_with('('), path, ": the NPY shape is not a tuple");
    for (shape.remove_prefix(1);;) {
        const auto start = shape.find_first_not_of(" ,");
        require(start != shape.npos, path, ": the NPY shape does not end");
        shape.remove_prefix(start);
        if (shape.front() == ')') break;
        std::uint64_t extent = 0;
        std::size_t digits = 0;
        for (; digits < shape.size() && shape[digits] >= '0' && shape[digits] <= '9' && extent <= 0x7fffffffu; ++digits)
            extent = 10 * extent + static_cast<std::uint64_t>(shape[digits] - '0');
        require(digits > 0 && extent <= 0x7fffffffu, path,
                ": an extent of the NPY shape is not a number up to 2^31 - 1");
        shape.remove_prefix(digits);
        array.shape.push_back(static_cast<int>(extent));
        count *= extent;
        require(count <= content.size(), path, ": the NPY shape asks for more numbers than the file holds");
    }
    require(count * sizeof(Number) == in.left(), path, ": the NPY shape asks for ", count * sizeof(Number),
            " bytes of numbers, but ", in.left(), " follow");
    array.values.resize(static_cast<std::size_t>(count));
    const auto numbers = in.take(in.left());
    if (count > 0) std::memcpy(array.values.data(), numbers.data(), numbers.size());
    return array;
}

}  // namespace engram
