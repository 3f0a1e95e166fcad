#pragma once
// SPDX-License-Identifier: MIT

// y = x W of 3 numbers to 5, two columns of y, and an input without time: what views of programs are tried on.

#include <memory>

#include <engram/graph/program.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/map.hpp>

struct linear_model {
    std::shared_ptr<engram::parameters<float>> store = std::make_shared<engram::parameters<float>>(7);
    engram::graph<engram::cpu<float>> g{store};
    engram::var<engram::cpu<float>> y, part, twice;  // twice [B, 3]

    struct sum {
        constexpr auto operator()(auto a, auto b) const { return a + b; }
    };

    linear_model() {
        const auto x = g.input("x", 3);
        y = engram::affine<engram::cpu<float>>("layer", {x}, g.declare_linear("layer", 3, 5));
        part = y.columns(1, 2);
        const auto held = g.input("held", 3, engram::extent::batch);
        twice = engram::map("twice", sum{}, held, held);
    }
};
