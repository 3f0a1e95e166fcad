// Training on sequences and on unrolls on a CUDA device, beside its emulation: one stream and two, states that are
// carried, sums of every step, and exact resumption.

#include "gpu_main.cuh"

#include <engram/encoder/mlp.hpp>
#include <engram/memory/ntm.hpp>

#include "train/device_run.hpp"
#include "train/generated_echo.hpp"
#include "train/unrolled_copy.hpp"

using namespace device_run;

namespace {

using gpu = cuda<float>;
using echoing = generative<mlp, ntm>;

}  // namespace

TEST_CASE("training on sequences on a GPU does what its emulation does") {
    for (const int threads : {1, 2})
        learns_as_on_the_host<echoing, sequence_update, gpu, device>(device_run::small_settings<echoing>(), task,
                                                                     threads);
}

TEST_CASE("training on unrolls on a GPU does what its emulation does") {
    for (const int threads : {1, 2})
        learns_as_on_the_host<truncated, truncated_update, gpu, device>(unrolled(), copying(), threads);
}

TEST_CASE("a run on a GPU that is resumed equals the uninterrupted one bit for bit") {
    resumes_exactly<echoing, sequence_update, gpu>(device_run::small_settings<echoing>(), task, 2);
    resumes_exactly<truncated, truncated_update, gpu>(unrolled(), copying(), 2);
}
