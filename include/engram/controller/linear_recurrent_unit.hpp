#pragma once
// SPDX-License-Identifier: MIT

// LRU, the linear recurrent unit (Orvieto et al. 2023), in layers; not lru_access, which is the least recently used
// slot.
//
//   u = norm(x),  lambda = exp(-exp(nu) + i exp(theta)),  s' = lambda s + exp(gamma) B u,  out as in gated_output.hpp
//
// |lambda| < 1 whatever nu is. At first |lambda| is drawn between `radius_low` and `radius_high` so that lambda lies
// evenly in the ring, its angle below `phase`, and gamma = ln sqrt(1 - |lambda|^2) makes the state as large as its
// input; all three are learnt. Of B each part has variance 1/(2H).
//
// A resettable linear recurrence (docs/decisions/0026): lift (lambda, exp(gamma) B u). Shapes: inputs [T, B, .], state
// [B, N] twice a layer (real and imaginary parts), output [T, B, H].

#include <algorithm>
#include <cmath>

#include <engram/controller/gated_output.hpp>
#include <engram/controller/layered.hpp>
#include <engram/core/circular.hpp>

namespace engram {

struct unit_poles {
    constexpr auto operator()(auto nu, auto theta, auto gamma) const {
        const auto length = exp(-exp(nu));
        const auto angle = exp(theta);
        return std::tuple{length * cosine(angle), length * sine(angle), exp(gamma)};
    }
};
/// s' = lambda s + gain b of complex numbers, as two.
struct turn_and_add {
    constexpr auto operator()(auto re, auto im, auto gain, auto b_re, auto b_im, auto s_re, auto s_im) const {
        return std::tuple{re * s_re - im * s_im + gain * b_re, re * s_im + im * s_re + gain * b_im};
    }
};

struct linear_recurrent_unit_layer {
    struct settings {
        int hidden = 256;            // H, columns of the stream
        int layers = 2;              // one above the other
        int states = 128;            // N, complex numbers of a layer
        double radius_low = 0.9;     // |lambda| at first: not below
        double radius_high = 0.999;  // |lambda| at first: not above
        double phase = 6.28;         // angle of lambda at first: not above
        bool norm = true;            // layer normalisation ahead of each layer
        void check() const {
            internal::check_layers(hidden, layers);
            require(states > 0, "controller.states: expected at least one state, got ", states);
            require(radius_low >= 0 && radius_low < radius_high && radius_high <= 1,
                    "controller.radius_low, controller.radius_high: expected 0 <= low < high <= 1, got ", radius_low,
                    " and ", radius_high);
            require(phase > 0, "controller.phase: expected a positive angle, got ", phase);
        }
    };
    struct weights {
        layer_norm_weights norm;
        parameter nu, theta, gamma;  // [1, N] each
        parameter input;             // B [H, 2N], real parts first
        gated_output out;
    };
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (Var, real), (Var, imaginary));
    };

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s) {
        using real = typename Backend::real;
        weights w;
        if (s.norm) w.norm = declare_layer_norm(g, "norm", s.hidden);
        // A length of exactly one would not be of any nu.
        const auto lengths = [a = s.radius_low * s.radius_low, b = s.radius_high * s.radius_high](
                                 std::span<real> values, int, int, philox& random) {
            for (real& v : values) {
                const double at = a + (b - a) * static_cast<double>(random.uniform());
                v = static_cast<real>(std::log(-0.5 * std::log(std::clamp(at, 1e-12, 1 - 1e-9))));
            }
        };
        w.nu = g.declare("nu", 1, s.states, lengths);
        w.theta = g.declare("theta", 1, s.states, [phase = s.phase](std::span<real> values, int, int, philox& random) {
            // An angle of zero has no logarithm.
            for (real& v : values)
                v = static_cast<real>(std::log(phase * std::max(1e-6, static_cast<double>(random.uniform()))));
        });
        w.gamma =
            g.declare("gamma", 1, s.states, [store = &g.store(), nu = w.nu](std::span<real> values, int, int, philox&) {
                for (std::size_t i = 0; i < values.size(); ++i) {
                    const double length = std::exp(-std::exp(static_cast<double>(store->values(nu)[i])));
                    values[i] = static_cast<real>(0.5 * std::log(1 - length * length));
                }
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
    static var<Backend> step(const settings& s, const weights& w, const var<Backend>& x, state<var<Backend>>& now) {
        const auto u = s.norm ? layer_norm("norm", x, w.norm) : x;
        const auto [re, im, gain] = map("poles", unit_poles{}, learnt_row("nu", x, w.nu),
                                        learnt_row("theta", x, w.theta), learnt_row("gamma", x, w.gamma));
        const auto [b_re, b_im] = split_columns<2>(affine("input", u, linear{w.input, {}}));
        const auto [s_re, s_im] = map("state", turn_and_add{}, re, im, gain, b_re, b_im, now.real, now.imaginary);
        now = {s_re, s_im};
        return w.out(x, u, s_re, s_im, 1);
    }
};

struct linear_recurrent_unit : layered<linear_recurrent_unit_layer> {};

}  // namespace engram

ENGRAM_REFLECT(engram::linear_recurrent_unit_layer::settings, hidden, layers, states, radius_low, radius_high, phase,
               norm);

static_assert(engram::controller_policy<engram::linear_recurrent_unit>);
