// SPDX-License-Identifier: MIT

// The environments of POPGym: sizes, scores and ends against hand-worked cases. tests/task/registry.cpp holds them to
// the laws of all tasks, benchmarks/peers/popgym_parity.py to the original step by step.

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <engram/task/registry.hpp>

using namespace engram;

namespace {

const std::vector<std::string> difficulties{"easy", "medium", "hard"};

task_options at(const std::string& difficulty, const std::string& rules = "package") {
    task_options options;
    options.difficulty = difficulty, options.rules = rules;
    return options;
}

template <class Game>
Game fresh(const task_options& options, std::uint64_t seed = 1) {
    Game made = Game::make("train", options, nullptr);
    made.random = philox(seed, 0);
    made.reset();
    return made;
}

template <class Game>
std::vector<float> look(const Game& game) {
    task_options own;
    own.difficulty = difficulties[static_cast<std::size_t>(game.level.difficulty)];
    own.rules = game.level.paper ? "paper" : "package";
    std::vector<float> seen(static_cast<std::size_t>(Game::describe(own).observation.size()), -7.0f);
    game.observe(nullptr, seen.data());
    return seen;
}

/// Where the one is among the `count` numbers from `first` on; they have to be a one-hot.
int hot(const std::vector<float>& seen, int first, int count) {
    int found = -1;
    for (int i = 0; i < count; ++i) {
        const float x = seen[static_cast<std::size_t>(first + i)];
        CHECK((x == 0 || x == 1));
        if (x == 0) continue;
        CHECK(found == -1);
        found = i;
    }
    CHECK(found >= 0);
    return found;
}

struct played {
    double total = 0;
    int steps = 0;
};

/// One episode; `choose` gives the action.
template <class Game, class Choose>
played play(Game& game, Choose choose) {
    played sum;
    for (;;) {
        const outcome got = game.step(choose(game));
        sum.total += static_cast<double>(got.reward);
        ++sum.steps;
        if (got.done) return sum;
        CHECK(game.valid());
    }
}

const auto by_oracle = [](const auto& game) { return game.oracle(); };

struct size_row {
    std::string name;
    int in[3], out[3], longest[3];
};

/// Widths of the wrapped observations, policy outputs and lengths, as published.
const std::vector<size_row> published{
    {"popgym_repeat_first", {10, 10, 10}, {4, 4, 4}, {51, 415, 831}},
    {"popgym_repeat_previous", {10, 10, 10}, {4, 4, 4}, {51, 103, 155}},
    {"popgym_autoencode", {12, 12, 12}, {4, 4, 4}, {103, 207, 311}},
    {"popgym_count_recall", {33, 37, 45}, {27, 27, 17}, {51, 103, 207}},
    {"popgym_higher_lower", {17, 17, 17}, {2, 2, 2}, {51, 103, 155}},
    {"popgym_concentration", {210, 418, 782}, {52, 104, 52}, {104, 208, 104}},
    {"popgym_battleship", {20, 24, 28}, {64, 100, 144}, {64, 100, 144}},
    {"popgym_mine_sweeper", {13, 21, 28}, {16, 36, 64}, {14, 30, 54}},
    {"popgym_multiarmed_bandit", {14, 24, 34}, {10, 20, 30}, {200, 400, 600}},
    {"popgym_stateless_cart_pole", {6, 6, 6}, {2, 2, 2}, {200, 400, 600}},
    {"popgym_noisy_stateless_cart_pole", {6, 6, 6}, {2, 2, 2}, {200, 200, 200}},
    {"popgym_stateless_pendulum", {5, 5, 5}, {5, 5, 5}, {200, 150, 100}},
    {"popgym_noisy_stateless_pendulum", {5, 5, 5}, {5, 5, 5}, {200, 200, 200}},
    {"popgym_labyrinth_escape", {56, 56, 56}, {4, 4, 4}, {1023, 1023, 1023}},
    {"popgym_labyrinth_explore", {56, 56, 56}, {4, 4, 4}, {1023, 1023, 1023}},
};

}  // namespace

TEST_CASE("sizes are the published ones, at each difficulty") {
    for (const auto& row : published)
        for (std::size_t d = 0; d < 3; ++d) {
            CAPTURE(row.name);
            CAPTURE(d);
            const task_info info = describe_task(row.name, at(difficulties[d]));
            CHECK(info.observation.size() == row.in[d]);
            CHECK(info.actions == row.out[d]);
            CHECK(info.level("train").longest_episode == row.longest[d]);
        }
    CHECK(describe_task("popgym_count_recall", at("hard", "paper")).observation.size() == 44);
    CHECK(describe_task("popgym_count_recall", at("hard", "paper")).actions == 16);
    CHECK(describe_task("popgym_mine_sweeper", at("easy", "paper")).level("train").longest_episode == 15);
    CHECK_THROWS_WITH_AS(describe_task("popgym_autoencode", at("eazy")),
                         "unknown difficulty 'eazy'; did you mean 'easy'?", error);
    CHECK_THROWS_WITH_AS(describe_task("popgym_autoencode", at("easy", "papr")),
                         "unknown rules 'papr'; did you mean 'paper'?", error);
}

TEST_CASE("every game and difficulty: batches equal singles, states resume, other difficulties refuse them") {
    for (const auto& row : published)
        for (std::size_t d = 0; d < 3; ++d) {
            CAPTURE(row.name);
            CAPTURE(d);
            const auto options = at(difficulties[d]);
            const auto run = [&](batch_environment& batch, int i, int steps) {
                std::vector<float> log(static_cast<std::size_t>(batch.info().observation.size()));
                double sum = 0;
                std::vector<double> all;
                philox policy(4, 4);
                for (int t = 0; t < steps; ++t) {
                    batch.observe(i, log.data());
                    for (std::size_t k = 0; k < log.size(); ++k) {
                        REQUIRE(log[k] >= batch.info().lowest);
                        REQUIRE(log[k] <= batch.info().highest);
                        sum += static_cast<double>(log[k]) * static_cast<double>(k % 89 + 1);
                    }
                    const outcome got = batch.step(i, policy.below(batch.info().actions));
                    all.push_back(sum + 1000.0 * static_cast<double>(got.reward) + (got.done ? 0.5 : 0.0));
                }
                return all;
            };
            auto whole = make_environment(row.name, "train", 3, 8, 0, options);
            auto single = make_environment(row.name, "train", 1, 8, 2, options);
            CHECK(run(*whole, 2, 60) == run(*single, 0, 60));
            auto resumed = make_environment(row.name, "train", 1, 9, 0, options);
            resumed->restore(0, whole->state(2));
            CHECK(run(*resumed, 0, 60) == run(*whole, 2, 60));
            auto other = make_environment(row.name, "train", 1, 8, 2, at(difficulties[(d + 1) % 3]));
            CHECK_THROWS_AS(other->restore(0, whole->state(0)), error);
        }
}

TEST_CASE("who knows the whole state earns what there is") {
    for (const auto& difficulty : difficulties) {
        CAPTURE(difficulty);
        const auto options = at(difficulty);
        const auto total = [&](auto game) { return play(game, by_oracle).total; };
        for (std::uint64_t seed = 1; seed < 6; ++seed) {
            CHECK(total(fresh<popgym::repeat_first>(options, seed)) == doctest::Approx(1));
            CHECK(total(fresh<popgym::repeat_previous>(options, seed)) == doctest::Approx(1));
            CHECK(total(fresh<popgym::autoencode>(options, seed)) == doctest::Approx(1));
            CHECK(total(fresh<popgym::count_recall>(options, seed)) == doctest::Approx(1));
            CHECK(total(fresh<popgym::concentration>(options, seed)) == doctest::Approx(1));
            CHECK(total(fresh<popgym::battleship>(options, seed)) == doctest::Approx(1));
            CHECK(total(fresh<popgym::mine_sweeper>(options, seed)) == doctest::Approx(1));
            CHECK(total(fresh<popgym::stateless_cart_pole>(options, seed)) == doctest::Approx(1));
            CHECK(total(fresh<popgym::labyrinth_escape>(options, seed)) > 0.85);
            CHECK(total(fresh<popgym::labyrinth_explore>(options, seed)) > 0.8);
        }
    }
}

TEST_CASE("what counting cards, the best arm and swinging up are worth") {
    // Of docs/results/popgym.md, each with five standard errors of so few episodes.
    const auto mean = [](auto make) {
        double sum = 0;
        for (std::uint64_t seed = 1; seed <= 200; ++seed) {
            auto game = make(seed);
            sum += play(game, by_oracle).total;
        }
        return sum / 200;
    };
    CHECK(std::abs(mean([](auto s) { return fresh<popgym::higher_lower>(at("easy"), s); }) - 0.526) < 0.04);
    CHECK(std::abs(mean([](auto s) { return fresh<popgym::multiarmed_bandit>(at("easy"), s); }) - 9.0 / 11) < 0.06);
    CHECK(mean([](auto s) { return fresh<popgym::stateless_pendulum>(at("easy"), s); }) > 0.8);
}

TEST_CASE("the first of all observations shows the first action and its mark") {
    auto game = fresh<popgym::repeat_first>(at("easy"));
    auto seen = look(game);
    CHECK(hot(seen, 0, 4) == popgym::suit_of(game.cards[0]));
    CHECK(hot(seen, 4, 4) == 0);
    CHECK(hot(seen, 8, 2) == 1);
    game.step(2);
    seen = look(game);
    CHECK(hot(seen, 0, 4) == popgym::suit_of(game.cards[1]));
    CHECK(hot(seen, 4, 4) == 2);
    CHECK(hot(seen, 8, 2) == 0);
}

TEST_CASE("repeats: what the answer is, and what it is worth") {
    auto first = fresh<popgym::repeat_first>(at("medium"));
    const int suit = popgym::suit_of(first.cards[0]);
    CHECK(first.step(suit).reward == 1.0f / 415);
    CHECK(first.step((suit + 1) % 4).reward == -1.0f / 415);
    CHECK(play(first, [&](const auto&) { return (suit + 1) % 4; }).steps == 413);

    auto back = fresh<popgym::repeat_previous>(at("easy"));
    for (int t = 0; t < 3; ++t) CHECK(back.step(0).reward == 0);
    // The fourth step asks for the first card, three before the visible one.
    CHECK(back.step(popgym::suit_of(back.cards[0])).reward == 1.0f / 48);
    CHECK(back.step((popgym::suit_of(back.cards[1]) + 1) % 4).reward == -1.0f / 48);
    CHECK(play(back, by_oracle).steps == 46);
}

TEST_CASE("autoencode: watching, then the reverse order") {
    auto game = fresh<popgym::autoencode>(at("easy"));
    for (int t = 0; t < 51; ++t) {
        const auto seen = look(game);
        CHECK(hot(seen, 0, 2) == 1);
        CHECK(hot(seen, 2, 4) == popgym::suit_of(game.cards[t]));
        CHECK(game.step(0).reward == 0);
    }
    CHECK(hot(look(game), 0, 2) == 0);  // the last card is there, and is asked for at once
    CHECK(hot(look(game), 2, 4) == popgym::suit_of(game.cards[51]));
    CHECK(game.step(popgym::suit_of(game.cards[51])).reward == 1.0f / 52);
    CHECK(hot(look(game), 2, 4) == 0);
    CHECK(game.step((popgym::suit_of(game.cards[50]) + 1) % 4).reward == -1.0f / 52);
    for (int t = 49; t > 0; --t) CHECK(game.step(popgym::suit_of(game.cards[t])).reward == 1.0f / 52);
    const outcome end = game.step(popgym::suit_of(game.cards[0]));
    CHECK(end.reward == 1.0f / 52);
    CHECK(end.done);
}

TEST_CASE("count recall counts the visible card, and the paper's rules lack the last answer") {
    auto game = fresh<popgym::count_recall>(at("hard"));
    for (bool done = false; !done;) {
        int count = 0;
        const int asked = popgym::rank_of(game.queries[game.time]);
        for (int i = 0; i <= game.time; ++i) count += popgym::rank_of(game.values[i]) == asked;
        const auto seen = look(game);
        CHECK(hot(seen, 0, 13) == popgym::rank_of(game.values[game.time]));
        CHECK(hot(seen, 13, 13) == asked);
        const outcome got = game.step(game.time % 2 ? count : (count + 1) % 17);
        CHECK(got.reward == (game.time % 2 ? -1.0f : 1.0f) / 207);  // time has gone on
        done = got.done;
    }
    double sum = 0;
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
        auto paper = fresh<popgym::count_recall>(at("easy", "paper"), seed);
        sum += play(paper, by_oracle).total;
    }
    CHECK(sum / 400 == doctest::Approx(0.962).epsilon(0.005));
}

TEST_CASE("higher or lower: ties earn nothing") {
    auto game = fresh<popgym::higher_lower>(at("easy"));
    int ties = 0;
    for (int t = 0; t < 51; ++t) {
        const int now = popgym::rank_of(game.cards[t]), next = popgym::rank_of(game.cards[t + 1]);
        CHECK(hot(look(game), 0, 13) == now);
        const outcome got = game.step(t % 2);
        CHECK(got.done == (t == 50));
        CHECK(got.reward == (next == now ? 0.0f : (next > now) == (t % 2 == 0) ? 1.0f / 52 : -1.0f / 52));
        ties += next == now;
    }
    CHECK(ties > 0);
}

TEST_CASE("concentration: pairs, failures, and cards that lie open") {
    auto game = fresh<popgym::concentration>(at("hard"));
    const auto shows = [&](int place) { return hot(look(game), 14 * place, 14); };
    int same = 1, other = 1;
    while (game.kind_of(same) != game.kind_of(0)) ++same;
    while (game.kind_of(other) == game.kind_of(0)) ++other;
    CHECK(shows(0) == 13);  // face down
    CHECK(game.step(0).reward == 0);
    CHECK(shows(0) == game.kind_of(0));
    CHECK(game.step(other).reward == -2.0f / 104);
    CHECK(shows(0) == game.kind_of(0));  // both are seen once
    CHECK(shows(other) == game.kind_of(other));
    CHECK(game.step(0).reward == 0);
    CHECK(shows(other) == 13);
    CHECK(game.step(0).reward == -2.0f / 104);  // the same twice
    CHECK(game.step(0).reward == 0);
    CHECK(game.step(same).reward == 2.0f / 52);
    CHECK(game.step(same).reward == -1.0f / 104);  // open already
    CHECK(shows(same) == game.kind_of(same));
    CHECK(game.step(other).reward == 0);
    CHECK(game.step(same).reward == -2.0f / 104);
    CHECK(shows(other) == game.kind_of(other));
    CHECK(game.opened == 2);
    CHECK(play(game, [](const auto&) { return 0; }).steps == 104 - 9);
}

TEST_CASE("battleship: ships, shots, and less than -1 for who never hits") {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        auto game = fresh<popgym::battleship>(at("easy"), seed);
        CHECK(game.valid());  // twelve parts
        int water = 0;
        while (game.cells[water]) ++water;
        CHECK(game.step(water).reward == -1.0f / 52);
        CHECK(hot(look(game), 0, 2) == 0);
        CHECK(hot(look(game), 2, 8) == water / 8);
        CHECK(hot(look(game), 10, 8) == water % 8);
        const int part = game.oracle();
        CHECK(game.step(part).reward == 1.0f / 12);
        CHECK(hot(look(game), 0, 2) == 1);
        CHECK(game.step(part).reward == -1.0f / 52);  // again
        CHECK(hot(look(game), 0, 2) == 0);
        const auto rest = play(game, [&](const auto&) { return water; });
        CHECK(rest.steps == 61);
        CHECK(rest.total == doctest::Approx(-61.0 / 52));
    }
}

TEST_CASE("mine sweeper: what is near, what it is worth, and a step more under the paper's rules") {
    auto game = fresh<popgym::mine_sweeper>(at("easy"));
    for (auto& cell : game.cells) cell = 0;
    game.cells[10] = game.cells[12] = popgym::mine_sweeper::mine;
    double total = 0;
    const int near[]{0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 1};
    for (int i = 0; i < 11; ++i) {  // row by row, the original's seed 0
        const outcome got = game.step(i);
        total += static_cast<double>(got.reward);
        CHECK(got.done == (i == 10));
        CHECK(hot(look(game), 0, 3) == near[i]);
    }
    CHECK(total == doctest::Approx(0.142857));
    for (const char* rules : {"package", "paper"}) {
        auto again = fresh<popgym::mine_sweeper>(at("easy", rules));
        const int safe = again.oracle();
        const auto sum = play(again, [&](const auto&) { return safe; });
        CHECK(sum.steps == (rules[2] == 'c' ? 14 : 15));
        CHECK(sum.total == doctest::Approx(1.0 / 14 - (sum.steps - 1) * 0.5 / 12));
    }
}

TEST_CASE("bandit: an arm pays as often as it says") {
    auto game = fresh<popgym::multiarmed_bandit>(at("hard"));
    const double chance = game.chance[7] * 0x1p-24;
    int paid = 0;
    for (int t = 0; t < 600; ++t) {
        const outcome got = game.step(7);
        CHECK(got.reward == (game.paid ? 1.0f : -1.0f) / 600);
        CHECK(got.done == (t == 599));
        CHECK(hot(look(game), 0, 2) == game.paid);
        CHECK(hot(look(game), 2, 30) == 7);
        paid += game.paid;
    }
    CHECK(std::abs(paid / 600.0 - chance) < 5 * std::sqrt(chance * (1 - chance) / 600));
}

TEST_CASE("cart and pole: the original's start, and noise cut to the bounds") {
    auto game = fresh<popgym::stateless_cart_pole>(at("easy"));
    // The start of seed 0 in the original, as far as its observation tells; no speed.
    game.place = 0.0136962, game.speed = 0, game.angle = -0.0459026, game.turning = 0;
    CHECK(!game.push(-10));
    CHECK(game.place.value() == 0.0136962);  // Euler: places move with the speeds of before
    // Hand-worked: -10 / 1.1 = -9.0909; the pole turns by (9.8 s + c 9.0909) / (0.5 (4/3 - 0.1 c c / 1.1)).
    const double c = std::cos(-0.0459026), s = std::sin(-0.0459026);
    const double turned = (9.8 * s + c * 10 / 1.1) / (0.5 * (4.0 / 3 - 0.1 * c * c / 1.1));
    CHECK(game.turning.value() == doctest::Approx(0.02 * turned));
    CHECK(game.speed.value() == doctest::Approx(0.02 * (-10 / 1.1 - 0.05 * turned * c / 1.1)));
    const auto sum = play(game, [](const auto&) { return 0; });
    CHECK(sum.total == doctest::Approx(sum.steps / 200.0));
    CHECK(sum.steps < 15);

    double square = 0;
    int count = 0;
    auto noisy = fresh<popgym::noisy_stateless_cart_pole>(at("hard"));
    CHECK(noisy.valid());
    for (int t = 0; t < 4000; ++t) {
        const double off = static_cast<double>(look(noisy)[0]) - noisy.place.value();
        square += off * off, ++count;
        if (noisy.step(noisy.oracle()).done) noisy.reset();
        CHECK(noisy.valid());
    }
    CHECK(std::sqrt(square / count) == doctest::Approx(0.3).epsilon(0.05));
}

TEST_CASE("pendulum: cost before the step, torque seen after it") {
    auto game = fresh<popgym::stateless_pendulum>(at("easy"));
    game.angle = 0.5, game.speed = -1;
    const float reward = game.step(4).reward;  // torque 2
    CHECK(static_cast<double>(reward) ==
          doctest::Approx((8.1368022 - (0.25 + 0.1 + 0.004)) / 8.1368022 / 200).epsilon(1e-6));
    const double speed = -1 + (15 * std::sin(0.5) + 3 * 2) * 0.05;
    CHECK(game.speed.value() == doctest::Approx(speed));
    CHECK(game.angle.value() == doctest::Approx(0.5 + 0.05 * speed));
    const auto seen = look(game);
    CHECK(seen[0] == static_cast<float>(std::cos(game.angle.value())));
    CHECK(seen[1] == static_cast<float>(std::sin(game.angle.value())));
    CHECK(seen[2] == 2);
    CHECK(hot(seen, 3, 2) == 0);
    CHECK(look(fresh<popgym::stateless_pendulum>(at("easy")))[2] == 0);
    game.angle = 7.0;  // 7 - 2 pi off the top
    CHECK(
        static_cast<double>(game.push(0)) ==
        doctest::Approx((8.1368022 - (std::pow(7 - 2 * 3.141592653589793, 2) + 0.1 * speed * speed)) / 8.1368022 / 200)
            .epsilon(1e-6));
    CHECK(play(game, [](const auto&) { return 2; }).steps == 199);
}

TEST_CASE("labyrinths are trees with a way in and one out, and are seen off centre at two edges") {
    const int open[]{49, 97, 161};
    for (std::size_t d = 0; d < 3; ++d)
        for (std::uint64_t seed = 1; seed <= 10; ++seed) {
            auto game = fresh<popgym::labyrinth_explore>(at(difficulties[d]), seed);
            CHECK(game.free == open[d]);
            const auto sum = play(game, by_oracle);
            CHECK(game.left == 0);
            CHECK(sum.total == doctest::Approx(1 - (sum.steps - open[d]) / 1024.0));
        }
    using explore = popgym::labyrinth_explore;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        auto game = fresh<explore>(at("easy"), seed);
        const auto seen = look(game);
        CHECK(hot(seen, 45, 5) == 4);
        // The start stands in the middle, but in the first row above it and in the first column left of it.
        const int y = game.row == 0 ? 0 : 1, x = game.column == 0 ? 0 : 1;
        CHECK(hot(seen, 5 * (3 * y + x), 5) == explore::start);
        if (game.row == 0) CHECK(hot(seen, 5 * (6 + x), 5) == explore::wall);
        if (game.row == 0) CHECK(hot(seen, 5 * (3 + x), 5) == explore::open);
        // Only the way in leads on.
        const int in = game.row == 0 ? 3 : game.column == 0 ? 1 : game.row == 10 ? 2 : 0;
        for (int a = 0; a < 4; ++a) {
            auto next = game;
            const outcome got = next.step(a);
            CHECK(got.reward == (a == in ? 1.0f / 49 : -1.0f / 1024));
            CHECK(hot(look(next), 45, 5) == a);
        }
    }
    auto escape = fresh<popgym::labyrinth_escape>(at("easy"));
    const auto sum = play(escape, by_oracle);
    CHECK(sum.total == doctest::Approx(1 - sum.steps / 1024.0));
    auto lost = fresh<popgym::labyrinth_escape>(at("easy"));
    const int out = lost.row == 0 ? 2 : lost.column == 0 ? 0 : lost.row == 10 ? 3 : 1;
    const auto nothing = play(lost, [&](const auto&) { return out; });
    CHECK(nothing.steps == 1023);
    CHECK(nothing.total == doctest::Approx(-1023.0 / 1024));
}

TEST_CASE("more decks ask the same for longer") {
    task_options longer = at("easy");
    longer.decks = 16;
    auto game = fresh<popgym::repeat_previous>(longer);
    const auto info = popgym::repeat_previous::describe(longer);
    CHECK(info.level("train").longest_episode == 16 * 52 - 1);
    double total = 0;
    int steps = 0;
    for (bool done = false; !done; ++steps) {
        const auto got = game.step(game.oracle());
        total += static_cast<double>(got.reward), done = got.done;
    }
    CHECK(steps == 16 * 52 - 1);
    CHECK(total == doctest::Approx(1));
    longer.decks = 17;
    CHECK_THROWS_WITH_AS(popgym::repeat_previous::describe(longer),
                         "popgym_repeat_previous: 17 decks were asked for; expected 1 to 16, or 0 for as many as the "
                         "difficulty has",
                         error);
    longer = at("hard");
    longer.decks = 1;
    CHECK_THROWS_AS(popgym::repeat_previous::describe(longer), error);
}
