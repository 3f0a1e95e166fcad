// Training on sequences on a device, here an emulated one: what the host's training does, on one thread and on two.

#include "device_run.hpp"

#include <engram/encoder/mlp.hpp>
#include <engram/memory/ntm.hpp>

#include "generated_echo.hpp"

using namespace device_run;

using echoing = generative<mlp, ntm>;

TEST_CASE("training on sequences on a device does what it does on the host") {
    for (const int threads : {1, 2})
        learns_as_on_the_host<echoing, sequence_update>(small_settings<echoing>(), task, threads);
}

TEST_CASE("a run on sequences that is resumed on a device equals the uninterrupted one bit for bit") {
    for (const int threads : {1, 2})
        resumes_exactly<echoing, sequence_update>(small_settings<echoing>(), task, threads);
}

TEST_CASE("an update with a number that is not finite ends training on a device and leaves the weights") {
    keeps_the_weights_before_a_bad_update<echoing, sequence_update>(small_settings<echoing>(), task,
                                                                    "controller.gates.weight");
}
