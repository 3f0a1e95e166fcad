#pragma once
// SPDX-License-Identifier: MIT

// S5 (Smith et al. 2022), with resets as in Lu et al. 2023: a linear differential equation, held over each step, in
// layers without a norm.
//
//   dt = exp(ln dt),  L = exp(Lambda dt),  s' = L s + (L - 1) / Lambda B x,  out as in gated_output.hpp with 2 Re(C s')
//
// N states stand for themselves and their conjugates. Re Lambda is cut at -1e-4, so that no state grows in an episode
// without end. At first Re Lambda = -1/2 and Im Lambda are the positive frequencies of HiPPO-LegS of 2N states, which
// solve sum over i < 2N of atan(w / (i + 1/2)) = pi (k + 1/2), k < N: eigenvectors of that matrix are unitary, so that
// a normal B and C in their coordinates are complex normal numbers, drawn as such. ln dt is uniform.
//
// A resettable linear recurrence (docs/decisions/0026): lift (L, (L - 1) / Lambda B x). Shapes: inputs [T, B, .], state
// [B, N] twice a layer (real and imaginary parts), output [T, B, H].

#include <cmath>
#include <numbers>

#include <engram/controller/gated_output.hpp>
#include <engram/controller/layered.hpp>
#include <engram/core/circular.hpp>

namespace engram {

/// L and (L - 1) / Lambda, which is a series where Lambda dt is small.
struct held_poles {
    constexpr auto operator()(auto lambda_re, auto lambda_im, auto log_dt) const {
        const auto re = min(lambda_re, -1e-4);
        const auto im = lambda_im;
        const auto dt = exp(log_dt);
        const auto a = re * dt;
        const auto b = im * dt;
        const auto length = exp(a);
        const auto pole_re = length * cosine(b);
        const auto pole_im = length * sine(b);
        const auto size = re * re + im * im;
        const auto far_re = ((pole_re - 1) * re + pole_im * im) / size;
        const auto far_im = (pole_im * re - (pole_re - 1) * im) / size;
        // 1 + z (1/2 + z (1/6 + z (1/24 + z (1/120 + z / 720)))), z = a + i b.
        auto near_re = 0 * b + (1 / 120.0 + a / 720), near_im = 0.0 * a + b / 720;
        for (const double term : {1 / 24.0, 1 / 6.0, 1 / 2.0, 1.0}) {
            const auto next = term + near_re * a - near_im * b;
            near_im = near_re * b + near_im * a;
            near_re = next;
        }
        const auto small = a * a + b * b < 0.0025;
        return std::tuple{pole_re, pole_im, select(small, dt * near_re, far_re), select(small, dt * near_im, far_im)};
    }
};
/// s' = L s + f b of complex numbers.
struct turn_and_hold {
    constexpr auto operator()(auto re, auto im, auto f_re, auto f_im, auto b_re, auto b_im, auto s_re,
                              auto s_im) const {
        return std::tuple{re * s_re - im * s_im + f_re * b_re - f_im * b_im,
                          re * s_im + im * s_re + f_re * b_im + f_im * b_re};
    }
};

struct s5_layer {
    struct settings {
        int hidden = 256;       // H, columns of the stream
        int layers = 4;         // one above the other
        int states = 128;       // N, complex numbers of a layer
        double dt_low = 0.001;  // dt at first: not below
        double dt_high = 0.1;   // and not above
        void check() const {
            internal::check_layers(hidden, layers);
            require(states > 0, "controller.states: expected at least one state, got ", states);
            require(dt_low > 0 && dt_low <= dt_high, "controller.dt_low, controller.dt_high: expected 0 < low <= high,",
                    " got ", dt_low, " and ", dt_high);
        }
    };
    struct weights {
        parameter lambda_re, lambda_im, log_dt;  // [1, N] each
        parameter input;                         // B [H, 2N], real parts first
        gated_output out;
    };
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (Var, real), (Var, imaginary));
    };

    /// The k-th positive frequency of HiPPO-LegS of 2N states, by bisection of the equation above.
    static double frequency(int k, int states) {
        double low = 0, high = 8.0 * states * states + 8;
        for (int i = 0; i < 100; ++i) {
            const double w = (low + high) / 2;
            double sum = 0;
            for (int n = 0; n < 2 * states; ++n) sum += std::atan(w / (n + 0.5));
            (sum < std::numbers::pi * (k + 0.5) ? low : high) = w;
        }
        return (low + high) / 2;
    }

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s) {
        using real = typename Backend::real;
        weights w;
        w.lambda_re = g.declare("lambda.real", 1, s.states, initial::constant<real>(-0.5));
        w.lambda_im =
            g.declare("lambda.imaginary", 1, s.states, [N = s.states](std::span<real> values, int, int, philox&) {
                for (int k = 0; k < N; ++k) values[static_cast<std::size_t>(k)] = static_cast<real>(frequency(k, N));
            });
        w.log_dt = g.declare("log_dt", 1, s.states, [s](std::span<real> values, int, int, philox& random) {
            for (real& v : values)
                v = static_cast<real>(std::log(s.dt_low) +
                                      static_cast<double>(random.uniform()) * std::log(s.dt_high / s.dt_low));
        });
        w.input = g.declare("input.weight", s.hidden, 2 * s.states, initial::fan_in<real>(std::sqrt(0.5)));
        w.out = gated_output::declare(g, s.states, s.hidden);
        return w;
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const settings& s) {
        return {g.own_state("real", s.states), g.own_state("imaginary", s.states)};
    }
    template <class Backend>
    static var<Backend> step(const settings&, const weights& w, const var<Backend>& x, state<var<Backend>>& now) {
        const auto [re, im, f_re, f_im] =
            map("poles", held_poles{}, learnt_row("lambda.real", x, w.lambda_re),
                learnt_row("lambda.imaginary", x, w.lambda_im), learnt_row("log_dt", x, w.log_dt));
        const auto [b_re, b_im] = split_columns<2>(affine("input", x, linear{w.input, {}}));
        const auto [s_re, s_im] =
            map("state", turn_and_hold{}, re, im, f_re, f_im, b_re, b_im, now.real, now.imaginary);
        now = {s_re, s_im};
        return w.out(x, x, s_re, s_im, 2);
    }
};

struct s5 : layered<s5_layer> {};

}  // namespace engram

ENGRAM_REFLECT(engram::s5_layer::settings, hidden, layers, states, dt_low, dt_high);

static_assert(engram::controller_policy<engram::s5>);
