// SPDX-License-Identifier: MIT
// The laws of the encoder that is layers for numbers and convolutions for images.

#include "../model/prepare.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/encoder/numbers_or_image.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/no_memory.hpp>

using namespace prepared;

TEST_CASE("layers for a row of numbers, convolutions for an image, and nothing of the other") {
    using model = agent<numbers_or_image, feed_forward, no_memory, no_auxiliary, vtrace>;
    model::settings s;
    s.controller.hidden = 5;
    s.encoder.numbers.layers = {6, 4};
    s.encoder.image.channels = {2, 3};
    s.encoder.image.kernels = {3, 2};
    s.encoder.image.strides = {2, 1};
    s.encoder.image.output = 4;
    for (const task_shape& shape : {task_shape{{1, 1, 3}, 3}, task_shape{{6, 5, 2}, 3}}) {
        keeps_the_laws<model>(s, shape);
        differentiates<model>(s, shape, 60);
        const auto a = traced<model, cpu<double>>(s, shape);
        int layers = 0, convolutions = 0;
        for (const auto& e : a.store->entries()) {
            layers += e.name == "encoder.layers.1.weight";
            convolutions += e.name.starts_with("encoder.convolution");
        }
        CHECK(layers == (shape.observation.height == 1 ? 1 : 0));
        CHECK(convolutions == (shape.observation.height == 1 ? 0 : 4));
    }
}
