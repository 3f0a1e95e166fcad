#pragma once
// SPDX-License-Identifier: MIT

// The operations of the library, float on the CPU, compiled once in engram_program: a program of one agent then holds
// its trace and links the rest, which makes it compile in a third of the time.
//
// An operation's kernels are instantiated by its virtual bind() alone, so declaring the operation extern leaves them
// all out. One that is missing here, a user's own for instance, is compiled where it is used, as everywhere else.

#include <engram/auxiliary/reconstruction.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/gtmm_vision.hpp>
#include <engram/encoder/impala_resnet.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/encoder/small_conv.hpp>
#include <engram/graph/ops/affine.hpp>
#include <engram/graph/ops/clear_rows.hpp>
#include <engram/graph/ops/convolution.hpp>
#include <engram/graph/ops/cpc.hpp>
#include <engram/graph/ops/heads.hpp>
#include <engram/graph/ops/knn.hpp>
#include <engram/graph/ops/loss.hpp>
#include <engram/graph/ops/map.hpp>
#include <engram/graph/ops/returns.hpp>
#include <engram/graph/ops/rows.hpp>
#include <engram/learner/memup.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/learner/variational.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/dnc.hpp>
#include <engram/memory/introspection.hpp>
#include <engram/memory/lru_access.hpp>
#include <engram/memory/ntm.hpp>
#include <engram/model/agent.hpp>

// Defined by the one source file that compiles them.
#ifdef ENGRAM_COMPILE_OPERATIONS
#define ENGRAM_EXTERN
#else
#define ENGRAM_EXTERN extern
#endif

namespace engram {

ENGRAM_EXTERN template class parameters<float>;
ENGRAM_EXTERN template class graph<cpu<float>>;
ENGRAM_EXTERN template class program<cpu<float>>;

ENGRAM_EXTERN template struct affine_operation<cpu<float>>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, concatenate_kernel, no_settings>;
ENGRAM_EXTERN template struct row_maths_operation<cpu<float>, log_softmax_row>;
ENGRAM_EXTERN template struct row_maths_operation<cpu<float>, softmax_row>;
ENGRAM_EXTERN template struct row_maths_operation<cpu<float>, sum_row>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, clear_rows_kernel, no_settings>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, pick_kernel, no_settings>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, one_hot_kernel, no_settings>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, embed_kernel, parameter>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, loss_kernel, loss_settings>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, dropout_kernel, double>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, receive_gradient_kernel, no_settings>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, knn_forget_kernel, knn_memory>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, knn_read_kernel, knn_read_settings>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, knn_write_kernel, knn_memory>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, cpc_kernel, int>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, vtrace_kernel, vtrace_clips<double>>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, max_pool_kernel, pooling_shape>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, upsample_kernel, image_shape>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, convolution_kernel, convolution_settings>;

ENGRAM_EXTERN template struct simple_operation<cpu<float>, batch_norm_kernel, batch_norm_description>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, channels_kernel, channels_settings>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, mean_colour_kernel, image_shape>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, noise_kernel, noise_settings>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, cosine_scores_kernel, matrix_memory_shape>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, weighted_read_kernel, matrix_memory_shape>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, erase_add_kernel, matrix_memory_shape>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, mixture_kernel, int>;
ENGRAM_EXTERN template struct simple_operation<cpu<float>, content_weights_kernel, double>;

ENGRAM_EXTERN template struct map_operation<cpu<float>, lstm_cell, 5>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, clip_reward, 1>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, centre_pixels, 1>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, add, 2>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, subtract, 2>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, scale_by, 1>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, rectify, 1>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, policy_gradient, 2>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, baseline_error, 2>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, negative_entropy, 1>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, half_squared_error, 2>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, bernoulli_cross_entropy, 2>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, positive_deviation, 1>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, shift_and_scale, 3>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, gaussian_divergence, 4>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, bernoulli_log_likelihood, 2>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, gaussian_log_likelihood, 2>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, squash, 1>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, per_sequence, 2>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, choose, 3>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, weighted_cost, 2>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, weighted_negative, 2>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, negated, 1>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, squared_error, 2>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, log_of_bit, 2>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, sum_images, 2>;
ENGRAM_EXTERN template struct map_operation<cpu<float>, sum_images, 4>;

}  // namespace engram

#undef ENGRAM_EXTERN
