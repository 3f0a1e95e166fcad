// The five generative temporal models at the paper preset: parameters within 1.5 % of the paper's Table 1 (both
// columns, facts 4.8), and a finite update at those sizes.

#include <doctest/doctest.h>

#include <cmath>

#include <engram/catalogue.hpp>
#include <engram/program/configuration.hpp>
#include <engram/program/presets.hpp>

using namespace engram;

namespace {

template <class Model>
void agrees(const std::string& name) {
    int found = 0;
    for (const auto& published : published_totals()) {
        if (published.ablation != name) continue;
        ++found;
        ablation_of<Model> model(name);
        configuration config(model);
        config.task = published.rotation ? "rotation" : "perfect_recall";
        config.apply_preset("paper");
        CAPTURE(config.task);
        const auto traced =
            model.trace(shape_of(describe_sequence(config.task, config.run.task)), 1, purpose::learning);
        const double off = static_cast<double>(traced.store->total() - published.parameters) /
                           static_cast<double>(published.parameters);
        MESSAGE(name, ", ", config.task, ": ", traced.store->total(), " parameters, ", 100 * off, " % off");
        CHECK(std::abs(off) < 0.015);

        program<cpu<float>> p(*traced.g, traced.store, {.steps = 3, .batch = 2, .gradients = true});
        philox random(1, 1);
        for (const char* input : {"observation", "reset"})
            for (auto& x : p.input(input)) x = random.uniform();
        for (std::size_t b = 0; b < 6; ++b) p.input("reset")[b] = b < 2;
        p.forward();
        CHECK(std::isfinite(p.loss()));
        p.backward();
        optimiser<float> adam(config.run.optimiser, *traced.store);
        const double norm = adam.update(*traced.store, p.gradient(), 0);
        CHECK(norm > 0);
        CHECK(std::isfinite(norm));
    }
    CHECK(found == 2);
}

}  // namespace

TEST_CASE("VRNN") {
    agrees<catalogue::vrnn>("vrnn");
}
TEST_CASE("introspective GTMM") {
    agrees<catalogue::introspective_gtmm>("introspective_gtmm");
}
TEST_CASE("NTM GTMM") {
    agrees<catalogue::ntm_gtmm>("ntm_gtmm");
}
TEST_CASE("LRU GTMM") {
    agrees<catalogue::lru_gtmm>("lru_gtmm");
}
TEST_CASE("DNC GTMM") {
    agrees<catalogue::dnc_gtmm>("dnc_gtmm");
}
