#pragma once

// Launches of an emulated device's sweeps, by operation.

#include <cstdint>
#include <map>
#include <string>

#include <engram/device/operations.hpp>

namespace launches_test {

using namespace engram;

using device = emulated<float>;
using counts = std::map<std::string, std::int64_t>;

/// Launches of every operation by name, in one forward and one backward sweep.
struct sweep_counts {
    counts forward, backward;
};

inline sweep_counts count_launches(program<device>& p) {
    sweep_counts found;
    const auto into = [&](counts& to) {
        return [&](const operation<device>& op, auto call) {
            const std::int64_t before = p.executor().launches();
            call();
            to[op.name] += p.executor().launches() - before;
        };
    };
    p.forward_around(into(found.forward));
    p.backward_around(into(found.backward));
    return found;
}

}  // namespace launches_test
