#pragma once
// SPDX-License-Identifier: MIT

// The operations of the library, float on the CPU, compiled once in engram_compiled: a program of one agent then holds
// its trace and links the rest, which makes it compile in a third of the time.
//
// An operation's kernels are instantiated by its virtual bind() alone, so declaring the operation extern leaves them
// all out. One that is missing here, a user's own for instance, is compiled where it is used, as everywhere else.

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
#include <engram/controller/transformer.hpp>
#include <engram/encoder/gtmm_vision.hpp>
#include <engram/encoder/impala_resnet.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/encoder/small_conv.hpp>
#include <engram/learner/memup.hpp>
#include <engram/learner/ppo.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/learner/variational.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/dnc.hpp>
#include <engram/memory/introspection.hpp>
#include <engram/memory/lru_access.hpp>
#include <engram/memory/memory_traces.hpp>
#include <engram/memory/ntm.hpp>
#include <engram/model/agent.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/attention.hpp>
#include <engram/operations/clear_rows.hpp>
#include <engram/operations/concatenate.hpp>
#include <engram/operations/content_weights.hpp>
#include <engram/operations/convolution.hpp>
#include <engram/operations/cpc.hpp>
#include <engram/operations/heads.hpp>
#include <engram/operations/knn.hpp>
#include <engram/operations/layer_norm.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/normalise.hpp>
#include <engram/operations/pick.hpp>
#include <engram/operations/quantiles.hpp>
#include <engram/operations/returns.hpp>
#include <engram/operations/softmax.hpp>

/// The engine and the operations over one backend: EXTERN is `extern`, or nothing where they are compiled.
#define ENGRAM_OPERATIONS(EXTERN, BACKEND)                                                       \
    EXTERN template class graph<BACKEND>;                                                        \
    EXTERN template class program<BACKEND>;                                                      \
    EXTERN template struct affine_operation<BACKEND>;                                            \
    EXTERN template struct row_operation<BACKEND, concatenate_rows>;                             \
    EXTERN template struct row_operation<BACKEND, log_softmax_rows>;                             \
    EXTERN template struct row_operation<BACKEND, softmax_rows>;                                 \
    EXTERN template struct row_operation<BACKEND, group_sum_rows>;                               \
    EXTERN template struct row_operation<BACKEND, cleared_rows>;                                 \
    EXTERN template struct row_operation<BACKEND, pick_rows>;                                    \
    EXTERN template struct row_operation<BACKEND, standardised_column>;                          \
    EXTERN template struct row_operation<BACKEND, one_hot_rows>;                                 \
    EXTERN template struct row_operation<BACKEND, embed_rows>;                                   \
    EXTERN template struct row_operation<BACKEND, learnt_rows>;                                  \
    EXTERN template struct simple_operation<BACKEND, loss_kernel, loss_settings>;                \
    EXTERN template struct simple_operation<BACKEND, dropout_kernel, double>;                    \
    EXTERN template struct simple_operation<BACKEND, receive_gradient_kernel, no_settings>;      \
    EXTERN template struct simple_operation<BACKEND, knn_forget_kernel, knn_memory>;             \
    EXTERN template struct simple_operation<BACKEND, knn_read_kernel, knn_read_settings>;        \
    EXTERN template struct simple_operation<BACKEND, knn_write_kernel, knn_memory>;              \
    EXTERN template struct simple_operation<BACKEND, cpc_kernel, int>;                           \
    EXTERN template struct simple_operation<BACKEND, vtrace_kernel, vtrace_clips<double>>;       \
    EXTERN template struct simple_operation<BACKEND, max_pool_kernel, pooling_shape>;            \
    EXTERN template struct simple_operation<BACKEND, upsample_kernel, image_shape>;              \
    EXTERN template struct simple_operation<BACKEND, convolution_kernel, convolution_settings>;  \
    EXTERN template struct simple_operation<BACKEND, batch_norm_kernel, batch_norm_description>; \
    EXTERN template struct simple_operation<BACKEND, channels_kernel, channels_settings>;        \
    EXTERN template struct simple_operation<BACKEND, mean_colour_kernel, image_shape>;           \
    EXTERN template struct simple_operation<BACKEND, noise_kernel, noise_settings>;              \
    EXTERN template struct simple_operation<BACKEND, cosine_scores_kernel, matrix_memory_shape>; \
    EXTERN template struct simple_operation<BACKEND, weighted_read_kernel, matrix_memory_shape>; \
    EXTERN template struct simple_operation<BACKEND, erase_add_kernel, matrix_memory_shape>;     \
    EXTERN template struct row_operation<BACKEND, mixture_rows>;                                 \
    EXTERN template struct row_operation<BACKEND, content_weights_rows>;                         \
    EXTERN template struct map_operation<BACKEND, lstm_cell, 5>;                                 \
    EXTERN template struct map_operation<BACKEND, clip_reward, 1>;                               \
    EXTERN template struct map_operation<BACKEND, centre_pixels, 1>;                             \
    EXTERN template struct map_operation<BACKEND, add, 2>;                                       \
    EXTERN template struct map_operation<BACKEND, subtract, 2>;                                  \
    EXTERN template struct map_operation<BACKEND, scale_by, 1>;                                  \
    EXTERN template struct map_operation<BACKEND, rectify, 1>;                                   \
    EXTERN template struct map_operation<BACKEND, policy_gradient, 2>;                           \
    EXTERN template struct map_operation<BACKEND, baseline_error, 2>;                            \
    EXTERN template struct map_operation<BACKEND, negative_entropy, 1>;                          \
    EXTERN template struct map_operation<BACKEND, half_squared_error, 2>;                        \
    EXTERN template struct map_operation<BACKEND, bernoulli_cross_entropy, 2>;                   \
    EXTERN template struct map_operation<BACKEND, positive_deviation, 1>;                        \
    EXTERN template struct map_operation<BACKEND, shift_and_scale, 3>;                           \
    EXTERN template struct map_operation<BACKEND, gaussian_divergence, 4>;                       \
    EXTERN template struct map_operation<BACKEND, bernoulli_log_likelihood, 2>;                  \
    EXTERN template struct map_operation<BACKEND, gaussian_log_likelihood, 2>;                   \
    EXTERN template struct map_operation<BACKEND, squash, 1>;                                    \
    EXTERN template struct map_operation<BACKEND, per_sequence, 2>;                              \
    EXTERN template struct map_operation<BACKEND, choose, 3>;                                    \
    EXTERN template struct map_operation<BACKEND, times, 2>;                                     \
    EXTERN template struct map_operation<BACKEND, weighted_negative, 2>;                         \
    EXTERN template struct map_operation<BACKEND, negated, 1>;                                   \
    EXTERN template struct map_operation<BACKEND, squared_error, 2>;                             \
    EXTERN template struct map_operation<BACKEND, log_of_bit, 2>;                                \
    EXTERN template struct map_operation<BACKEND, sum_images, 2>;                                \
    EXTERN template struct map_operation<BACKEND, sum_images, 4>;                                \
    EXTERN template struct simple_operation<BACKEND, temporal_link_kernel, dnc_link>;            \
    EXTERN template struct simple_operation<BACKEND, link_forget_kernel, dnc_link>;              \
    EXTERN template struct simple_operation<BACKEND, generalised_advantage_kernel, double>;      \
    EXTERN template struct simple_operation<BACKEND, dnc_allocate_kernel, no_settings>;          \
    EXTERN template struct map_operation<BACKEND, dnc::update_precedence, 3>;                    \
    EXTERN template struct map_operation<BACKEND, dnc::count_allocation, 4>;                     \
    EXTERN template struct map_operation<BACKEND, dnc::choose_slots, 4>;                         \
    EXTERN template struct map_operation<BACKEND, clipped_surrogate, 3>;                         \
    EXTERN template struct map_operation<BACKEND, divergence_of_action, 2>;                      \
    EXTERN template struct row_operation<BACKEND, fold_rows<dnc::count_write, 1>>;               \
    EXTERN template struct row_operation<BACKEND, fold_rows<dnc::count_free, 2>>;                \
    EXTERN template struct simple_operation<BACKEND, least_used_kernel, no_settings>;            \
    EXTERN template struct row_operation<BACKEND, layer_norm_rows>;                              \
    EXTERN template struct simple_operation<BACKEND, joint_cosine_kernel, matrix_memory_shape>;  \
    EXTERN template struct simple_operation<BACKEND, clear_and_add_kernel, matrix_memory_shape>; \
    EXTERN template struct map_operation<BACKEND, slot_on_reset, 1>;                             \
    EXTERN template struct map_operation<BACKEND, fill_on_reset, 2>;                             \
    EXTERN template struct map_operation<BACKEND, lru_access::choose_slots, 3>;                  \
    EXTERN template struct map_operation<BACKEND, lru_access::bounded, 1>;                       \
    EXTERN template struct map_operation<BACKEND, lru_access::always_zero, 1>;                   \
    EXTERN template struct map_operation<BACKEND, lru_access::age, 1>;                           \
    EXTERN template struct row_operation<BACKEND, fold_rows<lru_access::count_use, 2>>;          \
    EXTERN template struct row_operation<BACKEND, read_slots_rows>;                              \
    EXTERN template struct row_operation<BACKEND, write_slot_rows>;                              \
    EXTERN template struct row_operation<BACKEND, slot_attention_rows>;                          \
    EXTERN template struct row_operation<BACKEND, quantile_huber_rows>;                          \
    EXTERN template struct simple_operation<BACKEND, ntm_address_kernel, ntm_address_shape>;     \
    EXTERN template struct row_operation<BACKEND, atoms_rows>;                                   \
    EXTERN template struct row_operation<BACKEND, atom_summary_rows>;                            \
    EXTERN template struct row_operation<BACKEND, largest_rows>;                                 \
    EXTERN template struct simple_operation<BACKEND, attention_kernel, attention_settings>;      \
    EXTERN template struct simple_operation<BACKEND, episode_step_kernel, int>;                  \
    EXTERN template struct map_operation<BACKEND, shuffle_cell, 3>;                              \
    EXTERN template struct map_operation<BACKEND, gelu, 1>;                                      \
    EXTERN template struct map_operation<BACKEND, introspection::let_through, 2>;                \
    EXTERN template struct map_operation<BACKEND, introspection::count_up, 1>;

/// What the recurrences of today need besides (docs/decisions/0026).
#define ENGRAM_RECURRENCES(EXTERN, BACKEND)                                 \
    EXTERN template struct row_operation<BACKEND, outer_rows>;              \
    EXTERN template struct row_operation<BACKEND, read_matrix_rows>;        \
    EXTERN template struct row_operation<BACKEND, recalled_rows>;           \
    EXTERN template struct row_operation<BACKEND, window_rows>;             \
    EXTERN template struct row_operation<BACKEND, convolved_rows>;          \
    EXTERN template struct row_operation<BACKEND, normalised_rows>;         \
    EXTERN template struct map_operation<BACKEND, always_one, 1>;           \
    EXTERN template struct map_operation<BACKEND, gru_cell, 7>;             \
    EXTERN template struct map_operation<BACKEND, min_gru_cell, 5>;         \
    EXTERN template struct map_operation<BACKEND, unit_poles, 3>;           \
    EXTERN template struct map_operation<BACKEND, turn_and_add, 7>;         \
    EXTERN template struct map_operation<BACKEND, held_poles, 3>;           \
    EXTERN template struct map_operation<BACKEND, turn_and_hold, 8>;        \
    EXTERN template struct map_operation<BACKEND, skip_and_bend, 3>;        \
    EXTERN template struct map_operation<BACKEND, gate_and_add, 3>;         \
    EXTERN template struct map_operation<BACKEND, mlstm_gates, 3>;          \
    EXTERN template struct map_operation<BACKEND, keep_and_add, 4>;         \
    EXTERN template struct map_operation<BACKEND, mlstm_divide, 3>;         \
    EXTERN template struct map_operation<BACKEND, mlstm_out, 5>;            \
    EXTERN template struct map_operation<BACKEND, delta_gates, 4>;          \
    EXTERN template struct map_operation<BACKEND, gain_and_gate, 3>;        \
    EXTERN template struct map_operation<BACKEND, fading_phases, 2>;        \
    EXTERN template struct map_operation<BACKEND, fade_and_add, 6>;         \
    EXTERN template struct map_operation<BACKEND, mix_by_gate, 3>;          \
    EXTERN template struct map_operation<BACKEND, share_of, 2>;             \
    EXTERN template struct map_operation<BACKEND, calibrate_and_add, 4>;    \
    EXTERN template struct map_operation<BACKEND, golden_step, 1>;          \
    EXTERN template struct map_operation<BACKEND, angle_of_step, 2>;        \
    EXTERN template struct map_operation<BACKEND, turn_pair, 4>;            \
    EXTERN template struct map_operation<BACKEND, count_step, 1>;           \
    EXTERN template struct map_operation<BACKEND, reset_columns, 3>;        \
    EXTERN template struct map_operation<BACKEND, gate_columns, 5>;         \
    EXTERN template struct map_operation<BACKEND, memory_traces::fade, 2>;  \
    EXTERN template struct map_operation<BACKEND, memory_traces::count, 1>; \
    EXTERN template struct map_operation<BACKEND, memory_traces::divide, 2>;

// Defined by the one source file that compiles them.
#ifdef ENGRAM_COMPILE_OPERATIONS
#define ENGRAM_EXTERN
#else
#define ENGRAM_EXTERN extern
#endif

namespace engram {

ENGRAM_EXTERN template class parameters<float>;
ENGRAM_OPERATIONS(ENGRAM_EXTERN, cpu<float>)
ENGRAM_RECURRENCES(ENGRAM_EXTERN, cpu<float>)

}  // namespace engram

#undef ENGRAM_EXTERN
