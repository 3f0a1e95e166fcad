#pragma once
// SPDX-License-Identifier: MIT

// Matrices of heads side by side: head h of H has its own matrix of N rows and W columns, row by row, in columns
// [h N W, (h + 1) N W) of a row.
//
//   outer          a [., H * N], b [., H * W]         -> [., H * N * W]: a_h b_h^T
//   read_matrices  M [., H * N * W], q [., H * N]     -> [., H * W]: q_h^T M_h
//
// What a step does to such matrices besides (decay, gates of an entry) are maps, with one number a head spread over its
// matrix. One matrix that all heads address is operations/matrix_memory.hpp.

#include <string>

#include <engram/operations/heads.hpp>
#include <engram/operations/row_operation.hpp>

namespace engram {

/// A head is a piece of its row.
struct outer_rows {
    struct settings {
        int heads;
    };
    template <class Real>
    struct operands {
        input_row<Real> a, b;
        output_row<Real> y;
    };
    static constexpr int pieces(settings s, int) { return s.heads; }
    static ENGRAM_HD void forward(auto row, const auto& o, settings) {
        const int W = o.b.width;
        for (int n = 0; n < o.a.width; ++n) row.each(W, [&](auto i) { o.y.put(i + n * W, o.a[n] * o.b[i]); });
    }
    static ENGRAM_HD void backward(auto row, const auto& o, settings) {
        const int N = o.a.width, W = o.b.width;
        if (o.a.d)
            for (int n = 0; n < N; ++n) {
                const auto slope = row.sum(W, [&](auto i) { return o.y.d[i + n * W] * o.b[i]; });
                row.once([&] { o.a.d.put(n, slope); });
            }
        if (o.b.d)
            row.each(W, [&](auto i) {
                auto sum = zero_of(o.b[i]);
                for (int n = 0; n < N; ++n) sum = sum + o.a[n] * o.y.d[i + n * W];
                o.b.d.put(i, sum);
            });
    }
};

struct read_matrix_rows {
    using settings = outer_rows::settings;
    template <class Real>
    struct operands {
        input_row<Real> memory, query;
        output_row<Real> y;
    };
    static constexpr int pieces(settings s, int) { return s.heads; }
    static ENGRAM_HD void forward(auto row, const auto& o, settings) {
        const int W = o.y.width;
        row.each(W, [&](auto i) {
            auto sum = zero_of(o.memory[i]);
            for (int n = 0; n < o.query.width; ++n) sum = sum + o.query[n] * o.memory[i + n * W];
            o.y.put(i, sum);
        });
    }
    static ENGRAM_HD void backward(auto row, const auto& o, settings) {
        const int W = o.y.width;
        for (int n = 0; n < o.query.width; ++n) {
            if (o.memory.d) row.each(W, [&](auto i) { o.memory.d.put(i + n * W, o.query[n] * o.y.d[i]); });
            if (o.query.d) {
                const auto slope = row.sum(W, [&](auto i) { return o.memory[i + n * W] * o.y.d[i]; });
                row.once([&] { o.query.d.put(n, slope); });
            }
        }
    }
};

namespace internal {

template <class Backend>
int columns_of_head(const graph<Backend>& g, const std::string& name, const var<Backend>& x, int heads) {
    require(heads > 0 && x.width % heads == 0, g.full_name(name), ": ", x.width, " columns do not divide into ", heads,
            " heads");
    return x.width / heads;
}

}  // namespace internal

/// [., H * N * W]: of every head the outer product a b^T of a [., H * N] and b [., H * W].
template <class Backend>
var<Backend> outer(const std::string& name, const var<Backend>& a, const var<Backend>& b, int heads = 1) {
    graph<Backend>& g = *a.owner;
    const int N = internal::columns_of_head(g, name, a, heads), W = internal::columns_of_head(g, name, b, heads);
    internal::require_apart(g, name, {a, b});
    const auto found = add_rows<outer_rows>(g, name, {a, b}, {heads}, {heads * N * W});
    if (g.rows_alike({a, b})) g.declare_rows_alike(found);
    return found[0];
}

/// [., H * W]: of every head the product q^T M of a query [., H * N] and its matrix, of [., H * N * W].
template <class Backend>
var<Backend> read_matrices(const std::string& name, const var<Backend>& memory, const var<Backend>& query,
                           int heads = 1) {
    graph<Backend>& g = *memory.owner;
    const int all = internal::columns_of_head(g, name, memory, heads),
              N = internal::columns_of_head(g, name, query, heads);
    require(all % N == 0, g.full_name(name), ": a head's matrix of ", all, " numbers has no ", N,
            " rows of equal length, one for each column of the query");
    return add_rows<read_matrix_rows>(g, name, {memory, query}, {heads}, {heads * (all / N)})[0];
}

}  // namespace engram
