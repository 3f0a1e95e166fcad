// SPDX-License-Identifier: MIT
#include "engram/evaluate/run_rows.hpp"

#include <doctest/doctest.h>

#include "../io/temporary.hpp"
#include "fake_run.hpp"

using namespace engram;

TEST_CASE("a row for each run and level, as the summaries have it") {
    const temporary_folder folder;
    fake_run(folder / "a", "lstm", 2, {{"train", 25.5, 0.25, 50}, {"holdout_interpolate", 20, 0.5, 40}});
    fake_generative_run(folder / "b", "vrnn", 1, 0.5);
    const std::string rows = run_rows({read_run(folder / "a"), read_run(folder / "b")});
    CHECK(rows.starts_with("# "));
    CHECK(has(rows,
              "\narbitrary_visuomotor_mapping,small,lstm,2,1000,train,episode reward,100,25.5,0.25,50,,,,12.157895\n"));
    CHECK(has(rows, "\narbitrary_visuomotor_mapping,small,lstm,2,1000,holdout_interpolate,episode reward,100,20,0.5,"));
    CHECK(has(rows, "\nperfect_recall,small,vrnn,1,3000,train,nats,100,610.5,2.5,,0.5,1,0.5,\n"));
    CHECK(std::count(rows.begin(), rows.end(), '\n') == 6);
}
