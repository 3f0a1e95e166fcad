// The introspection network on a device.

#include <engram/memory/introspection.hpp>

#include "generative.hpp"

TEST_CASE("ten updates of a generative model with an introspection network on a device equal those on the host") {
    device_test::generative_device_equals_host<engram::introspection>();
}
