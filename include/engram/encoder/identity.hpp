#pragma once
// SPDX-License-Identifier: MIT

// The null encoder: x = observation, for tasks whose observation is a short vector already.

#include <engram/model/slots.hpp>
#include <engram/operations/affine.hpp>

namespace engram {

struct identity {
    using role = encoder_role;

    struct settings {
        BOOST_HANA_DEFINE_STRUCT(settings);
    };
    struct weights {};

    template <class Backend>
    static weights declare(graph<Backend>&, const settings&, image_shape) {
        return {};
    }
    template <class Backend>
    static var<Backend> encode(const settings&, const weights&, const var<Backend>& observation, image_shape) {
        return observation;
    }
    template <class Backend>
    static linear declare_decoder(graph<Backend>& g, const settings&, image_shape size, int inputs) {
        return g.declare_linear("pixels", inputs, size.size());
    }
    /// Pixel logits [T, B, pixels].
    template <class Backend>
    static var<Backend> decode(const settings&, const linear& w, const var<Backend>& h, image_shape) {
        return affine("pixels", h, w);
    }
};

static_assert(encoder_policy<identity> && can_decode<identity>);

}  // namespace engram
