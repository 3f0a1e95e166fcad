#pragma once
// SPDX-License-Identifier: MIT

// Fast and forgetful memory, FFM (Morad et al. 2023): m traces, each of which fades at c phases.
//
//   [a, b, o, r] = inputs W + w,  u = a * sigma(b)                                            m, m, H and H columns
//   S'_jk = gamma_jk S_jk + u_j,  gamma_jk = exp(-|alpha_j| + i omega_k)                        complex, m x c
//   z = [Re S', Im S'] W_z + w_z,  h = norm(z) sigma(o) + r (1 - sigma(o))
//
// norm has no gain and no bias. At first the slowest trace has faded to 1 % after `longest` steps and the fastest
// halves in a step (e^-0.67 in the paper's code), evenly between; the phases have periods from 1 to `longest`. Of the
// two published outputs this is that of the authors' PyTorch code, and of the two orders of parts all real ones come
// first.
//
// A resettable linear recurrence (docs/decisions/0026): lift (gamma, u). Nothing divides by products of gamma, so no
// alpha is too large. Shapes: inputs [T, B, .], state [B, m c] twice (real and imaginary parts), output h [T, B, H].

#include <cmath>
#include <numbers>
#include <vector>

#include <engram/core/circular.hpp>
#include <engram/model/slots.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/learnt_row.hpp>
#include <engram/operations/normalise.hpp>
#include <engram/operations/outer.hpp>

namespace engram {

struct fading_phases {
    constexpr auto operator()(auto alpha, auto omega) const {
        const auto length = exp(-abs(alpha));
        return std::tuple{length * cosine(omega), length * sine(omega)};
    }
};
struct fade_and_add {
    constexpr auto operator()(auto re, auto im, auto a, auto b, auto s_re, auto s_im) const {
        return std::tuple{re * s_re - im * s_im + a * logistic(b), re * s_im + im * s_re};
    }
};
struct mix_by_gate {
    constexpr auto operator()(auto z, auto o, auto r) const {
        const auto open = logistic(o);
        return z * open + r * (1 - open);
    }
};

struct fast_and_forgetful {
    using role = controller_role;

    struct settings {
        int hidden = 256;    // H, columns of h
        int traces = 32;     // m
        int phases = 4;      // c, of every trace
        int longest = 1024;  // steps after which the slowest trace has faded to 1 %, and the longest period
        void check() const {
            require(hidden > 0, "controller.hidden: expected a positive width, got ", hidden);
            require(traces > 0, "controller.traces: expected at least one trace, got ", traces);
            require(phases > 0, "controller.phases: expected at least one phase, got ", phases);
            require(longest > 1, "controller.longest: expected more than one step, got ", longest);
        }
    };
    struct weights {
        linear input, mix;
        parameter alpha, omega;  // [1, m], [1, c]
    };
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (Var, real), (Var, imaginary), (Var, hidden));
    };

    static int width(const settings& s) { return s.hidden; }

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, int inputs) {
        using real = typename Backend::real;
        s.check();
        // Evenly from `first` to `last`.
        const auto along = [](double first, double last, auto of) -> initialiser<real> {
            return [=](std::span<real> values, int, int, philox&) {
                for (std::size_t i = 0; i < values.size(); ++i) {
                    const double at = values.size() > 1 ? static_cast<double>(i) / double(values.size() - 1) : 1;
                    values[i] = static_cast<real>(of(first + at * (last - first)));
                }
            };
        };
        const double slowest = std::log(100.0) / s.longest;
        weights w;
        w.input = g.declare_linear("input", inputs, 2 * s.traces + 2 * s.hidden);
        w.alpha = g.declare("alpha", 1, s.traces, along(0.67, slowest, [](double x) { return x; }));
        w.omega = g.declare("omega", 1, s.phases,
                            along(1, s.longest, [](double period) { return 2 * std::numbers::pi / period; }));
        w.mix = g.declare_linear("mix", 2 * s.traces * s.phases, s.hidden);
        return w;
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const settings& s) {
        return {g.own_state("real", s.traces * s.phases), g.own_state("imaginary", s.traces * s.phases),
                g.state("hidden", s.hidden)};
    }
    /// What came out one step before: h_{t-1}, which the recurrence does not read.
    template <class Var>
    static Var held(const state<Var>& s) {
        return s.hidden;
    }
    template <class Backend>
    static var<Backend> step(const settings& s, const weights& w, const std::vector<var<Backend>>& inputs,
                             state<var<Backend>>& now) {
        const int m = s.traces, c = s.phases, H = s.hidden;
        const auto x = affine("input", inputs, w.input);
        const auto alpha = learnt_row("alpha", inputs[0], w.alpha), omega = learnt_row("omega", inputs[0], w.omega);
        const auto every = outer("omega", map("one", always_one{}, alpha), omega);
        const auto [re, im] = map("gamma", fading_phases{}, alpha.spread(c), every);
        const auto [s_re, s_im] = map("traces", fade_and_add{}, re, im, x.columns(0, m).spread(c),
                                      x.columns(m, m).spread(c), now.real, now.imaginary);
        const auto z = normalise("norm", affine("mix", {s_re, s_im}, w.mix), H);
        const auto h = map("hidden", mix_by_gate{}, z, x.columns(2 * m, H), x.columns(2 * m + H, H));
        now = {s_re, s_im, h};
        return h;
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::fast_and_forgetful::settings, hidden, traces, phases, longest);

static_assert(engram::controller_policy<engram::fast_and_forgetful>);
