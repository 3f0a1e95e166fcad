// SPDX-License-Identifier: MIT

#include "updates.hpp"

#include <algorithm>

#include <engram/model/laws.hpp>
#include <engram/train/optimiser.hpp>

namespace updates {

using namespace engram;

template <class Agent>
double on_the_host(const task_shape& task) {
    auto a = Agent::template trace<cpu<float>>({}, task, 1);
    program<cpu<float>> p(*a.g, a.store, {.steps = T, .batch = B, .gradients = true});
    optimiser<float> adam({}, *a.store);
    double best = 1e30;
    for (int i = 0; i < 3; ++i) {
        fill_randomly(p, a, 1);
        const auto start = clock_type::now();
        p.forward();
        p.backward();
        adam.update(*a.store, p.gradient(), 0);
        best = std::min(best, milliseconds_since(start));
    }
    return best;
}

template double on_the_host<plain>(const task_shape&);
template double on_the_host<remembering>(const task_shape&);
template double on_the_host<seeing>(const task_shape&);

}  // namespace updates
