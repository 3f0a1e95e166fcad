#pragma once
// SPDX-License-Identifier: MIT

// The device bodies of operations. Whoever traces a model for a device backend includes this first: an operation whose
// body is not seen is refused when a program binds it.

#include <engram/device/ops/affine.hpp>
#include <engram/device/ops/attention.hpp>
#include <engram/device/ops/batch_norm.hpp>
#include <engram/device/ops/convolution.hpp>
#include <engram/device/ops/cpc.hpp>
#include <engram/device/ops/dnc.hpp>
#include <engram/device/ops/dropout.hpp>
#include <engram/device/ops/knn.hpp>
#include <engram/device/ops/map.hpp>
#include <engram/device/ops/matrix_memory.hpp>
#include <engram/device/ops/ntm_address.hpp>
#include <engram/device/ops/table_product.hpp>
