#pragma once
// Policies outside the library that are called like policies of it and have settings of the same names.

#include <engram/model/slots.hpp>

namespace somebodys {

/// Called as one of the library's and with settings of the same names.
struct ppo {
    using role = engram::learner_role;
    struct settings {
        double lambda = 0.7, discount = 0.5, entropy_cost = 0.2;
    };
};
struct lstm {
    using role = engram::controller_role;
    struct settings {
        int hidden = 9;
        double forget_bias = 0.25;
    };
};

}  // namespace somebodys

ENGRAM_REFLECT(somebodys::ppo::settings, lambda, discount, entropy_cost);
ENGRAM_REFLECT(somebodys::lstm::settings, hidden, forget_bias);
