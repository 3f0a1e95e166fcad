#pragma once
// The eighteen memories of docs/results/answer.md and popgym.md.

#include <array>

namespace documents {

struct member {
    const char *name, *title;
};
/// What the programs are called but for their first word, ppo_ or bptt_: none, recurrences, the papers' memories.
constexpr std::array<member, 18> members{{{"ff", "none"},
                                          {"lstm", "LSTM"},
                                          {"gru", "GRU"},
                                          {"min_gru", "MinGRU"},
                                          {"linear_recurrent_unit", "linear recurrent unit"},
                                          {"s5", "S5"},
                                          {"fast_and_forgetful", "FFM"},
                                          {"stable_hadamard", "SHM"},
                                          {"mlstm", "mLSTM"},
                                          {"gated_delta_net", "gated DeltaNet"},
                                          {"gtrxl", "GTrXL"},
                                          {"memory_traces", "memory traces"},
                                          {"lstm_mem", "LSTM + k-NN"},
                                          {"introspection", "LSTM + introspection"},
                                          {"ntm", "LSTM + NTM"},
                                          {"lru_access", "LSTM + LRU access"},
                                          {"dnc", "LSTM + DNC"},
                                          {"hybrid", "LSTM + hybrid"}}};

}  // namespace documents
