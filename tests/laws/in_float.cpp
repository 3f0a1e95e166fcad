// The laws once more in float, the number type of training: every kind of encoder, state and memory.

#include "../model/prepare.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/impala_resnet.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>

using namespace prepared;

using residual = agent<impala_resnet, lstm, fifo_knn, no_auxiliary, vtrace>;

TEST_CASE("ResNet, LSTM, k-NN memory") {
    keeps_the_laws<residual, cpu<float>>();
    // Widths that fill SIMD registers and leave a rest.
    auto s = tiny<residual>();
    s.encoder.channels = {17};
    s.encoder.output = 37;
    s.controller.hidden = 33;
    s.memory.key = 19;
    keeps_the_laws<residual, cpu<float>>(s, {{9, 7, 3}, 5});
}

TEST_CASE("MLP, feed-forward, k-NN memory with cached keys") {
    keeps_the_laws<residual::with<mlp>::with<feed_forward>::with<fifo_knn_no_jumpy>, cpu<float>>();
}
