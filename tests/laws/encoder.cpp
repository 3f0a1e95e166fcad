// The laws of encoders of vectors, and of the decoders that reconstruction makes of them.

#include "../model/prepare.hpp"

#include <engram/auxiliary/reconstruction.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/no_memory.hpp>

using namespace prepared;

using identical = agent<identity, feed_forward, no_memory, reconstruction, vtrace>;
using perceptron = agent<mlp, feed_forward, no_memory, reconstruction, vtrace>;

TEST_CASE("identity keeps the laws and shows the observation as it is") {
    keeps_the_laws<identical>();
    differentiates<identical>(tiny<identical>(), task(), 90);
    const auto a = traced<identical, cpu<double>>();
    CHECK(a.g->info(a.x).name == "observation");
    for (const auto& e : a.store->entries()) CHECK(e.name.rfind("encoder", 0) == std::string::npos);
}

TEST_CASE("mlp keeps the laws") {
    keeps_the_laws<perceptron>();
    differentiates<perceptron>();
    auto s = tiny<perceptron>();
    s.encoder.centre = false;
    differentiates<perceptron>(s);
    s.encoder.subtract_mean = true;
    keeps_the_laws<perceptron>(s);
    differentiates<perceptron>(s);
}

TEST_CASE("mlp with a normalised first layer keeps the laws, and the layer has mean 0 and variance 1") {
    auto s = tiny<perceptron>();
    s.encoder.layers = {6, 4};
    s.encoder.normalise = true;
    keeps_the_laws<perceptron>(s);
    differentiates<perceptron>(s);
    s.encoder.layers = {6};
    const auto a = traced<perceptron, cpu<double>>(s);
    program<cpu<double>> p(*a.g, a.store, {.steps = 1, .batch = 1}, {a.x});
    fill_randomly(p, a, 1);
    p.forward();
    const auto x = p.output(a.x);
    double mean = 0, square = 0;
    for (int i = 0; i < 6; ++i) mean += x.data[i] / 6, square += x.data[i] * x.data[i] / 6;
    CHECK(std::abs(mean) < 1e-12);
    CHECK(square == doctest::Approx(1).epsilon(1e-3));  // 1e-5 is added to the variance
}

TEST_CASE("without the mean colour a brighter image is the same image") {
    for (const bool subtract : {false, true}) {
        auto s = tiny<perceptron>();
        s.encoder.subtract_mean = subtract;
        const auto a = perceptron::trace<cpu<double>>(s, task(), 3);
        program<cpu<double>> p(*a.g, a.store, {.steps = 1, .batch = 1}, {a.x});
        const auto see = [&](double more) {
            const auto pixels = p.input("observation");
            for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = 0.1 * static_cast<double>(i % 3) + more;
            p.forward();
            const auto x = p.output(a.x);
            return std::vector<double>(x.data, x.data + x.width);
        };
        const auto dark = see(0), bright = see(0.5);
        double apart = 0;
        for (std::size_t i = 0; i < dark.size(); ++i) apart = std::max(apart, std::abs(dark[i] - bright[i]));
        CHECK((apart < 1e-12) == subtract);
    }
}
