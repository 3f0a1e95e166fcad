#pragma once
// SPDX-License-Identifier: MIT

// The null auxiliary loss.

#include <engram/model/slots.hpp>

namespace engram {

struct no_auxiliary {
    using role = auxiliary_role;

    struct settings {
        BOOST_HANA_DEFINE_STRUCT(settings);
    };

    template <class Encoder, class Backend>
    static void add_losses(graph<Backend>&, const settings&, const typename Encoder::settings&,
                           const trajectory<var<Backend>>&, const task_shape&) {}
};

static_assert(auxiliary_policy<no_auxiliary>);

}  // namespace engram
