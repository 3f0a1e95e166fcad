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
#include <engram/operations/points.hpp>

namespace engram {

enum class distribution { normal, uniform };

struct noise_settings {
    distribution drawn;
    std::uint64_t seed;
};

/// Four numbers, which share a block of Philox.
template <class Real>
struct drawn_numbers {
    step_rows<Real> out;
    const std::uint64_t* replay;
    distribution drawn;
    std::uint32_t key0, key1;
    int batch, first_row, step;
    ENGRAM_HD void operator()(std::ptrdiff_t row, int k) const {
        const int blocks = (out.width + 3) / 4;
        const int t = step + static_cast<int>(row / batch), b = first_row + static_cast<int>(row % batch);
        const philox_block bits = philox4x32(
            {{static_cast<std::uint32_t>(t) * static_cast<std::uint32_t>(blocks) + static_cast<std::uint32_t>(k),
              static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(*replay),
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
        for (int i = 0; i < 4 && 4 * k + i < out.width; ++i) out.row(row)[4 * k + i] = static_cast<Real>(value[i]);
    }
};

template <class Backend>
struct noise_kernel final : point_kernel<Backend> {
    using real = typename Backend::real;

    noise_kernel(const binder<Backend>& b, noise_settings s)
        : point_kernel<Backend>(b), out(b.out(0)), first_step(b.first_step()) {
        const std::uint64_t id = stream_id(this->name, 0), key = s.seed ^ id ^ (id >> 32);
        draw = {{},
                b.replay_count(),
                s.drawn,
                static_cast<std::uint32_t>(key),
                static_cast<std::uint32_t>(key >> 32),
                this->batch,
                b.first_row(),
                0};
    }
    void forward(int t, int steps) override {
        draw.out = {out, t};
        draw.step = first_step + t;
        this->each(steps * this->batch, (out.width + 3) / 4, draw);
    }
    operand<real> out;
    int first_step;
    drawn_numbers<real> draw{};
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
