// The pool: every index once, all threads finished on return, the first failure thrown.

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <string>

#include <engram/core/error.hpp>
#include <engram/core/thread_pool.hpp>

using namespace engram;

TEST_CASE("run calls every index once and waits for all") {
    for (const int threads : {1, 2, 4}) {
        thread_pool pool(threads);
        CHECK(pool.size() == threads);
        std::array<std::atomic<int>, 4> calls{};
        for (int round = 0; round < 200; ++round) {
            pool.run([&](int i) { ++calls[static_cast<std::size_t>(i)]; });
            for (int i = 0; i < 4; ++i) REQUIRE(calls[static_cast<std::size_t>(i)] == (i < threads ? round + 1 : 0));
        }
    }
}

TEST_CASE("an exception of any call reaches the caller, the lowest index first, and the pool goes on") {
    thread_pool pool(3);
    CHECK_THROWS_WITH_AS(pool.run([](int i) {
        if (i > 0) fail("call ", i);
    }),
                         "call 1", error);
    std::atomic<int> calls = 0;
    pool.run([&](int) { ++calls; });
    CHECK(calls == 3);
}
