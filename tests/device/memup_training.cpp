// SPDX-License-Identifier: MIT
// MemUP's training on a device, here an emulated one: what the host's does, and checkpoints that move between them.

#include <doctest/doctest.h>

#include <engram/device/operations.hpp>

#include "../train/same_file.hpp"
#include "memup_training.hpp"

using namespace memup_test;

namespace {

using here = cpu<double>;
using there = emulated<double>;

}  // namespace

// They differ by the order of sums: measured 2.2e-16 after twelve updates.
TEST_CASE("MemUP on a device does what it does on the host: pairs, contexts, averages, turns") {
    for (const int threads : {1, 2})
        for (const auto seen : {contexts::none, contexts::kept, contexts::retraced})
            for (const int block : {0, 2}) {
                CAPTURE(threads);
                CAPTURE(static_cast<int>(seen));
                CAPTURE(block);
                const auto s = tiny(seen, block);
                run<here> host(s, threads);
                run<there> device(s, threads), begun(s);
                host.iterate(12);
                device.iterate(12);
                CHECK(difference(host, device) < 1e-12);
                CHECK(difference(begun, device) > 1e-3);
                CHECK(largest_difference(begun.slow.store->flat(), device.slow.store->flat()) > 1e-4);
                CHECK(device.t.steps() == host.t.steps());
                const auto a = host.t.take_window(), b = device.t.take_window();
                CHECK(b.iterations == 12);
                CHECK(b["chosen_loss"] == doctest::Approx(a["chosen_loss"]).epsilon(1e-9));
                CHECK(b["current_loss"] == doctest::Approx(a["current_loss"]).epsilon(1e-9));
                CHECK(b.gradient_norm == doctest::Approx(a.gradient_norm).epsilon(1e-9));
                CHECK(b["distance"] == a["distance"]);
                CHECK(b["judged_share"] == a["judged_share"]);
            }
}

TEST_CASE("a run of MemUP that is resumed on a device equals the uninterrupted one bit for bit") {
    for (const auto seen : {contexts::none, contexts::retraced}) {
        const auto s = tiny(seen, 2);
        run<there> whole(s, 2);
        whole.iterate(7);
        const auto file = whole.saved();
        run<there> resumed(s, 2, 99);
        resumed.iterate(3);  // what it did before leaves no trace
        resumed.t.load(file);
        CHECK(same(resumed.saved(), file));
        whole.iterate(9);
        resumed.iterate(9);
        CHECK(same(resumed.saved(), whole.saved()));
    }
}

TEST_CASE("a checkpoint of MemUP moves from a device to the host and back without losing a bit") {
    for (const auto seen : {contexts::none, contexts::kept, contexts::retraced}) {
        const auto s = tiny(seen, 2);
        run<there> device(s);
        device.iterate(7);
        const auto file = device.saved();
        run<here> host(s, 1, 99);
        host.iterate(1);
        host.t.load(file);
        CHECK(same(host.saved(), file));
        device.iterate(5);
        host.iterate(5);
        CHECK(difference(host, device) < 1e-12);
        const auto later = host.saved();
        CHECK_FALSE(same(later, file));
        run<there> back(s, 1, 7);
        back.iterate(1);
        back.t.load(later);
        CHECK(same(back.saved(), later));
        back.iterate(5);
        host.iterate(5);
        CHECK(difference(host, back) < 1e-12);
    }
}

TEST_CASE("an update of MemUP on a device with a number that is not finite leaves the weights") {
    run<there> device(tiny());
    device.iterate(2);
    const auto before = device.saved();
    auto broken = before;
    const double nan = std::nan("");
    std::memcpy(broken.tensors.at("predictor.answer.weight").data.data(), &nan, sizeof nan);
    device.t.load(broken);
    CHECK_THROWS_WITH_AS(device.iterate(1), doctest::Contains("training stopped at step"), error);
    device.t.load(before);
    CHECK(same(device.saved(), before));
    device.iterate(1);
}
