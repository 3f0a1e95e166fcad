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
        const int L = s.window, d = s.columns, half = d / 2, here = place(o, L);
        const auto carried = alone(o.carried), next = alone(o.next);
        const auto key_a = alone(o.key_a), key_b = alone(o.key_b), value = alone(o.value);
        if (begins(o.reset))
            row.each(2 * d * L, [&](auto i) { next.put(i, zero_of(carried[i])); });
        else if (next.data != carried.data)
            row.each(2 * d * L, [&](auto i) { next.put(i, carried[i]); });
        row.once([&] {
            for (int r = 0; r < half; ++r) {
                next.put(r * L + here, key_a[r]);
                next.put((half + r) * L + here, key_b[r]);
            }
            for (int c = 0; c < d; ++c) next.put((d + c) * L + here, value[c]);
        });
    }
    static ENGRAM_HD void forward(auto row, const auto& o, settings s) {
        advance(row, o, s);
        const int L = s.window, d = s.columns, half = d / 2;
        const auto query_a = alone(o.query_a), query_b = alone(o.query_b), next = alone(o.next);
        const auto shares = alone(o.shares), y = alone(o.y);
        const auto root = scale(o, d);
        const auto written_places = o.step[0] + 1, no_key = zero_of(o.step[0]) - 1e9f;
        row.each_wide(L, [&](auto i) {
            auto score = zero_of(next[i]), other = score;
            for (int r = 0; r < half; ++r) {
                score = multiply_add(query_a[r], next[i + r * L], score);
                other = multiply_add(query_b[r], next[i + (half + r) * L], other);
            }
            // Places without a key are far below any score.
            shares.put(i, select(row.number(i) < written_places, root * (score + other), no_key));
        });
        softmax_columns(row, L, o.shares, o.shares);
        row.sums_wide(
            d, 1, d, L,
            [&](auto i, auto add) {
                const auto share = shares[i];
                for (int c = 0; c < d; ++c) add(c, share, next[i + (d + c) * L]);
            },
            [&](auto c, auto sum) { y.put(c, sum); });
    }
    static ENGRAM_HD void backward(auto row, const auto& o, settings s) {
        if (o.next.d)
            go_back<true>(row, o, s);
        else
            go_back<false>(row, o, s);
    }

private:
    /// Later: what comes after has a gradient of the ring.
    template <bool Later>
    static ENGRAM_HD void go_back(auto row, const auto& o, settings s) {
        const int L = s.window, d = s.columns, half = d / 2, here = place(o, L);
        const auto query_a = alone(o.query_a), query_b = alone(o.query_b), next = alone(o.next);
        const auto shares = alone(o.shares), dy = alone(o.y.d), d_next = alone(o.next.d),
                   d_carried = alone(o.carried.d);
        const auto root = scale(o, d);
        const auto now_written = static_cast<std::remove_cvref_t<decltype(root)>>(here);
        // Of a score at some places, of their shares and of what y gets from them.
        const auto d_seen = [&](auto c) { return dy ? dy[c] : zero_of(o.y[c]); };
        const auto mean = row.sum(d, [&](auto c) { return d_seen(c) * o.y[c]; });
        const auto slope = [&](auto i) {
            auto by_value = zero_of(next[i]), other = by_value;
            for (int c = 0; c < half; ++c) {
                by_value = multiply_add(d_seen(c), next[i + (d + c) * L], by_value);
                other = multiply_add(d_seen(half + c), next[i + (d + half + c) * L], other);
            }
            return root * shares[i] * (by_value + other - mean);
        };
        // Of row r of the ring, which has weight times number from this step.
        const auto entry = [&](int r, auto i, auto weight, auto number) {
            if constexpr (Later)
                return multiply_add(weight, number, d_next[i + r * L]);
            else
                return weight * number;
        };
        row.once([&] {  // what this step wrote, before its place is cleared
            const auto score = slope(here), share = shares[here];
            for (int r = 0; r < half; ++r) {
                o.key_a.d.put(r, entry(r, here, query_a[r], score));
                o.key_b.d.put(r, entry(half + r, here, query_b[r], score));
            }
            for (int c = 0; c < d; ++c) o.value.d.put(c, entry(d + c, here, d_seen(c), share));
        });
        row.sums_wide(
            d, 2, half, L,
            [&](auto i, auto add) {
                const auto score = slope(i), share = shares[i];
                const auto others = row.number(i) != now_written;
                const auto put = [&](int r, auto weight, auto number) {
                    d_carried.put(i + r * L, select(others, entry(r, i, weight, number), 0));
                };
                for (int r = 0; r < half; ++r) {
                    add(r, score, next[i + r * L]);
                    add(half + r, score, next[i + (half + r) * L]);
                    put(r, query_a[r], score);
                    put(half + r, query_b[r], score);
                }
                for (int c = 0; c < d; ++c) put(d + c, d_seen(c), share);
            },
            [&](auto r, auto sum) {
                if (r < half)
                    o.query_a.d.put(r, sum);
                else
                    o.query_b.d.put(r + -half, sum);
            });
    }
    static ENGRAM_HD int place(const auto& o, int L) { return static_cast<int>(o.step[0]) % L; }
    static ENGRAM_HD auto scale(const auto& o, int d) {
        using real = std::remove_cvref_t<decltype(o.step[0])>;
        return static_cast<real>(1 / std::sqrt(static_cast<double>(d)));
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
