#pragma once
// SPDX-License-Identifier: MIT

// recall_matrices: a step of matrix memories that forget at a rate and add, of H heads side by side. A head has a
// matrix M of K rows and V columns, a key k and a query q [K], a value v [V], and two numbers, keep and write:
//
//   M^ = keep M,  u = write (v - k^T M^)  or, where nothing is corrected,  u = write v
//   M' = M^ + k u^T,  y = q^T M'
//
// Without correction this is linear attention with a decay (the cell of mLSTM), with it the gated delta rule.

#include <string>
#include <type_traits>

#include <engram/operations/outer.hpp>
#include <engram/operations/recurrent_rows.hpp>

namespace engram {

/// A head is a piece of its row.
struct recalled_rows {
    struct settings {
        int heads;
        int key;        // K
        bool corrects;  // what stood at a key is taken from what is written there
    };
    template <class Real>
    struct operands {
        input_row<Real> carried, query, key, value, write, keep;
        constant_row<Real> reset;
        output_row<Real> y, next;
    };
    static constexpr int pieces(settings s, int) { return s.heads; }
    static constexpr int sums(settings s, int) { return 2 * s.key + 2; }

    static ENGRAM_HD void forward(auto row, const auto& o, settings s) { go_on<true>(row, o, s); }
    static ENGRAM_HD void advance(auto row, const auto& o, settings s) { go_on<false>(row, o, s); }
    static ENGRAM_HD void backward(auto row, const auto& o, settings s) {
        if (o.next.d)
            if_corrects<true>(row, o, s);
        else
            if_corrects<false>(row, o, s);
    }

private:
    template <bool Later>
    static ENGRAM_HD void if_corrects(auto row, const auto& o, settings s) {
        if (s.corrects)
            go_back<Later, true>(row, o, s.key);
        else
            go_back<Later, false>(row, o, s.key);
    }
    /// Later: what comes after has a gradient of M'.
    template <bool Later, bool Corrects>
    static ENGRAM_HD void go_back(auto row, const auto& o, int K) {
        const int V = o.value.width;
        const auto step = [&](auto was, auto d_carried) {
            const auto overlap = row.sum(K, [&](auto n) { return o.key[n] * o.query[n]; });
            const auto query = alone(o.query), key = alone(o.key), next = alone(o.next), d_next = alone(o.next.d);
            const auto keep = o.keep[0], write = o.write[0];
            row.sums_wide(
                2 * K + 2, 2, K, V,
                [&](auto i, auto add) {
                    const auto zero = zero_of(o.value[i]);
                    const auto dy = o.y.d ? o.y.d[i] : zero;
                    // Where nothing is corrected, the one loop over n finds d_change by the way.
                    auto d_change = overlap * dy, stood = zero;
                    for (int n = 0; Corrects && n < K; ++n) {
                        if (Later) d_change = multiply_add(key[n], d_next[i + n * V], d_change);
                        stood = multiply_add(key[n], was(n, i), stood);
                    }
                    const auto apart = Corrects ? multiply_add(-stood, keep, o.value[i]) : o.value[i];
                    const auto change = write * apart, d_stood = -(write * d_change), d_kept = keep * d_stood;
                    auto d_keep = zero;
                    for (int n = 0; n < K; ++n) {
                        const auto before = was(n, i);
                        // Of an entry of M', then of M^.
                        auto d_entry = query[n] * dy;
                        if (Later) d_entry = multiply_add(query[n], dy, d_next[i + n * V]);
                        if (Later && !Corrects) d_change = multiply_add(key[n], d_next[i + n * V], d_change);
                        add(n, next[i + n * V], dy);
                        add(K + n, d_entry, change);
                        if (Corrects) {
                            add(K + n, before, d_kept);
                            d_entry = multiply_add(key[n], d_stood, d_entry);
                        }
                        d_keep = multiply_add(d_entry, before, d_keep);
                        d_carried(n, i, keep * d_entry);
                    }
                    o.value.d.put(i, write * d_change);
                    add(2 * K, d_keep);
                    add(2 * K + 1, d_change, apart);
                },
                [&](auto k, auto sum) {
                    if (k < K)
                        o.query.d.put(k, sum);
                    else if (k < 2 * K)
                        o.key.d.put(k + -K, sum);
                    else if constexpr (std::is_same_v<decltype(k), int>)
                        (k == 2 * K ? o.keep : o.write).d.put(0, sum);
                });
        };
        const auto carried = alone(o.carried), d_carried = alone(o.carried.d);
        if (begins(o.reset))
            step([&](int, auto i) { return zero_of(o.value[i]); },
                 [&](int n, auto i, auto d) { d_carried.put(i + n * V, zero_of(d)); });
        else
            step([&](int n, auto i) { return carried[i + n * V]; },
                 [&](int n, auto i, auto d) { d_carried.put(i + n * V, d); });
    }
    template <bool Reads>
    static ENGRAM_HD void go_on(auto row, const auto& o, settings s) {
        const int K = s.key, V = o.value.width;
        const auto query = alone(o.query), key = alone(o.key), value = alone(o.value), carried = alone(o.carried),
                   y = alone(o.y), next = alone(o.next);
        const auto keep = o.keep[0], write = o.write[0];
        const auto step = [&](auto was) {
            row.each_wide(V, [&](auto i) {
                const auto zero = zero_of(value[i]);
                auto stood = zero, read = zero;
                if (s.corrects)
                    for (int n = 0; n < K; ++n) stood = multiply_add(key[n], was(n, i), stood);
                const auto apart = s.corrects ? multiply_add(-stood, keep, value[i]) : value[i];
                const auto change = write * apart;
                for (int n = 0; n < K; ++n) {
                    const auto entry = multiply_add(key[n], change, keep * was(n, i));
                    next.put(i + n * V, entry);
                    if constexpr (Reads) read = multiply_add(query[n], entry, read);
                }
                if constexpr (Reads) y.put(i, read);
            });
        };
        if (begins(o.reset))
            step([&](int, auto i) { return zero_of(o.value[i]); });
        else
            step([&](int n, auto i) { return carried[i + n * V]; });
    }
};

/// What a step recalls and the matrices that it leaves.
template <class Backend>
struct recalled_matrices {
    var<Backend> read;    // [., H * V]
    var<Backend> matrix;  // [., H * K * V], a matrix a head row by row
};

/// A step of the matrices `matrix` [., H * K * V]: queries and keys [., H * K], values [., H * V], and what a head
/// writes and keeps [., H].
template <class Backend>
recalled_matrices<Backend> recall_matrices(const std::string& name, int heads, bool corrects,
                                           const var<Backend>& matrix, const var<Backend>& query,
                                           const var<Backend>& key, const var<Backend>& value,
                                           const var<Backend>& write, const var<Backend>& keep) {
    graph<Backend>& g = *matrix.owner;
    const int K = internal::columns_of_head(g, name, key, heads), V = internal::columns_of_head(g, name, value, heads);
    require(query.width == key.width, g.full_name(name), ": a query of ", query.width,
            " columns does not fit a key of ", key.width);
    require(matrix.width == heads * K * V, g.full_name(name), ": ", heads, " matrices of ", K, " x ", V, " are not ",
            matrix.width, " columns");
    require(write.width == heads && keep.width == heads, g.full_name(name), ": ", heads,
            " heads write and keep by as many numbers, not ", write.width, " and ", keep.width);
    const auto found = add_recurrent_rows<recalled_rows>(g, name, {matrix, query, key, value, write, keep},
                                                         {heads, K, corrects}, {heads * V, matrix.width});
    return {found[0], found[1]};
}

}  // namespace engram
