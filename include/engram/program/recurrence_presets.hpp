#pragma once
// SPDX-License-Identifier: MIT

// Presets of the recurrences of today (docs/decisions/0026).
//
//   small   widths at which a task of the library trains on two cores in minutes; ours
//   paper   what their authors, or the benchmark that each is known from, train: GRU and FFM as in POPGym, MinGRU as in
//           PufferLib, LRU as in memoroids, S5 as in popjaxrl, SHM as for POPGym's easy tasks, mLSTM with the factor of
//           two of its blocks, gated DeltaNet at the sizes of the recurrent fast weight programmers on Atari, GTrXL at
//           those of TrXL under PPO on Memory Gym

#include <engram/program/preset_table.hpp>

namespace engram {

inline preset_table small_recurrence_preset() {
    preset_table all;
    return all.of({.controller = "gru"}, {{"controller.hidden", "64"}})
        .of({.controller = "min_gru"}, {{"controller.hidden", "64"}, {"controller.layers", "2"}})
        .of({.controller = {"linear_recurrent_unit", "s5"}},
            {{"controller.hidden", "64"}, {"controller.layers", "2"}, {"controller.states", "32"}})
        .of({.controller = "fast_and_forgetful"}, {{"controller.hidden", "64"}, {"controller.traces", "16"}})
        .of({.controller = "stable_hadamard"}, {{"controller.hidden", "64"}, {"controller.size", "16"}})
        .of({.controller = "gtrxl"}, {{"controller.hidden", "32"},
                                      {"controller.inner", "64"},
                                      {"controller.layers", "1"},
                                      {"controller.window", "32"}})
        .of({.controller = "mlstm"}, {{"controller.hidden", "32"},
                                      {"controller.inner", "64"},
                                      {"controller.key", "16"},
                                      {"controller.layers", "1"}})
        .of({.controller = "gated_delta_net"}, {{"controller.hidden", "32"},
                                                {"controller.key", "16"},
                                                {"controller.value", "32"},
                                                {"controller.layers", "1"}});
}

inline preset_table paper_recurrence_preset() {
    preset_table all;
    return all.of({.controller = "gru"}, {{"controller.hidden", "256"}})
        .of({.controller = "min_gru"}, {{"controller.hidden", "128"}, {"controller.layers", "4"}})
        .of({.controller = "linear_recurrent_unit"},
            {{"controller.hidden", "256"}, {"controller.layers", "2"}, {"controller.states", "128"}})
        .of({.controller = "s5"},
            {{"controller.hidden", "256"}, {"controller.layers", "4"}, {"controller.states", "128"}})
        .of({.controller = "fast_and_forgetful"},
            {{"controller.hidden", "256"}, {"controller.traces", "32"}, {"controller.phases", "4"}})
        .of({.controller = "stable_hadamard"}, {{"controller.size", "128"}})
        .of({.controller = "mlstm"}, {{"controller.hidden", "128"},
                                      {"controller.inner", "256"},
                                      {"controller.heads", "4"},
                                      {"controller.key", "64"}})
        .of({.controller = "gated_delta_net"}, {{"controller.hidden", "128"},
                                                {"controller.heads", "4"},
                                                {"controller.key", "32"},
                                                {"controller.value", "64"}})
        .of({.controller = "gtrxl"}, {{"controller.hidden", "384"},
                                      {"controller.heads", "4"},
                                      {"controller.inner", "384"},
                                      {"controller.layers", "3"},
                                      {"controller.window", "119"}})
        .of({.memory = "memory_traces"}, {{"memory.traces", "2"}, {"memory.longest", "0.985"}});
}

}  // namespace engram
