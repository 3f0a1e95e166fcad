// The product controller x memory x auxiliary: feed-forward, and the memories with slots that stay in place.

#include <engram/controller/feed_forward.hpp>
#include <engram/learner/vtrace.hpp>

#include "product.hpp"

using namespace engram;

TEST_CASE("feed-forward under V-trace: introspection, NTM, LRU and DNC with every auxiliary loss") {
    const int models =
        prepared::updates_of_every_auxiliary_and<feed_forward, vtrace, introspection, ntm, lru_access, dnc>();
    CHECK(models == 12);
}
