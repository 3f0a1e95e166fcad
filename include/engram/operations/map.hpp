#pragma once
// SPDX-License-Identifier: MIT

// map: pointwise maths, written once.
//
// A functor `auto operator()(auto... x) const` runs on SIMD packs in the forward sweep and on activity-masked duals of
// packs in the backward sweep, so a fused LSTM cell, a gate or a loss needs no hand-written derivative. It returns one
// number or a tuple of them. Inputs are [T, B, F], or one column wide, which is used for all F columns, or spread, each
// of F / n columns for n of them (var::spread: one number a head, heads side by side); outputs are [T, B, F]. Use
// `select` instead of `if`, and `auto` locals.
//
// A state that one map alone reads (graph::own_state) is cleared by that map where an episode begins: it counts as zero
// there, whatever stands there, and has no gradient. So a recurrence of columns, s' = f(x, s), is one operation, and a
// device runs all steps of an unroll by one launch, a thread a column and batch row, with the bits of single steps.
//
// What is made of parameters alone (operations/learnt_row.hpp) is the same in every row: the host computes and keeps
// one, and sends the gradient that all rows have added up back through it. Rows add from the last to the first, within
// a time loop and without one, so that both give the same bits.

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <engram/core/aligned.hpp>
#include <engram/core/dual.hpp>
#include <engram/core/pack.hpp>
#include <engram/graph/program.hpp>
#include <engram/operations/episodes.hpp>

namespace engram {

namespace internal {

template <class T>
inline constexpr bool map_is_tuple = false;
template <class... T>
inline constexpr bool map_is_tuple<std::tuple<T...>> = true;

template <class T>
constexpr decltype(auto) map_tuple(T&& value) {
    if constexpr (map_is_tuple<std::remove_cvref_t<T>>)
        return std::forward<T>(value);
    else
        return std::tuple<std::remove_cvref_t<T>>(std::forward<T>(value));
}

template <class Real, class Functor, std::size_t... I>
auto map_result(Functor f, std::index_sequence<I...>)
    -> decltype(map_tuple(f((static_cast<void>(I), pack<Real>(Real(0)))...)));

template <class Real, class Functor, std::size_t... I>
constexpr bool map_gives_numbers(std::index_sequence<I...>) {
    return requires(const Functor f) {
        map_tuple(f((static_cast<void>(I), pack<Real>(Real(0)))...));
    };
}

template <class Real, class Functor, int N>
inline constexpr int map_outputs = static_cast<int>(
    std::tuple_size_v<
        std::remove_cvref_t<decltype(map_result<Real>(std::declval<Functor>(), std::make_index_sequence<N>{}))>>);

}  // namespace internal

/// Goes through the rows of a map on the host, whatever its functor, which adds two loops over columns.
template <class Backend>
struct map_rows : kernel<Backend> {
    using real = typename Backend::real;
    static constexpr int most = 16;  // inputs, and outputs

    map_rows(const binder<Backend>& b, int inputs, int outputs, unsigned c)
        : N(inputs), M(outputs), batch(b.batch()), width(b.out(0).width), piece(b.out(0).width), clears(c) {
        if (clears) reset = b.in(static_cast<std::size_t>(N)), zeros.resize(static_cast<std::size_t>(width));
        for (int i = 0; i < N; ++i) {
            in[i] = b.in(static_cast<std::size_t>(i));
            d_in[i] = b.d_in(static_cast<std::size_t>(i));
            serves[i] = width / in[i].width;
            // A piece of a row has one column of each input that is broadcast.
            const int shared = std::gcd(piece, serves[i]);
            repeats[i] = in[i].width != 1 && serves[i] > 1 && shared < pack<real>::width;
            broadcast[i] = in[i].width != width && !repeats[i];
            adds[i] = d_in[i].accumulate && !repeats[i];
            any_repeats |= repeats[i];
            if (broadcast[i]) piece = shared;
        }
        if (any_repeats) room.resize(2 * static_cast<std::size_t>(N) * static_cast<std::size_t>(width));
        for (int i = 0; i < M; ++i) {
            out[i] = b.out(static_cast<std::size_t>(i));
            d_out[i] = b.d_out(static_cast<std::size_t>(i));
        }
        // Dense operands of one width are one long row.
        dense = true;
        for (int i = 0; i < N; ++i)
            dense &= in[i].stride == width && in[i].width == width && (!d_in[i] || d_in[i].stride == width);
        for (int i = 0; i < M; ++i) dense &= out[i].stride == width;
        alike = b.gives_one_row();
    }

    void forward(int t, int steps) final {
        const int rows = alike ? 1 : steps * batch;
        if (dense && !alike && none_begins(t, rows)) return forward_piece(t, 0, 0, rows * width, 0);
        for (int r = 0; r < rows; ++r) {
            if (any_repeats) repeat(t, r);
            const unsigned cleared = begins(t, r) ? clears : 0;
            for (int first = 0; first < width; first += piece) forward_piece(t, r, first, piece, cleared);
        }
    }
    void backward(int t, int steps) final {
        if (alike && t > 0) return;  // behind all rows of all steps
        const int rows = alike ? 1 : steps * batch;
        if (dense && !alike && none_begins(t, rows)) return backward_piece(t, 0, 0, rows * width, 0);
        for (int r = rows; r-- > 0;) {
            if (any_repeats) repeat(t, r), clear_repeated(t, r);
            const unsigned cleared = begins(t, r) ? clears : 0;
            for (int first = 0; first < width; first += piece) backward_piece(t, r, first, piece, cleared);
            if (any_repeats) add_repeated(t, r);
        }
    }

protected:
    /// n columns of a row from x[i] to y[o].
    virtual void forward_columns(const real* const* x, real* const* y, int n) = 0;
    /// Their slopes by dy[o], where it is not null, to dx[i]; add[i]: to what stands there, for a broadcast input.
    virtual void backward_columns(const real* const* x, const real* const* dy, real* const* dx, const bool* add,
                                  int n) = 0;

    bool broadcast[most], adds[most];

private:
    real* repeated(int i) { return room.data() + i * width; }
    real* d_repeated(int i) { return room.data() + (N + i) * width; }
    /// Columns that stand for fewer than a pack has, written out for a row; and no gradient for them yet.
    void repeat(int t, int row) {
        for (int i = 0; i < N; ++i) {
            if (!repeats[i]) continue;
            const real* const x = in[i].at(t) + row * in[i].stride;
            for (int c = 0; c < in[i].width; ++c) std::fill_n(repeated(i) + c * serves[i], serves[i], x[c]);
        }
    }
    void clear_repeated(int t, int row) const {
        for (int i = 0; i < N; ++i)
            if (repeats[i] && d_in[i] && !d_in[i].accumulate)
                std::fill_n(d_in[i].at(t) + row * d_in[i].stride, d_in[i].width, real(0));
    }
    void add_repeated(int t, int row) {
        for (int i = 0; i < N; ++i) {
            if (!repeats[i] || !d_in[i]) continue;
            real* const d = d_in[i].at(t) + row * d_in[i].stride;
            const real* from = d_repeated(i);
            for (int c = 0; c < in[i].width; ++c)
                for (int k = 0; k < serves[i]; ++k) d[c] += *from++;
        }
    }

    /// Whether an episode begins at this row.
    bool begins(int t, int row) const { return clears && engram::begins(reset, t, row); }
    bool none_begins(int t, int rows) const {
        for (int r = 0; r < rows; ++r)
            if (begins(t, r)) return false;
        return true;
    }

    /// The column of input i that belongs to column `first` of the output.
    int column(int i, int first) const { return first == 0 || !broadcast[i] ? first : first / serves[i]; }

    void forward_piece(int t, int row, int first, int n, unsigned cleared) {
        const real* x[most];
        real* y[most];
        for (int i = 0; i < N; ++i)
            x[i] = cleared >> i & 1u ? zeros.data()
                   : repeats[i]      ? repeated(i) + first
                                     : in[i].at(t) + row * in[i].stride + column(i, first);
        for (int i = 0; i < M; ++i) y[i] = out[i].at(t) + row * out[i].stride + first;
        forward_columns(x, y, n);
    }

    void backward_piece(int t, int row, int first, int n, unsigned cleared) {
        const real* x[most];
        const real* dy[most];
        real* dx[most];
        bool add[most];
        for (int i = 0; i < N; ++i) {
            if (repeats[i]) {
                x[i] = repeated(i) + first;
                dx[i] = d_in[i] ? d_repeated(i) + first : nullptr;
                add[i] = false;
                continue;
            }
            if (cleared >> i & 1u) {
                x[i] = zeros.data(), dx[i] = nullptr, add[i] = false;  // to a state's gradient others add
                continue;
            }
            const int c = column(i, first);
            x[i] = in[i].at(t) + row * in[i].stride + c;
            dx[i] = d_in[i] ? d_in[i].at(t) + row * d_in[i].stride + c : nullptr;
            add[i] = d_in[i].accumulate || first > c * serves[i];
        }
        for (int i = 0; i < M; ++i) dy[i] = d_out[i] ? d_out[i].at(t) + row * d_out[i].stride + first : nullptr;
        backward_columns(x, dy, dx, add, n);
    }

    int N, M;                 // inputs and outputs
    int batch, width, piece;  // piece: columns of a row in which no broadcast input moves on
    unsigned clears;          // inputs that are cleared where an episode begins, a bit each
    operand<real> reset;
    aligned_vector<real> zeros;  // what they are then
    operand<real> in[most], d_in[most], out[most], d_out[most];
    bool repeats[most];
    int serves[most];  // columns of the output for which one of the input stands
    bool dense, alike, any_repeats = false;
    aligned_vector<real> room;
};

template <class Backend, class Functor, int N>
struct map_kernel final : map_rows<Backend> {
    using real = typename Backend::real;
    using lanes = pack<real>;
    static constexpr int M = internal::map_outputs<real, Functor, N>;
    static_assert(N <= map_rows<Backend>::most && M <= map_rows<Backend>::most, "map: 16 inputs and outputs at most");

    map_kernel(const binder<Backend>& b, Functor f, unsigned cleared)
        : map_rows<Backend>(b, N, M, cleared), functor(f) {}

private:
    void forward_columns(const real* const* x, real* const* y, int n) override {
        forward_columns(x, y, n, std::make_index_sequence<N>{}, std::make_index_sequence<M>{});
    }
    void backward_columns(const real* const* x, const real* const* dy, real* const* dx, const bool* add,
                          int n) override {
        backward_columns(x, dy, dx, add, n, std::make_index_sequence<N>{});
    }

    template <std::size_t... I, std::size_t... O>
    void forward_columns(const real* const* x, real* const* y, int n, std::index_sequence<I...>,
                         std::index_sequence<O...>) {
        int c = 0;
        const auto f = functor;
        // Of its own: what is stored might else be where these lie.
        const real* const from[N] = {x[I]...};
        real* const to[M] = {y[O]...};
        const bool one[N] = {broadcast[I]...};
        for (; c + lanes::width <= n; c += lanes::width) {
            const auto result = internal::map_tuple(f((one[I] ? lanes(*from[I]) : lanes::load(from[I] + c))...));
            (lanes(std::get<O>(result)).store(to[O] + c), ...);
        }
        if (c < n) {
            const auto result = internal::map_tuple(f((one[I] ? lanes(*from[I]) : lanes::load(from[I] + c, n - c))...));
            (lanes(std::get<O>(result)).store(to[O] + c, n - c), ...);
        }
    }

    template <std::size_t I, class Results, std::size_t... O>
    static lanes slope(const Results& results, const lanes* dy, std::index_sequence<O...>) {
        lanes sum(real(0));
        const auto add = [&](const auto& result, const lanes& g) {
            if constexpr (is_dual<std::remove_cvref_t<decltype(result)>>)
                if constexpr ((std::remove_cvref_t<decltype(result)>::mask >> I) & 1u)
                    sum = multiply_add(derivative<static_cast<int>(I)>(result), g, sum);
        };
        (add(std::get<O>(results), dy[O]), ...);
        return sum;
    }

    template <std::size_t I, class Results>
    static ENGRAM_SIMD void send(const Results& results, const lanes* dy, real* dx, lanes& total, bool one, bool adds,
                                 int c, int count) {
        if (!dx) return;
        lanes s = slope<I>(results, dy, std::make_index_sequence<M>{});
        if (one) {
            // Lanes beyond the row hold arbitrary numbers.
            if (count < lanes::width) {
                real kept[lanes::width] = {};
                s.store(kept, count);
                s = lanes::load(kept);
            }
            total += s;
        } else if (count == lanes::width) {
            if (adds) s += lanes::load(dx + c);
            s.store(dx + c);
        } else {
            if (adds) s += lanes::load(dx + c, count);
            s.store(dx + c, count);
        }
    }

    // Flat: a functor of many inputs that is called goes through memory with all of its derivatives.
    template <std::size_t... I>
    [[gnu::flatten]] void backward_columns(const real* const* x, const real* const* dy, real* const* dx,
                                           const bool* add, int n, std::index_sequence<I...>) {
        lanes total[N] = {((void)I, lanes(real(0)))...};
        const auto f = functor;
        const real* const from[N] = {x[I]...};
        real* const to[N] = {dx[I]...};
        const bool one[N] = {broadcast[I]...}, more[N] = {adds[I]...};
        const real* later[M];
        for (int o = 0; o < M; ++o) later[o] = dy[o];
        const auto block = [&](int c, int count, auto load) __attribute__((always_inline)) {
            const auto results = internal::map_tuple(
                f(make_input<static_cast<int>(I)>(one[I] ? lanes(*from[I]) : load(from[I] + c))...));
            lanes g[M];
            for (int o = 0; o < M; ++o) g[o] = later[o] ? load(later[o] + c) : lanes(real(0));
            (send<I>(results, g, to[I], total[I], one[I], more[I], c, count), ...);
        };
        int c = 0;
        for (; c + lanes::width <= n; c += lanes::width)
            block(c, lanes::width, [](const real* p) { return lanes::load(p); });
        if (c < n) block(c, n - c, [left = n - c](const real* p) { return lanes::load(p, left); });
        for (int i = 0; i < N; ++i)
            if (broadcast[i] && dx[i]) *dx[i] = add[i] ? *dx[i] + total[i].sum() : total[i].sum();
    }

    using map_rows<Backend>::broadcast, map_rows<Backend>::adds;

    Functor functor;
};

template <class Backend, class Functor, int N>
struct map_operation final : operation<Backend> {
    Functor functor;
    unsigned clears;  // inputs, a bit each
    map_operation(Functor f, unsigned c) : functor(f), clears(c) {}
    std::unique_ptr<kernel<Backend>> bind(const binder<Backend>& b) const override {
        return bind_kernel<map_kernel<Backend, Functor, N>>(b, functor, clears);
    }
};

namespace internal {

/// What map() does whatever the functor.
template <class Backend>
std::vector<var<Backend>> trace_map(std::unique_ptr<operation<Backend>> op, std::initializer_list<var<Backend>> inputs,
                                    std::size_t outputs) {
    graph<Backend>& g = *inputs.begin()->owner;
    const std::string name = op->name;
    int width = 1, reset = -1;
    for (var<Backend> v : inputs) {
        width = std::max(width, v.width * std::exchange(v.stands_for, 1));
        if (v.reset >= 0) reset = std::exchange(v.reset, -1);
        op->inputs.push_back(g.own(name, v));
    }
    for (const var<Backend>& v : inputs) {
        if (v.reset < 0) continue;
        require(v.reset == reset && v.stands_for == 1, g.full_name(name), ": '", g.info(v).name,
                "' is spread, or cleared at other steps than the states beside it");
    }
    for (const var<Backend>& v : inputs)
        require(v.width * v.stands_for == width || (v.width == 1 && v.stands_for == 1), g.full_name(name),
                ": inputs of ", width, " and ", v.width * v.stands_for,
                " columns do not go together; widths must be equal or 1");
    if (reset >= 0) op->inputs.push_back({reset, 0, 1, true});
    const extent rows = g.common_rows(op->inputs);
    const bool alike = g.rows_alike(op->inputs);
    const auto found = g.add(std::move(op), std::vector<int>(outputs, width), rows);
    if (alike) g.declare_rows_alike(found);
    return found;
}

}  // namespace internal

/// Applies `f` column by column; returns one var, or an array of them if `f` returns a tuple. An input of one column
/// serves all columns of the others.
template <class Functor, class Backend, class... More>
auto map(const std::string& name, Functor f, const var<Backend>& first, const More&... more) {
    constexpr int N = 1 + static_cast<int>(sizeof...(More));
    constexpr bool gives_numbers =
        internal::map_gives_numbers<typename Backend::real, Functor>(std::make_index_sequence<N>{});
    static_assert(
        gives_numbers,
        "map: the functor must be const, take one number for each input and return a number or a tuple of them");
    // Nothing further is compiled without that, so that no other error follows.
    if constexpr (gives_numbers) {
        constexpr int M = internal::map_outputs<typename Backend::real, Functor, N>;
        unsigned clears = 0, bit = 1;
        for (const var<Backend>* const v : {&first, &more...}) clears |= v->reset >= 0 ? bit : 0, bit <<= 1;
        auto op = std::make_unique<map_operation<Backend, Functor, N>>(f, clears);
        op->name = name;
        auto outputs = internal::trace_map<Backend>(std::move(op), {first, more...}, static_cast<std::size_t>(M));
        if constexpr (M == 1) {
            return outputs[0];
        } else {
            std::array<var<Backend>, static_cast<std::size_t>(M)> all;
            std::copy(outputs.begin(), outputs.end(), all.begin());
            return all;
        }
    } else {
        return first;
    }
}

/// The rectifier, which encoders and controllers share.
struct rectify {
    constexpr auto operator()(auto x) const { return relu(x); }
};

/// The logistic function, of gates and of Bernoulli means.
struct squash {
    constexpr auto operator()(auto x) const { return logistic(x); }
};

struct add {
    constexpr auto operator()(auto a, auto b) const { return a + b; }
};
struct subtract {
    constexpr auto operator()(auto a, auto b) const { return a - b; }
};
struct times {
    constexpr auto operator()(auto a, auto b) const { return a * b; }
};
/// One of two values, by a flag.
struct choose {
    constexpr auto operator()(auto flag, auto yes, auto no) const { return select(is_set(flag), yes, no); }
};

}  // namespace engram
