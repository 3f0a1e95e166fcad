// SPDX-License-Identifier: MIT
#include "engram/io/gzip.hpp"

#include <doctest/doctest.h>

#include <ctime>

#include "temporary.hpp"

using namespace engram;

namespace {

void gzip(const std::string& path, const bytes& content, const char* mode = "wb") {
    gzFile file = gzopen(path.c_str(), mode);
    gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
    gzclose(file);
}

bytes sample() {
    bytes content(50000);
    for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<std::uint8_t>(i * i / 7);
    return content;
}

}  // namespace

TEST_CASE("a gzip file, several members in a row, and a plain file give their content") {
    const temporary_folder folder;
    gzip(folder / "a.gz", sample());
    CHECK(read_maybe_gzip(folder / "a.gz") == sample());
    gzip(folder / "a.gz", {1, 2, 3}, "ab");
    bytes both = sample();
    both.insert(both.end(), {1, 2, 3});
    CHECK(read_maybe_gzip(folder / "a.gz") == both);
    write_file(folder / "plain", bytes{9, 8, 7});
    CHECK(read_maybe_gzip(folder / "plain") == bytes{9, 8, 7});
    gzip(folder / "zeros.gz", bytes(10000000));  // the best compression that there is
    CHECK(read_maybe_gzip(folder / "zeros.gz").size() == 10000000);
}

TEST_CASE("damage is a sentence that names the file") {
    const temporary_folder folder;
    const std::string path = folder / "a.gz";
    gzip(path, sample());
    const bytes whole = read_file(path);
    for (const std::size_t size : {std::size_t{2}, std::size_t{11}, whole.size() / 2, whole.size() - 1}) {
        write_file(path, std::span(whole).first(size));
        CHECK(sentence([&] { read_maybe_gzip(path); }) == path + ": the compressed data is truncated");
    }
    bytes flipped = whole;
    flipped[flipped.size() - 6] ^= 1;  // the checksum
    write_file(path, flipped);
    CHECK(sentence([&] { read_maybe_gzip(path); }) == path + ": the compressed data is corrupt (incorrect data check)");
    bytes longer = whole;
    longer.push_back(0);
    write_file(path, longer);
    CHECK(sentence([&] { read_maybe_gzip(path); }) != "no error");
}

TEST_CASE("the limit on content is exact") {
    const temporary_folder folder;
    gzip(folder / "a.gz", bytes(1000));
    const bytes packed = read_file(folder / "a.gz");
    CHECK(inflate(packed, deflate_format::gzip, 1000, "a").size() == 1000);
    CHECK(sentence([&] { inflate(packed, deflate_format::gzip, 999, "a"); }) ==
          "a: more than the expected 999 bytes of content");
}

// Each member once cleared as many bytes as had been inflated before it: 400 GB here.
TEST_CASE("many small members behind a large one take no time") {
    const temporary_folder folder;
    gzip(folder / "a.gz", bytes(20000000));
    gzip(folder / "empty.gz", {});
    const bytes large = read_file(folder / "a.gz"), empty = read_file(folder / "empty.gz");
    bytes all = large;
    for (int i = 0; i < 20000; ++i) all.insert(all.end(), empty.begin(), empty.end());
    write_file(folder / "a.gz", all);
    const auto start = std::clock();
    CHECK(read_maybe_gzip(folder / "a.gz").size() == 20000000);
    CHECK(std::clock() - start < 2 * CLOCKS_PER_SEC);
}
