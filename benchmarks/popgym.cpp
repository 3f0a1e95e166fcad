// SPDX-License-Identifier: MIT

// Plays the environments of POPGym and tells all of it, for benchmarks/peers/popgym_parity.py, which plays the same in
// the original: layouts and chance as they were drawn, actions, observations, rewards, ends. Episodes are random, and
// three quarters the oracle's, by turns: so that ends are met that chance does not find. JSON lines on stdout.
//
//   benchmark-popgym --task NAME [--difficulty easy] [--steps 10000] [--seed 1]
//
//   {"layout": {...}, "seen": [...]}                             an episode begins
//   {"state": {...}, "action": a, "reward": r, "done": false, "seen": [...]}   a step; `seen` follows it
//
// `seen` names the numbers that are not zero: index, number, index, number, ...

#include <charconv>
#include <cstdio>
#include <string>
#include <vector>

#include <engram/core/settings.hpp>
#include <engram/tasks.hpp>

#include "flags.hpp"

namespace {

using namespace engram;
using namespace engram::popgym;

/// In as many digits as tell it from all others.
std::string text(double x) {
    char digits[40];
    return {digits, std::to_chars(digits, digits + sizeof digits, x).ptr};
}
std::string text(float x) {
    char digits[40];
    return {digits, std::to_chars(digits, digits + sizeof digits, x).ptr};
}

template <class Numbers>
std::string list(const Numbers& numbers, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += (i ? "," : "") + std::to_string(numbers[i]);
    return "[" + out + "]";
}

template <class Stack>
std::string cards(const std::string& name, const Stack& stack, int count) {
    return "\"" + name + "\":" + list(stack.card, count);
}
template <class Real>
std::string pair_of(Real a, Real b) {
    return "[" + text(a) + "," + text(b) + "]";
}

std::string layout(const repeat_first& g) {
    return cards("cards", g.cards, g.size(g.level));
}
std::string layout(const repeat_previous& g) {
    return cards("cards", g.cards, g.size(g.level));
}
std::string layout(const autoencode& g) {
    return cards("cards", g.cards, g.size(g.level));
}
std::string layout(const higher_lower& g) {
    return cards("cards", g.cards, g.size(g.level));
}
std::string layout(const concentration& g) {
    return cards("cards", g.cards, g.size(g.level));
}
std::string layout(const count_recall& g) {
    return cards("cards", g.values, g.size(g.level)) + "," + cards("queries", g.queries, g.size(g.level));
}
std::string layout(const battleship& g) {
    return "\"cells\":" + list(g.cells, g.side(g.level) * g.side(g.level));
}
std::string layout(const mine_sweeper& g) {
    return "\"cells\":" + list(g.cells, g.side(g.level) * g.side(g.level));
}
std::string layout(const multiarmed_bandit& g) {
    return "\"chance\":" + list(g.chance, g.arms(g.level));
}
template <bool Escape>
std::string layout(const labyrinth<Escape>& g) {
    std::string out;
    for (int i = 0; i < g.side() * g.side(); ++i)
        out += (i ? "," : "") + std::to_string(g.kind(i / g.side(), i % g.side()));
    return "\"cells\":[" + out + "],\"at\":[" + std::to_string(g.row) + "," + std::to_string(g.column) + "]";
}
template <bool Noisy>
std::string layout(const cart_pole<Noisy>& g) {
    return "\"place\":" + pair_of(g.place.value(), g.speed.value()) +
           ",\"angle\":" + pair_of(g.angle.value(), g.turning.value());
}
template <bool Noisy>
std::string layout(const pendulum<Noisy>& g) {
    return "\"angle\":" + pair_of(g.angle.value(), g.speed.value());
}

/// What a step adds by chance, told from a copy of the stream before it.
template <class Game>
std::string noise(const Game& g, philox before) {
    float two[2];
    for (float& x : two) x = before.normal() * 0.1f * static_cast<float>(g.level.of(1, 2, 3));
    return ",\"noise\":" + pair_of(two[0], two[1]);
}

/// The state before a step, where it is not the layout alone.
template <class Game>
std::string state(const Game&) {
    return "";
}
std::string state(const multiarmed_bandit& g) {
    philox next = g.random;
    return "\"draw\":" + std::to_string(next.next() >> 8);
}
template <bool Noisy>
std::string state(const cart_pole<Noisy>& g) {
    return layout(g) + (Noisy ? noise(g, g.random) : "");
}
template <bool Noisy>
std::string state(const pendulum<Noisy>& g) {
    return layout(g) + (Noisy ? noise(g, g.random) : "");
}

template <class Game>
void play(const task_options& options, std::uint64_t seed, int steps) {
    const task_info info = Game::describe(options);
    Game game = Game::make("train", options, nullptr);
    game.random = philox(seed, stream_id("environment", 0));
    philox policy(seed, stream_id("action", 0));
    std::vector<float> numbers(static_cast<std::size_t>(info.observation.size()));
    const auto seen = [&] {
        game.observe(nullptr, numbers.data());
        std::string out;
        for (std::size_t i = 0; i < numbers.size(); ++i)
            if (numbers[i] != 0) out += (out.empty() ? "" : ",") + std::to_string(i) + "," + text(numbers[i]);
        return "[" + out + "]";
    };
    const auto begin = [&] {
        philox before = game.random;
        game.reset();
        std::string drawn = layout(game);
        if constexpr (std::is_same_v<Game, noisy_stateless_cart_pole> ||
                      std::is_same_v<Game, noisy_stateless_pendulum>) {
            for (int i = 0; i < (std::is_same_v<Game, noisy_stateless_pendulum> ? 2 : 4); ++i) before.next();
            drawn += noise(game, before);
        }
        std::printf("{\"layout\":{%s},\"seen\":%s}\n", drawn.c_str(), seen().c_str());
    };
    bool clever = false;
    begin();
    for (int t = 0; t < steps; ++t) {
        const std::string before = state(game);
        const int action = clever && policy.below(4) > 0 ? game.oracle() : policy.below(info.actions);
        const outcome got = game.step(action);
        std::printf("{\"state\":{%s},\"action\":%d,\"reward\":%s,\"done\":%s,\"seen\":%s}\n", before.c_str(), action,
                    text(got.reward).c_str(), got.done ? "true" : "false", seen().c_str());
        if (got.done) begin(), clever = !clever;
    }
}

template <class... Games>
void play_named(const std::string& name, const task_options& options, std::uint64_t seed, int steps) {
    std::vector<std::string> names;
    (names.push_back(Games::describe(options).name), ...);
    require_known("task", name, names);
    ((Games::describe(options).name == name ? play<Games>(options, seed, steps) : void()), ...);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        task_options options;
        const flags told(argc, argv,
                         {{"--task", ""},
                          {"--difficulty", options.difficulty},
                          {"--rules", options.rules},
                          {"--steps", "10000"},
                          {"--seed", "1"}});
        options.difficulty = told.text("--difficulty");
        options.rules = told.text("--rules");
        play_named<repeat_first, repeat_previous, autoencode, count_recall, higher_lower, concentration, battleship,
                   mine_sweeper, multiarmed_bandit, stateless_cart_pole, noisy_stateless_cart_pole, stateless_pendulum,
                   noisy_stateless_pendulum, labyrinth_escape, labyrinth_explore>(
            told.text("--task"), options, static_cast<std::uint64_t>(told.number("--seed")), told.number("--steps"));
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "benchmark-popgym: %s\n", problem.what());
        return 2;
    }
}
