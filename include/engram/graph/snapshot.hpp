#pragma once
// SPDX-License-Identifier: MIT

// program_snapshot: what a program stands on before a forward(), kept and put back.
//
// Inputs, states, resources (an episodic memory's ring, running statistics) and the number of replays, which chooses
// the noise; weights are not among them. A snapshot of one program may be put back into another of the same graph and
// sizes.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <engram/graph/program.hpp>

namespace engram {

/// Everything that the next forward() of a program depends on besides the weights.
template <class Backend>
class program_snapshot {
public:
    using real = typename Backend::real;

    explicit program_snapshot(program<Backend>& p, const graph<Backend>& g) : replays_(p.replay_count()) {
        for (const auto& v : g.values())
            if (p.has_input(v.name)) inputs_.emplace_back(v.name, values(p.input(v.name)));
        for (const auto& name : p.state_names()) states_.emplace_back(name, values(p.state(name)));
        for (std::size_t r = 0; r < p.resource_count(); ++r)
            for (const auto part : p.bound_resource(r)->bytes()) resources_.emplace_back(part.begin(), part.end());
    }
    void restore(program<Backend>& p) const {
        p.replay_count() = replays_;
        for (const auto& [name, data] : inputs_) std::copy(data.begin(), data.end(), p.input(name).begin());
        for (const auto& [name, data] : states_) std::copy(data.begin(), data.end(), p.state(name).begin());
        std::size_t i = 0;
        for (std::size_t r = 0; r < p.resource_count(); ++r)
            for (const auto part : p.bound_resource(r)->bytes()) {
                std::copy(resources_[i].begin(), resources_[i].end(), part.begin());
                ++i;
            }
    }

private:
    static std::vector<real> values(std::span<real> s) { return {s.begin(), s.end()}; }

    std::uint64_t replays_;
    std::vector<std::pair<std::string, std::vector<real>>> inputs_, states_;
    std::vector<std::vector<std::byte>> resources_;
};

}  // namespace engram
