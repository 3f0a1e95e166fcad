// MemUP on a CUDA device: twelve updates with contexts, of which all but the first two are replays of captured graphs,
// and one program's numbers go to another one's stream.

#include "gpu_main.cuh"

#include "memup_training.hpp"

TEST_CASE("updates of MemUP on a GPU equal those of its emulation, with two threads and by turns") {
    using namespace memup_test;
    for (const int block : {0, 2}) {
        CAPTURE(block);
        const auto s = tiny(contexts::retraced, block);
        run<emulated<double>> host(s, 2);
        run<cuda<double>> device(s, 2);
        host.iterate(12);
        device.iterate(12);
        CHECK(difference(host, device) < 1e-8);
        CHECK(device.t.take_window()["chosen_loss"] ==
              doctest::Approx(host.t.take_window()["chosen_loss"]).epsilon(1e-8));
    }
}
