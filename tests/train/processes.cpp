// SPDX-License-Identifier: MIT
// Several processes train as one: the same checkpoints and windows for any division of shards, here with threads in
// place of processes and memory in place of a network (tests/program/processes.sh has real ones).

#include <doctest/doctest.h>

#include <memory>
#include <mutex>
#include <thread>

#include <engram/evaluate/answers.hpp>
#include <engram/program/launch.hpp>

#include "every_update.hpp"
#include "same_file.hpp"
#include "threads_as_processes.hpp"

using namespace every_update;
using threads_as_processes::as_processes;

namespace {

struct outcome {
    safetensors middle, end;
    training_window window;
};

/// What `count` processes of `threads` threads make of a run: begun from a checkpoint, if there is one.
template <class Make>
outcome trained(Make make, int count, int threads, int half, const safetensors* from = nullptr) {
    outcome result;
    as_processes(count, [&](processes& self) {
        const one_run run = make(loop_settings{1, threads, 10'000, count > 1 ? &self : nullptr});
        outcome own;
        if (from)
            run.loop->load(*from);
        else
            iterate(*run.loop, half);
        (void)run.loop->take_window();
        own.middle = saved(*run.loop);
        iterate(*run.loop, half);
        own.window = run.loop->take_window();
        own.end = saved(*run.loop);
        if (self.rank() == count - 1) result = std::move(own);  // every process has the whole
    });
    return result;
}

template <class Make>
void is_one_run(Make make, int half = 3) {
    const outcome alone = trained(make, 1, 1, half);
    CHECK_FALSE(same(alone.middle, alone.end));
    for (const auto& [many, threads] : {std::pair{2, 4}, std::pair{4, 1}, std::pair{8, 1}, std::pair{3, 2}}) {
        const int count = many;  // clang before 16 captures no binding
        CAPTURE(count);
        const outcome all = trained(make, count, threads, half);
        CHECK(same(all.middle, alone.middle));
        CHECK(same(all.end, alone.end));
        CHECK(all.window.loss == alone.window.loss);
        CHECK(all.window.gradient_norm == alone.window.gradient_norm);
        // Those of other phases are no numbers.
        REQUIRE(all.window.losses.size() == alone.window.losses.size());
        for (std::size_t k = 0; k < all.window.losses.size(); ++k)
            CHECK(doctest::toString(all.window.losses[k].second) == doctest::toString(alone.window.losses[k].second));
        CHECK(all.window.episodes == alone.window.episodes);
        CHECK(all.window.divergence == alone.window.divergence);
        CHECK(all.window.log_likelihood == alone.window.log_likelihood);
        // What some processes have saved, others take up.
        CHECK(same(trained(make, 8 / count + 1, 1, half, &all.middle).end, alone.end));
    }
}

}  // namespace

TEST_CASE("acting") {
    // 56 steps: past the end of an episode of 50.
    for (const int epochs : {1, 2}) is_one_run([=](const loop_settings& loop) { return acting(loop, epochs); }, 8);
}

TEST_CASE("acting, held near the behaviour's policy") {
    is_one_run(held_near);
}

TEST_CASE("sequences") {
    is_one_run(sequences);
}

TEST_CASE("unrolls of sequences") {
    is_one_run(unrolls);
}

TEST_CASE("detector, memory and policy") {
    for (const int half : {5, 15, 25}) is_one_run([](const loop_settings& loop) { return phases(loop, false); }, half);
}

TEST_CASE("detector, memory and policy at once") {
    const one_run run = phases({1, 1, 10'000}, true);
    iterate(*run.loop, 6);
    CHECK(saved(*run.loop).values<std::int64_t>("joint.memory.trainer.counters", {4})[0] > 0);  // there are episodes
    for (const int half : {2, 6}) is_one_run([](const loop_settings& loop) { return phases(loop, true); }, half);
}

TEST_CASE("several processes play some of the sequences each and have the score of one") {
    const auto same_scores = [](auto make, int rows, int sequences) {
        const auto alone = make(nullptr, rows)->score("train", sequences, 7);
        CHECK(alone.sequences == sequences);
        for (const int count : {2, 3, 8}) {
            std::vector<sequence_score> scores(static_cast<std::size_t>(count));
            as_processes(count, [&](processes& self) {
                const auto player = make(&self, rows);
                scores[static_cast<std::size_t>(self.rank())] = player->score("train", sequences, 7);
                const auto stop = [&] { return self.rank() == 1; };
                CHECK(player->score("train", sequences, 7, stop).sequences == 0);
            });
            for (const auto& score : scores) {
                CHECK(score.sequences == sequences);
                CHECK(score.mean == alone.mean);
                CHECK(score.standard_error == alone.standard_error);
                CHECK(score.divergence == alone.divergence);
                CHECK(score.log_likelihood == alone.log_likelihood);
                for (const auto part : {&sequence_score::before, &sequence_score::recall, &sequence_score::first_sight})
                    CHECK(doctest::toString(score.*part) == doctest::toString(alone.*part));
            }
        }
    };
    using generative = device_run::generative<mlp, ntm>;
    const auto model = generative::trace<backend>(device_run::small_settings<generative>(),
                                                  shape_of(device_run::task->info()), 1, purpose::generating);
    const auto player = [&](processes* others, int rows) {
        return std::make_unique<sequence_player<backend>>(model, device_run::task, rows, others);
    };
    for (const auto& [rows, sequences] : {std::pair{5, 12}, std::pair{2, 2}}) same_scores(player, rows, sequences);
    const auto source = device_run::copying();
    const auto answering = device_run::truncated::trace<backend>(device_run::unrolled(), shape_of(source->info()), 1);
    const auto answers = [&](processes* others, int rows) {
        return std::make_unique<answer_player<backend>>(answering, source, rows, others);
    };
    for (const auto& [rows, sequences] : {std::pair{5, 12}, std::pair{2, 2}}) same_scores(answers, rows, sequences);
}

TEST_CASE("a process takes the GPU of its number on its host, where it is shown several") {
    struct {
        const char* shown;
        int there, number;
        const char* own;
    } const cases[] = {{nullptr, 4, 2, "2"}, {nullptr, 2, 5, "1"}, {nullptr, 1, 3, ""}, {nullptr, 0, 3, ""},
                       {nullptr, 4, -1, ""}, {"4,6", 8, 1, "6"},   {"4,6", 8, 2, "4"},  {"GPU-a,GPU-b", 2, 1, "GPU-b"},
                       {"3", 8, 1, ""},      {"", 8, 1, ""},       {"4,6", 8, -1, ""}};
    for (const auto& c : cases) CHECK(own_gpu(c.shown, c.there, c.number) == c.own);
}

TEST_CASE("what is not divided is refused, and what is not finite is said alike by all") {
    const auto model = small::trace();
    acting_settings s;
    s.rollout = {.environments = 6, .unroll = 7};
    as_processes(3, [&](processes& self) {
        const auto begin = [&](int wanted) {
            auto own = s;
            own.rollout.shards = wanted;
            return std::make_unique<training_loop<acting_update<backend>>>(loop_settings{1, 1, 0, &self}, model,
                                                                           small::maker(), own);
        };
        std::string said;
        try {
            begin(2);
        } catch (const error& e) {
            said = e.what();
        }
        require(said == "3 processes, but the run has 2 shards (rollout.shards); expected at most as many", said);
    });
    for (const int broken : {0, 2}) {
        std::vector<std::string> said(3);
        as_processes(3, [&](processes& self) {
            const auto own = small::trace();
            training_loop<acting_update<backend>> loop({1, 1, 0, &self}, own, small::maker(), s);
            if (self.rank() == broken) {
                const auto entry = (*own.store)[own.store->find("learner.value.weight")];
                own.store->edit().flat()[static_cast<std::size_t>(entry.offset)] = std::nanf("");
            }
            try {
                loop.iterate();
            } catch (const error& e) {
                said[static_cast<std::size_t>(self.rank())] = e.what();
            }
        });
        CHECK(said[0].find("first non-finite value: learner.value") != std::string::npos);
        CHECK(said[1] == said[0]);
        CHECK(said[2] == said[0]);
    }
    // A detector is every process's own, and the same one.
    as_processes(2, [](processes& self) {
        small_phases::phase_run<backend> run({.rows = 32, .shards = 2}, &self);
        run.trainer->detector().store->edit().flat()[0] = std::nanf("");
        CHECK_THROWS_AS(iterate(*run.trainer, 5), agreed_error);
    });
}

TEST_CASE("what differs between processes, and what some of them have to say, is one sentence everywhere") {
    // What each of four says of a trait and of trouble, and what all of them throw.
    struct {
        std::vector<traits> mine;
        std::vector<std::string> trouble;
        std::string said;
    } const cases[] = {
        {{{{"version", "1"}}, {{"version", "1"}}, {{"version", "1"}}, {{"version", "1"}}}, {"", "", "", ""}, ""},
        {{{{"version", "1"}, {"data", ""}},
          {{"version", "1"}, {"data", ""}},
          {{"version", "1"}, {"data", "b"}},
          {{"version", "2"}, {"data", ""}}},
         {"", "", "", ""},
         "process 2 has another data than process 0: b, expected "},
        {{{{"version", "1"}, {"data", "a"}},
          {{"version", "2"}, {"data", "a"}},
          {{"version", "1"}, {"data", "a"}},
          {{"version", "1"}, {"data", "a"}}},
         {"not asked", "", "", ""},
         "process 1 has another version than process 0: 2, expected 1"},
        {{{}, {}, {}, {}}, {"", "", "no such file", "no space"}, "process 2: no such file"},
        {{{}, {}, {}, {}}, {"no such file", "no such file", "", ""}, "no such file"},
    };
    for (const auto& c : cases) {
        std::vector<std::string> said(4);
        as_processes(4, [&](processes& self) {
            const auto rank = static_cast<std::size_t>(self.rank());
            try {
                require_alike(&self, c.mine[rank]);
                agree(&self, c.trouble[rank]);
            } catch (const agreed_error& e) {
                said[rank] = e.what();
            }
        });
        for (const auto& s : said) CHECK(s == c.said);
    }
    require_alike(nullptr, {{"version", "1"}});
    CHECK_THROWS_WITH_AS(agree(nullptr, "alone"), "alone", error);
}
