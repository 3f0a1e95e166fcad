#include <doctest/doctest.h>

#include <engram/io/safetensors.hpp>

#include <filesystem>
#include <fstream>

#include "temporary.hpp"

using namespace engram;

namespace {

struct scratch {
    temporary_folder folder;
    std::string path;
    explicit scratch(const char* name) : path(folder / name) {}
};

/// Without the flush to the disk of write_file: the tests below write a thousand damaged files.
void spill(const std::string& path, std::span<const std::uint8_t> content) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
}

/// A file of the given header and data; the header's length is `length` when that is not negative.
void write_raw(const std::string& path, const std::string& header, const std::string& data, std::int64_t length = -1) {
    std::uint64_t n = length < 0 ? header.size() : static_cast<std::uint64_t>(length);
    std::string content(8, '\0');
    std::memcpy(content.data(), &n, 8);
    write_file(path, content + header + data);
}

std::string refusal(const std::string& path) {
    try {
        safetensors::read(path);
    } catch (const error& problem) {
        const std::string text = problem.what();
        CHECK(text.starts_with(path + ": "));
        return text.substr(std::min(text.size(), path.size() + 2));
    }
    return "accepted";
}

safetensors example() {
    safetensors file;
    file.metadata = {{"ablation", "lstm_mem"}, {"note", "a \"quoted\" line\n"}};
    file.add("z.bytes", {3}, std::vector<std::uint8_t>{1, 2, 255});
    file.add("memory.key", {2, 3}, std::vector<float>{1, -2, 0.1f, 4, 5e-39f, INFINITY});
    file.add("moment", {2}, std::vector<double>{1.0 / 3, -0.0});
    file.add("slots", {1, 2}, std::vector<std::int32_t>{-1, 1 << 30});
    file.add("steps", {}, std::vector<std::int64_t>{std::int64_t{1} << 60});
    file.add("random", {1}, std::vector<std::uint64_t>{~std::uint64_t{0}});
    file.add("empty", {0, 7}, std::vector<float>{});
    return file;
}

}  // namespace

TEST_CASE("tensors of every type come back bit for bit, with their texts") {
    const scratch file("engram-safetensors-round");
    const safetensors written = example();
    written.write(file.path);
    const safetensors read = safetensors::read(file.path);
    CHECK(read.metadata == written.metadata);
    REQUIRE(read.tensors.size() == written.tensors.size());
    for (const auto& [name, t] : written.tensors) {
        CHECK(read.at(name).dtype == t.dtype);
        CHECK(read.at(name).shape == t.shape);
        CHECK(read.at(name).data == t.data);
    }
    CHECK(read.values<float>("memory.key", {2, 3})[2] == 0.1f);
    CHECK(read.values<std::int64_t>("steps", {})[0] == std::int64_t{1} << 60);
    CHECK(read.values<float>("empty").empty());
    CHECK(read.text_at("ablation") == "lstm_mem");
    CHECK(read.source() == file.path);
}

TEST_CASE("the bytes are those of the format") {
    const scratch file("engram-safetensors-bytes");
    safetensors small;
    small.add("b", {1}, std::vector<std::uint8_t>{7});
    small.add("a", {2}, std::vector<float>{1.0f, 2.0f});
    small.write(file.path);
    const bytes content = read_file(file.path);
    std::uint64_t length = 0;
    std::memcpy(&length, content.data(), 8);
    CHECK(length % 8 == 0);
    REQUIRE(content.size() == 8 + length + 9);
    const json header = parse_json({reinterpret_cast<const char*>(content.data()) + 8, length}, "header");
    CHECK(header["a"].dump() == R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})");
    CHECK(header["b"].dump() == R"({"dtype":"U8","shape":[1],"data_offsets":[8,9]})");
    CHECK(header["__metadata__"].is_object());
    const std::uint8_t numbers[] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 7};
    CHECK(std::equal(std::begin(numbers), std::end(numbers), content.end() - 9));
}

TEST_CASE("a file of another writer, without checksum or padding") {
    const scratch file("engram-safetensors-other");
    write_raw(
        file.path,
        R"({"b":{"shape":[1],"dtype":"U8","data_offsets":[0,1]},"a":{"dtype":"I32","shape":[1],"data_offsets":[1,5]}})",
        std::string("\x07\x01\0\0\0", 5));
    const safetensors read = safetensors::read(file.path);
    CHECK(read.values<std::int32_t>("a")[0] == 1);
    CHECK(read.values<std::uint8_t>("b")[0] == 7);
}

TEST_CASE("asking for what is not there") {
    const safetensors file = example();
    CHECK_THROWS_WITH_AS(file.at("memory.kee"), "tensors: no tensor 'memory.kee'; did you mean 'memory.key'?", error);
    CHECK_THROWS_WITH_AS(safetensors{}.at("x"), "tensors: no tensor 'x' (it has none)", error);
    CHECK_THROWS_WITH_AS(file.values<double>("memory.key"), "tensors: tensor 'memory.key' is F32, expected F64", error);
    CHECK_THROWS_WITH_AS(file.values<float>("memory.key", {3, 2}),
                         "tensors: tensor 'memory.key' is [2,3], expected [3,2]", error);
    CHECK_THROWS_WITH_AS(file.text_at("seed"), "tensors: no metadata 'seed'", error);
}

TEST_CASE("adding what does not fit") {
    safetensors file = example();
    const std::vector<float> two{1, 2};
    CHECK_THROWS_WITH_AS(file.add("x", {3}, two), "tensor 'x': 2 numbers for the shape [3]", error);
    CHECK_THROWS_AS(file.add("x", {-1, -2}, two), error);
    CHECK_THROWS_WITH_AS(file.add("moment", {2}, two), "tensor 'moment' is added twice", error);
    CHECK_THROWS_AS(file.add("__metadata__", {2}, two), error);
}

TEST_CASE("every truncation is refused") {
    const scratch file("engram-safetensors-short");
    example().write(file.path);
    const bytes content = read_file(file.path);
    for (std::size_t size = 0; size < content.size(); size += size < 64 ? 1 : 13) {
        spill(file.path, std::span(content).first(size));
        if (refusal(file.path) == "accepted") FAIL(size);
    }
    bytes longer = content;
    longer.push_back(0);
    spill(file.path, longer);
    CHECK(refusal(file.path) == "nothing describes the last 1 bytes");
}

TEST_CASE("a flipped bit is refused, wherever it changes what is read") {
    const scratch file("engram-safetensors-flip");
    safetensors small;
    small.metadata["seed"] = "3";
    small.add("a", {2}, std::vector<float>{1.0f, 2.0f});
    small.add("b", {3}, std::vector<std::uint8_t>{7, 8, 9});
    small.write(file.path);
    const bytes content = read_file(file.path);
    const std::string text(content.begin(), content.end());
    const std::size_t key = text.find("engram.checksum");  // a file whose checksum has lost its name has none
    int refused = 0;
    for (std::size_t byte = 0; byte < content.size(); ++byte) {
        if (byte >= key && byte < key + 15) continue;
        for (int bit = 0; bit < 8; ++bit) {
            bytes changed = content;
            changed[byte] ^= static_cast<std::uint8_t>(1u << bit);
            spill(file.path, changed);
            const std::string answer = refusal(file.path);
            if (answer != "accepted") {
                ++refused;
                if (byte + 11 >= content.size()) CHECK(answer == "it does not match its checksum; the file is corrupt");
                continue;
            }
            const safetensors read = safetensors::read(file.path);
            CHECK(read.metadata == small.metadata);
            CHECK(read.values<float>("a", {2})[1] == 2.0f);
            CHECK(read.values<std::uint8_t>("b", {3})[2] == 9);
        }
    }
    CHECK(refused > 1000);
}

TEST_CASE("a header that lies is a sentence") {
    const scratch file("engram-safetensors-lies");
    const auto lie = [&](const std::string& header, int data_size) {
        write_raw(file.path, header, std::string(static_cast<std::size_t>(data_size), '\1'));
        return refusal(file.path);
    };
    const auto tensor = [](const char* name, const char* dtype, const char* shape, const char* offsets) {
        return message('"', name, R"(":{"dtype":")", dtype, R"(","shape":)", shape, R"(,"data_offsets":)", offsets,
                       "}");
    };
    const std::string a = tensor("a", "F32", "[2]", "[0,8]");
    CHECK(lie("{" + a + "}", 8) == "accepted");
    CHECK(lie("{" + a + "," + tensor("b", "U8", "[4]", "[7,11]") + "}", 11) == "tensor 'b' overlaps the one before it");
    CHECK(lie("{" + a + "," + tensor("b", "F32", "[2]", "[0,8]") + "}", 8) == "tensor 'b' overlaps the one before it");
    CHECK(lie("{" + a + "," + tensor("b", "U8", "[4]", "[10,14]") + "}", 14) ==
          "nothing describes the 2 bytes before tensor 'b'");
    CHECK(lie("{" + a + "}", 7) == "tensor 'a' should be bytes 0 to 8 of 7; the file is truncated or corrupt");
    CHECK(lie("{" + a + "," + a + "}", 8) == "the key 'a' occurs twice");
    CHECK(lie("{" + tensor("a", "F32", "[3]", "[0,8]") + "}", 8) == "tensor 'a' has 8 bytes, which do not fit F32 [3]");
    CHECK(lie("{" + tensor("a", "F32", "[4611686018427387904,4]", "[0,0]") + "}", 0) ==
          "tensor 'a' has 0 bytes, which do not fit F32 [4611686018427387904,4]");
    CHECK(lie("{" + tensor("a", "F32", "[-2]", "[0,8]") + "}", 8) ==
          "tensor 'a' needs exactly a dtype, a shape and two data_offsets");
    CHECK(lie("{" + tensor("a", "F32", "[2]", "[8,0]") + "}", 8) ==
          "tensor 'a' should be bytes 8 to 0 of 8; the file is truncated or corrupt");
    CHECK(lie("{" + tensor("a", "F32", "[2]", "[0]") + "}", 8) ==
          "tensor 'a' needs exactly a dtype, a shape and two data_offsets");
    CHECK(lie("{" + tensor("a", "BF16", "[4]", "[0,8]") + "}", 8) ==
          "tensor 'a' is BF16; only F32, F64, I32, I64, U64 and U8 are read");
    CHECK(lie(R"({"a":3})", 0) == "tensor 'a' needs exactly a dtype, a shape and two data_offsets");
    CHECK(lie(R"({"__metadata__":{"k":1}})", 0) == "metadata 'k' is not a text");
    CHECK(lie("[]", 0) == "the header is not an object");
    CHECK(lie("{\"a\"", 0) == "not valid JSON: it ends too early, at byte 4");

    write_raw(file.path, "{}", "", 1'000'000'000'000);
    CHECK(
        refusal(file.path) ==
        "the header should have 1000000000000 bytes, but only 2 follow; the file is truncated or no safetensors file");
    write_raw(file.path, "{}", "", std::numeric_limits<std::int64_t>::max());
    CHECK(refusal(file.path) != "accepted");
}

TEST_CASE("a failed write leaves the old file") {
    const scratch file("engram-safetensors-old");
    example().write(file.path);
    const bytes before = read_file(file.path);
    safetensors bad;
    bad.metadata["text"] = "\xff";
    CHECK_THROWS_AS(bad.write(file.path), error);
    CHECK(read_file(file.path) == before);
    CHECK_THROWS_AS(example().write(file.path + "/inside/a/file"), error);
    CHECK_THROWS_AS(safetensors::read(file.path + ".none"), error);
}
