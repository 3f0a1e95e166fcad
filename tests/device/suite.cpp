// Every other task of the suite in the memory of an emulated device: the host's episodes and frames, to the bit.

#include "suite.hpp"

TEST_CASE("the suite on a device walks as on the host") {
    device_test::suite_walks_as_on_the_host<engram::emulated<float>>(0, 0);
}
