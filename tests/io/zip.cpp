// SPDX-License-Identifier: MIT
#include "engram/io/zip.hpp"

#include <doctest/doctest.h>

#include "temporary.hpp"
#include "zip_writer.hpp"

using namespace engram;

namespace {

zip_writer sample() {
    zip_writer zip;
    zip.add("a/stored", {1, 2, 3}, false);
    zip.add("a/deflated", bytes(5000, 42), true);
    return zip;
}

/// Opens the archive and reads every entry.
std::string said(const std::string& path, const bytes& content) {
    write_file(path, content);
    return sentence([&] {
        const zip_archive archive(path);
        for (const auto& entry : archive.entries()) archive.read(entry);
    });
}

}  // namespace

TEST_CASE("stored and deflated entries are read, also behind a comment") {
    const temporary_folder folder;
    for (const char* comment : {"", "a comment"}) {
        write_file(folder / "z", sample().finish(comment));
        const zip_archive archive(folder / "z");
        REQUIRE(archive.entries().size() == 2);
        CHECK(archive.entries()[0].name == "a/stored");
        CHECK(archive.read(archive.entries()[0]) == bytes{1, 2, 3});
        CHECK(archive.read(archive.entries()[1]) == bytes(5000, 42));
    }
}

TEST_CASE("bad offsets, counts and contents are sentences") {
    const temporary_folder folder;
    const std::string path = folder / "z";
    const zip_writer zip = sample();
    const bytes good = zip.finish();
    const std::size_t end = good.size() - 22, start = zip.out.size();
    const auto with = [&](std::size_t at, std::uint8_t value) {
        bytes bad = good;
        bad[at] = value;
        return said(path, bad);
    };
    CHECK(said(path, good) == "no error");
    CHECK(has(said(path, {}), "too few for a zip archive"));
    CHECK(has(said(path, bytes(100, 1)), "no end of a zip directory"));
    CHECK(has(said(path, bytes(good.begin(), good.end() - 5)), "no end of a zip directory"));
    CHECK(has(with(end + 18, 0x7f), "points to byte"));                 // directory beyond the file
    CHECK(has(with(end + 16, 1), "zip directory is corrupt"));          // directory elsewhere
    CHECK(has(with(end + 11, 0x40), "the directory promises"));         // more entries than fit
    CHECK(has(with(end + 10, 3), "corrupt"));                           // one entry too many
    CHECK(has(with(start + 45, 0x7f), "a/stored: it points to byte"));  // entry beyond the file
    CHECK(has(with(start + 42, 1), "no entry where the directory points"));
    CHECK(has(with(start + 23, 0x7f), "bytes expected at byte"));  // packed size beyond the file
    CHECK(has(with(start + 24, 4), "a/stored: 3 bytes of content, expected 4"));
    CHECK(has(with(start + 10, 12), "compression method 12"));
    CHECK(has(with(start + 8, 1), "encrypted"));
    CHECK(has(with(38, 9), "a/stored: the checksum does not fit"));  // a byte of the content
}

TEST_CASE("no single damaged byte does more than give a sentence") {
    const temporary_folder folder;
    const bytes good = sample().finish();
    int refused = 0;
    for (std::size_t i = 0; i < good.size(); ++i)
        for (const std::uint8_t flip : {std::uint8_t{1}, std::uint8_t{0x80}}) {
            bytes bad = good;
            bad[i] ^= flip;
            refused += said(folder / "z", bad) != "no error";
        }
    CHECK(refused > 100);
}
