// A Neural Turing Machine's memory on a device.

#include <engram/memory/ntm.hpp>

#include "generative.hpp"

TEST_CASE("ten updates of a generative model with an NTM's memory on a device equal those on the host") {
    device_test::generative_device_equals_host<engram::ntm>();
}
