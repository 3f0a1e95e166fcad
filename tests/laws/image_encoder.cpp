// The laws of encoders of images, and of the decoders that reconstruction makes of them.

#include "../model/prepare.hpp"

#include <engram/auxiliary/reconstruction.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/encoder/impala_resnet.hpp>
#include <engram/encoder/small_conv.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/no_memory.hpp>

using namespace prepared;

using small = agent<small_conv, feed_forward, no_memory, reconstruction, vtrace>;
using residual = agent<impala_resnet, feed_forward, no_memory, reconstruction, vtrace>;

TEST_CASE("small_conv") {
    keeps_the_laws<small>();
    differentiates<small>();
}

TEST_CASE("impala_resnet") {
    keeps_the_laws<residual>();
    differentiates<residual>();
    auto flat = tiny<residual>();
    flat.encoder.channels = {};  // the small preset: fully connected layers alone
    flat.encoder.centre = true;
    keeps_the_laws<residual>(flat);
    differentiates<residual>(flat);
}

TEST_CASE("images that do not divide are refused by the decoder in one sentence") {
    CHECK_THROWS_WITH_AS((residual::trace<cpu<double>>(tiny<residual>(), {{5, 7, 2}, 3}, 1)),
                         doctest::Contains("encoder.decoder: images of 5 x 7 cannot be doubled back"), engram::error);
    CHECK_THROWS_WITH_AS((small::trace<cpu<double>>(tiny<small>(), {{5, 7, 2}, 3}, 1)),
                         doctest::Contains("does not divide by stride 2"), engram::error);
}
