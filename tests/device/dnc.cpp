// A differentiable neural computer's memory on a device.

#include <engram/memory/dnc.hpp>

#include "generative.hpp"

TEST_CASE("ten updates of a generative model with a DNC's memory on a device equal those on the host") {
    device_test::generative_device_equals_host<engram::dnc>();
}
