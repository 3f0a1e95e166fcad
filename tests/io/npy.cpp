// SPDX-License-Identifier: MIT
#include "engram/io/npy.hpp"

#include <doctest/doctest.h>

#include "temporary.hpp"

using namespace engram;

TEST_CASE("arrays survive a round trip, of any rank") {
    const temporary_folder folder;
    const std::vector<float> values{1.5f, -2, 3, 4, 5, 6e20f};
    for (const std::vector<int>& shape : std::vector<std::vector<int>>{{6}, {2, 3}, {1, 3, 2}}) {
        write_npy<float>(folder / "a.npy", values, shape);
        const auto back = read_npy<float>(folder / "a.npy");
        CHECK(back.shape == shape);
        CHECK(back.values == values);
        CHECK(read_file(folder / "a.npy").size() == 128 + 24);  // numbers begin at a multiple of 64
    }
    write_npy<std::int32_t>(folder / "b.npy", std::vector<std::int32_t>{-7}, {});
    CHECK(read_npy<std::int32_t>(folder / "b.npy").values == std::vector<std::int32_t>{-7});
    CHECK(read_npy<std::int32_t>(folder / "b.npy").shape.empty());
    write_npy<float>(folder / "c.npy", std::vector<float>{}, {0, 4});
    CHECK(read_npy<float>(folder / "c.npy").shape == std::vector<int>{0, 4});
}

TEST_CASE("the bytes are those of NumPy's own writer") {
    const temporary_folder folder;
    const std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    bytes file{0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
    file.insert(file.end(), text.begin(), text.end());
    file.resize(127, ' ');
    file.push_back('\n');
    file.resize(128 + 24);
    write_file(folder / "a.npy", file);
    CHECK(read_npy<float>(folder / "a.npy").shape == std::vector<int>{2, 3});
}

TEST_CASE("damage, other types and orders are sentences") {
    const temporary_folder folder;
    const std::string path = folder / "a.npy";
    write_npy<float>(path, std::vector<float>(6), {2, 3});
    const bytes good = read_file(path);
    const auto said = [&](const std::string& from, const std::string& to) {
        std::string text(good.begin(), good.end());
        const auto at = text.find(from);
        REQUIRE(at != text.npos);
        text.replace(at, from.size(), to);
        write_file(path, text);
        return sentence([&] { read_npy<float>(path); });
    };
    CHECK(has(said("NUMPY", "NUMPX"), "not an NPY file"));
    CHECK(has(said("<f4", "<f8"), "expected '<f4'"));
    CHECK(has(said("False", "True "), "column-major"));
    CHECK(has(said("(2, 3", "(2, 4"), "asks for 32 bytes of numbers, but 24 follow"));
    CHECK(has(said("(2, 3, )", "(99999999"), "more numbers than the file holds"));
    CHECK(has(said("(2, 3", "(2, x"), "not a number"));
    CHECK(has(said("shape", "shapf"), "has no 'shape'"));
    for (std::size_t size = 0; size < good.size(); ++size) {
        write_file(path, std::span(good).first(size));
        CHECK(sentence([&] { read_npy<float>(path); }) != "no error");
    }
    CHECK(has(sentence([&] { write_npy<float>(path, std::vector<float>(6), {2, 2}); }), "do not fill a shape of 4"));
}
