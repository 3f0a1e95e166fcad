// The replay: what comes back, how evenly, and what a checkpoint holds of it.

#include "engram/train/replay.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace engram;

namespace {

task_info numbered() {
    return {.name = "numbered", .observation = {1, 1, 2}, .lowest = -1, .highest = 1, .actions = 4};
}

/// Step n of row b shows (b, n) in codes, so that a transition says where it came from.
struct feeder {
    replay<float> memory;
    int rows;
    std::int64_t step = 0;
    feeder(int B, std::int64_t capacity) : memory(numbered(), B, capacity), rows(B) {}
    static float shown(std::int64_t code) { return -1 + 2 * static_cast<float>(code) / 254; }
    static bool ends(std::int64_t n, int b) { return (n + b) % 5 == 4; }
    static float acted(std::int64_t n, int b) { return static_cast<float>((n + b) % 4); }
    void push(int count = 1) {
        for (; count > 0; --count, ++step) {
            std::vector<float> seen, last, action, reward;
            std::vector<char> done;
            for (int b = 0; b < rows; ++b) {
                seen.insert(seen.end(), {shown(b), shown(step % 255)});
                last.push_back(step == 0 || ends(step - 1, b) ? -1.0f : acted(step - 1, b));
                action.push_back(acted(step, b));
                reward.push_back(static_cast<float>(step) + 0.1f * static_cast<float>(b));
                done.push_back(ends(step, b));
            }
            memory.push(seen, last, action, reward, done);
        }
    }
};

struct drawn {
    std::vector<float> observation, last, action, reward, continues, next, next_last;
    drawn(const replay<float>& from, std::uint64_t seed, std::size_t n)
        : observation(2 * n), last(n), action(n), reward(n), continues(n), next(2 * n), next_last(n) {
        philox random(seed, 1);
        from.draw(random, {observation, last, action, reward, continues, next, next_last});
    }
    bool operator==(const drawn&) const = default;
};

}  // namespace

TEST_CASE("transitions come back whole, evenly, and none that is older than the capacity") {
    feeder f(3, 60);
    CHECK(f.memory.size() == 0);
    f.push(2);
    CHECK(f.memory.size() == 3);
    f.push(118);
    CHECK(f.memory.size() == 60);
    constexpr std::size_t n = 12000;
    const drawn all(f.memory, 1, n);
    std::map<std::pair<int, int>, int> counts;
    for (std::size_t i = 0; i < n; ++i) {
        const int b = static_cast<int>(std::lround((all.observation[2 * i] + 1) * 127));
        const int step = static_cast<int>(std::lround((all.observation[2 * i + 1] + 1) * 127));
        ++counts[{b, step}];
        REQUIRE(all.reward[i] == static_cast<float>(step) + 0.1f * static_cast<float>(b));
        REQUIRE(all.action[i] == feeder::acted(step, b));
        REQUIRE(all.continues[i] == (feeder::ends(step, b) ? 0.0f : 1.0f));
        REQUIRE(all.last[i] == (feeder::ends(step - 1, b) ? -1.0f : feeder::acted(step - 1, b)));
        REQUIRE(all.next[2 * i + 1] == doctest::Approx(feeder::shown(step + 1)));
        REQUIRE(all.next_last[i] == (feeder::ends(step, b) ? -1.0f : feeder::acted(step, b)));
    }
    CHECK(counts.size() == 60);
    CHECK(counts.begin()->first.second == 99);  // steps 99 to 118; 119 has no next one
    // 200 each on average: five deviations of a binomial.
    for (const auto& [where, count] : counts) CHECK(std::abs(count - 200) < 5 * std::sqrt(200.0));
}

TEST_CASE("the ends and the middle of the range are exact, all else to 1 / 508 of it") {
    replay<float> memory(numbered(), 1, 4);
    const std::vector<float> zero{0}, before{-1};
    const std::vector<char> no{0};
    for (int i = 0; i < 2; ++i) memory.push(std::vector<float>{0, i == 0 ? 1.0f : -1.0f}, before, zero, zero, no);
    drawn one(memory, 1, 1);
    CHECK(one.observation == std::vector<float>{0, 1});
    CHECK(one.next == std::vector<float>{0, -1});
    for (const float x : {0.123f, -0.77f, 0.999f}) {
        for (int i = 0; i < 5; ++i) memory.push(std::vector<float>{x, 7.0f}, before, zero, zero, no);
        const drawn now(memory, 2, 1);
        CHECK(std::abs(now.observation[0] - x) <= 2.0f / 508 + 1e-6f);
        CHECK(now.observation[1] == 1);  // beyond the range: its end
    }
}

TEST_CASE("a saved replay goes on as the original; another one is refused") {
    feeder f(3, 60);
    f.push(47);
    for (int more = 0; more < 2; ++more) {
        safetensors file;
        f.memory.save(file, "replay");
        feeder g(3, 60);
        g.memory.load(file, "replay");
        g.step = f.step;
        CHECK(drawn(f.memory, 5, 100) == drawn(g.memory, 5, 100));
        f.push(9), g.push(9);
        CHECK(drawn(f.memory, 6, 100) == drawn(g.memory, 6, 100));
        feeder other(3, 63);
        CHECK_THROWS_WITH_AS(other.memory.load(file, "replay"), doctest::Contains("a replay of 21 steps"), error);
        CHECK(other.memory.size() == 0);
        file.tensors.at("replay.action").data[1] = 4;
        CHECK_THROWS_WITH_AS(g.memory.load(file, "replay"), doctest::Contains("an action that task 'numbered'"), error);
    }
    CHECK(drawn(f.memory, 5, 10) == drawn(f.memory, 5, 10));
    CHECK_FALSE(drawn(f.memory, 5, 10) == drawn(f.memory, 6, 10));
}

TEST_CASE("a million transitions of the T-Maze fit into ten million bytes") {
    CHECK(replay<float>({.name = "m", .observation = {1, 1, 3}, .lowest = -1, .actions = 2}, 8, 1'000'000).bytes() <
          10'000'200);
    CHECK_THROWS_WITH_AS(replay<float>(numbered(), 8, 7), doctest::Contains("expected at least one for each of 8"),
                         error);
    const replay<float> empty(numbered(), 2, 10);
    CHECK_THROWS_WITH_AS(drawn(empty, 1, 1), doctest::Contains("nothing to draw from yet"), error);
}
