// Memories learn: what was seen costs less the second time with one and as much without, and short bit patterns are
// copied.

#include <doctest/doctest.h>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/gru.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/evaluate/sequences.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/learner/variational.hpp>
#include <engram/memory/dnc.hpp>
#include <engram/memory/introspection.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/memory/ntm.hpp>
#include <engram/model/agent.hpp>
#include <engram/program/compiled_tasks.hpp>
#include <engram/train/sequence_update.hpp>

#include "recurrences_learn.hpp"

using namespace engram;

namespace {

using backend = cpu<float>;

optimiser_settings quick(double clip) {
    optimiser_settings o;
    o.learning_rate = 3e-3;
    o.epsilon = 1e-8;
    o.clip = clip;
    return o;
}

template <class Model>
sequence_score recall(typename Model::settings s, int updates) {
    s.encoder.layers = {64};
    s.controller.hidden = 48;
    s.learner.latent = 12;
    s.learner.hidden = 64;
    task_options options;
    options.items = 5;
    options.recalled = 3;
    const auto task = make_sequence("perfect_recall", options);
    const auto model = Model::template trace<backend>(s, shape_of(task->info()), 1);
    training_loop<sequence_update<backend>> training({1, 1, 0}, model, task, sequence_settings{16}, quick(5));
    for (int i = 0; i < updates; ++i) training.iterate();
    const auto playing = Model::template trace<backend>(s, shape_of(task->info()), 1, purpose::generating);
    std::copy(model.store->flat().begin(), model.store->flat().end(), playing.store->edit().flat().begin());
    sequence_player<backend> player(playing, task, 50);
    return player.score("holdout_interpolate", 200, 1);
}

template <class Memory>
double wrong_bits(typename agent<identity, lstm, Memory, no_auxiliary, supervised>::settings s, int updates) {
    using model = agent<identity, lstm, Memory, no_auxiliary, supervised>;
    s.controller.hidden = 32;
    s.memory.slots = 8;
    s.memory.word = 12;
    s.memory.read_heads = 1;
    s.learner.targets = "bits";
    task_options options;
    options.items = 4;
    const auto task = make_sequence("bit_copy", options);
    const auto traced = model::template trace<backend>(s, shape_of(task->info()), 1);
    training_loop<sequence_update<backend>> training({1, 1, 0}, traced, task, sequence_settings{16}, quick(1));
    for (int i = 0; i < updates; ++i) training.iterate();
    sequence_player<backend> player(traced, task, 50);
    return player.score("train", 200, 1).mean;
}

}  // namespace

TEST_CASE("an introspection network pays little for what it has seen, a VRNN the same") {
    using vrnn = agent<mlp, lstm, no_memory, no_auxiliary, variational>;
    vrnn::with<introspection>::settings with;
    with.memory.slots = 8;
    with.memory.heads = 2;
    constexpr int updates = 3000;  // the same for both
    const auto remembered = recall<vrnn::with<introspection>>(with, updates);
    MESSAGE("introspection: KL ", remembered.before, " before, ", remembered.recall, " at recall");
    CHECK(remembered.recall_over_first_sight() < 0.4);
    const auto forgotten = recall<vrnn>({}, updates);
    MESSAGE("VRNN: KL ", forgotten.before, " before, ", forgotten.recall, " at recall");
    CHECK(forgotten.recall_over_first_sight() > 0.9);
}

// What else carries something is in tests/long/recurrences_learn.cpp.
TEST_CASE("a GRU copies up to two patterns; 6 bits of 8 x 1.5 are wrong by chance") {
    CHECK(copying::wrong_bits<gru>({.hidden = 64}, 2, 2000) < 0.5);
}

TEST_CASE("NTM and DNC copy up to four patterns; 10 bits of 8 x 2.5 are wrong by chance") {
    CHECK(wrong_bits<ntm>({}, 5000) < 0.1);
    CHECK(wrong_bits<dnc>({}, 5000) < 0.1);
}
