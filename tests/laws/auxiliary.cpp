// The laws of auxiliary losses: their gradients, through an encoder, an LSTM and a memory; and that none is none.

#include "../model/prepare.hpp"

#include <engram/auxiliary/cpc.hpp>
#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/auxiliary/reconstruction.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>

using namespace prepared;

using none = agent<mlp, lstm, fifo_knn, no_auxiliary, vtrace>;
using contrastive = none::with<cpc>;
using reconstructing = none::with<reconstruction>;

TEST_CASE("gradients") {
    differentiates<contrastive>();
    differentiates<reconstructing>();
    differentiates<none>();
}

TEST_CASE("an auxiliary loss changes no output and adds parameters of its own; the null one adds nothing") {
    using backend = cpu<double>;
    const auto a = none::trace<backend>(tiny<none>(), task(), 5);
    const auto run = [](const auto& model) {
        program<backend> p(*model.g, model.store, {.steps = 4, .batch = 2, .gradients = true}, {model.logits});
        warm_up(p, model, 1);
        p.input("reset")[5] = 1;
        p.forward();
        p.backward();
        const auto y = p.output(model.logits);
        return std::tuple{std::vector<double>(y.data, y.data + 24), p.losses(),
                          std::vector<double>(p.gradient().begin(), p.gradient().end())};
    };
    const auto of_none = run(a);
    const auto &logits = std::get<0>(of_none), &gradient = std::get<2>(of_none);
    const auto& losses = std::get<1>(of_none);
    CHECK(losses.size() == 3);
    const auto compare = [&](const auto& b, std::size_t parameters, std::size_t terms) {
        REQUIRE(b.store->entries().size() == a.store->entries().size() + parameters);
        for (std::size_t i = 0; i < b.store->entries().size(); ++i) {
            const auto& e = b.store->entries()[i];
            CAPTURE(e.name);
            if (i >= a.store->entries().size()) {
                CHECK(e.name.starts_with("auxiliary."));
                continue;
            }
            CHECK(e.name == a.store->entries()[i].name);
            CHECK(std::equal(b.store->flat().begin() + e.offset, b.store->flat().begin() + e.offset + e.size(),
                             a.store->flat().begin() + e.offset));
        }
        const auto [other_logits, other_losses, other_gradient] = run(b);
        CHECK(std::memcmp(logits.data(), other_logits.data(), sizeof(double) * 24) == 0);
        REQUIRE(other_losses.size() == losses.size() + terms);
        for (std::size_t i = 0; i < losses.size(); ++i) CHECK(losses[i] == other_losses[i]);
        for (std::size_t i = losses.size(); i < other_losses.size(); ++i) CHECK(other_losses[i].second > 0);
        // The encoder learns from it.
        CHECK_FALSE(
            std::equal(gradient.begin(), gradient.begin() + a.store->entries()[0].size(), other_gradient.begin()));
    };
    compare(contrastive::trace<backend>(tiny<contrastive>(), task(), 5), 1, 1);
    compare(reconstructing::trace<backend>(tiny<reconstructing>(), task(), 5), 8, 3);
}

TEST_CASE("losses of a batch are the sum of the losses of its rows") {
    // In double, where a sum in another order differs by 1e-15; 1e-12 is asked for.
    using backend = cpu<double>;
    const auto check = [](const auto& a) {
        program<backend> p(*a.g, a.store, {.steps = 5, .batch = 3, .gradients = true, .replay = true});
        warm_up(p, a, 1);
        p.input("reset")[7] = 1;
        const program_snapshot<backend> start(p, *a.g);
        std::vector<double> sum(p.losses().size());
        for (int b = 0; b < 3; ++b) {
            program<backend> one(*a.g, a.store, {.steps = 5, .gradients = true, .replay = true});
            start.restore(p);
            copy_row(p, b, one, 0, *a.g);
            one.forward();
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one.losses()[i].second;
        }
        start.restore(p);
        p.forward();
        for (std::size_t i = 0; i < sum.size(); ++i)
            CHECK(std::abs(sum[i] - p.losses()[i].second) < 1e-12 * std::max(1.0, std::abs(sum[i])));
    };
    check(traced<contrastive, backend>());
    check(traced<reconstructing, backend>());
}
