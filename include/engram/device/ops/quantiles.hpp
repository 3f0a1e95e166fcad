#pragma once
// SPDX-License-Identifier: MIT

// Distributions of returns as atoms, on a device (equations: graph/ops/quantiles.hpp): a thread an atom, or a row where
// one number comes of all atoms.

#include <engram/device/kernel.hpp>
#include <engram/graph/ops/quantiles.hpp>

namespace engram {

/// Atom i's share of the loss, and its slope.
template <class Real>
struct huber_of_atom {
    Real loss, slope;

    ENGRAM_HD huber_of_atom(const Real* z, const Real* y, int i, int n, Real kappa) : loss(0), slope(0) {
        const Real share = 1 / (kappa * static_cast<Real>(n));
        const Real tau = (2 * static_cast<Real>(i) + 1) / (2 * static_cast<Real>(n));
        Real sum = 0, pull = 0;
        for (int j = 0; j < n; ++j) {
            const Real d = y[j] - z[i], size = abs(d), inner = min(size, kappa), weight = d < 0 ? 1 - tau : tau;
            sum += weight * inner * (size - inner * Real(0.5));
            pull += weight * (d < 0 ? -inner : inner);
        }
        loss = share * sum;
        slope = -share * pull;
    }
};

template <class Real>
struct huber_rows {
    static constexpr int lanes = 32;
    device_rows<Real> z, y, out;
    Real kappa;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int row) const {
        const Real *const atoms = z.row(row), *const targets = y.row(row), threshold = kappa;
        const int n = z.width;
        const Real sum =
            block_sum(block, n, [=](int i) { return huber_of_atom<Real>(atoms, targets, i, n, threshold).loss; });
        Real* const to = out.row(row);
        block_for(block, 1, [=](int) { *to = sum; });
    }
};

template <class Real>
struct huber_gradient {
    device_rows<Real> z, y, d_out, d_z;
    Real kappa;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / z.width, atom = i % z.width;
        const huber_of_atom<Real> huber(z.row(row), y.row(row), static_cast<int>(atom), z.width, kappa);
        d_z.take(row, atom, *d_out.row(row) * huber.slope);
    }
};

template <device_backend Backend>
struct quantile_huber_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    quantile_huber_kernel(const binder<Backend>& b, double threshold)
        : device_kernel<Backend>(b),
          z(b.in(0)),
          d_z(b.d_in(0)),
          y(b.in(1)),
          out(b.out(0)),
          d_out(b.d_out(0)),
          kappa(static_cast<real>(threshold)) {}
    void forward(int t, int steps) override {
        this->launch_blocks(steps, 1, huber_rows<real>::lanes, huber_rows<real>{{z, t}, {y, t}, {out, t}, kappa});
    }
    void backward(int t, int steps) override {
        if (d_z) this->launch(steps, z.width, huber_gradient<real>{{z, t}, {y, t}, {d_out, t}, {d_z, t}, kappa});
    }
    operand<real> z, d_z, y, out, d_out;
    real kappa;
};

/// A thread a row and group of atoms: their mean, or the entropy of a normal distribution of their spread.
template <class Real>
struct summarise_rows {
    device_rows<Real> in, out;
    bool mean;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / out.width, group = i % out.width;
        const int n = in.width / out.width;
        const Real* const z = in.row(row) + group * n;
        double average = 0, squares = 0;
        for (int k = 0; k < n; ++k) average += static_cast<double>(z[k]) / n;
        if (!mean) {
            for (int k = 0; k < n; ++k) {
                const double d = static_cast<double>(z[k]) - average;
                squares += d * d / n;
            }
            const double spread = std::sqrt(squares);
            average = 1.4189385332046727 + std::log(spread < least_spread ? least_spread : spread);
        }
        out.row(row)[group] = static_cast<Real>(average);
    }
};

template <device_backend Backend>
struct atom_summary_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    atom_summary_kernel(const binder<Backend>& b, bool of_mean)
        : device_kernel<Backend>(b), in(b.in(0)), out(b.out(0)), mean(of_mean) {}
    void forward(int t, int steps) override {
        this->launch(steps, out.width, summarise_rows<real>{{in, t}, {out, t}, mean});
    }
    operand<real> in, out;
    bool mean;
};

}  // namespace engram
