#pragma once
// SPDX-License-Identifier: MIT

// noise: random numbers drawn afresh at every step of every replay.
//
// A number is a pure function of (seed, name of the operation, replay count, step t, row, column) through Philox:
//
//   key = seed xor (hash of the full name), counter = {t * blocks + block of 4 columns, row, replay count (2 words)}
//
// so a second sweep over the same replay, a resumed run (program::replay_count) and another order of evaluation draw
// the same numbers. The row is plan_options::first_row + the row in the plan, the step first_step + the step in it:
// splitting a batch or an unroll changes nothing.
// Programs of one graph at equal replay counts draw equal noise. Noise is a constant: it has no gradient.

#include <engram/core/philox.hpp>
#include <engram/graph/simple_operation.hpp>

namespace engram {

enum class distribution { normal, uniform };

struct noise_settings {
    distribution drawn;
    std::uint64_t seed;
};

template <class Backend>
struct noise_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    noise_kernel(const binder<Backend>& b, noise_settings s)
        : drawn(s.drawn), batch(b.batch()), replay(b.replay_count()), out(b.out(0)) {
        const std::uint64_t key = s.seed ^ stream_id(b.op().name, 0) ^ (stream_id(b.op().name, 0) >> 32);
        key0 = static_cast<std::uint32_t>(key);
        key1 = static_cast<std::uint32_t>(key >> 32);
        first_row = b.first_row();
        first_step = b.first_step();
    }

    void forward(int t, int steps) override {
        for (int s = t; s < t + steps; ++s)
            for (int b = 0; b < batch; ++b) draw(first_step + s, b, out.at(s) + b * out.stride);
    }

private:
    void draw(int t, int b, real* to) const {
        const int blocks = (out.width + 3) / 4;
        for (int k = 0; k < blocks; ++k) {
            const philox_block bits = philox4x32(
                {{static_cast<std::uint32_t>(t) * static_cast<std::uint32_t>(blocks) + static_cast<std::uint32_t>(k),
                  static_cast<std::uint32_t>(first_row + b), static_cast<std::uint32_t>(*replay),
                  static_cast<std::uint32_t>(*replay >> 32)}},
                key0, key1);
            float value[4];
            // 23 bits and a half are exact in float; the half keeps the numbers inside (0, 1) and the logarithm finite.
            for (int i = 0; i < 4; ++i) value[i] = (static_cast<float>(bits.word[i] >> 9) + 0.5f) * 0x1p-23f;
            if (drawn == distribution::normal)
                for (int i = 0; i < 4; i += 2) {
                    const float radius = std::sqrt(-2 * std::log(value[i])), angle = 6.28318530718f * value[i + 1];
                    value[i] = radius * std::cos(angle);
                    value[i + 1] = radius * std::sin(angle);
                }
            for (int i = 0; i < std::min(4, out.width - 4 * k); ++i) to[4 * k + i] = static_cast<real>(value[i]);
        }
    }

    distribution drawn;
    int batch;
    const std::uint64_t* replay;
    operand<real> out;
    std::uint32_t key0, key1;
    int first_row = 0, first_step = 0;
};

/// Numbers drawn anew in every forward(), normal or uniform as its settings say.
template <class Backend>
var<Backend> add_noise_operation(graph<Backend>& g, const std::string& name, int width, noise_settings settings,
                                 extent rows) {
    auto op = make_operation<noise_kernel, Backend>(g, name, {}, settings);
    for (const auto& other : g.operations())
        require(
            !dynamic_cast<const typename decltype(op)::element_type*>(other.get()) || other->name != g.full_name(name),
            g.full_name(name), ": two noises of one name would draw the same numbers");
    if (g.common_rows({}) == extent::sequence) rows = extent::sequence;
    return g.add(std::move(op), {width}, rows)[0];
}

/// Standard normal numbers [T, B, width], or [B, width] once per unroll for extent::batch. In a scan: one row per step.
template <class Backend>
var<Backend> normal_noise(graph<Backend>& g, const std::string& name, int width, std::uint64_t seed = 1,
                          extent rows = extent::sequence) {
    return add_noise_operation(g, name, width, {distribution::normal, seed}, rows);
}

/// Numbers uniform in (0, 1), both ends left out, so that log u and log(1 - u) are finite.
template <class Backend>
var<Backend> uniform_noise(graph<Backend>& g, const std::string& name, int width, std::uint64_t seed = 1,
                           extent rows = extent::sequence) {
    return add_noise_operation(g, name, width, {distribution::uniform, seed}, rows);
}

}  // namespace engram
