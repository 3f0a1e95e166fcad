#pragma once
// SPDX-License-Identifier: MIT

// What the heads of a memory do side by side: head h of H has columns [h N, (h + 1) N) of a row.
//
//   mixture      shares [., H * K], K values [., H * N]     -> [., H * N]: sum over k of share h, k times value k of h
//   fold_heads   start [., N], values [., H * N]            -> [., N]: one head after the other changes what is there
//
// Softmax and sums take heads as groups of columns (operations/softmax.hpp), maps as spread inputs
// (operations/map.hpp).

#include <string>
#include <utility>
#include <vector>

#include <engram/operations/map.hpp>
#include <engram/operations/row_operation.hpp>

namespace engram {

namespace internal {

/// Throws where two inputs share columns: the gradients of heads are given in no order of inputs.
template <class Backend>
void require_apart(const graph<Backend>& g, const std::string& name, const std::vector<var<Backend>>& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
        for (std::size_t k = 0; k < i; ++k) {
            const view &a = inputs[i], &b = inputs[k];
            const bool shared = a.value == b.value && a.offset < b.offset + b.width && b.offset < a.offset + a.width;
            require(!shared || a.detached || b.detached, g.full_name(name),
                    ": two inputs share columns; give one of them as a copy");
        }
}

}  // namespace internal

// --- mixture ---

/// A head is a piece of its row.
struct mixture_rows {
    struct settings {
        int heads;
    };
    template <class Real>
    struct operands {
        input_row<Real> shares;
        input_list<Real> values;
        output_row<Real> y;
    };
    static constexpr int pieces(settings s, int) { return s.heads; }
    static ENGRAM_HD void forward(auto row, const auto& o, settings) {
        row.each(o.y.width, [&](auto i) {
            auto sum = o.y[i] * 0;
            if (o.values.first > 0) sum = o.y[i];
            each_part(o.values, [&](int k) { sum = sum + o.shares[o.values.first + k] * o.values.parts[k][i]; });
            o.y.put(i, sum);
        });
    }
    static ENGRAM_HD void backward(auto row, const auto& o, settings) {
        const int n = o.y.width;
        each_part(o.values, [&](int k) {
            const auto& value = o.values.parts[k];
            const int of = o.values.first + k;
            if (o.shares.d) {
                const auto slope = row.sum(n, [&](auto i) { return o.y.d[i] * value[i]; });
                row.once([&] { o.shares.d.put(of, slope); });
            }
            if (value.d) row.each(n, [&](auto i) { value.d.put(i, o.shares[of] * o.y.d[i]); });
        });
    }
};

/// [., H * N]: of every head the values [., H * N], mixed by its shares [., H * K], one for each of the K values.
template <class Backend>
var<Backend> mixture(const std::string& name, const var<Backend>& shares, const std::vector<var<Backend>>& values,
                     int slots) {
    require(!values.empty(), name, ": nothing to mix");
    graph<Backend>& g = *shares.owner;
    const int width = values[0].width, K = static_cast<int>(values.size());
    for (const auto& v : values)
        require(v.width == width && width % slots == 0, g.full_name(name), ": values of ", width, " and ", v.width,
                " columns, expected the same for every value, a multiple of the ", slots, " columns of a head");
    require(shares.width == width / slots * K, g.full_name(name), ": ", width / slots, " heads of ", K, " values need ",
            width / slots * K, " shares, not ", shares.width);
    std::vector<var<Backend>> all{shares};
    all.insert(all.end(), values.begin(), values.end());
    internal::require_apart(g, name, all);
    return add_rows<mixture_rows>(g, name, all, {width / slots}, {width})[0];
}

// --- fold ---

/// What is between two heads is not kept but found again from the start, since heads are few.
template <class Functor, int More>
struct fold_rows {
    struct settings {
        Functor functor;
        int heads;
    };
    template <class Real>
    struct operands {
        input_row<Real> start;
        input_array<Real, More> each;
        output_row<Real> y;
    };
    static constexpr int sums(const settings& s, int) { return More * s.heads; }

    static ENGRAM_HD void forward(auto row, const auto& o, const settings& s) {
        row.each(o.y.width, [&](auto i) { o.y.put(i, before(s.heads, i, o, s, all{})); });
    }
    static ENGRAM_HD void backward(auto row, const auto& o, const settings& s) {
        row.sums(
            More * s.heads, o.y.width,
            [&](auto i, auto add) {
                auto g = o.y.d[i];
                for (int h = s.heads; h-- > 0;) g = step_back(h, i, g, o, s, add, all{});
                o.start.d.put(i, g);
            },
            [&](int sum, auto slope) {
                if (single(o, sum / s.heads, s)) o.each[sum / s.heads].d.put(sum % s.heads, slope);
            });
    }

private:
    using all = std::make_integer_sequence<int, More>;

    /// Input k has one number a head.
    static ENGRAM_HD bool single(const auto& o, int k, const settings& s) {
        return o.each[k].width == s.heads && o.y.width > 1;
    }
    /// What input k has for head h.
    template <class Number>
    static ENGRAM_HD Number number(int k, int h, auto i, const auto& o, const settings& s) {
        return single(o, k, s) ? Number(o.each[k][h]) : o.each[k][i + h * o.y.width];
    }
    /// What head h finds.
    template <int... K>
    static ENGRAM_HD auto before(int h, auto i, const auto& o, const settings& s, std::integer_sequence<int, K...>) {
        auto y = o.start[i];
        using N = decltype(y);
        for (int k = 0; k < h; ++k)
            y = static_cast<N>(value(s.functor(dual<N, 0>(y), dual<N, 0>(number<N>(K, k, i, o, s))...)));
        return y;
    }
    /// Gives the inputs of head h their slopes, and the head ahead of it what is left of g.
    template <class N, int... K>
    static ENGRAM_HD N step_back(int h, auto i, const N& g, const auto& o, const settings& s, const auto& add,
                                 std::integer_sequence<int, K...>) {
        const auto y =
            s.functor(make_input<0>(before(h, i, o, s, all{})), make_input<K + 1>(number<N>(K, h, i, o, s))...);
        const auto send = [&](int k, const N& slope) {
            if (single(o, k, s))
                add(k * s.heads + h, slope);
            else
                o.each[k].d.put(i + h * o.y.width, slope);
        };
        (send(K, static_cast<N>(derivative<K + 1>(y)) * g), ...);
        return static_cast<N>(derivative<0>(y)) * g;
    }
};

/// [., N]: y <- f(y, x_h...) for one head after the other, from `start` [., N]; an x is [., H * N], or [., H] with one
/// number a head. `f` is a functor as map() takes it, of one number.
template <class Functor, class Backend, class... More>
var<Backend> fold_heads(const std::string& name, Functor f, int heads, const var<Backend>& start, const More&... each) {
    graph<Backend>& g = *start.owner;
    require(heads > 0, g.full_name(name), ": ", heads, " heads; at least one is needed");
    const std::vector<var<Backend>> inputs{start, each...};
    for (std::size_t i = 1; i < inputs.size(); ++i) {
        const int width = inputs[i].width;
        require(width == heads || width == heads * start.width, g.full_name(name), ": ", width, " columns for ", heads,
                " heads; expected one a head, or ", start.width, " a head as there are in what they change");
    }
    internal::require_apart(g, name, inputs);
    return add_rows<fold_rows<Functor, static_cast<int>(sizeof...(More))>>(g, name, inputs, {f, heads},
                                                                           {start.width})[0];
}

}  // namespace engram
