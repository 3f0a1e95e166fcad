#pragma once
// SPDX-License-Identifier: MIT

// The catalogue: every ablation of the source papers by name, and what researchers compare them with. CMake makes a
// program of each line with an "ablation" comment, and one of a line with an "on request" comment when it is asked for.
//
// Memory Recall Agent, NeurIPS 2019 (facts 1.10, Tables 3 to 16): FF or LSTM controller, with or without the episodic
// memory (MEM), with no auxiliary loss, contrastive predictive coding (CPC) or reconstruction (REC).
//
// Generative Temporal Models with Memory (facts 4, Table 1): a VRNN, and the same with a memory in it.
//
// Long-term memory by maximising uncertainty reduction (MemUP, facts 3, Table 1): a memory that is trained by
// predictions of far steps, and the same network under backpropagation through whole sequences (BPTT) or cut ones
// (TBPTT).
//
// POPGym (Morad et al. 2023): what PPO acts with in place of the LSTM alone.

#include <engram/auxiliary/cpc.hpp>
#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/auxiliary/reconstruction.hpp>
#include <engram/controller/fast_and_forgetful.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/controller/gated_delta_net.hpp>
#include <engram/controller/gru.hpp>
#include <engram/controller/gtrxl.hpp>
#include <engram/controller/linear_recurrent_unit.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/controller/min_gru.hpp>
#include <engram/controller/mlstm.hpp>
#include <engram/controller/s5.hpp>
#include <engram/controller/srnn.hpp>
#include <engram/controller/stable_hadamard.hpp>
#include <engram/controller/stacked_lstm.hpp>
#include <engram/controller/transformer.hpp>
#include <engram/encoder/gtmm_vision.hpp>
#include <engram/encoder/impala_resnet.hpp>
#include <engram/encoder/numbers_or_image.hpp>
#include <engram/encoder/token_embedding.hpp>
#include <engram/learner/memup.hpp>
#include <engram/learner/memup_ppo.hpp>
#include <engram/learner/ppo.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/learner/variational.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/dnc.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/memory/hybrid.hpp>
#include <engram/memory/introspection.hpp>
#include <engram/memory/lru_access.hpp>
#include <engram/memory/memory_traces.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/memory/ntm.hpp>
#include <engram/model/agent.hpp>

namespace engram::catalogue {

// CMake reads these lines.
// clang-format off

using mra = agent<impala_resnet, engram::lstm, fifo_knn, cpc, vtrace>;  // ablation LSTM+MEM+CPC
using mra_no_jumpy = mra::with<fifo_knn_no_jumpy>;                      // ablation MRA without jumpy backpropagation
using lstm_mem = mra::with<no_auxiliary>;                               // ablation LSTM+MEM
using lstm_mem_rec = mra::with<reconstruction>;                         // ablation LSTM+MEM+REC
using lstm_cpc = mra::with<no_memory>;                                  // ablation LSTM+CPC
using lstm = lstm_cpc::with<no_auxiliary>;                              // ablation LSTM (IMPALA)
using ff_mem_cpc = mra::with<feed_forward>;                             // ablation FF+MEM+CPC
using ff_mem_rec = ff_mem_cpc::with<reconstruction>;                    // ablation FF+MEM+REC
using ff_mem = ff_mem_cpc::with<no_auxiliary>;                          // ablation FF+MEM
using ff = ff_mem::with<no_memory>;                                     // ablation FF

using vrnn = agent<gtmm_vision, engram::lstm, no_memory, no_auxiliary, variational>;  // ablation VRNN
using introspective_gtmm = vrnn::with<introspection>;                                 // ablation GTMM, introspection network
using ntm_gtmm = vrnn::with<ntm>;                                                     // ablation GTMM, NTM memory
using lru_gtmm = vrnn::with<lru_access>;                                              // ablation GTMM, LRU access
using dnc_gtmm = vrnn::with<dnc>;                                                     // ablation GTMM, DNC memory

using memup = agent<token_embedding, stacked_lstm, no_memory, no_auxiliary, engram::memup>;  // ablation MemUP
using bptt_lstm = memup::with<supervised>;                                                   // ablation LSTM
using tbptt_lstm = memup::with<truncated_supervised>;                                        // ablation LSTM, truncated
using bptt_srnn = bptt_lstm::with<srnn>;                                                     // ablation SRNN
using tbptt_srnn = tbptt_lstm::with<srnn>;                                                   // ablation SRNN, truncated
using bptt_transformer = bptt_lstm::with<transformer>;                                       // ablation Transformer
using tbptt_transformer = tbptt_lstm::with<transformer>;  // ablation Transformer, truncated

using ppo_lstm = agent<numbers_or_image, engram::lstm, no_memory, no_auxiliary, ppo>;  // ablation PPO with an LSTM
using ppo_memup = ppo_lstm::with<memup_ppo>;                                           // ablation MemUP, acting

using ppo_ff = ppo_lstm::with<feed_forward>;  // ablation PPO without a memory
using ppo_lstm_mem = ppo_lstm::with<fifo_knn>;  // ablation PPO with an LSTM and a k-NN memory (ours)
using ppo_dnc = ppo_lstm::with<dnc>;  // ablation PPO with a DNC

// The recurrences of today and a Transformer that acts (docs/decisions/0026) in place of the LSTM, under V-trace, under PPO and on sequences.

using gru = lstm::with<engram::gru>;                                                    // on request GRU
using min_gru = lstm::with<engram::min_gru>;                                            // on request MinGRU
using linear_recurrent_unit = lstm::with<engram::linear_recurrent_unit>;                // on request Linear recurrent unit
using s5 = lstm::with<engram::s5>;                                                      // on request S5
using fast_and_forgetful = lstm::with<engram::fast_and_forgetful>;                      // on request FFM
using stable_hadamard = lstm::with<engram::stable_hadamard>;                            // on request SHM
using mlstm = lstm::with<engram::mlstm>;                                                // on request mLSTM
using gated_delta_net = lstm::with<engram::gated_delta_net>;                            // on request Gated DeltaNet
using gtrxl = lstm::with<engram::gtrxl>;                                                // on request GTrXL
using memory_traces = ff::with<engram::memory_traces>;                                  // on request Memory traces
using ppo_gru = ppo_lstm::with<engram::gru>;                                            // on request PPO with GRU
using ppo_min_gru = ppo_lstm::with<engram::min_gru>;                                    // on request PPO with MinGRU
using ppo_linear_recurrent_unit = ppo_lstm::with<engram::linear_recurrent_unit>;        // on request PPO with linear recurrent unit
using ppo_s5 = ppo_lstm::with<engram::s5>;                                              // on request PPO with S5
using ppo_fast_and_forgetful = ppo_lstm::with<engram::fast_and_forgetful>;              // on request PPO with FFM
using ppo_stable_hadamard = ppo_lstm::with<engram::stable_hadamard>;                    // on request PPO with SHM
using ppo_mlstm = ppo_lstm::with<engram::mlstm>;                                        // on request PPO with mLSTM
using ppo_gated_delta_net = ppo_lstm::with<engram::gated_delta_net>;                    // on request PPO with gated DeltaNet
using ppo_gtrxl = ppo_lstm::with<engram::gtrxl>;                                        // on request PPO with GTrXL
using ppo_memory_traces = ppo_lstm::with<feed_forward>::with<engram::memory_traces>;    // on request PPO with memory traces
using bptt_gru = bptt_lstm::with<engram::gru>;                                          // on request GRU on sequences
using bptt_min_gru = bptt_lstm::with<engram::min_gru>;                                  // on request MinGRU on sequences
using bptt_linear_recurrent_unit = bptt_lstm::with<engram::linear_recurrent_unit>;      // on request Linear recurrent unit on sequences
using bptt_s5 = bptt_lstm::with<engram::s5>;                                            // on request S5 on sequences
using bptt_fast_and_forgetful = bptt_lstm::with<engram::fast_and_forgetful>;            // on request FFM on sequences
using bptt_stable_hadamard = bptt_lstm::with<engram::stable_hadamard>;                  // on request SHM on sequences
using bptt_mlstm = bptt_lstm::with<engram::mlstm>;                                      // on request mLSTM on sequences
using bptt_gated_delta_net = bptt_lstm::with<engram::gated_delta_net>;                  // on request Gated DeltaNet on sequences
using bptt_gtrxl = bptt_lstm::with<engram::gtrxl>;                                      // on request GTrXL on sequences
using bptt_memory_traces = bptt_lstm::with<feed_forward>::with<engram::memory_traces>;  // on request Memory traces on sequences
using hybrid = lstm::with<engram::hybrid>;                                              // on request LSTM with a hybrid memory (ours)
using ppo_hybrid = ppo_lstm::with<engram::hybrid>;                                      // on request PPO with an LSTM and a hybrid memory (ours)
using bptt_hybrid = bptt_lstm::with<engram::hybrid>;                                    // on request LSTM with a hybrid memory on sequences (ours)
using hybrid_gtmm = vrnn::with<engram::hybrid>;                                         // on request GTMM, hybrid memory (ours)

// The papers' memories beside an LSTM, and none, where PPO acts and on sequences (docs/results/answer.md).

using ppo_introspection = ppo_lstm::with<engram::introspection>;   // on request PPO with an LSTM and an introspection memory
using ppo_ntm = ppo_lstm::with<engram::ntm>;                       // on request PPO with an LSTM and an NTM memory
using ppo_lru_access = ppo_lstm::with<engram::lru_access>;         // on request PPO with an LSTM and LRU access
using bptt_ff = bptt_lstm::with<feed_forward>;                     // on request FF on sequences
using bptt_lstm_mem = bptt_lstm::with<fifo_knn>;                   // on request LSTM with a k-NN memory on sequences
using bptt_introspection = bptt_lstm::with<engram::introspection>; // on request LSTM with an introspection memory on sequences
using bptt_ntm = bptt_lstm::with<engram::ntm>;                     // on request LSTM with an NTM memory on sequences
using bptt_lru_access = bptt_lstm::with<engram::lru_access>;       // on request LSTM with LRU access on sequences
using bptt_dnc = bptt_lstm::with<engram::dnc>;                     // on request LSTM with a DNC on sequences
// clang-format on

}  // namespace engram::catalogue
