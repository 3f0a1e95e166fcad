// SPDX-License-Identifier: MIT

// What tests of real data say of a folder that has none.

#include <doctest/doctest.h>

#include "real_data.hpp"
#include "temporary.hpp"

TEST_CASE("a folder that lacks one of the data sets is one sentence") {
    const temporary_folder folder;
    CHECK(sentence([] { data_folder("/nowhere"); }) == "ENGRAM_DATA names '/nowhere', which has no folder mnist");
    std::filesystem::create_directory(folder / "mnist");
    CHECK(sentence([&] { data_folder(folder.path); }) ==
          "ENGRAM_DATA names '" + folder.path + "', which has no folder omniglot");
    std::filesystem::create_directory(folder / "omniglot");
    CHECK(data_folder(folder.path) == folder.path);
    CHECK(data_folder(folder.path, "mnist") == folder / "mnist");
}
