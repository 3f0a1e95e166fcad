// Training on sequences and on unrolls on a CUDA device, beside its emulation: one stream and two, states that are
// carried, sums of every step, and exact resumption.

#include "gpu_main.cuh"

#include <engram/controller/stacked_lstm.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/encoder/token_embedding.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/memory/ntm.hpp>
#include <engram/task/copy_sequences.hpp>

#include "train/device_run.hpp"
#include "train/generated_echo.hpp"

using namespace device_run;

namespace {

using gpu = cuda<float>;
using echoing = generative<mlp, ntm>;
using truncated = agent<token_embedding, stacked_lstm, no_memory, no_auxiliary, truncated_supervised>;

// 12 steps in unrolls of 5, 5 and 2.
std::shared_ptr<const sequence_source> copying() {
    task_options options;
    options.items = 2;
    options.steps = 12;
    options.markers = "distinct";
    return std::make_shared<const copy_task<false>>(options);
}

truncated::settings unrolled() {
    truncated::settings s;
    s.encoder.width = 6;
    s.controller.hidden = 8;
    s.controller.layers = 2;
    s.learner.unroll = 5;
    return s;
}

}  // namespace

TEST_CASE("training on sequences on a GPU does what its emulation does") {
    for (const int threads : {1, 2})
        learns_as_on_the_host<echoing, sequence_trainer, gpu, device>(device_run::small<echoing>(), task, threads);
}

TEST_CASE("training on unrolls on a GPU does what its emulation does") {
    for (const int threads : {1, 2})
        learns_as_on_the_host<truncated, truncated_trainer, gpu, device>(unrolled(), copying(), threads);
}

TEST_CASE("a run on a GPU that is resumed equals the uninterrupted one bit for bit") {
    resumes_exactly<echoing, sequence_trainer, gpu>(device_run::small<echoing>(), task, 2);
    resumes_exactly<truncated, truncated_trainer, gpu>(unrolled(), copying(), 2);
}
