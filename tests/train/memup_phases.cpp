// SPDX-License-Identifier: MIT
// The three phases of MemUP for acting: what each learns of a T-Maze, what it hands on, exact resumption in each of
// them, and checkpoints of another phase.

#include "engram/train/memup_phases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "same_file.hpp"
#include "small_phases.hpp"

using namespace small_phases;

namespace {

using backend = cpu<float>;
using run = phase_run<backend>;

std::vector<float> values(const parameters<float>& store, const std::string& name) {
    const auto p = store.find(name);
    return {store.values(p), store.values(p) + store[p].size()};
}

}  // namespace

TEST_CASE("phases follow each other, and the memory that was trained acts and stays") {
    run r({});
    CHECK(r.trainer->phase() == "detector");
    CHECK(r.trainer->total_steps() == 1200);
    const auto first = values(*r.policy.store, "memory.controller.gates.weight");
    r.until("memory");
    CHECK(r.trainer->steps() >= 400);
    const auto ended = r.trainer->take_window();  // the memory has had no update yet
    CHECK(ended.iterations > 0);
    CHECK(ended.losses[0].second > 0);
    CHECK(std::isnan(ended.losses[1].second));
    CHECK(r.trainer->take_window().iterations == 0);
    r.until("policy");
    const auto trained = values(*r.trainer->memory().store, "memory.controller.gates.weight");
    CHECK(trained != first);
    CHECK(values(*r.policy.store, "memory.controller.gates.weight") == trained);
    const auto heads = values(*r.policy.store, "learner.policy.weight");
    while (r.trainer->steps() < r.trainer->total_steps()) r.trainer->iterate();
    CHECK(values(*r.policy.store, "memory.controller.gates.weight") == trained);
    CHECK(values(*r.policy.store, "memory.encoder.layers.0.weight") ==
          values(*r.trainer->memory().store, "memory.encoder.layers.0.weight"));
    CHECK(values(*r.policy.store, "learner.policy.weight") != heads);
    const auto w = r.trainer->take_window();
    CHECK(w.losses.size() == 6);
    CHECK(std::isnan(w.losses[0].second));
    CHECK(std::isfinite(w.losses[3].second));
    CHECK_THROWS_WITH_AS(run({.policy = 0}), doctest::Contains("take 800 steps, and the run has 800"), error);
    // Without a detector the first phase is left out.
    run errors({.uncertainty = "errors"});
    CHECK(errors.trainer->phase() == "memory");
    CHECK(errors.trainer->total_steps() == 800);
}

TEST_CASE("the detector's target is copied every target_period steps of all environments, however many they are") {
    for (const int rows : {4, 8}) {
        CAPTURE(rows);
        const sizes z{.rows = rows};
        const auto detector = run::trace(z, purpose::detecting);
        detector_settings s;
        s.environments = rows, s.batch = 4, s.start = 0, s.target_period = 32, s.replay.capacity = 400;
        s.optimiser.learning_rate = 1e-2;
        const auto make = [&](int count, int first) -> std::unique_ptr<batch_environment> {
            return std::make_unique<batch_of<t_maze>>("train", count, 1, static_cast<std::uint32_t>(first),
                                                      run::options_of(z), nullptr);
        };
        training_loop<detector_update<backend>> trainer({1, 1, 400}, detector, make, s);
        const std::string name = detector.store->entries().back().name;
        const auto target = [&] {
            const auto file = saved(trainer);
            const auto found = file.values<float>("target." + name);
            return std::vector<float>(found.begin(), found.end());
        };
        auto copied = target();
        int copies = 0, updates = 0;
        while (trainer.steps() < 160) {
            const auto before = values(*detector.store, name);
            trainer.iterate();
            updates += values(*detector.store, name) != before;
            if (trainer.steps() % 32 == 0) copied = before, ++copies;
            CHECK(target() == copied);
        }
        CHECK(copies == 5);
        CHECK(updates == 160 / rows - 1);  // none from the first step alone
    }
}

TEST_CASE("a run that is resumed in any phase ends like the one that was not") {
    for (const int threads : {1, 2}) {
        const sizes z{.threads = threads};
        run whole(z);
        std::vector<safetensors> on_the_way;
        for (int i = 1; whole.trainer->steps() < whole.trainer->total_steps(); ++i) {
            whole.trainer->iterate();
            if (i % 37 == 0) on_the_way.push_back(whole.saved());
        }
        const auto end = whole.saved();
        REQUIRE(on_the_way.size() >= 2);
        std::set<std::string> modes;
        for (const auto& file : on_the_way) {
            modes.insert(file.metadata.at("training_mode"));
            run resumed({.seed = 1, .threads = threads});
            resumed.trainer->load(file);
            CHECK(same(resumed.saved(), file));
            while (resumed.trainer->steps() < resumed.trainer->total_steps()) resumed.trainer->iterate();
            CHECK(same(resumed.saved(), end));
        }
        CHECK(modes.size() >= 2);
        // Back to an earlier phase: the loaded one goes on, whatever ran before.
        run ahead(z);
        ahead.until("policy");
        ahead.trainer->load(on_the_way.front());
        while (ahead.trainer->steps() < ahead.trainer->total_steps()) ahead.trainer->iterate();
        CHECK(same(ahead.saved(), end));
    }
}

TEST_CASE("a checkpoint of another phase is a sentence") {
    run r({});
    const auto detector = r.saved();
    r.until("memory");
    const auto memory = r.saved();
    const auto traced = run::trace({}, purpose::detecting);
    const task_options options = run::options_of({});
    detector_settings few;
    few.environments = few.batch = 8;
    training_loop<detector_update<backend>> alone(
        loop_settings{1, 1, 0}, traced,
        [&](int count, int) { return std::make_unique<batch_of<t_maze>>("train", count, 1, 0u, options, nullptr); },
        few);
    CHECK_THROWS_WITH_AS(alone.load(memory),
                         doctest::Contains("is a checkpoint of memup training; this run is detector"), error);
    CHECK_THROWS_WITH_AS(watched_variable(r.policy, "atoms"), doctest::Contains("traced for another phase"), error);
    model::settings s;
    CHECK_THROWS_WITH_AS((s.learner.memory.selected = 0, s.learner.check()),
                         "learner.memory.selected: expected at least one target of a prediction, got 0", error);
    s = {};
    s.learner.memory.every = 3;
    CHECK_THROWS_WITH_AS(s.learner.check(), doctest::Contains("predictions every 3 steps, but a rollout has 1"), error);
}

// The corner alone pays, +4 or -3 with equal chance whatever is seen there: a deviation of 3.5.
TEST_CASE("the detector finds the corner, and knows how uncertain it is") {
    run r({.length = 20, .rows = 32, .detector = 32 * 1500});
    r.until("memory");
    const auto play = std::make_shared<played_episodes>(
        t_maze::describe(r.options),
        [&](const std::string& level, std::uint64_t seed, std::uint32_t stream) {
            return std::make_unique<batch_of<t_maze>>(level, 1, seed, stream, r.options, nullptr);
        },
        0);
    sequence_rows rows(play, "train", 9, 20, 0, 20);
    rows.draw();
    return_uncertainty<backend> meter(r.trainer->detector(), play->info().steps);
    double corner = 0;
    for (int b = 0; b < 20; ++b) {
        std::vector<float> s(static_cast<std::size_t>(rows.length(b)));
        meter(rows, b, s);
        CHECK(std::max_element(s.begin(), s.end()) == s.end() - 1);
        corner += static_cast<double>(s.back()) / 20;
    }
    CHECK(corner == doctest::Approx(std::log(3.5) + 1.4189385).epsilon(0.1));
}

TEST_CASE("T-Maze: memory is trained on random play and PPO acts on it, where a memory of noise gives 0.5") {
    const sizes z{
        .length = 30, .units = 64, .rows = 64, .detector = 64 * 800, .memory = 64 * 1200, .policy = 64 * 5 * 600};
    run r(z);
    while (r.trainer->steps() < r.trainer->total_steps()) r.trainer->iterate();
    CHECK(r.score(200) > 3.9);
}

TEST_CASE(
    "all at once: the policy acts with the moving averages, and a run that is resumed ends like the one that was not") {
    for (const char* uncertainty : {"quantiles", "errors"})
        for (const int threads : {1, 2}) {
            const sizes z{.policy = 1200, .threads = threads, .uncertainty = uncertainty, .joint = true};
            run whole(z);
            CHECK(whole.trainer->phase() == "policy");
            const auto first = values(*whole.policy.store, "memory.controller.gates.weight");
            std::vector<safetensors> on_the_way;
            for (int i = 1; whole.trainer->steps() < whole.trainer->total_steps(); ++i) {
                whole.trainer->iterate();
                if (i % 7 == 0) on_the_way.push_back(whole.saved());
                CHECK(values(*whole.policy.store, "memory.controller.gates.weight") ==
                      values(*whole.trainer->memory().store, "memory.controller.gates.weight"));
            }
            CHECK(values(*whole.policy.store, "memory.controller.gates.weight") != first);
            for (const auto& [name, loss] : whole.trainer->take_window().losses) CHECK(std::isfinite(loss));
            const auto end = whole.saved();
            REQUIRE(on_the_way.size() >= 3);
            for (const auto& file : on_the_way) {
                run resumed(z);
                resumed.trainer->load(file);
                CHECK(same(resumed.saved(), file));
                while (resumed.trainer->steps() < resumed.trainer->total_steps()) resumed.trainer->iterate();
                CHECK(same(resumed.saved(), end));
            }
        }
}

TEST_CASE("all at once: a checkpoint that lacks a number of the memory changes nothing") {
    run joint({.joint = true}), other({.seed = 2, .joint = true});
    for (int i = 0; i < 20; ++i) other.trainer->iterate();
    auto file = other.saved();
    const auto lost = std::find_if(file.tensors.begin(), file.tensors.end(),
                                   [](const auto& t) { return t.first.starts_with("joint.memory."); });
    REQUIRE(lost != file.tensors.end());
    file.tensors.erase(lost);
    const auto before = joint.saved();
    CHECK_THROWS_AS(joint.trainer->load(file), error);
    CHECK(same(joint.saved(), before));
}

TEST_CASE("all at once: a checkpoint of phases and a replay without room for an episode are a sentence") {
    run phases({}), joint({.joint = true});
    CHECK_THROWS_WITH_AS(joint.trainer->load(phases.saved()),
                         doctest::Contains("is a checkpoint of training in phases; this run trains all at once"),
                         error);
    CHECK_THROWS_WITH_AS(phases.trainer->load(joint.saved()),
                         doctest::Contains("is a checkpoint of training all at once; this run trains in phases"),
                         error);
    CHECK_THROWS_WITH_AS(
        run({.detector = 40, .joint = true}),
        doctest::Contains("of every environment 5 steps are kept, but an episode of t_maze has up to 11"), error);
}

TEST_CASE("T-Maze: detector, memory and policy learn all at once, where a memory of noise gives 0.5") {
    const sizes z{.length = 30, .units = 64, .rows = 64, .detector = 64 * 800, .policy = 64 * 5 * 1500, .joint = true};
    run r(z);
    while (r.trainer->steps() < r.trainer->total_steps()) r.trainer->iterate();
    CHECK(r.score(200) > 3.9);
}
