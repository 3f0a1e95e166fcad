// The product controller x memory under the variational learner, and every memory under the supervised one.

#include <engram/controller/feed_forward.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/learner/variational.hpp>

#include "product.hpp"

using namespace engram;

TEST_CASE("LSTM under the variational learner with every memory") {
    const int models = prepared::updates_of_every<engram::lstm, variational, no_memory, fifo_knn, fifo_knn_no_jumpy,
                                                  introspection, ntm, lru_access, dnc>();
    CHECK(models == 7);
}

TEST_CASE("feed-forward under the variational learner with every memory") {
    const int models = prepared::updates_of_every<feed_forward, variational, no_memory, fifo_knn, fifo_knn_no_jumpy,
                                                  introspection, ntm, lru_access, dnc>();
    CHECK(models == 7);
}

TEST_CASE("LSTM under the supervised learner with every memory") {
    const int models = prepared::updates_of_every<engram::lstm, supervised, no_memory, fifo_knn, fifo_knn_no_jumpy,
                                                  introspection, ntm, lru_access, dnc>();
    CHECK(models == 7);
}
