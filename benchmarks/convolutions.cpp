// SPDX-License-Identifier: MIT

// GFLOP/s of convolutions and their gradients at the sizes of the image encoders, one thread.

#include <chrono>
#include <cstdio>
#include <vector>

#include "engram/kernels/convolution.hpp"
#include "engram/kernels/pooling.hpp"

#include "flags.hpp"

namespace {

/// Best seconds of one call over about a tenth of a second.
template <class Body>
double seconds(Body body) {
    using clock = std::chrono::steady_clock;
    body();
    double best = 1e9, total = 0;
    for (int n = 0; (total < 0.1 || n < 3) && n < 100000; ++n) {
        const auto start = clock::now();
        body();
        const double took = std::chrono::duration<double>(clock::now() - start).count();
        best = std::min(best, took);
        total += took;
    }
    return best;
}

std::vector<float> ramp(std::ptrdiff_t size) {
    std::vector<float> values(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) / 16 - 0.5f;
    return values;
}

}  // namespace

int main(int argc, char** argv) {
    const flags nothing(argc, argv);
    using engram::convolution_shape;
    const int images = 4;
    std::printf("%-34s %10s %10s %10s   GFLOP/s\n", "image, filters, kernel, stride", "forward", "data", "weights");
    for (const convolution_shape& s : {convolution_shape{72, 96, 3, 16, 3, 1},
                                       {36, 48, 16, 16, 3, 1},
                                       {36, 48, 16, 32, 3, 1},
                                       {18, 24, 32, 32, 3, 1},
                                       {9, 12, 32, 32, 3, 1},
                                       {72, 96, 3, 16, 8, 4},
                                       {72, 96, 3, 32, 8, 4},
                                       {18, 24, 16, 32, 4, 2},
                                       {72, 96, 16, 16, 3, 1},
                                       {36, 48, 64, 64, 5, 2}}) {
        const auto x = ramp(images * s.inputs()), dy = ramp(images * s.outputs()),
                   w = ramp(s.weight_rows() * s.filters);
        std::vector<float> y(dy.size()), dx(x.size()), dw(w.size()), db(s.filters), scratch(convolution_scratch(s));
        engram::packed_weights<float> packed(s.weight_rows(), s.filters), flipped;
        packed.pack(w.data(), s.filters);
        pack_flipped(s, w.data(), flipped);
        const float* no_bias = nullptr;
        const double work = 2e-9 * images * s.out_height() * s.out_width() * s.weight_rows() * s.filters;
        const double forward = seconds([&] {
            convolution_forward(s, packed, no_bias, x.data(), s.inputs(), y.data(), s.outputs(), images,
                                scratch.data());
        });
        const double data = seconds([&] {
            convolution_data_gradient(s, flipped, dy.data(), s.outputs(), dx.data(), s.inputs(), false, images,
                                      scratch.data());
        });
        const double weights = seconds([&] {
            convolution_weight_gradient(s, x.data(), dy.data(), images, dw.data(), db.data(), false, scratch.data());
        });
        std::printf("%3d x %3d x %2d, %2d, %d x %d, %d %12s %10.1f %10.1f %10.1f\n", s.height, s.width, s.channels,
                    s.filters, s.kernel, s.kernel, s.stride, "", work / forward, work / data, work / weights);
    }
    for (const engram::pooling_shape& s : {engram::pooling_shape{72, 96, 16}, {36, 48, 32}}) {
        const auto x = ramp(images * s.inputs()), dy = ramp(images * s.outputs());
        std::vector<float> y(dy.size()), dx(x.size());
        std::vector<std::uint8_t> taps(dy.size());
        const double forward =
            seconds([&] { max_pool_forward(s, x.data(), s.inputs(), y.data(), s.outputs(), taps.data(), images); });
        const double backward = seconds(
            [&] { max_pool_backward(s, dy.data(), s.outputs(), taps.data(), dx.data(), s.inputs(), false, images); });
        std::printf("max pool %d x %d x %d: forward %.1f us, backward %.1f us an image\n", s.height, s.width,
                    s.channels, 1e6 * forward / images, 1e6 * backward / images);
    }
}
