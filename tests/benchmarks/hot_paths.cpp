// SPDX-License-Identifier: MIT

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "../../benchmarks/hot_paths.hpp"

using namespace benchmarks;

TEST_CASE("the table has every hot path, forward and backward") {
    std::set<std::string> names;
    for (const auto& p : hot_paths()) CHECK_MESSAGE(names.insert(p.name).second, p.name << " is there twice");
    for (const std::string twice :
         {"LSTM unroll", "LSTM cell", "attention", "dropout", "k-NN read", "content addressing", "DNC allocation",
          "DNC links", "introspection read", "CPC scores"})
        for (const char* sweep : {", forward", ", backward"}) CHECK_MESSAGE(names.count(twice + sweep) == 1, twice);
    for (const char* once :
         {"product", "product, weight gradient", "convolution, forward", "convolution, data gradient",
          "convolution, weight gradient", "V-trace", "GAE", "gradient norm", "Adam", "RMSProp", "ray caster"})
        CHECK_MESSAGE(names.count(once) == 1, once);
}

TEST_CASE("every path runs at small sizes along what it grows with, and is timed") {
    for (const auto& [name, grows, usual, make] : hot_paths()) {
        const std::string which = name;  // clang before 16 captures no binding
        CAPTURE(which);
        CHECK(grows.find_first_not_of("TBN") == std::string::npos);
        const auto counts = [&make = make](sizes z) {
            const path p = make(z);
            p.run();
            return std::pair{p.operations + p.bytes, p.shape};
        };
        const sizes small{12, 2, 16};
        const auto [work, shape] = counts(small);
        CHECK(work > 0);
        // A path that grows along one of them has more to do there, and says so.
        for (const char along : grows) {
            sizes more = small;
            (along == 'T' ? more.T : along == 'B' ? more.B : more.N) *= 2;
            const auto [larger, other] = counts(more);
            CHECK(larger > work);
            CHECK(other != shape);
        }
        const auto [seconds, product, copy] = measure(make(small), 0);
        CHECK(seconds > 0);
        CHECK(seconds < 1);
        CHECK(product >= 0);
        CHECK(copy >= 0);
        CHECK(product + copy > 0);
    }
}

TEST_CASE("a loop of twice the length takes about twice the time") {
    volatile float x = 1;
    const auto spin = [&](int rounds) {
        return least_seconds(
            [&] {
                for (int i = 0; i < rounds; ++i) x = x * 0.5f + 1;
            },
            0.01);
    };
    CHECK(spin(20000) / spin(10000) == doctest::Approx(2).epsilon(0.3));
}
