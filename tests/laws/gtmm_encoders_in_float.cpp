// The visual networks of the generative temporal models in float, at the paper's sizes.

#include "autoencoder.hpp"

using namespace autoencoding;
using backend = cpu<float>;

namespace {

/// One update at the paper's sizes: all is finite, every parameter moves, a small step along the gradient helps as
/// much as the gradient says.
void updates(const gtmm_vision::settings& s, image_shape image, int code) {
    autoencoder<gtmm_vision, backend> m(s, image, code);
    program<backend> p(m.g, m.store, {.steps = 2, .batch = 2, .gradients = true});
    draw_inputs(p, m.g);
    p.forward();
    CHECK(p.first_non_finite() == "");
    const double before = p.loss();
    p.backward();
    double slope = 0;
    for (const float d : p.gradient()) slope += double{d} * double{d};
    REQUIRE(std::isfinite(slope));
    for (const auto& e : m.store->entries()) {
        const auto part = p.gradient().subspan(static_cast<std::size_t>(e.offset), static_cast<std::size_t>(e.size()));
        INFO(e.name);
        CHECK(std::any_of(part.begin(), part.end(), [](float d) { return d != 0; }));
    }
    const double rate = 1e-3 * before / slope;
    {
        auto edit = m.store->edit();
        for (std::size_t i = 0; i < p.gradient().size(); ++i)
            edit.flat()[i] -= static_cast<float>(rate) * p.gradient()[i];
    }
    p.forward();
    CHECK((before - p.loss()) / (1e-3 * before) == doctest::Approx(1).epsilon(0.2));
}

}  // namespace

TEST_CASE("a row of a batch equals the row alone") {
    rows_stand_alone<gtmm_vision, backend>(network("inception", true), {28, 28, 1});
    rows_stand_alone<gtmm_vision, backend>(network("two_pathway", true), {32, 32, 3});
    rows_stand_alone<gtmm_vision, backend>(network("mlp", true), {28, 28, 1});
}

TEST_CASE("one update at the paper's sizes") {
    updates(network("inception"), {28, 28, 1}, 192);
    updates(network("inception"), {32, 32, 1}, 192);
    updates(network("two_pathway"), {32, 32, 3}, 1536);
}
