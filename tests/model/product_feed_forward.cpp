// The product controller x memory x auxiliary, its feed-forward half.

#include <engram/controller/feed_forward.hpp>
#include <engram/learner/vtrace.hpp>

#include "product.hpp"

TEST_CASE("feed-forward under V-trace with every memory and auxiliary loss") {
    CHECK(prepared::updates_of_every_memory_and_auxiliary<engram::feed_forward, engram::vtrace>() == 9);
}
