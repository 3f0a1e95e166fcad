#pragma once
// SPDX-License-Identifier: MIT

// Operations on a distribution given by N atoms, of every action: z [T, B, A * N], the atoms of action a in columns
// [a N, (a + 1) N) (Dabney et al. 2018, facts 3.8, errata U12, U29).
//
//   mean_of_atoms         Q(a) = mean_i z_i(a)                                                       [T, B, A]
//   atoms_of              the N atoms of the action that was taken                                   [T, B, N]
//   entropy_of_atoms      s = ln(sigma sqrt(2 pi e)), sigma^2 = mean_i (z_i - mean z)^2              [T, B, 1]
//   quantile_huber_loss   sum_i mean_j |tau_i - 1[d_ij < 0]| Huber(d_ij) / kappa,  d_ij = y_j - z_i,
//                         tau_i = (2 i - 1) / (2 N),  Huber(d) = d^2 / 2 for |d| <= kappa, else kappa (|d| - kappa / 2)
//
// s is the entropy in nats of a normal distribution of that spread, with sigma at least `least_spread`: a distribution
// in one point has no finite one. Targets y [T, B, N] are constants.

#include <algorithm>
#include <cmath>
#include <vector>

#include <engram/core/pack.hpp>
#include <engram/operations/row_operation.hpp>

namespace engram {

constexpr double least_spread = 1e-6;

/// The loss of one row, and its gradient towards every z_i where `slope` is not null. O(N^2), in packs: sums are in one
/// order whatever the number of rows.
template <class Real>
Real quantile_huber(const Real* z, const Real* y, int n, Real kappa, Real* slope) {
    constexpr int width = pack<Real>::width;
    const Real share = 1 / (kappa * static_cast<Real>(n));
    Real total = 0;
    for (int i = 0; i < n; ++i) {
        const Real tau = (2 * static_cast<Real>(i) + 1) / (2 * static_cast<Real>(n)), at = z[i];
        const auto add = [&](auto target, auto& sum, auto& pull) {
            const auto d = target - at, size = abs(d), inner = min(size, kappa);
            const auto weight = select(d < 0, 1 - tau, tau);
            sum = sum + weight * inner * (size - inner * Real(0.5));
            pull = pull + weight * select(d < 0, -inner, inner);
        };
        pack<Real> sums(Real(0)), pulls(Real(0));
        int j = 0;
        for (; j + width <= n; j += width) add(pack<Real>::load(y + j), sums, pulls);
        Real sum = sums.sum(), pull = pulls.sum();
        for (; j < n; ++j) add(y[j], sum, pull);
        total += share * sum;
        if (slope) slope[i] = -share * pull;
    }
    return total;
}

/// ln(sigma sqrt(2 pi e)) of n atoms, in nats.
template <class Real>
Real entropy_of(const Real* z, int n) {
    double mean = 0, squares = 0;
    for (int i = 0; i < n; ++i) mean += static_cast<double>(z[i]) / n;
    for (int i = 0; i < n; ++i) {
        const double d = static_cast<double>(z[i]) - mean;
        squares += d * d / n;
    }
    const double spread = std::sqrt(squares);
    // Not std::max, which would turn NaN into the bound and hide it.
    return static_cast<Real>(1.4189385332046727 + std::log(spread < least_spread ? least_spread : spread));
}

template <class Backend>
struct quantile_huber_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    quantile_huber_kernel(const binder<Backend>& b, double threshold)
        : batch(b.batch()),
          z(b.in(0)),
          d_z(b.d_in(0)),
          y(b.in(1)),
          out(b.out(0)),
          d_out(b.d_out(0)),
          kappa(static_cast<real>(threshold)),
          slope(d_z ? static_cast<std::size_t>(b.steps() * batch * z.width) : 0) {}
    void forward(int t, int steps) override {
        for (int r = 0; r < steps * batch; ++r)
            out.at(t)[r * out.stride] = quantile_huber(z.at(t) + r * z.stride, y.at(t) + r * y.stride, z.width, kappa,
                                                       slope.empty() ? nullptr : row(t, r));
    }
    void backward(int t, int steps) override {
        if (!d_z) return;
        for (int r = 0; r < steps * batch; ++r) {
            const real by = d_out.at(t)[r * d_out.stride];
            real* d = d_z.at(t) + r * d_z.stride;
            const real* s = row(t, r);
            for (int i = 0; i < z.width; ++i) d[i] = d_z.accumulate ? d[i] + by * s[i] : by * s[i];
        }
    }

private:
    real* row(int t, int r) { return slope.data() + (std::ptrdiff_t{t} * batch + r) * z.width; }

    int batch;
    operand<real> z, d_z, y, out, d_out;
    real kappa;
    std::vector<real> slope;
};

/// [T, B, 1] of atoms z [T, B, N] and target atoms y [T, B, N].
template <class Backend>
var<Backend> quantile_huber_loss(const std::string& name, const var<Backend>& z, const var<Backend>& y,
                                 double kappa = 1) {
    require(z.width == y.width, z.owner->full_name(name), ": ", z.width, " atoms and ", y.width,
            " target atoms; expected as many of both");
    auto op = make_operation<quantile_huber_kernel>(*z.owner, name, {z, stop_gradient(y)}, kappa);
    const extent rows = z.owner->common_rows(op->inputs);
    return z.owner->add(std::move(op), {1}, rows)[0];
}

struct atoms_rows {
    using settings = no_settings;
    static constexpr const char* index = "action";
    template <class Real>
    struct operands {
        input_row<Real> z;
        constant_row<Real> action;
        output_row<Real> y;
    };
    static ENGRAM_HD void forward(auto row, const auto& o, settings) {
        const int n = o.y.width, at = row.index(o.action[0], o.z.width / n);
        row.each(n, [&](auto i) { o.y.put(i, at < 0 ? zero_of(o.z[i]) : o.z[i + at * n]); });
    }
    static ENGRAM_HD void backward(auto row, const auto& o, settings) {
        const int n = o.y.width;
        for (int a = 0; a * n < o.z.width; ++a) {
            const bool taken = static_cast<int>(o.action[0]) == a;
            row.each(n, [&](auto i) { o.z.d.put(i + a * n, taken ? o.y.d[i] : zero_of(o.y.d[i])); });
        }
    }
};

/// [T, B, N]: the atoms of the action [T, B, 1] among z [T, B, A * N].
template <class Backend>
var<Backend> atoms_of(const std::string& name, const var<Backend>& z, const var<Backend>& action, int atoms) {
    graph<Backend>& g = *z.owner;
    require(action.width == 1, g.full_name(name), ": the action must be one column, not ", action.width);
    require(atoms > 0 && z.width % atoms == 0, g.full_name(name), ": ", z.width,
            " columns are not a number of actions times ", atoms, " atoms");
    return add_rows<atoms_rows>(g, name, {z, stop_gradient(action)}, {}, {atoms})[0];
}

template <class Backend>
struct atom_summary_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    atom_summary_kernel(const binder<Backend>& b, bool of_mean)
        : batch(b.batch()), in(b.in(0)), out(b.out(0)), mean(of_mean) {}
    void forward(int t, int steps) override {
        const int n = in.width / out.width;
        for (int r = 0; r < steps * batch; ++r)
            for (int a = 0; a < out.width; ++a) {
                const real* z = in.at(t) + r * in.stride + a * n;
                real sum = 0;
                for (int i = 0; i < n; ++i) sum += z[i];
                out.at(t)[r * out.stride + a] = mean ? sum / static_cast<real>(n) : entropy_of(z, n);
            }
    }
    int batch;
    operand<real> in, out;
    bool mean;
};

namespace detail {

template <class Backend>
var<Backend> summarise_atoms(const std::string& name, const var<Backend>& z, int groups, bool mean) {
    require(groups > 0 && z.width % groups == 0, z.owner->full_name(name), ": ", z.width,
            " columns do not divide into the atoms of ", groups, " actions");
    auto op = make_operation<atom_summary_kernel>(*z.owner, name, {stop_gradient(z)}, mean);
    const extent rows = z.owner->common_rows(op->inputs);
    return stop_gradient(z.owner->add(std::move(op), {groups}, rows)[0]);
}

}  // namespace detail

/// [T, B, A], a constant.
template <class Backend>
var<Backend> mean_of_atoms(const std::string& name, const var<Backend>& z, int actions) {
    return detail::summarise_atoms(name, z, actions, true);
}

/// [T, B, 1] in nats, a constant, of atoms [T, B, N].
template <class Backend>
var<Backend> entropy_of_atoms(const std::string& name, const var<Backend>& z) {
    return detail::summarise_atoms(name, z, 1, false);
}

}  // namespace engram
