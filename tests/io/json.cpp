#include <doctest/doctest.h>

#include <engram/core/philox.hpp>
#include <engram/io/json.hpp>

#include <bit>

#include "temporary.hpp"

using namespace engram;

namespace sample {

struct memory_settings {
    int slots = 1024;
    void check() const { require(slots >= 1, "memory.slots: expected at least 1, got ", slots); }
};

struct settings {
    float rate = 1e-3f;
    double epsilon = 1e-8;
    bool jumpy = true;
    std::int64_t steps = 1'000'000;
    std::string task = "t_maze";
    std::vector<int> channels{16, 32};
    memory_settings memory;
};

}  // namespace sample

ENGRAM_REFLECT(sample::memory_settings, slots);
ENGRAM_REFLECT(sample::settings, rate, epsilon, jumpy, steps, task, channels, memory);

namespace {

std::string refusal(const char* text) {
    sample::settings s;
    try {
        settings_from_json(s, parse_json(text, "config.json"));
    } catch (const error& problem) {
        CHECK(settings_to_json(s) == settings_to_json(sample::settings{}));
        return problem.what();
    }
    return "accepted";
}

}  // namespace

TEST_CASE("settings become an object in order, and come back") {
    sample::settings s;
    CHECK(settings_to_json(s).dump() ==
          R"({"rate":0.001,"epsilon":1e-08,"jumpy":true,"steps":1000000,"task":"t_maze","channels":[16,32],)"
          R"("memory":{"slots":1024}})");
    s = {0.1f, 1e-3, false, 9'007'199'254'740'993, "\"x\"\n", {}, {7}};
    sample::settings other;
    settings_from_json(other, parse_json(json_text(settings_to_json(s)), "text"));
    CHECK(settings_to_json(other) == settings_to_json(s));
    CHECK(other.rate == 0.1f);
    CHECK(other.steps == 9'007'199'254'740'993);  // not representable as a double
    CHECK(other.memory.slots == 7);
    CHECK(other.channels.empty());
}

TEST_CASE("every float survives its text") {
    philox random(7, 0);
    for (int i = 0; i < 20000; ++i) {
        sample::settings s, other;
        s.rate = std::bit_cast<float>(random.next());
        if (!std::isfinite(s.rate)) continue;
        settings_from_json(other, settings_to_json(s));
        if (other.rate != s.rate) FAIL(s.rate);
    }
}

TEST_CASE("what is not mentioned stays") {
    sample::settings s;
    s.memory.slots = 3;
    settings_from_json(s, parse_json(R"({"rate": 1, "memory": {}})", "text"));
    CHECK(s.rate == 1.0f);
    CHECK(s.memory.slots == 3);
    CHECK(s.jumpy);
}

TEST_CASE("wrong keys, types and ranges are sentences, and change nothing") {
    CHECK(refusal(R"({"rate": 0.5, "rato": 1})") == "unknown setting 'rato'; did you mean 'rate'?");
    CHECK(refusal(R"({"memory": {"slot": 1}})") == "unknown setting 'memory.slot'; did you mean 'memory.slots'?");
    CHECK(refusal(R"({"memory": {"slots": "many"}})") == "memory.slots: expected an integer, got \"many\"");
    CHECK(refusal(R"({"memory": {"slots": 2.0}})") == "memory.slots: expected an integer, got 2.0");
    CHECK(refusal(R"({"memory": {"slots": 3000000000}})") == "memory.slots: 3000000000 is out of range");
    CHECK(refusal(R"({"memory": {"slots": -3000000000}})") == "memory.slots: -3000000000 is out of range");
    CHECK(refusal(R"({"steps": 18446744073709551615})") == "steps: 18446744073709551615 is out of range");
    CHECK(refusal(R"({"memory": {"slots": 0}})") == "memory.slots: expected at least 1, got 0");
    CHECK(refusal(R"({"memory": 3})") == "memory: expected an object, got 3");
    CHECK(refusal("[]") == "settings: expected an object, got []");
    CHECK(refusal(R"({"rate": 1e99})") == "rate: 1e+99 is out of range");
    CHECK(refusal(R"({"rate": null})") == "rate: expected a number, got null");
    CHECK(refusal(R"({"jumpy": 1})") == "jumpy: expected true or false, got 1");
    CHECK(refusal(R"({"task": 1})") == "task: expected a text, got 1");
    CHECK(refusal(R"({"channels": 16})") == "channels: expected a list of integers such as 16,32,32, got 16");
    CHECK(refusal(R"({"channels": [1, "x"]})") == "channels.1: expected an integer, got \"x\"");
    CHECK(refusal(R"({"rate": 1, "rate": 2})") == "config.json: the key 'rate' occurs twice");
    CHECK(refusal(R"({"rate": 1)") == "config.json: not valid JSON: it ends too early, at byte 10");
    CHECK(refusal("") == "config.json: not valid JSON: it ends too early, at byte 0");
    CHECK(refusal(R"({"rate": 1e999})") == "config.json: not valid JSON: a number is out of range");
}

TEST_CASE("what is nested too deep for those who walk through it is refused while it is read") {
    const auto nested = [](int levels, const std::string& open, const std::string& close) {
        std::string text;
        for (int i = 0; i < levels; ++i) text += open;
        text += "1";
        for (int i = 0; i < levels; ++i) text += close;
        return text;
    };
    CHECK(parse_json(nested(100, "[", "]"), "a").is_array());
    for (const auto& text : {nested(101, "[", "]"), nested(101, "{\"a\":", "}"), std::string(1000000, '[')}) {
        try {
            parse_json(text, "a");
            FAIL("no error");
        } catch (const error& problem) {
            CHECK(std::string(problem.what()) == "a: nested deeper than 100 levels");
        }
    }
}

TEST_CASE("the values below an object come in order, by their dotted names") {
    const json object = json::parse(
        R"({"memory": {"slots": 16, "gate": {"kind": "key"}, "none": {}}, "layers": [8, {"a": 1}], "": {"x": null}})");
    std::vector<std::string> lines;
    for_each_leaf(object,
                  [&](const std::string& name, const json& value) { lines.push_back(name + "=" + json_word(value)); });
    CHECK(lines ==
          std::vector<std::string>{"memory.slots=16", "memory.gate.kind=key", R"(layers=[8,{"a":1}])", "x=null"});
    CHECK(json_word("\xff") == "\xff");
    CHECK(json_word(json::array({"\xff"})) == "[\"\xEF\xBF\xBD\"]");
}

TEST_CASE("files") {
    const temporary_folder folder;
    const std::string path = folder / "settings.json";
    write_json(path, settings_to_json(sample::settings{}));
    CHECK(read_json(path) == settings_to_json(sample::settings{}));
    write_file(path, std::string_view("{]"));
    const std::string expected = path + ": not valid JSON at byte 2 of 2";
    CHECK_THROWS_WITH_AS(read_json(path), expected.c_str(), error);
}
