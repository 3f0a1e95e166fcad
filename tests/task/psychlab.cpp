// SPDX-License-Identifier: MIT
#include "engram/task/psychlab.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engram/task/arbitrary_visuomotor_mapping.hpp"
#include "engram/task/change_detection.hpp"
#include "engram/task/continuous_recognition.hpp"
#include "engram/task/what_then_where.hpp"

using namespace engram;

namespace {

task_options at(const std::string& fidelity, const std::string& scheme = "pool") {
    task_options options;
    options.fidelity = fidelity;
    options.scheme = scheme;
    return options;
}

template <class E>
std::shared_ptr<const stimulus_set> stimuli(const task_options& options) {
    if constexpr (requires { E::load_stimuli(options); }) return E::load_stimuli(options);
    static const auto small = std::make_shared<const stimulus_set>(builtin_stimuli(300));
    static const auto large = std::make_shared<const stimulus_set>(builtin_stimuli(80, 32));
    return options.fidelity == "paper" ? large : small;
}

// Not inlined wherever they stand, as the members are: a minute of compiler time.
template <class E>
[[gnu::noinline]] outcome frame_of(E& task, int action) {
    return psychlab_frame(task, action);
}
template <class E>
[[gnu::noinline]] outcome step_of(E& task, int action) {
    return task.step(action);
}
template <class E>
[[gnu::noinline]] void reset_of(E& task) {
    task.reset();
}

template <class E>
E fresh(const std::string& level, const task_options& options, std::uint64_t seed = 1) {
    E made = E::make(level, options, stimuli<E>(options).get());
    made.random = philox(seed, 7);
    reset_of(made);
    return made;
}

/// Calls f(task) for each of the four, with a value of its type.
template <class F>
void for_all(F f) {
    f(arbitrary_visuomotor_mapping{});
    f(continuous_recognition{});
    f(change_detection{});
    f(what_then_where{});
}

constexpr int nothing = static_cast<int>(looking::nothing);

/// Frames of the oracle until the phase comes.
template <class E>
void play_until(E& task, phase_kind wanted) {
    for (int frame = 0; task.clock.kind != wanted; ++frame) {
        REQUIRE(frame < 2000);
        REQUIRE_FALSE(frame_of(task, task.oracle()).done);
    }
}

template <class E>
std::vector<float> look(const E& task) {
    std::vector<float> pixels(72 * 96 * 3);
    const auto images = stimuli<E>(at(task.rules().paper ? "paper" : "small"));
    task.observe(images->pixels().data(), pixels.data());
    return pixels;
}

shade middle_of(const std::vector<float>& view) {
    const std::size_t i = (36 * 96 + 48) * 3;
    return {view[i], view[i + 1], view[i + 2]};
}

}  // namespace

TEST_CASE("the oracle earns every trial of every level, at both fidelities") {
    for_all([]<class E>(E) {
        for (const char* fidelity : {"small", "paper"})
            for (const char* scheme : {"pool", "staircase"}) {
                const auto options = at(fidelity, scheme);
                for (const auto& level : E::describe(options).level_details) {
                    E task = fresh<E>(level.name, options);
                    for (int episode = 0; episode < 4; ++episode, reset_of(task)) {
                        float total = 0;
                        int steps = 0;
                        for (bool done = false; !done; ++steps) {
                            const outcome got = step_of(task, task.oracle());
                            total += got.reward;
                            done = got.done;
                        }
                        CAPTURE(level.name);
                        CHECK(total == level.maximum_reward);
                        CHECK(steps <= level.longest_episode);
                    }
                }
            }
    });
}

TEST_CASE("descriptions: actions, sizes and chance of the fidelity") {
    const std::map<std::string, int> buttons{{"arbitrary_visuomotor_mapping", 4},
                                             {"continuous_recognition", 2},
                                             {"change_detection", 2},
                                             {"what_then_where", 4}};
    for_all([&]<class E>(E) {
        const task_info small = E::describe(at("small")), paper = E::describe(at("paper"));
        CHECK(small.observation == observation_shape{16, 16, 3});
        CHECK(paper.observation == observation_shape{72, 96, 3});
        CHECK(small.actions == buttons.at(small.name));
        CHECK(paper.actions == 5);
        for (const auto& level : small.level_details)
            CHECK(level.random_reward == level.maximum_reward / static_cast<float>(small.actions));
        for (const auto& level : paper.level_details) CHECK(std::isnan(level.random_reward));
        const bool recognition = !E::uses_stimuli ? false : E::phases == 1;
        CHECK(paper.level("train").longest_episode == (paper.name == "what_then_where" ? 9000 : 4500));
        CHECK(paper.level("holdout_extrapolate").longest_episode ==
              (recognition ? 6750 : paper.level("train").longest_episode));
        CHECK(paper.maximum_reward("holdout_interpolate") == (recognition ? 40 : 50));
    });
}

TEST_CASE("delays take a sixteenth of their frames, rounded up, at the small fidelity") {
    for (const auto& [frames, steps] : std::vector<std::pair<int, int>>{{2, 1}, {16, 1}, {17, 2}, {32, 2}, {250, 16}})
        CHECK(phase{phase_kind::wait, frames}.steps() == steps);
    CHECK(phase{phase_kind::show, 25}.steps() == 1);
    CHECK(phase{phase_kind::respond, 8}.steps() == 1);
    CHECK(phase{phase_kind::centre}.steps() == 0);
}

// The numbers were taken where bits and pixels were those of the tasks from before episodes had frames and a gaze.
// Pixels are compared to 1/64: the last bits are the compiler's.
TEST_CASE("small visuomotor mapping and recognition: bits and episodes stay as results know them") {
    const auto trace = []<class E>(const std::string& level, const char* scheme, E) {
        const auto options = at("small", scheme);
        batch_of<E> batch(level, 2, 11, 5, options, stimuli<E>(options));
        std::vector<float> pixels(16 * 16 * 3);
        std::uint64_t hash = 1469598103934665603ull;
        const auto add = [&](auto x) { hash = (hash ^ static_cast<std::uint64_t>(x)) * 1099511628211ull; };
        philox policy(7, 7);
        for (int t = 0; t < 400; ++t)
            for (int row = 0; row < 2; ++row) {
                batch.observe(row, pixels.data());
                for (const float p : pixels) add(p * 64 + 0.3f);
                const auto shown = *batch.event(row);
                add(shown.trial), add(shown.stimulus), add(shown.repeat), add(shown.answer);
                const bool any = policy.below(3) == 0;
                const outcome got = batch.step(row, any ? policy.below(batch.info().actions) : batch.oracle(row));
                add(got.reward), add(got.done);
            }
        return hash;
    };
    const arbitrary_visuomotor_mapping mapping{};
    CHECK(trace("train", "pool", mapping) == 0xc68ac7190c5e84feull);
    CHECK(trace("train", "staircase", mapping) == 0x5601ff463c651eb7ull);
    CHECK(trace("holdout_interpolate", "pool", mapping) == 0x921339e31bc62b17ull);
    CHECK(trace("holdout_interpolate", "staircase", mapping) == 0x54ebf57b5b3415f3ull);
    CHECK(trace("holdout_extrapolate", "pool", mapping) == 0x61de9a4cbeb7c79dull);
    CHECK(trace("holdout_extrapolate", "staircase", mapping) == 0x6d2b669f2b0a7043ull);
    const continuous_recognition recognition{};
    CHECK(trace("train", "pool", recognition) == 0x75dcd71bb746b1baull);
    CHECK(trace("holdout_interpolate", "pool", recognition) == 0xe4d984d6b3f599d1ull);
    CHECK(trace("holdout_extrapolate", "pool", recognition) == 0xfb35ad5b60012eaeull);
}

TEST_CASE("an episode starts anywhere within 45 degrees, looking level at a cross") {
    int least = 0, most = 0;
    continuous_recognition task = fresh<continuous_recognition>("train", at("paper"));
    for (int i = 0; i < 2000; ++i, reset_of(task)) {
        least = std::min(least, task.clock.eye.yaw);
        most = std::max(most, task.clock.eye.yaw);
        CHECK(task.clock.eye.pitch == 0);
        CHECK(task.clock.kind == phase_kind::fixate);
    }
    CHECK(least >= -8192);
    CHECK(least < -8100);
    CHECK(most <= 8192);
    CHECK(most > 8100);
}

TEST_CASE("the cross waits for the gaze, for one frame") {
    for_all([]<class E>(E) {
        E task = fresh<E>("train", at("paper"));
        task.clock.eye = {2000, 0};
        for (int i = 0; i < 100; ++i) frame_of(task, nothing);
        CHECK(task.clock.kind == phase_kind::fixate);
        int frames = 0;
        for (; task.clock.kind == phase_kind::fixate; ++frames) frame_of(task, static_cast<int>(looking::left));
        CHECK(frames == 5);  // 2000 - 5 * 383 = 85; 4 frames leave 468, and the zone ends at 390
        CHECK(task.clock.kind == task.plan(0).kind);
    });
}

TEST_CASE("the cross is red in the middle when it is gazed at, its ground the task's") {
    for_all([]<class E>(E) {
        E task = fresh<E>("train", at("paper"));
        task.clock.eye = {0, 0};
        const shade seen = middle_of(look(task));  // between texels
        CHECK((seen.r > 0.9f && seen.g < 0.1f && seen.b < 0.1f));
        task.clock.eye = {2000, 0};
        CHECK(middle_of(look(task)) == E::ground);
        task.clock.eye = {30000, 0};
        const shade wall = middle_of(look(task));
        CHECK((wall.r > 0.2f && wall.r < 0.9f && wall.r == wall.g));
    });
}

TEST_CASE("the reward is paid when the gaze leaves the button, and one frame later comes the next cross") {
    for_all([]<class E>(E) {
        for (const bool right : {true, false}) {
            E task = fresh<E>("train", at("paper"), 3);
            play_until(task, phase_kind::respond);
            const int wanted = right ? task.answer() : (task.answer() + 1) % task.buttons();
            for (int i = 0; task.clock.kind == phase_kind::respond; ++i) {
                REQUIRE(i < 200);
                CHECK(task.event().has_value());
                CHECK(frame_of(task, look_at_button(task.clock.eye, wanted)).reward == 0);
            }
            CHECK(task.clock.kind == phase_kind::feedback);
            CHECK(task.clock.response == wanted);
            CHECK_FALSE(task.event().has_value());
            constexpr gaze button_middles[] = {{-6193, 0}, {6193, 0}, {0, 6193}, {0, -6193}};
            task.clock.eye = button_middles[wanted];
            const shade seen = middle_of(look(task));
            CHECK((right ? seen.g : seen.r) > 0.5f);
            CHECK((right ? seen.r : seen.g) < 0.5f);
            for (int i = 0; i < 90; ++i) CHECK(frame_of(task, nothing).reward == 0);
            CHECK(task.clock.trial == 0);
            float paid = 0;
            for (int i = 0; task.clock.kind == phase_kind::feedback; ++i) {
                REQUIRE(i < 10);
                paid += frame_of(task, look_at_middle(task.clock.eye)).reward;
                CHECK((paid > 0) == (right && !task.clock.eye.on(button_zone(wanted))));
            }
            CHECK(paid == (right ? 1 : 0));
            CHECK(task.clock.trial == 1);
            CHECK(task.clock.kind == phase_kind::gap);
            frame_of(task, nothing);
            CHECK(task.clock.kind == phase_kind::fixate);
        }
    });
}

TEST_CASE("passing over counts: two agent steps past a button answer and are paid") {
    for (const int answer : {0, 2}) {
        what_then_where task = fresh<what_then_where>("train", at("paper"));
        play_until(task, phase_kind::respond);
        task.where = answer;
        task.clock.eye = {-5500, 0};  // the button spans 5636 to 6712
        float paid = 0;
        for (int i = 0; i < 2; ++i) paid += step_of(task, static_cast<int>(looking::left)).reward;
        CHECK(task.clock.trial == 1);
        CHECK(paid == (answer == 0 ? 1 : 0));
    }
}

TEST_CASE("who does nothing is stopped by the timeout, who looks away by frame 301") {
    for_all([]<class E>(E) {
        for (const char* level : {"train", "holdout_extrapolate"}) {
            E task = fresh<E>(level, at("paper"));
            task.clock.eye = {3000, 0};
            int frames = 0;
            for (bool done = false; !done; ++frames) done = frame_of(task, nothing).done;
            CHECK(frames == 4 * E::describe(at("paper")).level(level).longest_episode);
            reset_of(task);
            task.clock.eye = {7000, 0};  // the panel ends at 6712
            frames = 0;
            for (bool done = false; !done; ++frames) {
                // A frame on the panel begins the count anew.
                const int action = frames == 200   ? static_cast<int>(looking::left)
                                   : frames == 201 ? static_cast<int>(looking::right)
                                                   : nothing;
                done = frame_of(task, action).done;
            }
            CHECK(frames == 201 + 301);
        }
    });
}

TEST_CASE("what a random agent sees lies in [0, 1], and the same seed gives the same episode") {
    for_all([]<class E>(E) {
        for (const char* fidelity : {"small", "paper"}) {
            const auto options = at(fidelity);
            E one = fresh<E>("holdout_interpolate", options, 5), two = fresh<E>("holdout_interpolate", options, 5),
              other = fresh<E>("holdout_interpolate", options, 6);
            philox policy(1, 1);
            int differs = 0;
            for (int t = 0; t < 120; ++t) {
                const auto a = look(one), b = look(two);
                REQUIRE(a == b);
                differs += a != look(other);
                const auto [low, high] = std::minmax_element(a.begin(), a.end());
                REQUIRE(*low >= 0);
                REQUIRE(*high <= 1);
                // Now and then wisely, so that every phase is seen.
                const bool any = policy.below(4) == 0;
                const int action = any ? policy.below(E::describe(options).actions) : one.oracle();
                const outcome x = step_of(one, action), y = step_of(two, action), z = step_of(other, action);
                REQUIRE(x.reward == y.reward);
                if (x.done) reset_of(one);
                if (y.done) reset_of(two);
                if (z.done) reset_of(other);
            }
            CHECK(differs > 20);
        }
    });
}

TEST_CASE("damaged bytes are refused, or can be played on") {
    for_all([]<class E>(E) {
        for (const char* fidelity : {"small", "paper"}) {
            const auto options = at(fidelity, "staircase");
            const int actions = E::describe(options).actions;
            E good = fresh<E>("train", options);
            philox random(4, 4);
            int refused = 0, taken = 0;
            for (int round = 0; round < 600; ++round) {
                if (step_of(good, good.oracle()).done) reset_of(good);
                REQUIRE(good.valid());
                E bad = good;
                std::vector<unsigned char> bytes(sizeof(E));
                std::memcpy(bytes.data(), &good, sizeof(E));
                // The clock, or anything after the level.
                const int from = static_cast<int>(sizeof(good.level) + sizeof(philox));
                const int size =
                    round % 2 ? static_cast<int>(sizeof(psychlab_clock)) : static_cast<int>(sizeof(E)) - from;
                for (int k = random.below(3); k >= 0; --k) {
                    const int where = from + random.below(size);
                    bytes[static_cast<std::size_t>(where)] ^= static_cast<unsigned char>(1 << random.below(8));
                }
                std::memcpy(static_cast<void*>(&bad), bytes.data(), sizeof(E));
                if (!bad.valid()) {
                    ++refused;
                    continue;
                }
                ++taken;
                if (round % 8 == 0) look(bad);
                for (int t = 0; t < 200; ++t) {
                    (void)bad.event();
                    if (step_of(bad, t < 100 ? bad.oracle() : random.below(actions)).done) reset_of(bad);
                    REQUIRE(bad.valid());
                }
            }
            CHECK(refused > 50);
            CHECK(taken > 20);
        }
    });
}

TEST_CASE("too few stimuli are said in one sentence") {
    const auto few = builtin_stimuli(4);
    CHECK_THROWS_WITH_AS(what_then_where::make("train", {}, &few),
                         "what_then_where: the builtin set has 4 images for level 'train', expected at least 5", error);
    CHECK_THROWS_WITH_AS(what_then_where::make("train", {}, nullptr), "what_then_where: needs a set of stimuli", error);
}
