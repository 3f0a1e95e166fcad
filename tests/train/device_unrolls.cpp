// Truncated BPTT on a device, here an emulated one: states that are carried on it, rows whose sequences end inside an
// unroll, answers, and checkpoints in the middle of sequences.

#include "device_run.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/stacked_lstm.hpp>
#include <engram/encoder/token_embedding.hpp>
#include <engram/evaluate/answers.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/agent.hpp>
#include <engram/task/copy_sequences.hpp>

using namespace device_run;

namespace {

using truncated = agent<token_embedding, stacked_lstm, no_memory, no_auxiliary, truncated_supervised>;

// 12 steps in unrolls of 5, 5 and 2.
const auto copying =
    std::make_shared<const copy_task<false>>(task_options{.items = 2, .steps = 12, .markers = "distinct"});

truncated::settings small() {
    truncated::settings s;
    s.encoder.width = 6;
    s.controller.hidden = 8;
    s.controller.layers = 2;
    s.learner.unroll = 5;
    return s;
}

}  // namespace

TEST_CASE("training on unrolls on a device does what it does on the host") {
    for (const int threads : {1, 2}) learns_as_on_the_host<truncated, truncated_trainer>(small(), copying, threads);
}

TEST_CASE("a run that is resumed on a device between two unrolls equals the uninterrupted one bit for bit") {
    for (const int threads : {1, 2}) resumes_exactly<truncated, truncated_trainer>(small(), copying, threads);
}

TEST_CASE("a checkpoint between two unrolls moves from a device to the host and back without losing a bit") {
    moves_between_host_and_device<truncated, truncated_trainer>(small(), copying);
}

TEST_CASE("an unroll with a number that is not finite ends training on a device and leaves the weights") {
    keeps_the_weights_before_a_bad_update<truncated, truncated_trainer>(small(), copying, "controller.gates.0.weight");
}

TEST_CASE("a device answers as the host does") {
    const run<truncated, truncated_trainer, host> here(small(), copying);
    const run<truncated, truncated_trainer, device> there(small(), copying);
    answer_player<host> a(here.model, copying, 3);
    answer_player<device> b(there.model, copying, 3);
    for (const std::string level : {"train", "holdout_interpolate"}) {
        const auto x = a.score(level, 20, 5), y = b.score(level, 20, 5);
        CHECK(x.sequences == 20);
        CHECK(x.mean == y.mean);
        CHECK(x.standard_error == y.standard_error);
    }
}
