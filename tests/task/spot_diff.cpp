// SPDX-License-Identifier: MIT
#include "engram/task/spot_diff.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

using namespace engram;

namespace {

constexpr const char* fidelities[] = {"small", "paper"};

// Not inlined: the calls of an environment are large, and there are many of them here to compile.
template <class E>
[[gnu::noinline]] outcome play(E& e, int action) {
    return e.step(action);
}
template <class E>
[[gnu::noinline]] void restart(E& e) {
    e.reset();
}
template <class E>
[[gnu::noinline]] bool is_valid(const E& e) {
    return e.valid();
}
template <class E>
[[gnu::noinline]] int good_action(const E& e) {
    return e.oracle();
}

template <class E>
E episode(const std::string& level, const std::string& fidelity, std::uint64_t seed) {
    task_options options;
    options.fidelity = fidelity;
    E e = E::make(level, options, nullptr);
    e.random = philox(seed, 1);
    restart(e);
    return e;
}

/// One frame a step, to look between the frames of an agent step.
template <class E>
E slow_episode(const std::string& level, std::uint64_t seed) {
    E e = episode<E>(level, "paper", seed);
    e.level.time.ticks = 1;
    return e;
}

constexpr int turn = static_cast<int>(walking::look_left), back = static_cast<int>(walking::backward);

/// Walks on until the gate ahead is open.
template <class E>
void walk_through(E& e) {
    for (int i = 0; i < 5000 && e.now != passage::second_room; ++i) REQUIRE_FALSE(play(e, good_action(e)).done);
    REQUIRE(e.now == passage::second_room);
}

using paint = std::array<int, 3>;
paint paint_of(const room_object& o) {
    return {o.paint.r, o.paint.g, o.paint.b};
}

/// Where a moving block is around its resting place, at one frame of every 15 of a period. The passage of time is all
/// that is needed: whoever turns on the spot touches nothing.
using path = std::vector<std::pair<int, int>>;
template <class E>
path path_of(E e, int block) {
    path found;
    const lattice_place at = rim_place(e.spot[block]);
    const int x = e.level.plan.along(e.now == passage::second_room, at), y = e.level.plan.across(at);
    while (e.frame % motion_period) REQUIRE_FALSE(play(e, turn).done);
    for (int i = 0; i < motion_period; ++i) {
        if (i % 15 == 0) found.emplace_back(e.here.objects[block].x - x, e.here.objects[block].y - y);
        REQUIRE_FALSE(play(e, turn).done);
    }
    return found;
}

path path_along(motion along, int reach) {
    path found;
    for (int i = 0; i < motion_period; i += 15) {
        const displacement by = motion_at(along, i, reach);
        found.emplace_back(by.x, by.y);
    }
    return found;
}

}  // namespace

TEST_CASE_TEMPLATE("whoever knows the answer gets it at every level and fidelity, within the time", E, spot_diff,
                   spot_diff_passive, spot_diff_multi, spot_diff_motion) {
    for (const char* fidelity : fidelities)
        for (const auto& named : suite_levels) {
            CAPTURE(fidelity);
            CAPTURE(named.name);
            task_options options;
            options.fidelity = fidelity;
            batch_of<E> batch(named.name, 1, 7, 0, options, nullptr);
            const level_info& level = batch.info().level(named.name);
            CHECK(level.maximum_reward == 1);
            CHECK(std::isnan(level.random_reward));
            CHECK(level.further == named.further);
            constexpr int episodes = 40;
            double total = 0;
            int longest = 0;
            for (int i = 0, steps = 0; i < episodes;) {
                const outcome got = batch.step(0, batch.oracle(0));
                total += got.reward;
                longest = std::max(longest, ++steps);
                if (got.done) ++i, steps = 0;
            }
            CHECK(total >= 0.99 * episodes);
            CHECK(longest < level.longest_episode);
        }
}

TEST_CASE_TEMPLATE("the gates keep a body for the delay of the level, to the frame, and never let it back", E,
                   spot_diff, spot_diff_passive, spot_diff_multi, spot_diff_motion) {
    for (const auto& [level, seconds] : std::vector<std::pair<std::string, int>>{
             {"train_small", 0}, {"holdout_interpolate", 5}, {"train_large", 10}, {"holdout_extrapolate", 15}}) {
        const std::string where = level;  // clang before 16 captures no binding
        CAPTURE(where);
        for (const char* fidelity : fidelities) {
            // At small fidelity a tenth: 2, 4 and 6 agent steps.
            const int second = std::string(fidelity) == "paper" ? 60 : 6;
            const int delay = std::is_same_v<E, spot_diff_multi> ? 0 : second * seconds;
            E e = std::string(fidelity) == "paper" ? slow_episode<E>(level, 3) : episode<E>(level, fidelity, 3);
            const int y = e.level.plan.middle(), first = e.level.plan.first_gate(), last = e.level.plan.second_gate();
            int shut = -1, open = -1;
            for (int i = 0; i < 5000 && open < 0; ++i) {
                CHECK(e.here.at(first, y).kind == (shut < 0 ? cell_kind::gate_open : cell_kind::gate_shut));
                CHECK(e.here.at(last, y).kind == cell_kind::gate_shut);
                const bool was_inside = e.level.plan.in_corridor(e.who);
                CHECK(was_inside == (shut >= 0));
                REQUIRE_FALSE(play(e, good_action(e)).done);
                if (shut < 0 && e.now != passage::first_room) shut = e.frame;
                if (e.now == passage::second_room) open = e.frame;
            }
            REQUIRE(open >= 0);
            CHECK(e.here.at(last, y).kind == cell_kind::gate_open);
            CHECK(open - shut == delay);
            CHECK(shut == e.shut_frame);
            for (int i = 0; i < 60; ++i) {
                REQUIRE_FALSE(play(e, back).done);
                REQUIRE(e.who.x - e.level.plan.body >= (first + 1) * cell_length);
            }
            CHECK(e.here.at(first, y).kind == cell_kind::gate_shut);
        }
    }
}

TEST_CASE_TEMPLATE("the second room is the first with another colour on one block", E, spot_diff, spot_diff_passive,
                   spot_diff_multi) {
    for (const char* fidelity : fidelities)
        for (const auto& named : suite_levels)
            for (std::uint64_t seed = 0; seed < 8; ++seed) {
                E e = episode<E>(named.name, fidelity, seed);
                const room before = e.here;
                walk_through(e);
                REQUIRE(e.here.objects_used == before.objects_used);
                REQUIRE(e.here.objects_used == e.count);
                int different = 0;
                for (int i = 0; i < e.count; ++i) {
                    const room_object &a = before.objects[i], &b = e.here.objects[i];
                    CHECK(b.x - e.level.plan.west(1) == a.x - e.level.plan.west(0));
                    CHECK(b.y == a.y);
                    CHECK(std::tuple(a.radius, a.height, a.form, a.heading, a.base) ==
                          std::tuple(b.radius, b.height, b.form, b.heading, b.base));
                    const bool other = paint_of(a) != paint_of(b);
                    CHECK(other == (i == e.odd));
                    different += other;
                }
                CHECK(different == 1);
            }
}

TEST_CASE("of the moving blocks, which look alike, one follows another path in the second room") {
    for (const char* level : {"train_small", "holdout_interpolate", "train_large"})
        for (std::uint64_t seed = 0; seed < 6; ++seed) {
            auto e = slow_episode<spot_diff_motion>(level, seed);
            const std::array before{path_of(e, 0), path_of(e, 1)};
            const room first = e.here;
            walk_through(e);
            CHECK(e.here.objects_used == 2);
            const std::array after{path_of(e, 0), path_of(e, 1)};
            for (int i = 0; i < 2; ++i) {
                CHECK((after[i] != before[i]) == (i == e.odd));
                CHECK(paint_of(e.here.objects[i]) == paint_of(first.objects[0]));
                CHECK(paint_of(first.objects[i]) == paint_of(first.objects[0]));
            }
            CHECK(before[0] != before[1]);
            CHECK(after[0] != after[1]);
        }
}

TEST_CASE("train and holdout share no colour and no pattern, but for the colours of moving blocks") {
    const auto seen = [](auto kind, bool holdout) {
        using E = decltype(kind);
        std::set<paint> colours, shades;
        // At small fidelity a colour comes in shades, of which it is the middle.
        const auto add = [&](const E& e, int i, int look) {
            const paint found = paint_of(e.here.objects[i]);
            constexpr bool moves = std::is_same_v<E, spot_diff_motion>;
            const paint colour = paint_of({.paint = difference_colour(holdout && !moves, moves ? e.paint : look)});
            for (std::size_t c = 0; c < 3; ++c) {
                CHECK(found[c] >= colour[c] / 2 - shade_reach - 1);
                CHECK(found[c] <= colour[c] * 1.2 + shade_reach);
            }
            colours.insert(colour), shades.insert(found);
        };
        for (const auto& named : suite_levels)
            if (named.level.holdout == holdout)
                for (std::uint64_t seed = 0; seed < 30; ++seed) {
                    E e = episode<E>(named.name, "small", seed);
                    for (int i = 0; i < e.count; ++i) add(e, i, e.look[i]);
                    walk_through(e);
                    for (int i = 0; i < e.count; ++i) add(e, i, i == e.odd ? e.changed : e.look[i]);
                }
        CHECK(shades.size() > 2 * difference_colours);
        return colours;
    };
    const auto apart = [&](auto kind) {
        const auto train = seen(kind, false), held = seen(kind, true);
        CHECK(train.size() == difference_colours);
        CHECK(held.size() == difference_colours);
        for (const paint& c : train) CHECK_FALSE(held.contains(c));
    };
    apart(spot_diff{}), apart(spot_diff_passive{}), apart(spot_diff_multi{});
    CHECK(seen(spot_diff_motion{}, false) == seen(spot_diff_motion{}, true));
    for (const auto& named : suite_levels)
        for (std::uint64_t seed = 0; seed < 30; ++seed) {
            const auto e = episode<spot_diff_motion>(named.name, "paper", seed);
            for (int i = 0; i < e.count; ++i)
                CHECK(paint_of(e.here.objects[i]) == paint_of({.paint = difference_colour(false, e.paint)}));
        }

    for (const auto& named : suite_levels) {
        std::set<int> used;
        for (std::uint64_t seed = 0; seed < 25; ++seed) {
            auto e = slow_episode<spot_diff_motion>(named.name, seed);
            const int reach = e.level.plan.reach;
            for (const bool second : {false, true}) {
                if (second) walk_through(e);
                for (int i = 0; i < 2; ++i)
                    for (int p = 0; p < 2 * motions_per_split; ++p)
                        if (path_of(e, i) == path_along(static_cast<motion>(p), reach)) used.insert(p);
            }
            if (used.size() == motions_per_split) break;
        }
        CAPTURE(named.name);
        CHECK(used.size() == motions_per_split);
        for (const int p : used) CHECK((p >= motions_per_split) == (named.level.holdout == 1));
    }
}

// Counts of a uniform draw: within five standard deviations, sqrt(n p (1 - p)).
TEST_CASE_TEMPLATE("which block differs, where it stands and what it looks like give nothing away", E, spot_diff,
                   spot_diff_passive, spot_diff_multi, spot_diff_motion) {
    constexpr int draws = 6000;
    auto e = episode<E>("holdout_extrapolate", "small", 5);
    const int looks = std::is_same_v<E, spot_diff_motion> ? motions_per_split : difference_colours;
    std::map<int, int> odd, changed, kept, place, other_place;
    for (int i = 0; i < draws; ++i) {
        restart(e);
        ++odd[e.odd], ++changed[e.changed], ++kept[e.look[(e.odd + 1) % e.count]];
        ++place[e.spot[e.odd]], ++other_place[e.spot[(e.odd + 1) % e.count]];
    }
    const auto uniform = [](const std::map<int, int>& counts, int n) {
        CHECK(counts.size() == n);
        const double p = 1.0 / n;
        for (const auto& [value, count] : counts)
            CHECK(std::abs(count - draws * p) < 5 * std::sqrt(draws * p * (1 - p)));
    };
    uniform(odd, e.count), uniform(changed, looks), uniform(kept, looks);
    // The two basic blocks keep their distance, so that places are not equally frequent; they are so for both.
    for (const auto& [value, count] : place) {
        const double p = (count + other_place[value]) / (2.0 * draws);
        CHECK(std::abs(count - other_place[value]) < 5 * std::sqrt(2 * draws * p * (1 - p)));
    }
}

TEST_CASE_TEMPLATE("whoever chooses at random is right once in as many times as there are blocks", E, spot_diff,
                   spot_diff_multi) {
    for (const auto& [level, blocks] : std::vector<std::pair<std::string, int>>{
             {"train_small", 2}, {"holdout_interpolate", 3}, {"holdout_extrapolate", 5}}) {
        auto e = episode<E>(level, "small", 11);
        philox random(4, 4);
        constexpr int episodes = 600;
        double total = 0, expected = 0, variance = 0;
        for (int i = 0; i < episodes; ++i) {
            const int wanted = random.below(e.count);
            const double p = 1.0 / e.count;
            expected += p, variance += p * (1 - p);
            for (bool done = false; !done;) {
                E pretended = e;
                pretended.odd = wanted;
                const outcome got = play(e, good_action(pretended));
                total += got.reward;
                done = got.done;
            }
            if (std::is_same_v<E, spot_diff_multi>) CHECK(e.count == blocks);
            restart(e);
        }
        const std::string where = level;  // clang before 16 captures no binding
        CAPTURE(where);
        CHECK(std::abs(total - expected) < 5 * std::sqrt(variance));
    }
}

TEST_CASE("the number of blocks and the delay are those of the scale, small and large drawn alike in training") {
    const auto drawn = [](auto kind, const std::string& level, const char* fidelity = "small") {
        auto e = episode<decltype(kind)>(level, fidelity, 3);
        std::map<std::pair<int, int>, int> found;  // blocks, seconds of the paper
        for (int i = 0; i < 2000; ++i, restart(e)) ++found[{e.count, e.delay / 6}];
        return found;
    };
    const auto near = [](int count, int expected) { return std::abs(count - expected) < 5 * 22.4; };  // sqrt(n / 4)
    for (const auto& found :
         {drawn(spot_diff{}, "train"), drawn(spot_diff_passive{}, "train"), drawn(spot_diff_motion{}, "train")}) {
        CHECK(found.size() == 2);
        CHECK(near(found.at({2, 0}), 1000));
        CHECK(near(found.at({2, 10}), 1000));
    }
    using counts = std::map<std::pair<int, int>, int>;
    const auto many = drawn(spot_diff_multi{}, "train", "paper");
    CHECK(many.size() == 4);
    for (const int n : {2, 3, 5, 6}) CHECK(near(many.at({n, 0}), 500));
    CHECK(drawn(spot_diff_multi{}, "interpolate", "paper") == counts{{{4, 0}, 2000}});
    CHECK(drawn(spot_diff_multi{}, "extrapolate", "paper") == counts{{{7, 0}, 2000}});
    const auto fewer = drawn(spot_diff_multi{}, "train");
    CHECK(fewer.size() == 2);
    for (const int n : {2, 4}) CHECK(near(fewer.at({n, 0}), 1000));
    CHECK(drawn(spot_diff_multi{}, "interpolate") == counts{{{3, 0}, 2000}});
    CHECK(drawn(spot_diff_multi{}, "extrapolate") == counts{{{5, 0}, 2000}});
    CHECK(drawn(spot_diff{}, "interpolate") == std::map<std::pair<int, int>, int>{{{2, 5}, 2000}});
    CHECK(drawn(spot_diff{}, "extrapolate") == std::map<std::pair<int, int>, int>{{{2, 15}, 2000}});
}

/// Whether a body has the middle of a block well within its view, a moving one just within it.
template <class E>
bool in_sight(const E& e, int i) {
    const double share = std::is_same_v<E, spot_diff_motion> ? 0.95 : 0.8;
    const double widest = std::atan(view_lens(e.level.time, e.level.height, e.level.width).across());
    const double turned = e.who.heading * 6.283185307 / full_turn;
    const double bearing = std::atan2(e.here.objects[i].y - e.who.y, e.here.objects[i].x - e.who.x);
    return std::abs(std::remainder(bearing - turned, 6.283185307)) < share * widest;
}

TEST_CASE("from the start, passive blocks are in sight; for the basic ones one has to look around") {
    std::map<int, std::set<int>> seen;  // by the quarter that it begins with
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        for (const char* fidelity : fidelities) {
            const auto passive = episode<spot_diff_passive>("train", fidelity, seed);
            CHECK((in_sight(passive, 0) && in_sight(passive, 1)));
        }
        const auto far = episode<spot_diff>("train", "paper", seed);
        CHECK_FALSE((in_sight(far, 0) || in_sight(far, 1)));
        const auto basic = episode<spot_diff>("train", "small", seed);
        seen[basic.who.heading / (full_turn / 4)].insert(in_sight(basic, 0) + in_sight(basic, 1));
    }
    CHECK(seen == std::map<int, std::set<int>>{{0, {2}}, {1, {1}}, {2, {0}}, {3, {1}}});
}

TEST_CASE("many blocks come in sight pair of places after pair, in both rooms alike, at small fidelity") {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        auto e = episode<spot_diff_multi>("train", "small", seed);
        const int strafe = static_cast<int>(seed % 2 ? walking::strafe_left : walking::strafe_right);
        const auto walked = [&](int which) {
            std::vector<std::vector<std::pair<int, int>>> pairs;  // in sight and a column ahead
            for (int column = 0; column + 1 < e.level.plan.columns; ++column) {
                CHECK(e.who.x - e.level.plan.west(which) == column * cell_length + cell_length / 2);
                CHECK(e.who.heading == 0);
                auto& pair = pairs.emplace_back();
                for (int i = 0; i < e.count; ++i) {
                    const room_object& o = e.here.objects[i];
                    if (o.x - e.who.x != cell_length) continue;
                    CHECK(in_sight(e, i));
                    pair.emplace_back(i, o.y - e.who.y);
                }
                REQUIRE_FALSE(play(e, static_cast<int>(walking::forward)).done);
            }
            return pairs;
        };
        const auto before = walked(0);
        std::size_t seen = 0;
        for (const auto& pair : before) seen += pair.size();
        CHECK(seen == static_cast<std::size_t>(e.count));
        walk_through(e);
        while (e.who.x < e.level.plan.west(1)) REQUIRE_FALSE(play(e, static_cast<int>(walking::forward)).done);
        CHECK(walked(1) == before);
        // At the far end: the pair there is touched by a step aside.
        const bool beside =
            std::ranges::any_of(before.back(), [&](const auto& p) { return (p.second < 0) == seed % 2; });
        CHECK(play(e, strafe).done == beside);
    }
}

TEST_CASE("whoever comes to moving blocks has four looks, which show all of their paths, before walking on") {
    constexpr int forward = static_cast<int>(walking::forward);
    for (const char* level : {"train_small", "train_large", "holdout_interpolate", "holdout_extrapolate"})
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            auto e = episode<spot_diff_motion>(level, "small", seed);
            for (const bool second : {false, true}) {
                if (second) {
                    walk_through(e);
                    for (std::uint64_t k = 0; k < seed % 4; ++k)
                        REQUIRE_FALSE(play(e, turn).done);  // nothing is missed
                    while (e.who.x < e.level.plan.west(1)) REQUIRE_FALSE(play(e, forward).done);
                }
                const pose entered = e.who;
                for (int look = 0; look < motion_looks; ++look) {
                    CHECK(e.who == entered);
                    for (int i = 0; i < 2; ++i) {
                        const int path = second && i == e.odd ? e.changed : e.look[i], reach = e.level.plan.reach;
                        CHECK(motion_in_split(path, e.level.base.holdout == 1));
                        const displacement by = motion_at_look(path, look);
                        const lattice_place at = rim_place(e.spot[i]);
                        CHECK(e.here.objects[i].x == e.level.plan.along(second, at) + by.x * reach);
                        CHECK(e.here.objects[i].y == e.level.plan.across(at));
                        CHECK(e.here.objects[i].base == (1 - by.y) * reach);
                        CHECK(in_sight(e, i));
                    }
                    REQUIRE_FALSE(play(e, forward).done);
                }
                CHECK(e.who.x == entered.x + cell_length);
            }
            CHECK(looks_alike(e.look[0], e.look[1]) <= 1);
            CHECK(looks_alike(e.look[0], e.changed) <= 1);
            CHECK(looks_alike(e.look[1], e.changed) <= 1);
        }
}

TEST_CASE("in seven of eight of the training's episodes no block moves, at holdout one in six does not") {
    const auto resting = [](const char* level) {
        auto e = episode<spot_diff_motion>(level, "small", 3);
        int all = 0, single = 0;
        for (int i = 0; i < 2000; ++i) {
            restart(e);
            int still = 0;
            for (const int path : {e.look[0], e.look[1], e.changed}) {
                bool moves = false;
                for (int look = 1; look < motion_looks; ++look)
                    moves = moves || !(motion_at_look(path, look) == motion_at_look(path, 0));
                still += !moves;
            }
            all += still == 3, single += still;
        }
        return std::pair{all / 2000.0, single / 6000.0};
    };
    for (const char* level : {"train_small", "train_large"}) {
        const auto [all, single] = resting(level);
        CHECK(all == doctest::Approx(0.875).epsilon(0.1));
        CHECK(single == doctest::Approx(0.875).epsilon(0.1));
    }
    for (const char* level : {"holdout_interpolate", "holdout_extrapolate"}) {
        const auto [all, single] = resting(level);
        CHECK(all == 0);
        CHECK(single == doctest::Approx(1 / 6.0).epsilon(0.1));
    }
}

TEST_CASE_TEMPLATE("from the entrance of the second room both blocks are in sight at small fidelity", E, spot_diff,
                   spot_diff_motion) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        auto e = episode<E>("train", "small", seed);
        walk_through(e);
        for (int i = 0; i < 30 && e.who.x < e.level.plan.west(1); ++i) REQUIRE_FALSE(play(e, good_action(e)).done);
        e.who.heading = 0;
        CHECK((in_sight(e, 0) && in_sight(e, 1)));
    }
}

TEST_CASE_TEMPLATE("touching a block of the first room does nothing", E, spot_diff, spot_diff_passive, spot_diff_multi,
                   spot_diff_motion) {
    auto e = episode<E>("train_small", "paper", 2);
    bool met = false;
    for (int i = 0; i < 100; ++i) {
        const room_object o = e.here.objects[0];
        const outcome got = play(e, action_towards(e.who, o.x, o.y, full_turn / 24));
        CHECK_FALSE(got.done);
        CHECK(got.reward == 0);
        const double apart = std::hypot(e.who.x - o.x, e.who.y - o.y);
        met = met || apart < o.radius + e.level.plan.body + cell_length / 16 * 2;
        CHECK(is_valid(e));
    }
    CHECK(met);
    CHECK(e.now == passage::first_room);

    // In whole cells: from each cell of the room into each of its neighbours.
    e = episode<E>("train_small", "small", 2);
    for (int i = 0; i < motion_looks; ++i) play(e, turn);  // moving blocks hold whoever has not seen them
    int into = 0;
    for (int y = 1; y <= e.level.plan.rows; ++y)
        for (int x = 1; x <= e.level.plan.columns; ++x)
            for (int quarter = 0; quarter < 4; ++quarter) {
                E tried = e;
                tried.who = {x * cell_length + cell_length / 2, y * cell_length + cell_length / 2,
                             quarter * (full_turn / 4)};
                if (!is_valid(tried)) continue;
                const pose before = tried.who;
                const room_object o = tried.here.objects[0];
                const outcome got = play(tried, static_cast<int>(walking::forward));
                CHECK_FALSE(got.done);
                CHECK(got.reward == 0);
                CHECK(is_valid(tried));
                const int ahead_x = before.x + (quarter == 0   ? 1
                                                : quarter == 2 ? -1
                                                               : 0) *
                                                   cell_length,
                          ahead_y = before.y + (quarter == 1   ? 1
                                                : quarter == 3 ? -1
                                                               : 0) *
                                                   cell_length;
                if (ahead_x >> 16 != o.x >> 16 || ahead_y >> 16 != o.y >> 16) continue;
                ++into;
                CHECK((tried.who == before) == (o.solid == 1));
            }
    // Many and moving blocks are looked at from the west alone.
    const bool ahead = std::is_same_v<E, spot_diff_multi> || std::is_same_v<E, spot_diff_motion>;
    CHECK(into >= (ahead ? 1 : 2));
}

TEST_CASE_TEMPLATE("time ends an episode without a reward", E, spot_diff, spot_diff_motion) {
    const bool moving = std::is_same_v<E, spot_diff_motion>;
    for (const char* fidelity : fidelities) {
        const bool paper = std::string(fidelity) == "paper";
        auto e = episode<E>("train", fidelity, 2);
        task_options options;
        options.fidelity = fidelity;
        const int expected = paper ? (moving ? 3600 : 1800) : 160;
        CHECK(E::describe(options).level("train").longest_episode == expected);
        for (int i = 1; i <= expected; ++i) {
            const outcome got = play(e, turn);
            CHECK(got.done == (i == expected));
            CHECK(got.reward == 0);
        }
    }
}

TEST_CASE_TEMPLATE("random walks stay out of walls and within time, and see colours", E, spot_diff, spot_diff_passive,
                   spot_diff_multi, spot_diff_motion) {
    for (const char* fidelity : fidelities) {
        auto e = episode<E>("train", fidelity, 6);
        task_options options;
        options.fidelity = fidelity;
        const task_info info = E::describe(options);
        std::vector<float> pixels(static_cast<std::size_t>(info.observation.size()));
        philox random(8, 8);
        for (int i = 0, steps = 0, finished = 0; finished < 15; ++i) {
            // Now and then the oracle, so that all three places are visited.
            const int action = i / 40 % 2 ? good_action(e) : random.below(walking_actions);
            const outcome got = play(e, action);
            ++steps;
            CHECK((got.done || is_valid(e)));
            CHECK_FALSE(collides(e.here, e.who.x, e.who.y, e.level.plan.body));
            CHECK(steps <= info.level("train").longest_episode);
            if (got.done) restart(e), ++finished, steps = 0;
            if (i % 97) continue;
            e.observe(nullptr, pixels.data());
            const auto [low, high] = std::minmax_element(pixels.begin(), pixels.end());
            CHECK(*low >= 0);
            CHECK(*high <= 1);
            CHECK(*low < *high);
        }
    }
}

TEST_CASE_TEMPLATE("the same seed gives the same episodes", E, spot_diff, spot_diff_passive, spot_diff_multi,
                   spot_diff_motion) {
    auto a = episode<E>("train", "small", 9), b = episode<E>("train", "small", 9), c = episode<E>("train", "small", 10);
    bool differs = false;
    philox random(1, 1);
    for (int i = 0; i < 600; ++i) {
        const int action = random.below(walking_actions);
        const outcome x = play(a, action), y = play(b, action);
        play(c, action);
        CHECK(x.done == y.done);
        CHECK(x.reward == y.reward);
        CHECK(std::memcmp(&a, &b, sizeof(E)) == 0);
        if (x.done) restart(a), restart(b), restart(c);
        differs = differs || std::memcmp(&a.here, &c.here, sizeof(room)) != 0;
    }
    CHECK(differs);
}

TEST_CASE_TEMPLATE("bytes that are no episode are refused, and what is accepted can be played", E, spot_diff,
                   spot_diff_passive, spot_diff_multi, spot_diff_motion) {
    const E whole = [] {
        auto e = episode<E>("holdout_large", "small", 4);
        walk_through(e);
        return e;
    }();
    REQUIRE(is_valid(whole));
    const auto refused = [&](auto damage) {
        E e = whole;
        damage(e);
        return !is_valid(e);
    };
    CHECK(refused([](E& e) { e.count = E::capacity + 1; }));
    CHECK(refused([](E& e) { e.count = 1; }));
    CHECK(refused([](E& e) { e.odd = e.count; }));
    CHECK(refused([](E& e) { e.odd = -1; }));
    CHECK(refused([](E& e) { e.spot[0] = rim_places; }));
    CHECK(refused([](E& e) { e.look[1] = -1; }));
    CHECK(refused([](E& e) { e.changed = 6; }));
    CHECK(refused([](E& e) { e.shade = 0; }));
    CHECK(refused([](E& e) { e.shade += 1; }));
    CHECK(refused([](E& e) { e.paint = difference_colours; }));
    CHECK(refused([](E& e) { e.frame = e.level.limit; }));
    CHECK(refused([](E& e) { e.frame = -15; }));
    CHECK(refused([](E& e) { e.now = static_cast<passage>(3); }));
    CHECK(refused([](E& e) { e.now = passage::first_room; }));
    CHECK(refused([](E& e) { e.shut_frame = e.frame + 1; }));
    CHECK(refused([](E& e) { e.who.heading = full_turn; }));
    CHECK(refused([](E& e) { e.who.x = 0x7fffffff; }));
    CHECK(refused([](E& e) { e.who.y = -1; }));
    CHECK(refused([](E& e) { e.who.x += 1; }));  // not in the middle of a cell
    CHECK(refused([](E& e) { e.who.heading += 1; }));
    CHECK(refused([](E& e) { e.who.y = cell_length; }));
    CHECK(refused([](E& e) { e.who.x = e.level.plan.start().x; }));  // back in the first room
    CHECK(refused([](E& e) { e.here.objects_used = 200; }));
    CHECK(refused([](E& e) { e.here.cells[0].skin = 99; }));

    philox random(7, 7);
    std::vector<float> pixels(12 * 16 * 3);
    for (int i = 0; i < 20000; ++i) {
        E e = whole;
        auto* bytes = reinterpret_cast<unsigned char*>(&e);
        // The level is compared before the state is looked at; most of the rest is the room.
        const int from = static_cast<int>(sizeof(spot_diff_level)),
                  to = i % 4 ? static_cast<int>(sizeof(E) - sizeof(room)) : static_cast<int>(sizeof(E));
        const int hits = 1 + random.below(3);
        for (int k = 0; k < hits; ++k) {
            const int at = from + random.below(to - from);
            bytes[at] = static_cast<unsigned char>(random.below(i % 3 ? 256 : 8));
        }
        if (!is_valid(e)) continue;
        e.observe(nullptr, pixels.data());
        for (int k = 0; k < 3 && !play(e, good_action(e)).done; ++k) continue;
    }
}
