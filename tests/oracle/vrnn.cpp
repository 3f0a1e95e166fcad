// The VRNN and its free energy, step by step (facts 4.1, 4.2, 4.3; errata G20, G24), the noise taken from the program.

#include "loops.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/variational.hpp>
#include <engram/memory/no_memory.hpp>

#include "../model/prepare.hpp"

using namespace engram;
using oracle::numbers;
using oracle::operator+;
using backend = cpu<double>;

namespace {

constexpr int T = 5, B = 2, H = 6, Z = 3, P = 16, A = 2;

struct beliefs {
    numbers mean, sigma;
};

beliefs moments(const parameters<double>& store, const std::string& name, const numbers& in) {
    const numbers y = oracle::affine(store, "learner." + name,
                                     oracle::relu(oracle::affine(store, "learner." + name + ".layers.0", in)));
    beliefs b;
    for (std::size_t i = 0; i < Z; ++i) {
        b.mean.push_back(y[i]);
        b.sigma.push_back(std::log1p(std::exp(y[Z + i] + static_cast<double>(0.54f))) + static_cast<double>(1e-4f));
    }
    return b;
}

}  // namespace

TEST_CASE("VRNN: divergence, likelihood, frame and loss are those of plain loops") {
    using vrnn = agent<mlp, lstm, no_memory, no_auxiliary, variational>;
    vrnn::settings s;
    s.encoder.layers = {7};
    s.controller.hidden = H;
    s.learner.latent = Z;
    s.learner.hidden = 5;
    s.wiring.features = 4;
    for (const bool bernoulli : {true, false}) {
        s.learner.likelihood = bernoulli ? decltype(s.learner.likelihood)("bernoulli") : "gaussian";
        s.learner.sigma = 0.3;
        auto a = vrnn::trace<backend>(s, {{4, 4, 1}, A}, 5);
        prepared::unsettle(a, 0.3);
        const auto& g = *a.g;
        var<backend> noise;
        for (std::size_t v = 0; v < g.values().size(); ++v)
            if (g.values()[v].name == "learner.noise") noise.value = static_cast<int>(v), noise.width = Z;
        REQUIRE(noise.value >= 0);
        program<backend> p(g, a.store, {.steps = T, .batch = B, .gradients = true},
                           {noise, a.generative->divergence, a.generative->log_likelihood, a.generative->frame});
        fill_randomly(p, a, 8);
        p.input("reset")[static_cast<std::size_t>(3 * B)] = 1;
        p.forward();

        const auto& store = *a.store;
        double total = 0;
        for (int b = 0; b < B; ++b) {
            numbers h(H), cell(H);
            for (int t = 0; t < T; ++t) {
                if (b == 0 && t == 3) h.assign(H, 0), cell.assign(H, 0);
                const numbers frame = oracle::row(p.input("observation"), P, B, t, b);
                const numbers condition = oracle::row(p.input("condition"), A, B, t, b);
                numbers centred;
                for (const double v : frame) centred.push_back(2 * v - 1);
                const numbers x = oracle::relu(oracle::affine(store, "encoder.layers.0", centred));
                const numbers context = h + condition;
                const beliefs before = moments(store, "prior", context),
                              after = moments(store, "posterior", context + x);
                const numbers drawn = oracle::row(p.output(noise), t, b);
                numbers z;
                double divergence = 0;
                for (std::size_t i = 0; i < Z; ++i) {
                    z.push_back(after.mean[i] + after.sigma[i] * drawn[i]);
                    const double gap = after.mean[i] - before.mean[i], v = before.sigma[i] * before.sigma[i];
                    divergence += std::log(before.sigma[i] / after.sigma[i]) +
                                  (after.sigma[i] * after.sigma[i] + gap * gap) / (2 * v) - 0.5;
                }
                const numbers y = oracle::affine(store, "decoder.pixels", z + context);
                double log_p = 0;
                numbers expected;
                for (std::size_t i = 0; i < P; ++i) {
                    const double m = bernoulli ? oracle::sigmoid(y[i]) : y[i];
                    expected.push_back(m);
                    log_p += bernoulli ? frame[i] * std::log(m) + (1 - frame[i]) * std::log(1 - m)
                                       : -0.5 * std::pow((frame[i] - m) / 0.3, 2) - std::log(0.3) -
                                             0.5 * std::log(2 * 3.14159265358979323846);
                }
                // Constants of the functors are floats, so the Gaussian agrees to float's precision only.
                const double near = bernoulli ? 1e-9 : 1e-6;
                CHECK(oracle::row(p.output(a.generative->divergence), t, b)[0] ==
                      doctest::Approx(divergence).epsilon(1e-9));
                CHECK(oracle::row(p.output(a.generative->log_likelihood), t, b)[0] ==
                      doctest::Approx(log_p).epsilon(near));
                oracle::check_near(oracle::row(p.output(a.generative->frame), t, b), expected);
                total += divergence - log_p;
                const auto feature = [&](const char* name, const numbers& v) {
                    return oracle::relu(oracle::affine(store, name, v));
                };
                h = oracle::lstm(store, feature("x_features", x) + feature("z_features", z) + condition, h, cell);
            }
        }
        CHECK(p.loss() == doctest::Approx(total / (T * B)).epsilon(1e-6));
    }
}
