#pragma once
// SPDX-License-Identifier: MIT

// The same training on the host and on a device: what runs of either share in the tests of sequences. On a GPU
// the emulation takes the host's part (tests/device/sequences_on_a_gpu.cu).

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <memory>

#include <engram/device/operations.hpp>
#include <engram/train/truncated_update.hpp>

#include "same_file.hpp"

namespace device_run {

using namespace engram;
using host = cpu<float>;
using device = emulated<float>;

/// A model in training. Agent: its type; Update: a template over the backend. All models have one seed, which
/// also keys their noise.
template <class Agent, template <class> class Update, class Backend>
struct run {
    run(const typename Agent::settings& s, std::shared_ptr<const sequence_source> source, int threads = 1)
        : model(Agent::template trace<Backend>(s, shape_of(source->info()), 1)),
          t({3, threads, 10'000}, model, source, sequence_settings{.batch = 4}, rates()) {}
    static optimiser_settings rates() {
        optimiser_settings o;
        o.learning_rate = 1e-3;
        return o;
    }
    void iterate(int n) {
        for (int i = 0; i < n; ++i) t.iterate();
    }
    std::span<const float> weights() {
        t.sync_weights();
        return model.store->flat();
    }
    safetensors saved() { return ::saved(t); }
    traced_agent<Backend> model;
    training_loop<Update<Backend>> t;
};

template <class A, class B>
double difference(A& a, B& b) {
    return largest_difference(a.weights(), b.weights());
}

inline void are_close(const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-3));
}

/// Eight updates of Adam (steps of 1e-3) from the same weights: sums in another order, carried on in float.
template <class Agent, template <class> class Update, class Device = device, class Host = host>
void learns_as_on_the_host(const typename Agent::settings& s, const std::shared_ptr<const sequence_source>& source,
                           int threads) {
    CAPTURE(threads);
    run<Agent, Update, Host> here(s, source, threads);
    run<Agent, Update, Device> there(s, source, threads), begun(s, source);
    here.iterate(8);
    there.iterate(8);
    CHECK(difference(here, there) < 1e-4);
    CHECK(difference(begun, there) > 1e-3);
    CHECK(here.t.steps() == there.t.steps());
    const auto a = here.t.take_window(), b = there.t.take_window();
    CHECK(a.iterations == 8);
    CHECK(b.iterations == 8);
    are_close({a.loss, a.gradient_norm, a.learning_rate}, {b.loss, b.gradient_norm, b.learning_rate});
    are_close(a.divergence, b.divergence);
    are_close(a.log_likelihood, b.log_likelihood);
    REQUIRE(a.losses.size() == b.losses.size());
    for (std::size_t i = 0; i < a.losses.size(); ++i) {
        CHECK(a.losses[i].first == b.losses[i].first);
        CHECK(a.losses[i].second == doctest::Approx(b.losses[i].second).epsilon(1e-3));
    }
    // A window holds what came after the last one.
    here.iterate(2);
    there.iterate(2);
    are_close(here.t.take_window().divergence, there.t.take_window().divergence);
}

template <class Agent, template <class> class Update, class Device = device>
void resumes_exactly(const typename Agent::settings& s, const std::shared_ptr<const sequence_source>& source,
                     int threads) {
    CAPTURE(threads);
    run<Agent, Update, Device> whole(s, source, threads), resumed(s, source, threads);
    whole.iterate(4);
    const auto file = whole.saved();
    resumed.iterate(2);  // what it did before leaves no trace
    resumed.t.load(file);
    CHECK(same(resumed.saved(), file));
    whole.iterate(4);
    resumed.iterate(4);
    CHECK(same(resumed.saved(), whole.saved()));
}

template <class Agent, template <class> class Update>
void moves_between_host_and_device(const typename Agent::settings& s,
                                   const std::shared_ptr<const sequence_source>& source) {
    run<Agent, Update, device> there(s, source);
    there.iterate(4);
    const auto file = there.saved();
    run<Agent, Update, host> here(s, source);
    here.iterate(1);
    here.t.load(file);
    CHECK(here.t.updates() == 4);
    CHECK(same(here.saved(), file));
    there.iterate(3);
    here.iterate(3);
    CHECK(difference(here, there) < 1e-4);
    const auto later = here.saved();
    CHECK_FALSE(same(later, file));
    run<Agent, Update, device> back(s, source);
    back.iterate(1);
    back.t.load(later);
    CHECK(same(back.saved(), later));
    back.iterate(2);
    here.iterate(2);
    CHECK(difference(here, back) < 1e-4);
}

/// `parameter`: one whose first number every answer depends on.
template <class Agent, template <class> class Update>
void keeps_the_weights_before_a_bad_update(const typename Agent::settings& s,
                                           const std::shared_ptr<const sequence_source>& source,
                                           const std::string& parameter) {
    run<Agent, Update, device> there(s, source);
    there.iterate(2);
    const auto before = there.saved();
    auto broken = before;
    auto& bytes = broken.tensors.at(parameter).data;
    const float nan = std::nanf("");
    std::memcpy(bytes.data(), &nan, sizeof nan);
    there.t.load(broken);
    CHECK_THROWS_WITH_AS(there.iterate(1), doctest::Contains("training stopped at step"), engram::error);
    there.t.load(before);
    CHECK(same(there.saved(), before));
    there.iterate(1);
}

}  // namespace device_run
