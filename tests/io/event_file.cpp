// SPDX-License-Identifier: MIT
#include "engram/io/event_file.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "temporary.hpp"

using namespace engram;

namespace {

std::string from_hexadecimal(const std::string& digits) {
    std::string out;
    for (std::size_t i = 0; i < digits.size(); i += 2)
        out += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    return out;
}

std::string content(const std::string& path) {
    const bytes all = read_file(path);
    return {all.begin(), all.end()};
}

const std::vector<scalar_value> two{{"train/loss", 0.5}, {"a", -3}};

// What TensorBoard 2.21's RecordWriter makes of the same two events.
const std::string tensorboard_first =
    from_hexadecimal("1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
const std::string tensorboard_second = from_hexadecimal(
    "2b00000000000000861bc34b0900001040fc54d94110ac022a1d0a110a0a747261696e2f6c6f7373150000003f0a080a016115000040c0c6"
    "63eca2");

}  // namespace

TEST_CASE("CRC-32C of known strings") {
    CHECK(crc32c("") == 0);
    CHECK(crc32c("123456789") == 0xe3069283u);            // the catalogue's check value
    CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aau);  // RFC 3720, B.4
    CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43u);
}

TEST_CASE("events are TensorBoard's own bytes") {
    CHECK(first_event(1.5) == tensorboard_first);
    CHECK(scalar_event(1.7e9 + 0.25, 300, two) == tensorboard_second);
    const double none = std::numeric_limits<double>::quiet_NaN();
    CHECK(scalar_event(1.7e9 + 0.25, 300, std::vector<scalar_value>{{"b", none}, two[0], {"c", none}, two[1]}) ==
          tensorboard_second);
}

TEST_CASE("steps of every size are read back") {
    for (const std::int64_t step : {std::int64_t{0}, std::int64_t{1}, std::int64_t{127}, std::int64_t{128},
                                    std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::max()}) {
        const std::string record = scalar_event(0, step, two);
        event_reader in({reinterpret_cast<const std::uint8_t*>(record.data()), record.size()});
        REQUIRE(in.next());
        CHECK(in.step() == step);
        CHECK(in.end() == record.size());
        CHECK(!in.next());
    }
}

TEST_CASE("a file that is opened again keeps what is not behind the step") {
    const temporary_folder folder;
    const std::string path = folder / "events";
    const auto record = [](std::int64_t step) { return scalar_event(9, step, two); };
    {
        event_file file(path, 0, 1.5);
        for (const std::int64_t step : {10, 20, 20, 30}) file.write(9, step, two);
        file.flush();
    }
    const std::string whole = content(path);
    CHECK(whole == tensorboard_first + record(10) + record(20) + record(20) + record(30));
    event_file(path, 1000, 7);
    CHECK(content(path) == whole);
    {
        event_file file(path, 20, 7);
        CHECK(content(path) == tensorboard_first + record(10) + record(20) + record(20));
        file.write(9, 25, two);
    }
    CHECK(content(path) == tensorboard_first + record(10) + record(20) + record(20) + record(25));
    event_file(path, 0, 7);
    CHECK(content(path) == first_event(7));
    CHECK(folder.files() == 1);
}

TEST_CASE("half a record, and one that is damaged, end the file") {
    const temporary_folder folder;
    const std::string path = folder / "events", first = tensorboard_first, second = scalar_event(9, 10, two),
                      third = scalar_event(9, 20, two);
    for (std::size_t size = 0; size < third.size(); ++size) {
        write_file(path, first + second + third.substr(0, size));
        event_file(path, 20, 7);
        CHECK(content(path) == first + second);
    }
    for (std::size_t at = 0; at < third.size(); ++at) {
        std::string damaged = third;
        damaged[at] = static_cast<char>(damaged[at] ^ 1);
        write_file(path, first + second + damaged);
        event_file(path, 20, 7);
        CHECK(content(path) == first + second);
    }
}

TEST_CASE("what is no event file is left alone") {
    const temporary_folder folder;
    const std::string path = folder / "events";
    for (const std::string& text : {std::string("hello"), std::string(1000, 'x'), scalar_event(9, 10, two)}) {
        write_file(path, text);
        CHECK(has(sentence([&] { event_file(path, 20, 7); }), "not an event file"));
        CHECK(content(path) == text);
    }
    write_file(path, "");
    event_file(path, 20, 7);
    CHECK(content(path) == first_event(7));
    CHECK(has(sentence([&] { event_file(folder / "no/events", 20, 7); }), "cannot write"));
}
