// The product controller x memory x auxiliary: feed-forward, and the memories of the Memory Recall Agent.

#include <engram/controller/feed_forward.hpp>
#include <engram/learner/vtrace.hpp>

#include "product.hpp"

using namespace engram;

TEST_CASE("feed-forward under V-trace: no memory and k-NN memories with every auxiliary loss") {
    const int models =
        prepared::updates_of_every_auxiliary_and<feed_forward, vtrace, no_memory, fifo_knn, fifo_knn_no_jumpy>();
    CHECK(models == 9);
}
