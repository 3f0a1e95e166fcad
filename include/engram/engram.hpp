#pragma once
// SPDX-License-Identifier: MIT

// Everything that a model is made of, traced, run and trained by: the engine, the policies, the catalogue.
//
// The rest is included by name, for environments and files alone would make this include half as long again:
// environments and sequences (<engram/tasks.hpp>, or one of engram/task), their lists by name
// (<engram/task/registry.hpp>, <engram/task/sequence_registry.hpp>, <engram/task/time_step.hpp>), files (engram/io),
// training and checkpoints (engram/train), and what reports (engram/evaluate) and programs (engram/program) are made
// of.

#include <engram/version.hpp>

#include <engram/core/aligned.hpp>
#include <engram/core/bfloat16.hpp>
#include <engram/core/byte_products.hpp>
#include <engram/core/circular.hpp>
#include <engram/core/device.hpp>
#include <engram/core/dual.hpp>
#include <engram/core/error.hpp>
#include <engram/core/flag.hpp>
#include <engram/core/float_maths.hpp>
#include <engram/core/pack.hpp>
#include <engram/core/packs.hpp>
#include <engram/core/philox.hpp>
#include <engram/core/reflection.hpp>
#include <engram/core/rounding.hpp>
#include <engram/core/settings.hpp>
#include <engram/core/thread_pool.hpp>
#include <engram/graph/parameters.hpp>

#include <engram/kernels/attention.hpp>
#include <engram/kernels/bfloat16_product.hpp>
#include <engram/kernels/convolution.hpp>
#include <engram/kernels/convolution_shape.hpp>
#include <engram/kernels/cpc_scores.hpp>
#include <engram/kernels/dnc_allocate.hpp>
#include <engram/kernels/dnc_link.hpp>
#include <engram/kernels/knn.hpp>
#include <engram/kernels/knn_compact.hpp>
#include <engram/kernels/knn_ring.hpp>
#include <engram/kernels/least_used.hpp>
#include <engram/kernels/matrix_memory.hpp>
#include <engram/kernels/ntm_address.hpp>
#include <engram/kernels/optimiser.hpp>
#include <engram/kernels/pooling.hpp>
#include <engram/kernels/product.hpp>
#include <engram/kernels/rows.hpp>
#include <engram/kernels/scan_returns.hpp>
#include <engram/kernels/target_selection.hpp>

#include <engram/graph/binder.hpp>
#include <engram/graph/check_gradients.hpp>
#include <engram/graph/graph.hpp>
#include <engram/graph/image_shape.hpp>
#include <engram/graph/kernel.hpp>
#include <engram/graph/layout.hpp>
#include <engram/graph/plan.hpp>
#include <engram/graph/program.hpp>
#include <engram/graph/scan.hpp>
#include <engram/graph/snapshot.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/attend_window.hpp>
#include <engram/operations/attention.hpp>
#include <engram/operations/batch_norm.hpp>
#include <engram/operations/channels.hpp>
#include <engram/operations/concatenate.hpp>
#include <engram/operations/convolution.hpp>
#include <engram/operations/convolve_steps.hpp>
#include <engram/operations/cpc.hpp>
#include <engram/operations/dnc.hpp>
#include <engram/operations/dropout.hpp>
#include <engram/operations/episodes.hpp>
#include <engram/operations/knn.hpp>
#include <engram/operations/layer_norm.hpp>
#include <engram/operations/learnt_row.hpp>
#include <engram/operations/least_used.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/matrix_memory.hpp>
#include <engram/operations/noise.hpp>
#include <engram/operations/normalise.hpp>
#include <engram/operations/ntm_address.hpp>
#include <engram/operations/outer.hpp>
#include <engram/operations/pick.hpp>
#include <engram/operations/previous.hpp>
#include <engram/operations/quantiles.hpp>
#include <engram/operations/recall_matrices.hpp>
#include <engram/operations/receive_gradient.hpp>
#include <engram/operations/recurrent_rows.hpp>
#include <engram/operations/relu_layer.hpp>
#include <engram/operations/returns.hpp>
#include <engram/operations/row_operation.hpp>
#include <engram/operations/slots.hpp>
#include <engram/operations/softmax.hpp>

#include <engram/encoder/gtmm_vision.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/encoder/impala_resnet.hpp>
#include <engram/encoder/inception.hpp>
#include <engram/encoder/layers.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/encoder/numbers_or_image.hpp>
#include <engram/encoder/small_conv.hpp>
#include <engram/encoder/token_embedding.hpp>
#include <engram/encoder/two_pathway.hpp>

#include <engram/controller/fast_and_forgetful.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/controller/gated_delta_net.hpp>
#include <engram/controller/gated_output.hpp>
#include <engram/controller/gru.hpp>
#include <engram/controller/gtrxl.hpp>
#include <engram/controller/layered.hpp>
#include <engram/controller/linear_recurrent_unit.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/controller/min_gru.hpp>
#include <engram/controller/mlstm.hpp>
#include <engram/controller/s5.hpp>
#include <engram/controller/short_convolution.hpp>
#include <engram/controller/srnn.hpp>
#include <engram/controller/stable_hadamard.hpp>
#include <engram/controller/stacked_lstm.hpp>
#include <engram/controller/transformer.hpp>

#include <engram/memory/dnc.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/memory/hybrid.hpp>
#include <engram/memory/interface.hpp>
#include <engram/memory/introspection.hpp>
#include <engram/memory/lru_access.hpp>
#include <engram/memory/memory_traces.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/memory/ntm.hpp>

#include <engram/auxiliary/cpc.hpp>
#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/auxiliary/reconstruction.hpp>

#include <engram/learner/memup.hpp>
#include <engram/learner/memup_ppo.hpp>
#include <engram/learner/ppo.hpp>
#include <engram/learner/quantile_regression.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/learner/variational.hpp>
#include <engram/learner/vtrace.hpp>

#include <engram/model/acting.hpp>
#include <engram/model/agent.hpp>
#include <engram/model/generative.hpp>
#include <engram/model/laws.hpp>
#include <engram/model/predicting.hpp>
#include <engram/model/remembering.hpp>
#include <engram/model/slots.hpp>
#include <engram/model/traced_agent.hpp>

#include <engram/catalogue.hpp>

#include <engram/task/environment.hpp>

#include <engram/train/actor.hpp>
#include <engram/train/optimiser.hpp>
#include <engram/train/unroll.hpp>
