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
        if (s.corrects)
            go_back<true>(row, o, s.key);
        else
            go_back<false>(row, o, s.key);
    }

private:
    template <bool Corrects>
    static ENGRAM_HD void go_back(auto row, const auto& o, int K) {
        const int V = o.value.width;
        const auto step = [&](auto was, auto d_carried) {
            const auto overlap = row.sum(K, [&](auto n) { return o.key[n] * o.query[n]; });
            // By themselves: what is stored might else be what they are.
            const auto query = o.query, key = o.key;
            const auto next = o.next, d_next = o.next.d;
            const auto keep = o.keep[0], write = o.write[0];
            row.sums(
                2 * K + 2, V,
                [&](auto i, auto add) {
                    const auto zero = zero_of(o.value[i]);
                    const auto dy = o.y.d ? o.y.d[i] : zero;
                    // Of an entry of M', by what comes after.
                    const auto later = [&](int n) { return d_next ? d_next[i + n * V] : zero; };
                    auto d_change = overlap * dy, apart = o.value[i];
                    for (int n = 0; n < K; ++n) {
                        d_change = d_change + key[n] * later(n);
                        if (Corrects) apart = apart - keep * key[n] * was(n, i);
                    }
                    const auto change = write * apart, d_value = write * d_change;
                    auto d_keep = zero;
                    for (int n = 0; n < K; ++n) {
                        const auto before = was(n, i);
                        auto d_entry = later(n) + query[n] * dy, d_key = d_entry * change;
                        add(n, next[i + n * V] * dy);
                        if (Corrects) {
                            d_key = d_key - keep * before * d_value;
                            d_entry = d_entry - key[n] * d_value;
                        }
                        add(K + n, d_key);
                        d_keep = d_keep + d_entry * before;
                        d_carried(n, i, keep * d_entry);
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
        const auto carried = o.carried;
        const auto d_carried = o.carried.d;
        if (begins(o))
            step([&](int, auto i) { return zero_of(o.value[i]); },
                 [&](int n, auto i, auto d) { d_carried.put(i + n * V, zero_of(d)); });
        else
            step([&](int n, auto i) { return carried[i + n * V]; },
                 [&](int n, auto i, auto d) { d_carried.put(i + n * V, d); });
    }
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
