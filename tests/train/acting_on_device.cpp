// Synchronous training on a device, here an emulated one: what the host's does, and checkpoints that move between them.

#include <doctest/doctest.h>

#include <cmath>

#include <engram/device/operations.hpp>

#include "same_file.hpp"
#include "small_run.hpp"

using namespace small;

namespace {

using device = emulated<float>;

template <class Backend>
struct run : small_training<Backend> {
    explicit run(int threads = 1, std::uint64_t seed = 1, int epochs = 1, int minibatches = 1)
        : small_training<Backend>(trace_smaller<Backend>(seed), threads, epochs, minibatches) {}
};

template <class A, class B>
double difference(small_training<A>& a, small_training<B>& b) {
    a.t.sync_weights();
    b.t.sync_weights();
    return largest_difference(a.a.store->flat(), b.a.store->flat());
}

}  // namespace

TEST_CASE("training on a device does what it does on the host") {
    for (const int threads : {1, 2}) {
        CAPTURE(threads);
        run<backend> host(threads);
        run<device> there(threads), begun;
        host.iterate(8);
        there.iterate(8);  // past the end of an episode of 50
        CHECK(difference(host, there) < 1e-4);
        CHECK(difference(begun, there) > 1e-3);
        const auto a = host.t.take_window(), b = there.t.take_window();
        CHECK(a.episodes.size() == 6);
        CHECK(a.episodes == b.episodes);
        CHECK(a.loss == doctest::Approx(b.loss).epsilon(1e-3));
        CHECK(a.gradient_norm == doctest::Approx(b.gradient_norm).epsilon(1e-3));
        CHECK(a.learning_rate == b.learning_rate);
    }
}

TEST_CASE("epochs and minibatches on a device are the host's") {
    run<backend> host(1, 1, 2, 3);
    run<device> there(1, 1, 2, 3);
    host.iterate(2);
    there.iterate(2);
    CHECK(there.t.updates() == 12);
    CHECK(difference(host, there) < 1e-4);
}

TEST_CASE("a loss whose weight is adapted is on a device what it is on the host") {
    small_training<backend> host(trace_held_near<backend>(), 1, 2, 3);
    small_training<device> there(trace_held_near<device>(), 1, 2, 3);
    host.iterate(3);
    there.iterate(3);
    CHECK(difference(host, there) < 1e-4);
    const auto a = host.t.take_window(), b = there.t.take_window();
    CHECK(a.losses.back().first == "divergence_loss");
    CHECK(a.losses.back().second > 0);
    CHECK(a.losses.back().second == doctest::Approx(b.losses.back().second).epsilon(1e-3));
    const auto weight = host.saved().values<double>("adaptive_weights", {1})[0];
    CHECK(weight != 0.2);
    CHECK(there.saved().values<double>("adaptive_weights", {1})[0] == weight);
}

TEST_CASE("a run that is resumed on a device equals the uninterrupted one bit for bit") {
    run<device> whole(2);
    whole.iterate(4);
    const auto file = whole.saved();
    run<device> resumed(2, 99);
    resumed.iterate(2);  // what it did before leaves no trace
    resumed.t.load(file);
    CHECK(same(resumed.saved(), file));
    whole.iterate(4);
    resumed.iterate(4);
    CHECK(same(resumed.saved(), whole.saved()));
}

TEST_CASE("a checkpoint moves from a device to the host and back without losing a bit") {
    run<device> there;
    there.iterate(4);
    const auto file = there.saved();
    run<backend> here(1, 99);
    here.iterate(1);
    here.t.load(file);
    CHECK(here.t.updates() == 4);
    const auto on_host = here.saved();
    CHECK(same(on_host, file));
    // Both go on from the same point.
    there.iterate(3);
    here.iterate(3);
    CHECK(difference(here, there) < 1e-4);
    const auto later = here.saved();
    CHECK_FALSE(same(later, file));
    run<device> back(1, 7);
    back.iterate(1);
    back.t.load(later);
    CHECK(same(back.saved(), later));
    back.iterate(2);
    here.iterate(2);
    CHECK(difference(here, back) < 1e-4);
}

TEST_CASE("an update on a device with a number that is not finite ends training and leaves the weights") {
    run<device> there;
    there.iterate(2);
    const auto before = there.saved();
    auto broken = before;
    auto& bytes = broken.tensors.at("learner.value.weight").data;
    const float nan = std::nanf("");
    std::memcpy(bytes.data(), &nan, sizeof nan);
    there.t.load(broken);
    CHECK_THROWS_WITH_AS(there.iterate(1), doctest::Contains("training stopped at step"), engram::error);
    there.t.load(before);
    CHECK(same(there.saved(), before));
    there.iterate(1);
}
