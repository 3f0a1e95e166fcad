// examples/own_environment.hpp: the least that a user writes is a task like any other.

#include <doctest/doctest.h>

#include <engram/program/compiled_tasks.hpp>

#include "../../examples/own_environment.hpp"
#include "child.hpp"

TEST_CASE("an environment of one's own is trained, evaluated, described and sampled by its name") {
    engram::add_task<own::match_to_sample>();
    const temporary_folder folder;
    std::vector<std::string> words = short_training(folder / "run", {"--steps", "960", "--evaluate", "20"});
    std::replace(words.begin(), words.end(), std::string("arbitrary_visuomotor_mapping"),
                 std::string("match_to_sample"));
    const finished trained = run(words);
    INFO(trained.err);
    REQUIRE(trained.code == 0);
    const finished scored = run({"evaluate", "--from", folder / "run", "--episodes", "50"});
    CHECK(scored.code == 0);
    CHECK(has(scored.out, "train"));
    CHECK(has(run({"describe"}).out, "match_to_sample"));
    REQUIRE(run({"sample", "--from", folder / "run"}).code == 0);
    const auto film = engram::read_file(folder / "run/sample/episode.gif");
    CHECK(std::string(film.begin(), film.begin() + 6) == "GIF89a");
    words[2] = "match_to_sampel";
    CHECK(has(run(words).err, "unknown task 'match_to_sampel'; did you mean 'match_to_sample'?"));
}

TEST_CASE("its oracle is right, chance half of the time") {
    auto batch = engram::make_environment("match_to_sample", "train", 1, 1);
    engram::philox random(1, 1);
    int right = 0, lucky = 0;
    for (int t = 0; t < 4000; ++t) right += batch->step(0, batch->oracle(0)).reward > 0;
    for (int t = 0; t < 4000; ++t) lucky += batch->step(0, random.below(2)).reward > 0;
    CHECK(right == 1000);
    CHECK(lucky > 420);
    CHECK(lucky < 580);
}
