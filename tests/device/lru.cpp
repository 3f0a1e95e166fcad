// Least-recently-used access on a device.

#include <engram/memory/lru_access.hpp>

#include "generative.hpp"

TEST_CASE("ten updates of a generative model with LRU access on a device equal those on the host") {
    device_test::generative_device_equals_host<engram::lru_access>();
}
