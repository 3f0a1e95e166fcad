// SPDX-License-Identifier: MIT
#include "engram/io/file.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <csignal>

#include "temporary.hpp"

using namespace engram;

TEST_CASE("what was written is read") {
    const temporary_folder folder;
    const std::string path = folder / "a";
    write_file(path, "hello");
    CHECK(read_file(path) == bytes{'h', 'e', 'l', 'l', 'o'});
    write_file(path, bytes(100000, 7));
    CHECK(read_file(path) == bytes(100000, 7));
    write_file(path, "");
    CHECK(read_file(path).empty());
    CHECK(folder.files() == 1);
}

TEST_CASE("a folder is there, and so is a file, which is no folder") {
    const temporary_folder folder;
    write_file(folder / "a", "hello");
    CHECK(exists_on_disk(folder / "a"));
    CHECK(!folder_on_disk(folder / "a"));
    CHECK(exists_on_disk(folder / "."));
    CHECK(folder_on_disk(folder / "."));
    CHECK(!exists_on_disk(folder / "b"));
    CHECK(!folder_on_disk(folder / "b"));
    CHECK(!exists_on_disk(""));
}

TEST_CASE("without commit nothing is seen and nothing is left") {
    const temporary_folder folder;
    write_file(folder / "a", "old");
    {
        atomic_file file(folder / "a");
        file.write("new", 3);
        CHECK(read_file(folder / "a") == bytes{'o', 'l', 'd'});
    }
    CHECK(read_file(folder / "a") == bytes{'o', 'l', 'd'});
    CHECK(folder.files() == 1);
}

TEST_CASE("a write that fails midway leaves the old file alone") {
    const temporary_folder folder;
    const std::string path = folder / "a";
    write_file(path, "old");
    // A limit on file size stands for a full disk: write() stops short and then fails in the same way.
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit tight{5000, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &tight);
    const auto said = sentence([&] { write_file(path, bytes(100000, 7)); });
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    CHECK(said == "cannot write " + path + ": File too large (what was there before is unchanged)");
    CHECK(read_file(path) == bytes{'o', 'l', 'd'});
    CHECK(folder.files() == 1);
}

TEST_CASE("files that cannot be read or written are sentences") {
    const temporary_folder folder;
    CHECK(sentence([&] { read_file(folder / "none"); }) ==
          "cannot read " + (folder / "none") + ": No such file or directory");
    CHECK(has(sentence([&] { read_file(folder.path); }), "not a regular file"));
    CHECK(has(sentence([&] { write_file(folder / "none/a", "x"); }), "cannot write " + (folder / "none/a")));
    std::filesystem::create_directory(folder / "taken");
    CHECK(has(sentence([&] { write_file(folder / "taken", "x"); }), "cannot write"));
    CHECK(folder.files() == 1);
}

TEST_CASE("a byte reader knows both byte orders and never reads past the end") {
    const bytes content{1, 2, 3, 4, 5, 6};
    byte_reader in(content, "f");
    CHECK(in.big32() == 0x01020304u);
    in.seek(0);
    CHECK(in.little32() == 0x04030201u);
    CHECK(in.little16() == 0x0605u);
    CHECK(has(sentence([&] { in.take(1); }), "f: 1 bytes expected at byte 6, but only 0 are left"));
    CHECK(has(sentence([&] { in.seek(7); }), "f: it points to byte 7 of 6"));
}
