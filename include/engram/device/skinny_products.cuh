#pragma once
// SPDX-License-Identifier: MIT

// Products of few rows by a transposed matrix, y [m, n] (+)= a [m, k] b^T with b [n, k]: what every time step sends
// back through a layer, m batch rows. cuBLAS gives so small a y to a block or a few, which go through k alone.
//
// A block has some columns of y; its warps have a part of k each, and their lanes neighbouring numbers of it, so that
// both operands are read in whole lines. The sums are added in one order, whatever the device.

#include <cstddef>

namespace engram::internal {

inline constexpr int skinny_rows = 16, skinny_columns = 4, skinny_warps = 8;

/// Whether it pays: cuBLAS has the large ones.
constexpr bool is_skinny(int m, int n, int k) {
    return m <= skinny_rows && n <= 4096 && k >= 128;
}

template <class Real>
struct skinny_operands {
    const Real *a, *b;
    Real* y;
    std::ptrdiff_t a_stride, b_stride, y_stride;
    int m, n, k;
    bool accumulate;
};

template <class Real, int Rows>
__global__ void __launch_bounds__(32 * skinny_warps) run_skinny(skinny_operands<Real> o) {
    constexpr int columns = skinny_columns;
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int first = static_cast<int>(blockIdx.x) * columns;
    // Beyond the last row or column the last one is taken once more, and not kept.
    const Real *a[Rows], *b[columns];
    for (int r = 0; r < Rows; ++r) a[r] = o.a + (r < o.m ? r : o.m - 1) * o.a_stride;
    for (int c = 0; c < columns; ++c) b[c] = o.b + (first + c < o.n ? first + c : o.n - 1) * o.b_stride;
    Real sum[Rows][columns] = {};
#pragma unroll 2
    for (int i = warp * 32 + lane; i < o.k; i += 32 * skinny_warps) {
        Real w[columns];
        for (int c = 0; c < columns; ++c) w[c] = b[c][i];
        for (int r = 0; r < Rows; ++r) {
            const Real x = a[r][i];
            for (int c = 0; c < columns; ++c) sum[r][c] += x * w[c];
        }
    }
    __shared__ Real shares[skinny_warps][Rows * columns];
    for (int r = 0; r < Rows; ++r)
        for (int c = 0; c < columns; ++c) {
            Real total = sum[r][c];
            for (int apart = 16; apart > 0; apart /= 2) total += __shfl_down_sync(0xffffffffu, total, apart);
            if (lane == 0) shares[warp][r * columns + c] = total;
        }
    __syncthreads();
    const int mine = static_cast<int>(threadIdx.x), row = mine / columns, column = first + mine % columns;
    if (mine >= Rows * columns || row >= o.m || column >= o.n) return;
    Real total = shares[0][mine];
    for (int w = 1; w < skinny_warps; ++w) total += shares[w][mine];
    Real& y = o.y[row * o.y_stride + column];
    y = o.accumulate ? y + total : total;
}

template <class Real>
void launch_skinny(const skinny_operands<Real>& o, cudaStream_t stream) {
    const unsigned blocks = static_cast<unsigned>((o.n + skinny_columns - 1) / skinny_columns);
    if (o.m <= 4)
        run_skinny<Real, 4><<<blocks, 32 * skinny_warps, 0, stream>>>(o);
    else if (o.m <= 10)
        run_skinny<Real, 10><<<blocks, 32 * skinny_warps, 0, stream>>>(o);
    else
        run_skinny<Real, skinny_rows><<<blocks, 32 * skinny_warps, 0, stream>>>(o);
}

}  // namespace engram::internal
