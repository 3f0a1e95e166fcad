#pragma once
// SPDX-License-Identifier: MIT

// map on a device: one thread a number. The functor of the host serves here too, on duals; it is `constexpr`, which
// lets nvcc compile it for the device. Forward the duals depend on nothing: like a pack, and unlike a bare float, they
// take a constant such as 0.5 in their own type, and a device is many times slower in double.
//
// A chain (plan::chained) is one launch each way, whose threads go through the steps. A step would wait for memory
// twice, so a thread reads several steps ahead what does not hang on the chain, and carries in registers what does; it
// is written all the same, and has the bits of single steps. Chains are kernels of their own: what they hold in
// registers would leave a kernel of single points fewer threads.

#include <engram/device/kernel.hpp>
#include <engram/operations/map.hpp>

namespace engram {

namespace internal {

/// The rows that a thread of a chain goes through, one a step.
struct chain_rows {
    int count;
    std::ptrdiff_t ahead, apart;  // rows ahead of the first one, and from one to the next
};

/// Steps that a thread of a chain reads ahead, so many that the numbers of all of them stay in registers.
constexpr int steps_ahead(int numbers) {
    return numbers <= 4 ? 16 : numbers <= 8 ? 8 : numbers <= 16 ? 4 : 2;
}

/// Which inputs a map clears where an episode begins, a bit each.
template <class Real>
struct cleared_inputs {
    step_rows<Real> reset;
    unsigned inputs = 0;
    ENGRAM_HD unsigned at(std::ptrdiff_t row) const { return inputs != 0 && is_set(reset.row(row)[0]) ? inputs : 0u; }
};

template <class Real, class Functor, int N, int M>
struct map_chain_forward;
template <class Real, class Functor, int N, int M>
struct map_chain_backward;

template <class Real, class Functor, int N, int M>
struct map_forward {
    using chain = map_chain_forward<Real, Functor, N, M>;

    Functor functor;
    step_rows<Real> in[N], out[M];
    int width, serves[N];
    cleared_inputs<Real> clears;

    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t column = i % width, row = i / width;
        Real x[N], y[M];
        for (int k = 0; k < N; ++k) x[k] = at(k, row, column);
        apply(x, clears.at(row), y);
        write(row, column, y);
    }
    ENGRAM_HD Real at(int input, std::ptrdiff_t row, std::ptrdiff_t column) const {
        return in[input].row(row)[static_cast<int>(column) / serves[input]];
    }
    ENGRAM_HD void apply(const Real* x, unsigned cleared, Real* y) const {
        apply(x, cleared, y, std::make_index_sequence<N>{}, std::make_index_sequence<M>{});
    }
    ENGRAM_HD void write(std::ptrdiff_t row, std::ptrdiff_t column, const Real* y) const {
        for (int o = 0; o < M; ++o) out[o].row(row)[column] = y[o];
    }

private:
    template <std::size_t... I, std::size_t... O>
    ENGRAM_HD void apply(const Real* x, unsigned cleared, Real* y, std::index_sequence<I...>,
                         std::index_sequence<O...>) const {
        const auto results = internal::map_tuple(functor(dual<Real, 0>(cleared >> I & 1u ? Real(0) : x[I])...));
        ((y[O] = static_cast<Real>(value(std::get<O>(results)))), ...);
    }
};

/// All steps of a column and row, from the first one.
template <class Real, class Functor, int N, int M>
struct map_chain_forward {
    static constexpr int ahead = steps_ahead(N);

    map_forward<Real, Functor, N, M> step;
    chain_rows rows;
    int carried[N] = {};  // 1 + the output of the step before that this input is; 0: none

    ENGRAM_HD bool carries(int) const { return true; }
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t column = i % step.width;
        std::ptrdiff_t row = i / step.width + rows.ahead;
        Real y[M];
        for (int first = 0; first < rows.count; first += ahead, row += ahead * rows.apart) {
            const int here = rows.count - first < ahead ? rows.count - first : ahead;
            Real x[ahead][N];
            unsigned cleared[ahead];
            ENGRAM_UNROLL
            for (int n = 0; n < ahead; ++n)
                if (n < here) {
                    for (int k = 0; k < N; ++k)
                        if (first + n == 0 || carried[k] == 0) x[n][k] = step.at(k, row + n * rows.apart, column);
                    cleared[n] = step.clears.at(row + n * rows.apart);
                }
            ENGRAM_UNROLL
            for (int n = 0; n < ahead; ++n)
                if (n < here) {
                    if (first + n > 0)
                        for (int k = 0; k < N; ++k)
                            for (int o = 0; o < M; ++o)
                                if (carried[k] == o + 1) x[n][k] = y[o];
                    step.apply(x[n], cleared[n], y);
                    step.write(row + n * rows.apart, column, y);
                }
        }
    }
};

/// The gradients of the inputs in `sent`, a bit each: every thread gives its number's share.
template <class Real, class Functor, int N, int M>
struct map_backward {
    using chain = map_chain_backward<Real, Functor, N, M>;

    Functor functor;
    step_rows<Real> in[N], d_in[N], d_out[M];
    int width, serves[N];
    unsigned sent;
    cleared_inputs<Real> clears;

    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t column = i % width, row = i / width;
        Real x[N], dy[M], slopes[N];
        const unsigned cleared = clears.at(row);
        read(row, column, x, dy);
        find(x, dy, cleared, slopes);
        for (int k = 0; k < N; ++k)
            if ((sent & ~cleared) >> k & 1u) d_in[k].put(row, column, slopes[k]);
    }
    ENGRAM_HD void read(std::ptrdiff_t row, std::ptrdiff_t column, Real* x, Real* dy) const {
        for (int i = 0; i < N; ++i) x[i] = in[i].row(row)[static_cast<int>(column) / serves[i]];
        for (int o = 0; o < M; ++o) dy[o] = d_out[o].wanted() ? d_out[o].row(row)[column] : Real(0);
    }
    ENGRAM_HD void find(const Real* x, const Real* dy, unsigned cleared, Real* slopes) const {
        find(x, dy, cleared, slopes, std::make_index_sequence<N>{});
    }

private:
    template <std::size_t... I>
    ENGRAM_HD void find(const Real* x, const Real* dy, unsigned cleared, Real* slopes,
                        std::index_sequence<I...>) const {
        const auto results =
            internal::map_tuple(functor(make_input<static_cast<int>(I)>(cleared >> I & 1u ? Real(0) : x[I])...));
        ((slopes[I] = slope<I>(results, dy, std::make_index_sequence<M>{})), ...);
    }
    template <std::size_t I, class Results, std::size_t... O>
    ENGRAM_HD Real slope(const Results& results, const Real* dy, std::index_sequence<O...>) const {
        Real sum = 0;
        ((sum += d_out[O].wanted() ? Real(derivative<static_cast<int>(I)>(std::get<O>(results))) * dy[O] : Real(0)),
         ...);
        return sum;
    }
};

/// The gradient of an input whose columns serve several each: the sum of what they stand for.
template <class Real, class Functor, int N, int M>
struct map_backward_across {
    map_backward<Real, Functor, N, M> step;
    int input, columns;

    ENGRAM_HD int count() const { return columns; }
    ENGRAM_HD int terms() const { return step.width / columns; }
    ENGRAM_HD Real term(int row, int i, int c) const {
        Real x[N], dy[M], slopes[N], slope = 0;
        step.read(row, i * terms() + c, x, dy);
        step.find(x, dy, step.clears.at(row), slopes);
        for (int k = 0; k < N; ++k)
            if (k == input) slope = slopes[k];
        return slope;
    }
    ENGRAM_HD void put(int row, int i, Real sum) const { step.d_in[input].put(row, i, sum); }
};

/// All steps of a column and row, back from the last one.
template <class Real, class Functor, int N, int M>
struct map_chain_backward {
    static constexpr int ahead = steps_ahead(2 * N + M);

    map_backward<Real, Functor, N, M> step;
    chain_rows rows;
    int carried[N] = {};  // 1 + the output of the step before that this input is; 0: none, or its gradient is not sent

    ENGRAM_HD bool carries(int input) const { return step.sent >> input & 1u; }
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const auto& d_in = step.d_in;
        const std::ptrdiff_t column = i % step.width;
        std::ptrdiff_t row = i / step.width + rows.ahead;
        Real given[M];  // to the outputs of a step, by the one behind it
        unsigned gives = 0;
        for (int first = 0; first < rows.count; first += ahead, row += ahead * rows.apart) {
            const int here = rows.count - first < ahead ? rows.count - first : ahead;
            Real x[ahead][N], dy[ahead][M], before[ahead][N];
            unsigned cleared[ahead];
            ENGRAM_UNROLL
            for (int n = 0; n < ahead; ++n)
                if (n < here) {
                    const std::ptrdiff_t at = row + n * rows.apart;
                    step.read(at, column, x[n], dy[n]);
                    for (int k = 0; k < N; ++k)
                        if ((step.sent >> k & 1u) && carried[k] == 0 && d_in[k].accumulate)
                            before[n][k] = d_in[k].row(at)[column];
                    cleared[n] = step.clears.at(at);
                }
            ENGRAM_UNROLL
            for (int n = 0; n < ahead; ++n)
                if (n < here) {
                    const std::ptrdiff_t at = row + n * rows.apart;
                    for (int o = 0; o < M; ++o)
                        if (gives >> o & 1u) dy[n][o] = given[o];
                    Real slopes[N];
                    step.find(x[n], dy[n], cleared[n], slopes);
                    const unsigned to = step.sent & ~cleared[n];
                    gives = 0;
                    for (int k = 0; k < N; ++k) {
                        if (!(to >> k & 1u)) continue;
                        if (carried[k] == 0) {
                            d_in[k].row(at)[column] = d_in[k].accumulate ? before[n][k] + slopes[k] : slopes[k];
                            continue;
                        }
                        // The sum of the output of the step before, as memory would have it.
                        Real sum = slopes[k];
                        if (d_in[k].accumulate)
                            sum +=
                                n + 1 < here ? of(dy[n + 1 < ahead ? n + 1 : n], carried[k]) : d_in[k].row(at)[column];
                        d_in[k].row(at)[column] = sum;
                        for (int o = 0; o < M; ++o)
                            if (carried[k] == o + 1) given[o] = sum, gives |= 1u << o;
                    }
                }
        }
    }

private:
    static ENGRAM_HD Real of(const Real* outputs, int number) {
        Real found = outputs[0];
        for (int o = 1; o < M; ++o)
            if (number == o + 1) found = outputs[o];
        return found;
    }
};

}  // namespace internal

/// Where the numbers of a map are, and which gradients one launch may give together, whatever the functor.
template <device_backend Backend, int N, int M>
struct map_operands : device_kernel<Backend> {
    using real = typename Backend::real;

    map_operands(const binder<Backend>& b, unsigned c) : device_kernel<Backend>(b), width(b.out(0).width), clears(c) {
        unsigned whole = 0;
        if (clears) reset = b.in(N);
        for (int i = 0; i < N; ++i) {
            in[i] = b.in(static_cast<std::size_t>(i));
            d_in[i] = b.d_in(static_cast<std::size_t>(i));
            if (!d_in[i]) continue;
            // Inputs that share columns of one value are given theirs by one launch after another.
            bool alone = false;
            for (int k = 0; k < i; ++k) alone |= d_in[k] && overlap(d_in[k], d_in[i]);
            if (in[i].width != width)
                across.push_back(i);
            else if (alone)
                along.push_back(1u << i);
            else
                whole |= 1u << i;
        }
        if (whole) along.insert(along.begin(), whole);
        for (int i = 0; i < M; ++i) {
            out[i] = b.out(static_cast<std::size_t>(i));
            d_out[i] = b.d_out(static_cast<std::size_t>(i));
        }
        in_order = b.chained() && points_follow_themselves();
    }
    bool runs_loop() const override { return in_order; }

    int width;
    operand<real> in[N], d_in[N], out[M], d_out[M], reset;
    unsigned clears;
    std::vector<unsigned> along;
    std::vector<int> across;
    bool in_order;  // several steps are a step after the other

protected:
    internal::cleared_inputs<real> cleared_from(int t) const { return {{reset, t}, clears}; }
    /// `body` at all points of `steps` steps; of a chain forward from the first one, or back from the last.
    template <class Body>
    void launch_points(int steps, const Body& body, bool back) {
        if (steps == 1 || !in_order) return this->launch(steps, width, body);
        const std::ptrdiff_t B = this->batch;
        typename Body::chain chain{body, {steps, back ? (steps - 1) * B : 0, back ? -B : B}};
        for (int i = 0; i < N; ++i)
            for (int o = 0; o < M; ++o)
                if (lies_behind(in[i], out[o]) && chain.carries(i)) chain.carried[i] = o + 1;
        this->launch(1, width, chain);
    }

private:
    /// Whether a point reads of other steps only what is of its own row and column.
    bool points_follow_themselves() const {
        const auto end = [&](const operand<real>& o) {
            return o.at(this->all_steps - 1) + (this->batch - 1) * o.stride + o.width;
        };
        if (clears && reset.step != this->batch * reset.stride) return false;
        for (int i = 0; i < N; ++i) {
            if (in[i].step != this->batch * in[i].stride) return false;
            for (const operand<real>& y : out) {
                const bool apart = in[i].data >= end(y) || end(in[i]) <= y.data;
                if (!apart && !lies_behind(in[i], y)) return false;
                // Its gradient goes to the step before, by the first launch.
                if (!apart && d_in[i] && !(along[0] >> i & 1u)) return false;
            }
        }
        return true;
    }
    /// Whether x is of every step what y was of the one before.
    bool lies_behind(const operand<real>& x, const operand<real>& y) const {
        return x.at(1) == y.data && x.stride == y.stride && x.width == width;
    }
    static bool overlap(const operand<real>& a, const operand<real>& b) {
        const std::ptrdiff_t apart = b.data - a.data;
        return apart < a.width && -apart < b.width;
    }
};

template <device_backend Backend, class Functor, int N>
struct map_kernel<Backend, Functor, N> final
    : map_operands<Backend, N, internal::map_outputs<typename Backend::real, Functor, N>> {
    using real = typename Backend::real;
    static constexpr int M = internal::map_outputs<real, Functor, N>;
    using operands = map_operands<Backend, N, M>;

    map_kernel(const binder<Backend>& b, Functor f, unsigned cleared) : operands(b, cleared), functor(f) {}

    void forward(int t, int steps) override {
        internal::map_forward<real, Functor, N, M> body{functor, {}, {}, width, {}, this->cleared_from(t)};
        for (int i = 0; i < N; ++i) {
            body.in[i] = {in[i], t};
            body.serves[i] = width / in[i].width;
        }
        for (int i = 0; i < M; ++i) body.out[i] = {out[i], t};
        this->launch_points(steps, body, false);
    }
    void backward(int t, int steps) override {
        for (const unsigned inputs : along) this->launch_points(steps, gradient(t, inputs), true);
        using sums = internal::map_backward_across<real, Functor, N, M>;
        for (const int i : across) this->launch_sums(steps, sums{gradient(t, 1u << i), i, in[i].width});
    }

private:
    internal::map_backward<real, Functor, N, M> gradient(int t, unsigned inputs) const {
        internal::map_backward<real, Functor, N, M> body{functor, {}, {}, {}, width, {}, inputs, this->cleared_from(t)};
        for (int i = 0; i < N; ++i) {
            body.in[i] = {in[i], t};
            body.serves[i] = width / in[i].width;
            body.d_in[i] = {d_in[i], t};
        }
        for (int i = 0; i < M; ++i) body.d_out[i] = {d_out[i], t};
        return body;
    }

    using operands::width, operands::in, operands::d_in, operands::out, operands::d_out, operands::along,
        operands::across;

    Functor functor;
};

}  // namespace engram
