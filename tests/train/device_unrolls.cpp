// Truncated BPTT on a device, here an emulated one: states that are carried on it, rows whose sequences end inside an
// unroll, answers, and checkpoints in the middle of sequences.

#include <engram/evaluate/answers.hpp>

#include "device_run.hpp"
#include "unrolled_copy.hpp"

using namespace device_run;

TEST_CASE("training on unrolls on a device does what it does on the host") {
    for (const int threads : {1, 2}) learns_as_on_the_host<truncated, truncated_update>(unrolled(), copying(), threads);
}

TEST_CASE("a run that is resumed on a device between two unrolls equals the uninterrupted one bit for bit") {
    for (const int threads : {1, 2}) resumes_exactly<truncated, truncated_update>(unrolled(), copying(), threads);
}

TEST_CASE("a checkpoint between two unrolls moves from a device to the host and back without losing a bit") {
    moves_between_host_and_device<truncated, truncated_update>(unrolled(), copying());
}

TEST_CASE("an unroll with a number that is not finite ends training on a device and leaves the weights") {
    keeps_the_weights_before_a_bad_update<truncated, truncated_update>(unrolled(), copying(),
                                                                       "controller.gates.0.weight");
}

TEST_CASE("a device answers as the host does") {
    const run<truncated, truncated_update, host> here(unrolled(), copying());
    const run<truncated, truncated_update, device> there(unrolled(), copying());
    answer_player<host> a(here.model, copying(), 3);
    answer_player<device> b(there.model, copying(), 3);
    for (const std::string level : {"train", "holdout_interpolate"}) {
        const auto x = a.score(level, 20, 5), y = b.score(level, 20, 5);
        CHECK(x.sequences == 20);
        CHECK(x.mean == y.mean);
        CHECK(x.standard_error == y.standard_error);
    }
}
