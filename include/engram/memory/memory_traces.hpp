#pragma once
// SPDX-License-Identifier: MIT

// Memory traces (Eberhard et al. 2025): running means of what was observed, at J rates that nobody learns.
//
//   z'_j = lambda_j z_j + (1 - lambda_j) x,  context = [z'_1, ..., z'_J]
//   corrected:  z'_j = lambda_j z_j + x,  l'_j = lambda_j l_j + 1,  context = [z'_1 / l'_1, ...]
//
// x is what is observed, as the encoder gives it (the paper has fixed codes); a read writes first, so that the context
// holds this step, and `write` has nothing to do. 1 / (1 - lambda) goes from 1 / (1 - shortest) to 1 / (1 - longest) in
// equal factors; one trace alone is the longest. A resettable linear recurrence (docs/decisions/0026): lift (lambda,
// (1 - lambda) x). Shapes: state and context [., J * X], and [., J] where it is corrected.

#include <cmath>
#include <string>
#include <vector>

#include <engram/model/slots.hpp>

namespace engram {

struct memory_traces {
    using role = memory_role;

    struct settings {
        int traces = 2;          // J
        double shortest = 0;     // lambda_1: 0 keeps the observation itself
        double longest = 0.985;  // lambda_J
        bool corrected = false;  // divided by what a constant would give by now
        void check() const {
            require(traces > 0, "memory.traces: expected at least one trace, got ", traces);
            require(shortest >= 0 && shortest <= longest && longest < 1,
                    "memory.shortest, memory.longest: expected 0 <= shortest <= longest < 1, got ", shortest, " and ",
                    longest);
        }
        double lambda(int j) const {
            const double at = traces > 1 ? static_cast<double>(j) / (traces - 1) : 1;
            return 1 - std::pow(1 - shortest, 1 - at) * std::pow(1 - longest, at);
        }
    };
    struct weights {};
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (std::vector<Var>, traces), (std::vector<Var>, lengths));
    };

    static int context_width(const settings& s, memory_sizes z) { return s.traces * z.observed; }

    template <class Backend>
    static weights declare(graph<Backend>&, const settings& s, memory_sizes) {
        s.check();
        return {};
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const settings& s, memory_sizes z) {
        state<var<Backend>> now;
        for (int j = 0; j < s.traces; ++j) {
            now.traces.push_back(g.own_state(message("trace.", j), z.observed));
            if (s.corrected) now.lengths.push_back(g.own_state(message("length.", j), 1));
        }
        return now;
    }
    template <class Var>
    static void forget(const weights&, const Var&, state<Var>&) {}
    template <class Var>
    static recalled<Var> read(const settings& s, const weights&, const std::vector<Var>& cue, state<Var>& now) {
        recalled<Var> found;
        for (std::size_t j = 0; j < now.traces.size(); ++j) {
            const double lambda = s.lambda(static_cast<int>(j));
            auto& z = now.traces[j];
            z = map(message("trace.", j), fade{lambda, s.corrected ? 1 : 1 - lambda}, z, cue[0]);
            if (s.corrected) {
                auto& l = now.lengths[j];
                l = map(message("length.", j), count{lambda}, l);
                found.context.push_back(map(message("corrected.", j), divide{}, z, l));
            } else {
                found.context.push_back(z);
            }
        }
        return found;
    }
    template <class Var>
    static void write(const settings&, const weights&, const std::vector<Var>&, state<Var>&) {}

    // Public: nvcc takes no functor whose name is private.
    struct fade {
        double keep, take;
        constexpr auto operator()(auto z, auto x) const { return keep * z + take * x; }
    };
    struct count {
        double keep;
        constexpr auto operator()(auto l) const { return keep * l + 1; }
    };
    struct divide {
        constexpr auto operator()(auto z, auto l) const { return z / l; }
    };
};

}  // namespace engram

ENGRAM_REFLECT(engram::memory_traces::settings, traces, shortest, longest, corrected);

static_assert(engram::memory_policy<engram::memory_traces>);
