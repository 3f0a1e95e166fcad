#pragma once
// Patterns of eight bits to be copied by what a controller carries alone.

#include <doctest/doctest.h>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/evaluate/sequences.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/agent.hpp>
#include <engram/program/compiled_tasks.hpp>
#include <engram/train/sequence_update.hpp>

namespace copying {

using namespace engram;

/// Bits of up to `items` patterns that are wrong after so many updates; half of them by chance.
template <class Controller, class Memory = no_memory>
double wrong_bits(typename Controller::settings s, int items, int updates) {
    using model = agent<identity, Controller, Memory, no_auxiliary, supervised>;
    typename model::settings all;
    all.controller = s;
    all.learner.targets = "bits";
    task_options options;
    options.items = items;
    const auto task = make_sequence("bit_copy", options);
    const auto traced = model::template trace<cpu<float>>(all, shape_of(task->info()), 1);
    optimiser_settings o;
    o.learning_rate = 3e-3, o.epsilon = 1e-8, o.clip = 1;
    training_loop<sequence_update<cpu<float>>> training({1, 1, 0}, traced, task, sequence_settings{16}, o);
    for (int i = 0; i < updates; ++i) training.iterate();
    sequence_player<cpu<float>> player(traced, task, 50);
    return player.score("train", 200, 1).mean;
}

}  // namespace copying
