// SPDX-License-Identifier: MIT
// MemUP with a memory in its slot: an NTM's update is plain BPTT where both say the same, and a k-NN memory that goes
// on through rollouts resumes with the same bits.

#include <doctest/doctest.h>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/stacked_lstm.hpp>
#include <engram/encoder/token_embedding.hpp>
#include <engram/learner/memup.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/memory/ntm.hpp>
#include <engram/model/agent.hpp>
#include <engram/task/copy_sequences.hpp>
#include <engram/train/memup_update.hpp>

#include "same_file.hpp"

using namespace engram;

namespace {

using with_ntm = agent<token_embedding, stacked_lstm, ntm, no_auxiliary, memup>;
using with_knn = with_ntm::with<fifo_knn>;

const auto source = std::make_shared<const copy_task<false>>(task_options{.items = 2, .steps = 12});

template <class Model>
typename Model::settings tiny() {
    typename Model::settings s;
    s.encoder.width = 4;
    s.controller.hidden = 5;
    s.learner.hidden = {6};
    s.memory.slots = 6;
    s.learner.selected = 3;
    return s;
}

optimiser_settings rate(double learning_rate) {
    optimiser_settings o;
    o.learning_rate = learning_rate;
    o.epsilon = 1e-8;
    return o;
}

}  // namespace

TEST_CASE("an NTM: r = T and every step predicting itself is plain BPTT") {
    using backend = cpu<double>;
    auto s = tiny<with_ntm>();
    s.memory.word = 3;
    s.learner.rollout = 12;
    s.learner.every = 1;
    s.learner.selection = "current";
    s.learner.current_weight = 0;
    const auto shape = shape_of(source->info());
    const auto fast = with_ntm::trace<backend>(s, shape, 1),
               slow = with_ntm::trace<backend>(s, shape, 1, purpose::generating),
               plain = with_ntm::trace<backend>(s, shape, 1, purpose::generating);
    training_loop<memup_update<backend>> t({1, 1, 0}, fast, slow, source, sequence_settings{3}, rate(0));
    t.iterate();

    add_loss("plain", *plain.row_loss, 1, reduction::mean);
    program<backend> p(*plain.g, plain.store, {.steps = 12, .batch = 3, .gradients = true});
    sequence_rows rows(source, "train", 1, 3, 0, 3);
    rows.draw();
    rows.fill(p, 12);
    std::fill(p.input("memory_gradient").begin(), p.input("memory_gradient").end(), 0.0);
    p.forward();
    p.backward();
    double worst = 0, largest = 0;
    for (std::size_t i = 0; i < p.gradient().size(); ++i) {
        worst = std::max(worst, std::abs(p.gradient()[i] - t->learner(0).gradient()[i]));
        largest = std::max(largest, std::abs(p.gradient()[i]));
    }
    CHECK(largest > 1e-3);
    CHECK(worst < 1e-10 * largest);
}

TEST_CASE("a k-NN memory goes on through the rollouts of an episode and through a checkpoint") {
    using backend = cpu<float>;
    auto s = tiny<with_knn>();
    s.memory.key = 3;
    s.memory.neighbours = 2;
    s.learner.rollout = 4;
    s.learner.every = 2;
    const auto shape = shape_of(source->info());
    const auto make = [&](purpose why) { return with_knn::trace<backend>(s, shape, 1, why); };
    const auto a = make(purpose::learning), b = make(purpose::learning), c = make(purpose::learning),
               slow_a = make(purpose::generating), slow_b = make(purpose::generating),
               slow_c = make(purpose::generating);
    training_loop<memup_update<backend>> whole({1, 2, 0}, a, slow_a, source, sequence_settings{4}, rate(1e-2)),
        part({1, 2, 0}, b, slow_b, source, sequence_settings{4}, rate(1e-2)),
        rest({1, 2, 0}, c, slow_c, source, sequence_settings{4}, rate(1e-2));
    for (int i = 0; i < 11; ++i) whole.iterate();
    for (int i = 0; i < 5; ++i) part.iterate();
    const auto file = saved(part);
    rest.load(file);
    for (int i = 0; i < 6; ++i) rest.iterate();
    CHECK(std::equal(a.store->flat().begin(), a.store->flat().end(), c.store->flat().begin()));
    CHECK(std::isfinite(whole.take_window().loss));
}
