// The product controller x memory x auxiliary: LSTM, and the memories with slots that stay in place.

#include <engram/controller/lstm.hpp>
#include <engram/learner/vtrace.hpp>

#include "product.hpp"

using namespace engram;

TEST_CASE("LSTM under V-trace: introspection, NTM, LRU and DNC with every auxiliary loss") {
    const int models =
        prepared::updates_of_every_auxiliary_and<engram::lstm, vtrace, introspection, ntm, lru_access, dnc>();
    CHECK(models == 12);
}
