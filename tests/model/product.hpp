#pragma once
// Memories x auxiliary losses for one controller and learner: each compiles, traces, and takes a finite update.

#include <cmath>

#include <boost/hana.hpp>

#include <engram/auxiliary/cpc.hpp>
#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/auxiliary/reconstruction.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/memory/dnc.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/memory/introspection.hpp>
#include <engram/memory/lru_access.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/memory/ntm.hpp>
#include <engram/train/optimiser.hpp>

#include "prepare.hpp"

namespace prepared {

/// One update on random data; every weight that is trained moves and stays finite.
template <class Agent>
void takes_an_update(const typename Agent::settings& s, const task_shape& t, int T, int B) {
    using backend = cpu<float>;
    auto a = Agent::template trace<backend>(s, t, 5);
    program<backend> p(*a.g, a.store, {.steps = T, .batch = B, .gradients = true});
    fill_randomly(p, a, 1);
    p.forward();
    REQUIRE(std::isfinite(p.loss()));
    p.backward();
    const std::vector<float> before(a.store->flat().begin(), a.store->flat().end());
    optimiser<float> adam({}, *a.store);
    CHECK(adam.update(*a.store, p.gradient(), 0) > 0);
    std::ptrdiff_t moved = 0, broken = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
        moved += before[i] != a.store->flat()[i];
        broken += !std::isfinite(a.store->flat()[i]);
    }
    CHECK(broken == 0);
    CHECK(moved > a.store->total() / 10);
}

/// Every one of the memories with every auxiliary loss; gives the number of models.
template <class Controller, class Learner, class... Memories>
int updates_of_every_auxiliary_and() {
    namespace hana = boost::hana;
    using start = agent<mlp, Controller, no_memory, no_auxiliary, Learner>;
    const auto memories = hana::tuple_t<Memories...>;
    const auto auxiliaries = hana::tuple_t<no_auxiliary, cpc, reconstruction>;
    int count = 0;
    hana::for_each(hana::cartesian_product(hana::make_tuple(memories, auxiliaries)), [&](auto pair) {
        using memory = typename decltype(+hana::at_c<0>(pair))::type;
        using auxiliary = typename decltype(+hana::at_c<1>(pair))::type;
        using model = typename start::template with<memory>::template with<auxiliary>;
        CAPTURE(count);
        takes_an_update<model>(tiny<model>(), task(), 4, 2);
        ++count;
    });
    return count;
}

/// Every one of the memories under a learner that takes no auxiliary loss; gives the number of models.
template <class Controller, class Learner, class... Memories>
int updates_of_every() {
    namespace hana = boost::hana;
    int count = 0;
    hana::for_each(hana::tuple_t<Memories...>, [&](auto memory) {
        using model = agent<mlp, Controller, typename decltype(memory)::type, no_auxiliary, Learner>;
        CAPTURE(count);
        takes_an_update<model>(tiny<model>(), task(), 4, 2);
        ++count;
    });
    return count;
}

}  // namespace prepared
