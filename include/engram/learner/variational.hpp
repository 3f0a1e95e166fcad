#pragma once
// SPDX-License-Identifier: MIT

// Variational learning of a generative temporal model (facts 4.1, errata G12, G14, G20): prior and posterior of each
// step's latent are diagonal Gaussians computed from the context C_t, the posterior sees the frame as well.
//
//   p_t = N(f_z(C_t)),  q_t = N(f_q(C_t, enc(x_t))),  z_t = mean + sigma * noise
//   sigma = softplus(raw + 0.54) + 1e-4   (ours: about 1 at raw = 0, and never 0; the paper's networks give log sigma)
//   minimised:  -F = sum_t [ KL(q_t || p_t) - log p(x_t | z_t, C_t) ]   in nats, the mean over sequences
//   KL a dimension = ln(sigma_p / sigma_q) + (sigma_q^2 + (mean_q - mean_p)^2) / (2 sigma_p^2) - 1/2
//
// f_z and f_q are linear maps behind one ReLU layer of `hidden` units (0: linear, as the paper's figure of the digit
// network). Frames are Bernoulli (logits) or Gaussian with a fixed sigma. Shapes: C [T, B, C], x [T, B, X], z [T, B,
// Z].

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include <engram/core/choice.hpp>
#include <engram/encoder/layers.hpp>
#include <engram/model/slots.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/noise.hpp>
#include <engram/operations/softmax.hpp>

namespace engram {

/// A standard deviation from any number (ours): about 1 at zero, never below 1e-4.
struct positive_deviation {
    constexpr auto operator()(auto raw) const { return softplus(raw + 0.54f) + 1e-4f; }
};
struct shift_and_scale {
    constexpr auto operator()(auto mean, auto sigma, auto noise) const { return mean + sigma * noise; }
};
struct gaussian_divergence {
    constexpr auto operator()(auto prior_mean, auto prior_sigma, auto mean, auto sigma) const {
        auto inverse = 1 / prior_sigma;
        auto ratio = sigma * inverse;
        auto gap = (mean - prior_mean) * inverse;
        return 0.5f * (square(ratio) + square(gap) - 1) - log(ratio);
    }
};
/// log p of a pixel in [0, 1] under a Bernoulli with this logit.
struct bernoulli_log_likelihood {
    constexpr auto operator()(auto logit, auto pixel) const { return pixel * logit - softplus(logit); }
};
/// log p of a pixel under a Gaussian with this mean and a fixed deviation.
struct gaussian_log_likelihood {
    double sigma;
    constexpr auto operator()(auto mean, auto pixel) const {
        return square(pixel - mean) * static_cast<float>(-0.5 / (sigma * sigma)) -
               static_cast<float>(std::log(sigma) + 0.918938533204672742);
    }
};
struct per_sequence {
    constexpr auto operator()(auto divergence, auto log_likelihood) const { return divergence - log_likelihood; }
};

struct variational {
    using role = learner_role;
    using wiring = controls_reads_infers_writes;
    static constexpr bool learns_sequences = true;

    struct settings {
        int latent = 32;                                           // Z, dimensions
        int hidden = 128;                                          // units before prior and posterior; 0: linear maps
        choice<"bernoulli", "gaussian"> likelihood = "bernoulli";  // or gaussian
        double sigma = 0.1;                                        // of the Gaussian likelihood
        void check() const {
            require(latent > 0, "learner.latent: expected at least one dimension, got ", latent);
            require(hidden >= 0, "learner.hidden: expected zero (no hidden layer) or more units, got ", hidden);
            require(sigma > 0, "learner.sigma: expected a positive deviation, got ", sigma);
        }
    };
    struct weights {
        std::vector<linear> prior_layers, posterior_layers;
        linear prior, posterior;
    };
    template <class Var>
    struct beliefs {
        Var prior_mean, prior_sigma, mean, sigma;
        Var prior_latent, latent;  // a draw from each, with the same noise
    };

    static int latent_width(const settings& s) { return s.latent; }

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, int context, int seen) {
        const std::vector<int> hidden(s.hidden > 0 ? 1 : 0, s.hidden);
        const auto head = [&](const char* name, int inputs) {
            return g.declare_linear(name, s.hidden > 0 ? s.hidden : inputs, 2 * s.latent);
        };
        weights w;
        w.prior_layers = declare_layers(g, "prior.layers", context, hidden);
        w.prior = head("prior", context);
        w.posterior_layers = declare_layers(g, "posterior.layers", context + seen, hidden);
        w.posterior = head("posterior", context + seen);
        return w;
    }

    /// Beliefs about a step of which `seen` was seen, in a context; inside a scan's body.
    template <class Backend>
    static beliefs<var<Backend>> infer(graph<Backend>& g, const settings& s, const weights& w,
                                       const std::vector<var<Backend>>& context, const var<Backend>& seen,
                                       std::uint64_t seed) {
        const auto moments = [&](const std::string& name, std::vector<var<Backend>> inputs,
                                 const std::vector<linear>& layers, linear head) {
            for (std::size_t i = 0; i < layers.size(); ++i) {
                const auto layer = message(name, ".layers.", i);
                inputs = {map(layer + ".relu", rectify{}, affine(layer, inputs, layers[i]))};
            }
            const auto parts = split_columns<2>(affine(name, inputs, head));
            return std::pair(parts[0], map(name + ".sigma", positive_deviation{}, parts[1]));
        };
        const auto noise = normal_noise(g, "noise", s.latent, seed);
        const auto draw = [&](const char* name, const auto& mean, const auto& sigma) {
            return map(name, shift_and_scale{}, mean, sigma, noise);
        };
        beliefs<var<Backend>> b;
        std::tie(b.prior_mean, b.prior_sigma) = moments("prior", context, w.prior_layers, w.prior);
        auto all = context;
        all.push_back(seen);
        std::tie(b.mean, b.sigma) = moments("posterior", all, w.posterior_layers, w.posterior);
        b.prior_latent = draw("prior.latent", b.prior_mean, b.prior_sigma);
        b.latent = draw("latent", b.mean, b.sigma);
        return b;
    }
    /// [T, B, 1] in nats.
    template <class Var>
    static Var divergence(const beliefs<Var>& b) {
        return sum_columns("divergence", map("divergence.dimensions", gaussian_divergence{}, b.prior_mean,
                                             b.prior_sigma, b.mean, b.sigma));
    }
    /// log p(frame) [T, B, 1] in nats, from the decoder's output [T, B, pixels].
    template <class Var>
    static Var log_likelihood(const settings& s, const Var& decoded, const Var& frame) {
        return sum_columns("log_likelihood",
                           s.likelihood == "bernoulli"
                               ? map("log_likelihood.pixels", bernoulli_log_likelihood{}, decoded, frame)
                               : map("log_likelihood.pixels", gaussian_log_likelihood{s.sigma}, decoded, frame));
    }
    template <class Var>
    static Var expected_frame(const settings& s, const Var& decoded) {
        return s.likelihood == "bernoulli" ? map("frame", squash{}, decoded) : decoded;
    }
    /// The negative free energy a step; the sum over steps is what the paper plots.
    template <class Var>
    static void add_losses(const settings&, const Var& divergence, const Var& log_likelihood) {
        add_loss("free_energy", map("free_energy", per_sequence{}, divergence, log_likelihood), 1, reduction::mean);
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::variational::settings, latent, hidden, likelihood, sigma);

static_assert(engram::learner_policy<engram::variational>);
