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

#include <string>

#include <engram/operations/row_operation.hpp>

namespace engram {

constexpr double least_spread = 1e-6;

struct quantile_huber_rows {
    using settings = double;  // kappa
    template <class Real>
    struct operands {
        input_row<Real> z;
        constant_row<Real> y;
        output_row<Real> loss, slope;
    };
    static ENGRAM_HD void forward(auto row, const auto& o, settings threshold) {
        using Real = decltype(o.y[0]);
        const int n = o.z.width;
        const Real kappa = static_cast<Real>(threshold), share = 1 / (kappa * static_cast<Real>(n));
        const Real loss = row.sum(n, [&](auto i) {
            const auto z = o.z[i];
            const auto tau = (Real(2) * row.number(i) + Real(1)) * (1 / (2 * static_cast<Real>(n)));
            auto sum = zero_of(z), pull = zero_of(z);
            for (int j = 0; j < n; ++j) {
                const auto d = o.y[j] - z, size = abs(d), inner = min(size, decltype(d)(kappa));
                const auto weight = select(d < zero_of(d), 1 - tau, tau);
                sum += weight * inner * (size - inner * Real(0.5));
                pull += weight * select(d < zero_of(d), -inner, inner);
            }
            o.slope.put(i, -share * pull);
            return share * sum;
        });
        row.once([&] { o.loss.put(0, loss); });
    }
    static ENGRAM_HD void backward(auto row, const auto& o, settings) {
        row.each(o.z.width, [&](auto i) { o.z.d.put(i, o.loss.d[0] * o.slope[i]); });
    }
};

/// [T, B, 1] of atoms z [T, B, N] and target atoms y [T, B, N].
template <class Backend>
var<Backend> quantile_huber_loss(const std::string& name, const var<Backend>& z, const var<Backend>& y,
                                 double kappa = 1) {
    require(z.width == y.width, z.owner->full_name(name), ": ", z.width, " atoms and ", y.width,
            " target atoms; expected as many of both");
    return add_rows<quantile_huber_rows>(*z.owner, name, {z, stop_gradient(y)}, kappa, {1, z.width})[0];
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

/// The mean of the atoms of each action, or the entropy of a normal distribution of their spread.
struct atom_summary_rows {
    struct settings {
        int groups;
        bool mean;
    };
    template <class Real>
    struct operands {
        constant_row<Real> z;
        output_row<Real> y;
    };
    static constexpr int pieces(settings s, int) { return s.groups; }
    static ENGRAM_HD void forward(auto row, const auto& o, settings s) {
        using Real = decltype(o.z[0]);
        const int n = o.z.width;
        const Real mean = row.mean(n, [&](auto i) { return o.z[i]; });
        if (s.mean) return row.once([&] { o.y.put(0, mean); });
        const Real squares = row.mean(n, [&](auto i) { return square(o.z[i] - mean); });
        const Real spread = sqrt(squares), least = static_cast<Real>(least_spread);
        row.once([&] { o.y.put(0, Real(1.4189385332046727) + log(spread < least ? least : spread)); });
    }
};

namespace internal {

template <class Backend>
var<Backend> summarise_atoms(const std::string& name, const var<Backend>& z, int groups, bool mean) {
    require(groups > 0 && z.width % groups == 0, z.owner->full_name(name), ": ", z.width,
            " columns do not divide into the atoms of ", groups, " actions");
    return stop_gradient(add_rows<atom_summary_rows>(*z.owner, name, {stop_gradient(z)}, {groups, mean}, {groups})[0]);
}

}  // namespace internal

/// [T, B, A], a constant.
template <class Backend>
var<Backend> mean_of_atoms(const std::string& name, const var<Backend>& z, int actions) {
    return internal::summarise_atoms(name, z, actions, true);
}

/// [T, B, 1] in nats, a constant, of atoms [T, B, N].
template <class Backend>
var<Backend> entropy_of_atoms(const std::string& name, const var<Backend>& z) {
    return internal::summarise_atoms(name, z, 1, false);
}

}  // namespace engram
