// Memory traces: the printed numbers, the laws of a memory, gradients, and plain loops.

#include "../controller/alone.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/memory_traces.hpp>

using namespace engram;
using oracle::numbers;

namespace {

/// Two traces of what is shown, side by side.
alone::stepped<cpu<double>> traces_of(const memory_traces::settings& s, int width) {
    alone::stepped<cpu<double>> v;
    v.trace(
        {{"x", width}},
        [&] {
            return memory_traces::begin(*v.g, s, {width, 1});
        },
        [&](const auto& in, auto& now) { return concatenate("context", memory_traces::read(s, {}, in, now).context); });
    return v;
}

}  // namespace

TEST_CASE("the printed numbers") {
    const std::vector<oracle::matrix> shown{{{0.5, -1}, {1.5, 0.25}, {-0.75, 2}}};
    const auto plain = alone::headline(traces_of({.longest = 0.9}, 2), shown);
    alone::printed(plain[0][2], {-0.75, 2, 0.1005, 0.1415});
    alone::printed(plain[1][2], {-0.75, 2, -0.075, 0.2});
    const auto corrected = alone::headline(traces_of({.longest = 0.9, .corrected = true}, 2), shown);
    alone::printed(corrected[0][2], {-0.75, 2, 0.370848708487, 0.522140221402});
}

TEST_CASE("sums over what was seen, and rates between the two that are asked for") {
    const memory_traces::settings s{.traces = 3, .shortest = 0.5, .longest = 0.98};
    CHECK(s.lambda(0) == doctest::Approx(0.5));
    CHECK(s.lambda(1) == doctest::Approx(0.9));
    CHECK(s.lambda(2) == doctest::Approx(0.98));
    CHECK(memory_traces::settings{.traces = 1}.lambda(0) == doctest::Approx(0.985));
    for (const bool corrected : {false, true}) {
        auto of = s;
        of.corrected = corrected;
        const auto v = traces_of(of, 4);
        // Every step since the beginning once more.
        alone::walks_alike(v, std::vector<numbers>{}, [&](const numbers& x, std::vector<numbers>& seen) {
            seen.push_back(x);
            numbers all;
            for (const double lambda : {0.5, 0.9, 0.98})
                for (std::size_t i = 0; i < 4; ++i) {
                    double sum = 0, weights = 0;
                    for (std::size_t t = 0; t < seen.size(); ++t) {
                        const double w = std::pow(lambda, static_cast<double>(seen.size() - 1 - t));
                        sum += w * seen[t][i];
                        weights += w;
                    }
                    all.push_back(corrected ? sum / weights : (1 - lambda) * sum);
                }
            return all;
        });
        alone::differentiates(v, 10);
    }
}

TEST_CASE("laws, in double and in float") {
    using model = agent<mlp, feed_forward, memory_traces, no_auxiliary, vtrace>;
    for (const bool corrected : {false, true}) {
        auto s = prepared::tiny<model>();
        s.memory.corrected = corrected;
        prepared::keeps_the_laws<model>(s);
        prepared::keeps_the_laws<model, cpu<float>>(s);
        prepared::differentiates<model>(s, prepared::task(), 50);
    }
}

TEST_CASE("bad settings are one sentence") {
    const memory_traces::settings s{.longest = 1};
    CHECK_THROWS_WITH(s.check(), "memory.shortest, memory.longest: expected 0 <= shortest <= longest < 1, got 0 and 1");
}
