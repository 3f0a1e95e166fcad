#pragma once
// SPDX-License-Identifier: MIT

// Noise on a device: a thread a Philox block, of the same counter and key as on the host, so both draw the same bits
// (logarithm, sine and cosine may differ in their last ones).

#include <engram/device/kernel.hpp>
#include <engram/graph/ops/noise.hpp>

namespace engram {

template <class Real>
struct draw_noise {
    device_rows<Real> out;
    const std::uint64_t* replay;
    distribution drawn;
    std::uint32_t key0, key1;
    int batch, first_row, step;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const int blocks = (out.width + 3) / 4, k = static_cast<int>(i % blocks);
        const std::ptrdiff_t row = i / blocks;
        const int t = step + static_cast<int>(row / batch), b = first_row + static_cast<int>(row % batch);
        const philox_block bits = philox4x32(
            {{static_cast<std::uint32_t>(t) * static_cast<std::uint32_t>(blocks) + static_cast<std::uint32_t>(k),
              static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(*replay),
              static_cast<std::uint32_t>(*replay >> 32)}},
            key0, key1);
        float number[4];
        for (int j = 0; j < 4; ++j) number[j] = (static_cast<float>(bits.word[j] >> 9) + 0.5f) * 0x1p-23f;
        if (drawn == distribution::normal)
            for (int j = 0; j < 4; j += 2) {
                const float radius = std::sqrt(-2 * std::log(number[j])), angle = 6.28318530718f * number[j + 1];
                number[j] = radius * std::cos(angle);
                number[j + 1] = radius * std::sin(angle);
            }
        for (int j = 0; j < 4 && 4 * k + j < out.width; ++j) out.row(row)[4 * k + j] = static_cast<Real>(number[j]);
    }
};

template <device_backend Backend>
struct noise_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    noise_kernel(const binder<Backend>& b, noise_settings s)
        : device_kernel<Backend>(b), out(b.out(0)), first_step(b.first_step()) {
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
        this->launch(steps, (out.width + 3) / 4, draw);
    }
    operand<real> out;
    int first_step;
    draw_noise<real> draw{};
};

}  // namespace engram
