// The product controller x memory x auxiliary, its LSTM half.

#include <engram/controller/lstm.hpp>
#include <engram/learner/vtrace.hpp>

#include "product.hpp"

TEST_CASE("LSTM under V-trace with every memory and auxiliary loss") {
    CHECK(prepared::updates_of_every_memory_and_auxiliary<engram::lstm, engram::vtrace>() == 9);
}
