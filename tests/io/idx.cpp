// SPDX-License-Identifier: MIT
#include "engram/io/idx.hpp"

#include <doctest/doctest.h>

#include "temporary.hpp"

using namespace engram;

namespace {

bytes header(std::initializer_list<std::uint32_t> numbers) {
    bytes out;
    for (const auto n : numbers)
        for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(n >> shift));
    return out;
}

bytes images(std::uint32_t magic, std::uint32_t count, std::uint32_t rows, std::uint32_t columns, std::size_t pixels) {
    bytes out = header({magic, count, rows, columns});
    for (std::size_t i = 0; i < pixels; ++i) out.push_back(static_cast<std::uint8_t>(i));
    return out;
}

}  // namespace

TEST_CASE("images and labels are read") {
    const temporary_folder folder;
    write_file(folder / "i", images(2051, 2, 2, 3, 12));
    const auto set = read_idx_images(folder / "i");
    CHECK(set.count == 2);
    CHECK(set.rows == 2);
    CHECK(set.columns == 3);
    CHECK(set.image(1)[0] == 6);
    CHECK(set.image(1).size() == 6);
    bytes labels = header({2049, 3});
    labels.insert(labels.end(), {7, 8, 9});
    write_file(folder / "l", labels);
    CHECK(read_idx_labels(folder / "l") == bytes{7, 8, 9});
}

TEST_CASE("a damaged header or a wrong size is one sentence, without asking for the memory it promises") {
    const temporary_folder folder;
    const std::string path = folder / "i";
    const auto said = [&](const bytes& content) {
        write_file(path, content);
        return sentence([&] { read_idx_images(path); });
    };
    CHECK(said(images(2049, 2, 2, 3, 12)) == path + ": magic number 2049, expected 2051 (IDX images)");
    CHECK(said(images(2051, 3, 2, 3, 12)) ==
          path + ": the header promises 3 items of 6 bytes, but 12 bytes follow, expected 18");
    CHECK(said(images(2051, 2, 2, 3, 13)) ==
          path + ": the header promises 2 items of 6 bytes, but 13 bytes follow, expected 12");
    CHECK(has(said(images(2051, 0x7fffffff, 8192, 8192, 12)), "the header promises 2147483647 items"));
    CHECK(has(said(images(2051, 2, 0xffffffffu, 0xffffffffu, 12)), "expected at most 8192"));
    CHECK(has(said(images(2051, 2, 0, 3, 0)), "impossible IDX header"));
    CHECK(has(said(header({2051, 2})), "truncated"));
    CHECK(has(said({}), "truncated"));
    bytes labels = header({2051, 1});
    labels.push_back(1);
    write_file(path, labels);
    CHECK(sentence([&] { read_idx_labels(path); }) == path + ": magic number 2051, expected 2049 (IDX labels)");
    labels = header({2049, 4});
    labels.push_back(1);
    write_file(path, labels);
    CHECK(sentence([&] { read_idx_labels(path); }) ==
          path + ": the header promises 4 items of 1 bytes, but 1 bytes follow, expected 4");
}
