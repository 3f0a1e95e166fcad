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

    static ENGRAM_HD bool begins(const auto& o) { return o.reset && o.reset[0] > 0.5f; }

    static ENGRAM_HD void forward(auto row, const auto& o, settings s) { go_on<true>(row, o, s); }
    static ENGRAM_HD void advance(auto row, const auto& o, settings s) { go_on<false>(row, o, s); }
    static ENGRAM_HD void backward(auto row, const auto& o, settings s) {
        const auto step = [&](auto was, bool forgotten) {
            const int K = s.key, V = o.value.width;
            row.sums(
                2 * K + 2, V,
                [&](auto i, auto add) {
                    const auto zero = zero_of(o.value[i]);
                    const auto dy = o.y.d ? o.y.d[i] : zero;
                    // Of an entry of M', by y and by what comes after.
                    const auto slope = [&](int n) {
                        const auto by_read = o.query[n] * dy;
                        return o.next.d ? o.next.d[i + n * V] + by_read : by_read;
                    };
                    auto d_change = zero, apart = o.value[i];
                    for (int n = 0; n < K; ++n) {
                        d_change = d_change + o.key[n] * slope(n);
                        if (s.corrects) apart = apart - o.keep[0] * o.key[n] * was(n, i);
                    }
                    const auto change = o.write[0] * apart, d_value = o.write[0] * d_change;
                    auto d_keep = zero;
                    for (int n = 0; n < K; ++n) {
                        const auto before = was(n, i);
                        auto d_entry = slope(n), d_key = d_entry * change;
                        add(n, o.next[i + n * V] * dy);
                        if (s.corrects) {
                            d_key = d_key - o.keep[0] * before * d_value;
                            d_entry = d_entry - o.key[n] * d_value;
                        }
                        add(K + n, d_key);
                        d_keep = d_keep + d_entry * before;
                        o.carried.d.put(i + n * V, forgotten ? zero : o.keep[0] * d_entry);
                    }
                    o.value.d.put(i, d_value);
                    add(2 * K, d_keep);
                    add(2 * K + 1, d_change * apart);
                },
                [&](int k, auto sum) {
                    if (k < K)
                        o.query.d.put(k, sum);
                    else if (k < 2 * K)
                        o.key.d.put(k - K, sum);
                    else
                        (k == 2 * K ? o.keep : o.write).d.put(0, sum);
                });
        };
        if (begins(o))
            step([&](int, auto i) { return zero_of(o.value[i]); }, true);
        else
            step([&](int n, auto i) { return o.carried[i + n * o.value.width]; }, false);
    }

private:
    template <bool Reads>
    static ENGRAM_HD void go_on(auto row, const auto& o, settings s) {
        const auto step = [&](auto kept) {
            const int K = s.key, V = o.value.width;
            row.each(V, [&](auto i) {
                auto change = o.value[i];
                if (s.corrects)
                    for (int n = 0; n < K; ++n) change = change - o.key[n] * kept(n, i);
                change = o.write[0] * change;
                auto read = zero_of(change);
                for (int n = 0; n < K; ++n) {
                    const auto entry = kept(n, i) + o.key[n] * change;
                    o.next.put(i + n * V, entry);
                    if constexpr (Reads) read = read + o.query[n] * entry;
                }
                if constexpr (Reads) o.y.put(i, read);
            });
        };
        if (begins(o))
            step([&](int, auto i) { return zero_of(o.value[i]); });
        else
            step([&](int n, auto i) { return o.keep[0] * o.carried[i + n * o.value.width]; });
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
