// SPDX-License-Identifier: MIT

// Models whose products are of bfloat16 keep the laws bit by bit, as those in float do, and their numbers and gradients
// are near those in float.

#include "../model/prepare.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/impala_resnet.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>

using namespace prepared;

namespace {

using backend = cpu<float>;
using recalling = agent<mlp, lstm, fifo_knn, no_auxiliary, vtrace>;

/// Widths that fill SIMD registers and leave a rest; those of the inputs of the controller are odd.
template <class Agent>
traced_agent<backend> wide(product_precision products) {
    auto s = tiny<Agent>();
    if constexpr (requires { s.encoder.layers; }) s.encoder.layers = {40, 37};
    if constexpr (requires { s.encoder.blocks; }) {
        s.encoder.channels = {17};
        s.encoder.output = 37;
    }
    s.controller.hidden = 33;
    s.memory.key = 19;
    auto a = Agent::template trace<backend>(s, {{9, 7, 3}, 5}, 5);
    unsettle(a);
    a.store->set_products(products);
    return a;
}

std::string laws_of(const traced_agent<backend>& a) {
    std::string all;
    for (const std::uint64_t seed : {1u, 2u})
        for (const auto& sentence : broken_laws(a, seed)) all += sentence + "; ";
    return all;
}

/// h and all gradients of one update from fixed inputs.
struct update {
    std::vector<double> h, gradient;
};
update run(const traced_agent<backend>& a) {
    program<backend> p(*a.g, a.store, {.steps = 5, .batch = 3, .gradients = true, .replay = true}, {a.h});
    warm_up(p, a, 4, 0);
    fill_randomly(p, a, 6);
    p.forward();
    p.backward();
    const auto h = p.output(a.h);
    update all;
    for (int t = 0; t < 5; ++t)
        for (int b = 0; b < 3; ++b) all.h.insert(all.h.end(), h.at(t) + b * h.stride, h.at(t) + b * h.stride + h.width);
    all.gradient.assign(p.gradient().begin(), p.gradient().end());
    return all;
}

/// |a - b| / |b|, of vectors.
double apart(const std::vector<double>& a, const std::vector<double>& b) {
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        difference += (a[i] - b[i]) * (a[i] - b[i]);
        size += b[i] * b[i];
    }
    return std::sqrt(difference / size);
}

}  // namespace

TEST_CASE("the laws hold bit by bit") {
    CHECK(laws_of(wide<recalling>(product_precision::bfloat16)) == "");
    CHECK(laws_of(wide<recalling::with<impala_resnet>>(product_precision::bfloat16)) == "");
}

TEST_CASE("numbers and gradients are near those in float, and are others") {
    const auto rounded = run(wide<recalling>(product_precision::bfloat16)),
               full = run(wide<recalling>(product_precision::full));
    const double h = apart(rounded.h, full.h), gradient = apart(rounded.gradient, full.gradient);
    MESSAGE("apart: h ", h, ", gradients ", gradient);
    // A factor is rounded by at most 2^-8 and by a random part of it mostly; a gradient has passed some ten products.
    CHECK(h > 1e-5);
    CHECK(h < 0x1p-7);
    CHECK(gradient > 1e-5);
    CHECK(gradient < 4 * 0x1p-7);
}
