// SPDX-License-Identifier: MIT
#include "engram/io/omniglot.hpp"

#include <doctest/doctest.h>

#include "temporary.hpp"
#include "zip_writer.hpp"

using namespace engram;

namespace {

bytes drawing(int side = 105) {
    picture image{side, side, 1, bytes(static_cast<std::size_t>(side * side), 255)};
    image.pixels[0] = 0;
    return encode_png(image);
}

}  // namespace

TEST_CASE("drawings are found by name and decoded when asked for") {
    const temporary_folder folder;
    zip_writer zip;
    zip.add("set/", {}, false);
    zip.add("set/Greek/character03/0017_09.png", drawing(), false);
    zip.add("set/Greek/character04/0018_01.png", drawing(30), true);
    write_file(folder / "o.zip", zip.finish());
    const omniglot_archive archive(folder / "o.zip");
    REQUIRE(archive.drawings().size() == 2);
    CHECK(archive.drawings()[0].alphabet == "Greek");
    CHECK(archive.drawings()[0].character == 17);
    CHECK(archive.drawings()[0].drawer == 9);
    const auto image = archive.image(0);
    CHECK(image.width == 105);
    CHECK(image.pixels[0] == 0);
    CHECK(image.pixels[1] == 255);
    CHECK(has(sentence([&] { archive.image(1); }), "a drawing of 30 x 30 x 1, expected 105 x 105 x 1"));
    CHECK(has(sentence([&] { archive.image(2); }), "drawing 2 does not exist"));
}

TEST_CASE("other archives are refused") {
    const temporary_folder folder;
    const auto said = [&](const std::string& name) {
        zip_writer zip;
        zip.add(name, drawing(), false);
        write_file(folder / "o.zip", zip.finish());
        return sentence([&] { omniglot_archive archive(folder / "o.zip"); });
    };
    CHECK(has(said("holiday.txt"), "no drawings in the archive"));
    CHECK(has(said("holiday.png"), "entry 'holiday.png' is not named"));
    CHECK(has(said("set/Greek/character03/00x7_09.png"), "is not named"));
}
