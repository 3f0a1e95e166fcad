#include <doctest/doctest.h>

#include <engram/core/settings.hpp>

#include <limits>

using namespace engram;

namespace sample {

struct memory_settings {
    int slots = 1024;
    int neighbours = 10;
    void check() const {
        require(slots >= 1, "memory.slots: expected at least 1, got ", slots);
        require(neighbours <= slots, "memory.neighbours: ", neighbours, " of ", slots, " slots");
    }
};

struct settings {
    float rate = 1e-3f;
    double epsilon = 1e-8;
    bool jumpy = true;
    std::int64_t steps = 1'000'000;
    std::string task = "t_maze";
    choice<"age", "position"> order = "age";
    std::vector<int> channels{16, 32, 32};
    memory_settings memory;
};

struct no_settings {};

}  // namespace sample

ENGRAM_REFLECT(sample::memory_settings, slots, neighbours);
ENGRAM_REFLECT(sample::settings, rate, epsilon, jumpy, steps, task, order, channels, memory);
ENGRAM_REFLECT(sample::no_settings);

TEST_CASE("names and texts of all types") {
    const sample::settings s;
    CHECK(names(s) == std::vector<std::string>{"rate", "epsilon", "jumpy", "steps", "task", "order", "channels",
                                               "memory.slots", "memory.neighbours"});
    CHECK(get(s, "rate") == "0.001");
    CHECK(get(s, "epsilon") == "1e-08");
    CHECK(get(s, "jumpy") == "true");
    CHECK(get(s, "steps") == "1000000");
    CHECK(get(s, "task") == "t_maze");
    CHECK(get(s, "order") == "age");
    CHECK(get(s, "channels") == "16,32,32");
    CHECK(get(s, "memory.slots") == "1024");
    CHECK(names(sample::no_settings{}).empty());
}

TEST_CASE("every type is set from text") {
    sample::settings s;
    set(s, "rate", "5e-4");
    set(s, "epsilon", "0.1");
    set(s, "jumpy", "false");
    set(s, "steps", "9000000000");
    set(s, "task", "a = b");
    set(s, "order", "position");
    set(s, "channels", "8");
    assign(s, "memory.slots=2048");
    CHECK(s.rate == 5e-4f);
    CHECK(s.epsilon == 0.1);
    CHECK_FALSE(s.jumpy);
    CHECK(s.steps == 9'000'000'000);
    CHECK(s.task == "a = b");
    CHECK(s.order.word() == "position");
    CHECK(s.channels == std::vector<int>{8});
    CHECK(s.memory.slots == 2048);
    set(s, "channels", "");
    CHECK(s.channels.empty());
    assign(s, "task=x=y");
    CHECK(s.task == "x=y");
}

TEST_CASE("texts give the same bits back") {
    sample::settings s;
    for (const float value : {0.1f, 1.0f / 3, 6.02e23f, -1e-40f, std::numeric_limits<float>::max()}) {
        s.rate = value;
        sample::settings other;
        set(other, "rate", get(s, "rate"));
        CHECK(other.rate == value);
    }
}

TEST_CASE("an unknown name is answered with the nearest one") {
    sample::settings s;
    CHECK_THROWS_WITH_AS(set(s, "memory.slot", "3"), "unknown setting 'memory.slot'; did you mean 'memory.slots'?",
                         error);
    CHECK_THROWS_WITH_AS(get(s, "memory"), doctest::Contains("unknown setting 'memory'"), error);
    CHECK_THROWS_WITH_AS(assign(s, "jumpy"), "expected name=value, got 'jumpy'", error);
}

TEST_CASE("a wrong type is a sentence") {
    sample::settings s;
    CHECK_THROWS_WITH_AS(set(s, "memory.slots", "many"), "memory.slots: expected an integer, got 'many'", error);
    CHECK_THROWS_WITH_AS(set(s, "memory.slots", "3.5"), "memory.slots: expected an integer, got '3.5'", error);
    CHECK_THROWS_WITH_AS(set(s, "memory.slots", ""), "memory.slots: expected an integer, got ''", error);
    CHECK_THROWS_WITH_AS(set(s, "memory.slots", " 3"), "memory.slots: expected an integer, got ' 3'", error);
    CHECK_THROWS_WITH_AS(set(s, "memory.slots", "3000000000"), "memory.slots: 3000000000 is out of range", error);
    CHECK_THROWS_WITH_AS(set(s, "rate", "1e99"), "rate: 1e99 is out of range", error);
    CHECK_THROWS_WITH_AS(set(s, "rate", "fast"), "rate: expected a number, got 'fast'", error);
    CHECK_THROWS_WITH_AS(set(s, "rate", "nan"), "rate: expected a number, got 'nan'", error);
    CHECK_THROWS_WITH_AS(set(s, "epsilon", "inf"), "epsilon: expected a number, got 'inf'", error);
    CHECK_THROWS_WITH_AS(set(s, "order", "positions"), "unknown order 'positions'; did you mean 'position'?", error);
    CHECK_THROWS_WITH_AS(set(s, "order", ""), "unknown order ''; expected one of age, position", error);
    CHECK(s.order.word() == "age");
    CHECK_THROWS_WITH_AS(set(s, "jumpy", "maybe"), "jumpy: expected true or false, got 'maybe'", error);
    for (const char* list : {"1,x", "1,,2", "1,2,", ","}) {
        const std::string expected =
            std::string("channels: expected a list of integers such as 16,32,32, got '") + list + "'";
        CHECK_THROWS_WITH_AS(set(s, "channels", list), expected.c_str(), error);
    }
}

TEST_CASE("check() refuses a value, and the old one stays") {
    sample::settings s;
    CHECK_THROWS_WITH_AS(set(s, "memory.slots", "0"), "memory.slots: expected at least 1, got 0", error);
    CHECK_THROWS_WITH_AS(set(s, "memory.slots", "5"), "memory.neighbours: 10 of 5 slots", error);
    CHECK(s.memory.slots == 1024);
    set(s, "memory.neighbours", "5");
    set(s, "memory.slots", "5");
    CHECK(s.memory.slots == 5);
}

TEST_CASE("values that are valid only together are set together, or not at all") {
    sample::settings s;
    assign(s, std::vector<std::string>{"memory.slots=5", "memory.neighbours=5"});
    CHECK(s.memory.slots == 5);
    CHECK_THROWS_AS(assign(s, std::vector<std::string>{"rate=1", "memory.slots=many"}), error);
    CHECK_THROWS_AS(assign(s, std::vector<std::string>{"rate=1", "memory.slots=4"}), error);
    CHECK(s.rate == 1e-3f);
    CHECK(s.memory.slots == 5);
}
