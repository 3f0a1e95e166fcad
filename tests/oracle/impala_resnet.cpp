// The IMPALA ResNet (facts 1.2) by naive loops, on images of even and of odd sides.

#include "loops.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/encoder/impala_resnet.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/no_memory.hpp>

#include "../model/prepare.hpp"

using namespace engram;
using oracle::numbers;

namespace {

struct image {
    int height, width, channels;
    numbers data;

    double& at(int y, int x, int c) { return data[static_cast<std::size_t>((y * width + x) * channels + c)]; }
    bool inside(int y, int x) const { return y >= 0 && y < height && x >= 0 && x < width; }
};

image blank(int height, int width, int channels) {
    return {height, width, channels, numbers(static_cast<std::size_t>(height * width * channels))};
}

// SAME: ceil(size / stride) places, what the windows reach beyond the image on both sides, the odd one behind.
image convolve(const parameters<double>& store, const std::string& name, image from, int filters, int side = 3,
               int stride = 1) {
    image to = blank((from.height + stride - 1) / stride, (from.width + stride - 1) / stride, filters);
    const auto before = [&](int size, int places) { return std::max((places - 1) * stride + side - size, 0) / 2; };
    const int above = before(from.height, to.height), left = before(from.width, to.width);
    for (int y = 0; y < to.height; ++y)
        for (int x = 0; x < to.width; ++x)
            for (int f = 0; f < filters; ++f) {
                double sum = oracle::weight(store, name + ".bias", 0, f);
                for (int i = 0; i < side; ++i)
                    for (int j = 0; j < side; ++j) {
                        const int v = y * stride - above + i, u = x * stride - left + j;
                        for (int c = 0; c < from.channels && from.inside(v, u); ++c)
                            sum += from.at(v, u, c) *
                                   oracle::weight(store, name + ".weight", (i * side + j) * from.channels + c, f);
                    }
                to.at(y, x, f) = sum;
            }
    return to;
}

// 3 x 3, stride 2, SAME: the window of output o starts at 2 o for even sides, at 2 o - 1 for odd ones.
image pool(image from) {
    image to = blank((from.height + 1) / 2, (from.width + 1) / 2, from.channels);
    for (int y = 0; y < to.height; ++y)
        for (int x = 0; x < to.width; ++x)
            for (int c = 0; c < to.channels; ++c) {
                double largest = -INFINITY;
                for (int i = 0; i < 3; ++i)
                    for (int j = 0; j < 3; ++j) {
                        const int v = 2 * y - from.height % 2 + i, u = 2 * x - from.width % 2 + j;
                        if (from.inside(v, u)) largest = std::max(largest, from.at(v, u, c));
                    }
                to.at(y, x, c) = largest;
            }
    return to;
}

image relu(image x) {
    x.data = oracle::relu(x.data);
    return x;
}

void compare(image_shape size, std::vector<int> channels, int blocks, std::vector<int> hidden,
             std::vector<int> strided = {}) {
    const std::vector<int> sides{4, 3}, strides{2, 3};
    using model = agent<impala_resnet, feed_forward, no_memory, no_auxiliary, vtrace>;
    auto s = prepared::tiny<model>();
    s.encoder = {.strided = strided,
                 .strided_sides = sides,
                 .strided_by = strides,
                 .channels = channels,
                 .blocks = blocks,
                 .hidden = hidden,
                 .output = 7};
    const auto a = prepared::traced<model, cpu<double>>(s, {size, 3});
    program<cpu<double>> p(*a.g, a.store, {.steps = 2, .batch = 2}, {a.x});
    fill_randomly(p, a, 1);
    p.forward();
    for (int t = 0; t < 2; ++t)
        for (int b = 0; b < 2; ++b) {
            image x{size.height, size.width, size.channels, oracle::row(p.input("observation"), size.size(), 2, t, b)};
            for (std::size_t i = 0; i < strided.size(); ++i)
                x = relu(
                    convolve(*a.store, "encoder.strided." + std::to_string(i), x, strided[i], sides[i], strides[i]));
            for (std::size_t i = 0; i < channels.size(); ++i) {
                const std::string name = "encoder.section." + std::to_string(i);
                x = pool(convolve(*a.store, name + ".convolution", x, channels[i]));
                for (int k = 0; k < blocks; ++k) {
                    const std::string block = name + ".block." + std::to_string(k);
                    const image inner = convolve(*a.store, block + ".0", relu(x), channels[i]);
                    const image outer = convolve(*a.store, block + ".1", relu(inner), channels[i]);
                    for (std::size_t j = 0; j < x.data.size(); ++j) x.data[j] += outer.data[j];
                }
            }
            numbers y = oracle::relu(x.data);
            for (std::size_t i = 0; i <= hidden.size(); ++i)
                y = oracle::relu(oracle::affine(*a.store, "encoder.layers." + std::to_string(i), y));
            CHECK(*std::max_element(y.begin(), y.end()) > 0);
            oracle::check_near(oracle::row(p.output(a.x), t, b), y);
        }
}

}  // namespace

TEST_CASE("the paper's form: three sections of two blocks, no hidden layer") {
    compare({16, 24, 3}, {4, 5, 5}, 2, {});
}
TEST_CASE("odd sides") {
    compare({9, 7, 2}, {3, 4}, 1, {6});
}
TEST_CASE("one section without blocks, and none at all") {
    compare({5, 8, 1}, {3}, 0, {});
    compare({3, 4, 1}, {}, 2, {6, 5});
}
TEST_CASE("convolutions with strides alone, and before a section") {
    compare({12, 16, 3}, {}, 2, {}, {5, 4});
    compare({7, 9, 2}, {3}, 1, {6}, {4});
}
