#pragma once
// SPDX-License-Identifier: MIT

// Heads side by side on a device: mixtures a thread a number, up to eight values a launch; folds a thread a column. A
// fold keeps nothing of what is between two heads and finds it again from the start, since heads are few.

#include <engram/device/kernel.hpp>
#include <engram/graph/ops/heads.hpp>

namespace engram {

// --- mixture ---

/// Values first, first + 1, ... of the `of` that each head mixes.
template <class Real>
struct some_values {
    static constexpr int most = 8;
    device_rows<Real> value[most];
    int first = 0, count = 0, of = 0, slots = 0;

    ENGRAM_HD int share_of(std::ptrdiff_t column, int k) const {
        return static_cast<int>(column) / slots * of + first + k;
    }
};

template <class Real>
struct mixture_forward {
    some_values<Real> some;
    device_rows<Real> shares, out;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / out.width, column = i % out.width;
        Real sum = 0;
        for (int k = 0; k < some.count; ++k)
            sum += shares.row(row)[some.share_of(column, k)] * some.value[k].row(row)[column];
        out.take(row, column, sum);
    }
};

/// `some` are the gradients to give.
template <class Real>
struct mixture_to_values {
    some_values<Real> some;
    device_rows<Real> shares, d_out;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / d_out.width, column = i % d_out.width;
        for (int k = 0; k < some.count; ++k)
            if (some.value[k].wanted())
                some.value[k].take(row, column, shares.row(row)[some.share_of(column, k)] * d_out.row(row)[column]);
    }
};

/// A block a head and value.
template <class Real>
struct mixture_to_shares {
    static constexpr int lanes = 32;
    some_values<Real> some;
    device_rows<Real> d_out, d_shares;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const int heads = d_out.width / some.slots, each = heads * some.count;
        const int row = index / each, h = index % each / some.count, k = index % some.count;
        const Real* const dy = d_out.row(row) + h * some.slots;
        const Real* const x = some.value[k].row(row) + h * some.slots;
        const Real sum = block_sum(block, some.slots, [=](int n) { return dy[n] * x[n]; });
        const device_rows<Real> to = d_shares;
        const int column = h * some.of + some.first + k;
        block_for(block, 1, [=](int) { to.take(row, column, sum); });
    }
};

template <device_backend Backend>
struct mixture_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    mixture_kernel(const binder<Backend>& b, int columns)
        : device_kernel<Backend>(b),
          slots(columns),
          shares(b.in(0)),
          d_shares(b.d_in(0)),
          out(b.out(0)),
          d_out(b.d_out(0)) {
        for (std::size_t k = 1; k < b.op().inputs.size(); ++k) {
            values.push_back(b.in(k));
            d_values.push_back(b.d_in(k));
        }
    }
    void forward(int t, int steps) override {
        for_values(values, t, [&](const some_values<real>& some) {
            device_rows<real> to(out, t);
            to.accumulate = some.first > 0;
            this->launch(steps, out.width, mixture_forward<real>{some, {shares, t}, to});
        });
    }
    void backward(int t, int steps) override {
        if (!d_out) return;
        if (d_shares)
            for_values(values, t, [&](const some_values<real>& some) {
                this->launch_blocks(steps, out.width / slots * some.count, 32,
                                    mixture_to_shares<real>{some, {d_out, t}, {d_shares, t}});
            });
        for_values(d_values, t, [&](const some_values<real>& some) {
            for (int k = 0; k < some.count; ++k)
                if (some.value[k].wanted())
                    return this->launch(steps, out.width, mixture_to_values<real>{some, {shares, t}, {d_out, t}});
        });
    }

private:
    template <class Launch>
    void for_values(const std::vector<operand<real>>& all, int t, Launch launch) {
        const int K = static_cast<int>(all.size());
        for (int first = 0; first < K; first += some_values<real>::most) {
            some_values<real> some;
            some.first = first, some.of = K, some.slots = slots;
            some.count = std::min(K - first, some_values<real>::most);
            for (int k = 0; k < some.count; ++k) some.value[k] = {all[static_cast<std::size_t>(first + k)], t};
            launch(some);
        }
    }
    int slots;
    operand<real> shares, d_shares, out, d_out;
    std::vector<operand<real>> values, d_values;
};

// --- fold ---

template <class Real, class Functor, int N>
struct fold_rows {
    Functor functor;
    device_rows<Real> in[N];
    bool single[N];
    int heads, width;

    ENGRAM_HD Real number(int i, std::ptrdiff_t row, int h, int n) const {
        return in[i].row(row)[i == 0 ? n : single[i] ? h : h * width + n];
    }
    /// What head h finds.
    template <std::size_t... I>
    ENGRAM_HD Real before(std::ptrdiff_t row, int h, int n, std::index_sequence<I...>) const {
        Real y = number(0, row, 0, n);
        for (int k = 0; k < h; ++k)
            y = static_cast<Real>(
                value(functor(dual<Real, 0>(y), dual<Real, 0>(number(static_cast<int>(I) + 1, row, k, n))...)));
        return y;
    }
    ENGRAM_HD Real before(std::ptrdiff_t row, int h, int n) const {
        return before(row, h, n, std::make_index_sequence<N - 1>{});
    }
    /// Slopes of what head h leaves, by what it finds and by its inputs.
    ENGRAM_HD void slopes_of(std::ptrdiff_t row, int h, int n, Real* slopes) const {
        find(row, h, n, slopes, std::make_index_sequence<N - 1>{});
    }

private:
    template <std::size_t... I>
    ENGRAM_HD void find(std::ptrdiff_t row, int h, int n, Real* slopes, std::index_sequence<I...> others) const {
        const auto result = functor(make_input<0>(before(row, h, n, others)),
                                    make_input<static_cast<int>(I) + 1>(number(static_cast<int>(I) + 1, row, h, n))...);
        slopes[0] = Real(derivative<0>(result));
        ((slopes[I + 1] = Real(derivative<static_cast<int>(I) + 1>(result))), ...);
    }
};

template <class Real, class Functor, int N>
struct fold_forward {
    fold_rows<Real, Functor, N> all;
    device_rows<Real> out;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / all.width;
        const int n = static_cast<int>(i % all.width);
        out.row(row)[n] = all.before(row, all.heads, n);
    }
};

/// Gradients of the start and of every input with N numbers a head.
template <class Real, class Functor, int N>
struct fold_backward {
    fold_rows<Real, Functor, N> all;
    device_rows<Real> d_out, d_in[N];
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / all.width;
        const int n = static_cast<int>(i % all.width);
        Real g = d_out.row(row)[n], slopes[N];
        for (int h = all.heads; h-- > 0;) {
            all.slopes_of(row, h, n, slopes);
            for (int k = 1; k < N; ++k)
                if (d_in[k].wanted() && !all.single[k]) d_in[k].take(row, h * all.width + n, slopes[k] * g);
            g *= slopes[0];
        }
        if (d_in[0].wanted()) d_in[0].take(row, n, g);
    }
};

/// A block a head: the gradient of input `k`, one number a head.
template <class Real, class Functor, int N>
struct fold_to_single {
    static constexpr int lanes = 32;
    fold_rows<Real, Functor, N> all;
    device_rows<Real> d_out, d_single;
    int k;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const int row = index / all.heads, h = index % all.heads;
        const fold_to_single self = *this;
        const Real sum = block_sum(block, all.width, [=](int n) {
            Real g = self.d_out.row(row)[n], slopes[N];
            for (int later = self.all.heads; later-- > h;) {
                self.all.slopes_of(row, later, n, slopes);
                g *= slopes[later > h ? 0 : self.k];
            }
            return g;
        });
        const device_rows<Real> to = d_single;
        block_for(block, 1, [=](int) { to.take(row, h, sum); });
    }
};

template <device_backend Backend, class Functor, int N>
struct fold_heads_kernel<Backend, Functor, N> final : device_kernel<Backend> {
    using real = typename Backend::real;

    fold_heads_kernel(const binder<Backend>& b, Functor f, int h)
        : device_kernel<Backend>(b), functor(f), heads(h), out(b.out(0)), d_out(b.d_out(0)) {
        for (int i = 0; i < N; ++i) {
            in[i] = b.in(static_cast<std::size_t>(i));
            d_in[i] = b.d_in(static_cast<std::size_t>(i));
            single[i] = i > 0 && in[i].width == heads && out.width > 1;
            whole |= d_in[i] && !single[i];
        }
    }
    void forward(int t, int steps) override {
        this->launch(steps, out.width, fold_forward<real, Functor, N>{rows(t), {out, t}});
    }
    void backward(int t, int steps) override {
        if (!d_out) return;
        fold_backward<real, Functor, N> body{rows(t), {d_out, t}, {}};
        for (int i = 0; i < N; ++i) body.d_in[i] = {d_in[i], t};
        if (whole) this->launch(steps, out.width, body);
        for (int k = 1; k < N; ++k)
            if (single[k] && d_in[k])
                this->launch_blocks(steps, heads, 32,
                                    fold_to_single<real, Functor, N>{rows(t), {d_out, t}, {d_in[k], t}, k});
    }

private:
    fold_rows<real, Functor, N> rows(int t) const {
        fold_rows<real, Functor, N> all{functor, {}, {}, heads, out.width};
        for (int i = 0; i < N; ++i) {
            all.in[i] = {in[i], t};
            all.single[i] = single[i];
        }
        return all;
    }
    Functor functor;
    int heads;
    operand<real> in[N], d_in[N], out, d_out;
    bool single[N], whole = false;
};

}  // namespace engram
