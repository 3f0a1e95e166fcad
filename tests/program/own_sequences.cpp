// examples/own_sequences.hpp: sequences from a file of the user's are a task like any other.

#include <doctest/doctest.h>

#include <algorithm>

#include <engram/core/philox.hpp>
#include <engram/evaluate/run_folder.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/program/compiled_tasks.hpp>

#include "../../examples/own_sequences.hpp"
#include "../task/coded_glyphs.hpp"
#include "child.hpp"

using namespace engram;

namespace {

using answering = agent<mlp, engram::lstm, no_memory, no_auxiliary, supervised>;

/// Random numbers, and each again two rows later.
void write_series(const std::string& folder, int rows, const std::string& more = "") {
    philox random(3, 1);
    float last = 0, before = 0;
    std::string text;
    for (int i = 0; i < rows; ++i) {
        const float now = random.uniform();
        text += std::to_string(now) + "," + std::to_string(before) + "\n";
        before = std::exchange(last, now);
    }
    write_file(folder + "/series.csv", text + more);
}

const bool added = (add_sequence<own::csv_series>(), true);

}  // namespace

TEST_CASE("rows of a file are trained, evaluated, described and sampled by their name") {
    const temporary_folder folder;
    write_series(folder.path, 400);
    const std::string out = folder / "run";
    std::vector<std::string> words{"train",   "--task",  "csv_series", "--data",    folder.path, "--out",      out,
                                   "--quiet", "--steps", "1600",       "--threads", "1",         "--evaluate", "20"};
    for (const char* s : {"encoder.layers=8", "controller.hidden=8", "task.steps=20", "sequence.batch=8"})
        words.insert(words.end(), {"--set", s});
    const finished trained = run<answering>(words, "answering");
    INFO(trained.err);
    REQUIRE(trained.code == 0);
    const auto levels = read_run(out).levels;
    REQUIRE(levels.size() == 2);
    CHECK(levels[0].unit == "mean squared error");
    CHECK(levels[1].mean > 0);
    CHECK(levels[1].mean < 0.5);
    CHECK(run<answering>({"evaluate", "--from", out, "--episodes", "10"}, "answering").code == 0);
    CHECK(has(run<answering>({"describe"}, "answering").out, "csv_series"));
    REQUIRE(run<answering>({"sample", "--from", out}, "answering").code == 0);
    CHECK(read_file(out + "/sample/answers.csv").size() > 100);
    words[2] = "csv_serie";
    CHECK(has(run<answering>(words, "answering").err, "did you mean 'csv_series'?"));
}

TEST_CASE("a window is rows of the file as they stand there; those held out are never trained on") {
    const temporary_folder folder;
    std::string text;
    for (int i = 0; i < 5000; ++i) text += std::to_string(i) + "," + std::to_string(-i) + "\n";
    write_file(folder / "series.csv", text);
    const own::csv_series series({.data = folder.path, .steps = 10});
    CHECK(is_pure(series));
    for (const char* level : {"train", "holdout_interpolate"}) {
        const bool trained = std::string(level) == "train";
        CHECK(batch_equals_singles(series, level));
        for (std::uint64_t index = 0; index < 200; ++index) {
            const drawn_sequence drawn(series, level, 1, index);
            CHECK(drawn.observation.front() >= (trained ? 0 : 4000));
            CHECK(drawn.observation.back() <= (trained ? 3999 : 4999));
            for (std::size_t t = 0; t < 10; ++t) {
                CHECK(drawn.observation[t] == drawn.observation[0] + static_cast<float>(t));
                CHECK(drawn.target[t] == -drawn.observation[t]);
                CHECK(drawn.weight[t] == (t < 5 ? 0 : 1));
            }
        }
    }
}

TEST_CASE("what cannot be read is one sentence, and a name is taken once") {
    const temporary_folder folder;
    const auto said = [&](int steps = 20) {
        return sentence([&] { make_sequence("csv_series", {.data = folder.path, .steps = steps}); });
    };
    CHECK(has(said(), "series.csv: cannot be read"));
    write_series(folder.path, 99);
    CHECK(has(said(), "series.csv: 99 rows, expected at least 100 for windows of 20"));
    write_series(folder.path, 100);
    CHECK(said() == "no error");
    CHECK(has(said(-1), "100 rows, expected at least -5"));
    write_series(folder.path, 100, "0.5;1\n");
    CHECK(has(said(), "line 101: '0.5;1', expected two numbers, seen,wanted"));
    CHECK(sentence([] { add_sequence<own::csv_series>(); }) == "add_sequence: there is already a task 'csv_series'");
}
