#pragma once
// SPDX-License-Identifier: MIT

// attend_window: attention of H heads to the last L steps of an episode, this one included. A head carries a ring of L
// keys and values of d columns, [2 d, L]; step t of an episode writes place t mod L and reads
//
//   shares = softmax over the places written of q . k / sqrt(d),  y = sum of shares times values
//
// Keys and queries are two halves a and b of d / 2 columns, as rotary positions leave them.

#include <array>
#include <cmath>
#include <string>
#include <type_traits>

#include <engram/operations/outer.hpp>
#include <engram/operations/recurrent_rows.hpp>
#include <engram/operations/softmax.hpp>

namespace engram {

/// A head is a piece of its row. Row r of the ring: column r of the keys, a ahead of b, or column r - d of the values.
struct window_rows {
    struct settings {
        int heads;
        int columns;  // d
        int window;   // L
    };
    template <class Real>
    struct operands {
        input_row<Real> carried, query_a, query_b, key_a, key_b, value;
        constant_row<Real> step, reset;
        output_row<Real> shares, y, next;
    };
    static constexpr int pieces(settings s, int) { return s.heads; }
    static constexpr int sums(settings s, int) { return s.columns; }

    static ENGRAM_HD void advance(auto row, const auto& o, settings s) {
        const int L = s.window, d = s.columns;
        if (o.reset && o.reset[0] > 0.5f)
            row.each(2 * d * L, [&](auto i) { o.next.put(i, zero_of(o.carried[i])); });
        else if (o.next.data != o.carried.data)
            row.each(2 * d * L, [&](auto i) { o.next.put(i, o.carried[i]); });
        row.once([&] {
            const int here = place(o, L);
            for (int r = 0; r < 2 * d; ++r) o.next.put(r * L + here, written(o, r, d));
        });
    }
    static ENGRAM_HD void forward(auto row, const auto& o, settings s) {
        advance(row, o, s);
        const int L = s.window, d = s.columns;
        const auto root = scale(o, d);
        const auto written_places = o.step[0] + 1, no_key = zero_of(o.step[0]) - 1e9f;
        row.each(L, [&](auto i) {
            auto score = zero_of(o.next[i]);
            for (int r = 0; r < d; ++r) score = score + half(o.query_a, o.query_b, r) * o.next[i + r * L];
            // Places without a key are far below any score.
            o.shares.put(i, select(row.number(i) < written_places, root * score, no_key));
        });
        softmax_columns(row, L, o.shares, o.shares);
        row.sums(
            d, L,
            [&](auto i, auto add) {
                for (int c = 0; c < d; ++c) add(c, o.shares[i] * o.next[i + (d + c) * L]);
            },
            [&](int c, auto sum) { o.y.put(c, sum); });
    }
    static ENGRAM_HD void backward(auto row, const auto& o, settings s) {
        const int L = s.window, d = s.columns, here = place(o, L);
        const auto root = scale(o, d);
        const auto now_written = static_cast<std::remove_cvref_t<decltype(root)>>(here);
        // Of a score at some places, of their shares and of what y gets from them.
        const auto d_seen = [&](auto c) { return o.y.d ? o.y.d[c] : zero_of(o.y[c]); };
        const auto mean = row.sum(d, [&](auto c) { return d_seen(c) * o.y[c]; });
        const auto slope = [&](auto i) {
            auto by_value = zero_of(o.next[i]);
            for (int c = 0; c < d; ++c) by_value = by_value + d_seen(c) * o.next[i + (d + c) * L];
            return root * o.shares[i] * (by_value - mean);
        };
        // Of row r of the ring.
        const auto entry = [&](int r, auto i, auto score) {
            const auto now = r < d ? half(o.query_a, o.query_b, r) * score : d_seen(r - d) * o.shares[i];
            return o.next.d ? o.next.d[i + r * L] + now : now;
        };
        row.once([&] {  // what this step wrote, before its place is cleared
            const auto score = slope(here);
            for (int r = 0; r < d; ++r) {
                const bool first = r < d / 2;
                (first ? o.key_a : o.key_b).d.put(first ? r : r - d / 2, entry(r, here, score));
                o.value.d.put(r, entry(d + r, here, score));
            }
        });
        row.sums(
            d, L,
            [&](auto i, auto add) {
                const auto score = slope(i);
                const auto before = row.number(i) < now_written;
                const auto after = row.number(i) > now_written;
                for (int r = 0; r < 2 * d; ++r) {
                    if (r < d) add(r, score * o.next[i + r * L]);
                    const auto all = entry(r, i, score);
                    o.carried.d.put(i + r * L, select(before, all, select(after, all, 0)));
                }
            },
            [&](int r, auto sum) {
                const bool first = r < d / 2;
                (first ? o.query_a : o.query_b).d.put(first ? r : r - d / 2, sum);
            });
    }

private:
    static ENGRAM_HD int place(const auto& o, int L) { return static_cast<int>(o.step[0]) % L; }
    static ENGRAM_HD auto scale(const auto& o, int d) {
        using real = std::remove_cvref_t<decltype(o.step[0])>;
        return static_cast<real>(1 / std::sqrt(static_cast<double>(d)));
    }
    /// Column r of a and b side by side.
    static ENGRAM_HD auto half(const auto& a, const auto& b, int r) { return r < a.width ? a[r] : b[r - a.width]; }
    static ENGRAM_HD auto written(const auto& o, int r, int d) {
        return r < d ? half(o.key_a, o.key_b, r) : o.value[r - d];
    }
};

/// What a step sees and the rings that it leaves.
template <class Backend>
struct attended_window {
    var<Backend> seen;  // [., H * d]
    var<Backend> ring;  // [., H * 2 d * L]
};

/// A step of the rings `ring` [., H * 2 d * L]: the halves a and b of queries and keys [., H * d / 2] each, values
/// [., H * d], and the number of the step in its episode, from 0 on, [., 1].
template <class Backend>
attended_window<Backend> attend_window(const std::string& name, int heads, int window, const var<Backend>& ring,
                                       const std::array<var<Backend>, 2>& query, const std::array<var<Backend>, 2>& key,
                                       const var<Backend>& value, const var<Backend>& step) {
    graph<Backend>& g = *ring.owner;
    const int d = internal::columns_of_head(g, name, value, heads);
    for (const auto& half : {query[0], query[1], key[0], key[1]})
        require(d % 2 == 0 && 2 * half.width == value.width, g.full_name(name), ": halves of ", half.width,
                " columns do not fit values of ", value.width, " for ", heads, " heads");
    require(window > 0 && ring.width == heads * 2 * d * window, g.full_name(name), ": ", heads, " rings of ", window,
            " keys and values of ", d, " columns are not ", ring.width, " columns");
    require(step.width == 1, g.full_name(name), ": the step is one column, not ", step.width);
    const auto found =
        add_recurrent_rows<window_rows>(g, name, {ring, query[0], query[1], key[0], key[1], value, stop_gradient(step)},
                                        {heads, d, window}, {heads * window, heads * d, ring.width});
    return {found[1], found[2]};
}

}  // namespace engram
