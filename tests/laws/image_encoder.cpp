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
    auto strided = flat;
    strided.encoder.strided = {3, 2};
    strided.encoder.strided_by = {2, 1};
    keeps_the_laws<residual>(strided);
    differentiates<residual>(strided, task(), 100, 5);
    auto both = tiny<residual>();
    both.encoder.channels = {2};
    both.encoder.blocks = 0;
    both.encoder.strided = {3};
    both.encoder.strided_sides = {3};
    both.encoder.strided_by = {1};
    keeps_the_laws<residual>(both);
    differentiates<residual>(both, task(), 100, 5);
}

TEST_CASE("images that do not divide are refused by the decoder in one sentence") {
    CHECK_THROWS_WITH_AS((residual::trace<cpu<double>>(tiny<residual>(), {{5, 7, 2}, 3}, 1)),
                         doctest::Contains("encoder.decoder: images of 5 x 7 cannot be doubled back"), engram::error);
    auto strided = tiny<residual>();
    strided.encoder.strided = {3};
    CHECK_THROWS_WITH_AS((residual::trace<cpu<double>>(strided, {{5, 7, 2}, 3}, 1)),
                         doctest::Contains("encoder.decoder: an image of [5,7,2] does not divide by stride 2"),
                         engram::error);
    CHECK_THROWS_WITH_AS((small::trace<cpu<double>>(tiny<small>(), {{5, 7, 2}, 3}, 1)),
                         doctest::Contains("does not divide by stride 2"), engram::error);
}
