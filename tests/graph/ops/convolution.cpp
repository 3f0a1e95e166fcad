// Operations on images: forward against plain loops, gradients against central differences, in and out of scans.

#include <doctest/doctest.h>

#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/convolution.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;
using backend = cpu<double>;

namespace {

struct weighted_square {
    auto operator()(auto a, auto b) const { return a * b + square(a); }
};
struct mix {
    auto operator()(auto a, auto b) const { return tanh(0.5 * a + b); }
};
template <class Var>
struct one_state {
    BOOST_HANA_DEFINE_STRUCT(one_state, (Var, value));
};

void draw(std::span<double> to, std::uint64_t stream) {
    philox random(9, stream);
    for (double& v : to) v = static_cast<double>(random.normal());
}
void randomise_biases(parameters<double>& store) {
    auto edit = store.edit();
    philox random(9, 77);
    for (std::size_t i = 0; i < store.entries().size(); ++i)
        if (store.entries()[i].rows == 1)
            for (int k = 0; k < store.entries()[i].size(); ++k)
                edit.values({static_cast<int>(i)})[k] = static_cast<double>(random.normal());
}

// y[oy, ox, f] of a SAME convolution by its definition; pads (total) of which the smaller half goes before. A VALID one
// pads nothing and has as many windows as fit.
std::vector<double> convolution_by_loops(const double* x, image_shape s, const double* w, const double* b, int F, int k,
                                         int stride, bool valid = false) {
    const image_shape o = valid ? image_shape{(s.height - k + stride) / stride, (s.width - k + stride) / stride, F}
                                : s.reduced(stride, F);
    const int py = std::max((o.height - 1) * stride + k - s.height, 0) / 2,
              px = std::max((o.width - 1) * stride + k - s.width, 0) / 2;
    std::vector<double> y;
    for (int oy = 0; oy < o.height; ++oy)
        for (int ox = 0; ox < o.width; ++ox)
            for (int f = 0; f < F; ++f) {
                double sum = b[f];
                for (int ky = 0; ky < k; ++ky)
                    for (int kx = 0; kx < k; ++kx)
                        for (int c = 0; c < s.channels; ++c) {
                            const int iy = oy * stride + ky - py, ix = ox * stride + kx - px;
                            if (iy < 0 || ix < 0 || iy >= s.height || ix >= s.width) continue;
                            sum +=
                                x[(iy * s.width + ix) * s.channels + c] * w[((ky * k + kx) * s.channels + c) * F + f];
                        }
                y.push_back(sum);
            }
    return y;
}

// Every input pixel sends its taps to the output, whose coordinates are those of the convolution that it transposes.
std::vector<double> deconvolution_by_loops(const double* x, image_shape s, const double* w, const double* b, int F,
                                           int k, int stride, bool valid = false) {
    const image_shape o =
        valid ? image_shape{(s.height - 1) * stride + k, (s.width - 1) * stride + k, F} : s.enlarged(stride, F);
    const int py = std::max((s.height - 1) * stride + k - o.height, 0) / 2,
              px = std::max((s.width - 1) * stride + k - o.width, 0) / 2;
    std::vector<double> y(static_cast<std::size_t>(o.size()));
    for (int i = 0; i < o.size(); ++i) y[static_cast<std::size_t>(i)] = b[i % F];
    for (int iy = 0; iy < s.height; ++iy)
        for (int ix = 0; ix < s.width; ++ix)
            for (int ky = 0; ky < k; ++ky)
                for (int kx = 0; kx < k; ++kx) {
                    const int oy = iy * stride + ky - py, ox = ix * stride + kx - px;
                    if (oy < 0 || ox < 0 || oy >= o.height || ox >= o.width) continue;
                    for (int f = 0; f < F; ++f)
                        for (int c = 0; c < s.channels; ++c)
                            y[static_cast<std::size_t>((oy * o.width + ox) * F + f)] +=
                                x[(iy * s.width + ix) * s.channels + c] * w[((ky * k + kx) * F + f) * s.channels + c];
                }
    return y;
}

void check(const graph<backend>& g, std::shared_ptr<parameters<double>> store, plan_options o,
           const std::vector<std::string>& inputs, int at_least) {
    const auto report = check_gradients<backend>(g, store, o, [&](auto& p) {
        for (std::size_t i = 0; i < inputs.size(); ++i) draw(p.input(inputs[i]), i);
    });
    INFO(report.where);
    CHECK(report.worst < 1e-6);
    CHECK(report.compared >= at_least);
    CHECK(report.same_bits_twice);
}

}  // namespace

TEST_CASE("convolutions and their transposes equal plain loops") {
    const auto same = padding_rule::same, valid = padding_rule::valid;
    for (const auto& [s, F, k, stride, padding] : {std::tuple{image_shape{5, 6, 3}, 4, 3, 1, same},
                                                   {image_shape{5, 7, 2}, 9, 4, 2, same},
                                                   {image_shape{4, 4, 1}, 2, 1, 1, same},
                                                   {image_shape{9, 8, 3}, 3, 8, 4, same},
                                                   {image_shape{8, 7, 3}, 4, 5, 3, valid},
                                                   {image_shape{6, 6, 40}, 110, 4, 2, valid},
                                                   {image_shape{4, 4, 3}, 5, 4, 1, valid}}) {
        const int side = k;  // clang before 16 captures no binding
        CAPTURE(side);
        const bool bare = padding == valid;
        auto store = std::make_shared<parameters<double>>(4);
        graph<backend> g(store);
        const auto x = g.input("x", s.size() + 1);
        const auto w = declare_convolution(g, "conv", s.channels, F, k);
        const auto v = declare_deconvolution(g, "back", s.channels, F, k, stride);
        randomise_biases(*store);
        const auto image = x.columns(1, s.size());
        const auto y = convolve("conv", image, s, F, k, stride, w, padding),
                   z = deconvolve("back", image, s, F, k, stride, v, padding);
        CHECK(y.width == convolved(s, F, k, stride, padding).size());
        CHECK(z.width == deconvolved(s, F, k, stride, padding).size());
        const int T = 2, B = 3;
        program<backend> p(g, store, {.steps = T, .batch = B}, {y, z});
        draw(p.input("x"), 1);
        p.forward();
        double worst = 0;
        for (int r = 0; r < T * B; ++r) {
            const double* row = p.input("x").data() + r * x.width + 1;
            const auto a =
                convolution_by_loops(row, s, store->values(w.weight), store->values(w.bias), F, k, stride, bare);
            const auto b =
                deconvolution_by_loops(row, s, store->values(v.weight), store->values(v.bias), F, k, stride, bare);
            REQUIRE(static_cast<int>(a.size()) == y.width);
            REQUIRE(static_cast<int>(b.size()) == z.width);
            for (int i = 0; i < y.width; ++i)
                worst = std::max(worst, std::abs(a[static_cast<std::size_t>(i)] - p.output(y).data[r * y.width + i]));
            for (int i = 0; i < z.width; ++i)
                worst = std::max(worst, std::abs(b[static_cast<std::size_t>(i)] - p.output(z).data[r * z.width + i]));
        }
        // Sums of up to 640 products whose squares add up to about 1: rounding well below 640 * 1e-16.
        CHECK(worst < 1e-13);
    }
}

TEST_CASE("max_pool and upsample equal plain loops, with and without gradients") {
    const image_shape s{5, 4, 3};
    auto store = std::make_shared<parameters<double>>();
    graph<backend> g(store);
    const auto x = g.input("x", s.size(), extent::sequence, true);
    const auto y = max_pool("pool", x, s), z = upsample("up", x, s);
    add_loss("a", sum_columns("suma", y));
    add_loss("b", sum_columns("sumb", z));
    const image_shape o = s.reduced(2, 3);
    CHECK(o == image_shape{3, 2, 3});
    for (const bool gradients : {false, true}) {
        program<backend> p(g, store, {.steps = 2, .batch = 2, .gradients = gradients}, {y, z});
        draw(p.input("x"), 1);
        p.forward();
        for (int r = 0; r < 4; ++r) {
            const double* in = p.input("x").data() + r * s.size();
            for (int oy = 0; oy < o.height; ++oy)
                for (int ox = 0; ox < o.width; ++ox)
                    for (int c = 0; c < 3; ++c) {
                        // Height 5 needs two zeros (one before); width 4 needs one, which goes after.
                        double top = -INFINITY;
                        for (int iy = std::max(2 * oy - 1, 0); iy < std::min(2 * oy + 2, 5); ++iy)
                            for (int ix = 2 * ox; ix < std::min(2 * ox + 3, 4); ++ix)
                                top = std::max(top, in[(iy * 4 + ix) * 3 + c]);
                        CHECK(p.output(y).data[r * o.size() + (oy * o.width + ox) * 3 + c] == top);
                    }
            for (int oy = 0; oy < 10; ++oy)
                for (int ox = 0; ox < 8; ++ox)
                    for (int c = 0; c < 3; ++c)
                        REQUIRE(p.output(z).data[r * 240 + (oy * 8 + ox) * 3 + c] ==
                                in[((oy / 2) * 4 + ox / 2) * 3 + c]);
        }
    }
}

TEST_CASE("gradients of a stack of image operations agree with central differences") {
    const image_shape s{6, 5, 2};
    auto store = std::make_shared<parameters<double>>(4);
    graph<backend> g(store);
    const auto x = g.input("x", s.size(), extent::sequence, true);
    const auto w1 = declare_convolution(g, "first", 2, 3, 3), w2 = declare_convolution(g, "second", 3, 4, 4);
    const auto w3 = declare_deconvolution(g, "third", 4, 2, 4, 2);
    randomise_biases(*store);
    const auto a = convolve("first", x, s, 3, 3, 1, w1);
    const auto pooled = max_pool("pool", a, {6, 5, 3});
    const auto b = convolve("second", a, {6, 5, 3}, 4, 4, 2, w2);
    const auto c = deconvolve("third", b, {3, 3, 4}, 2, 4, 2, w3);
    add_loss("c", sum_columns("sumc", map("square.c", weighted_square{}, c, c)));
    add_loss("pooled", sum_columns("sump", map("square.p", weighted_square{}, pooled, pooled)));
    add_loss("up", sum_columns("sumu", map("square.u", weighted_square{}, upsample("up", b, {3, 3, 4}),
                                           upsample("up2", b, {3, 3, 4}))));
    check(g, store, {.steps = 2, .batch = 2}, {"x"}, 90);
}

TEST_CASE("gradients without padding and without a bias agree with central differences") {
    const auto valid = padding_rule::valid;
    for (const auto& [s, F, k, stride] : {std::tuple{image_shape{8, 7, 2}, 3, 3, 2},
                                          {image_shape{4, 4, 3}, 4, 4, 1},
                                          {image_shape{6, 6, 40}, 110, 4, 2}}) {
        const int side = k;  // clang before 16 captures no binding
        CAPTURE(side);
        auto store = std::make_shared<parameters<double>>(4);
        graph<backend> g(store);
        const auto x = g.input("x", s.size() + 1, extent::sequence, true);
        const auto w = declare_convolution(g, "there", s.channels, F, k, {.variance = 1, .bias = false});
        const image_shape small = convolved(s, F, k, stride, valid);
        const auto v = declare_deconvolution(g, "back", F, 2, k, stride);
        const auto y = convolve("there", x.columns(1, s.size()), s, F, k, stride, w, valid);
        const auto z = deconvolve("back", map("tanh", mix{}, y, y), small, 2, k, stride, v, valid);
        const auto again = convolve("again", x.columns(0, s.size()), s, F, k, stride, w, valid);
        add_loss("z", sum_columns("sumz", map("square.z", weighted_square{}, z, z)));
        add_loss("again", sum_columns("suma", map("square.a", weighted_square{}, again, y)));
        check(g, store, {.steps = 2, .batch = 2}, {"x"}, 60);
    }
}

TEST_CASE("in a scan: hoisted, looped, sunk, and of an image that has no time; a weight used twice") {
    const image_shape s{3, 4, 2};
    auto store = std::make_shared<parameters<double>>(4);
    graph<backend> g(store);
    const auto x = g.input("x", s.size(), extent::sequence, true);
    const auto goal = g.input("goal", s.size(), extent::batch, true);
    const auto loop = declare_convolution(g, "loop", 2, 2, 3), still = declare_convolution(g, "still", 2, 2, 3);
    const auto back = declare_deconvolution(g, "back", 2, 1, 2, 2),
               alone = declare_deconvolution(g, "alone", 2, 2, 1, 1);
    randomise_biases(*store);
    one_state<var<backend>> start{g.state("s", s.size())};
    var<backend> pooled, up;
    const auto y = scan(g, start, [&](auto& state) {
        const auto seen = convolve("seen", x, s, 2, 3, 1, loop);
        const auto recurrent = convolve("recurrent", state.value, s, 2, 3, 1, loop);
        const auto constant = map("constants", mix{}, convolve("constant", goal, s, 2, 3, 1, still),
                                  deconvolve("alone", goal, s, 2, 1, 1, alone));
        state.value = map("mix", mix{}, map("add", mix{}, seen, constant), recurrent);
        pooled = max_pool("pool", state.value, s);
        up = upsample("up", pooled, s.reduced(2, 2));
        return deconvolve("back", state.value, s, 1, 2, 2, back);
    });
    const auto both = map("join", mix{}, x, goal);
    add_loss("y", sum_columns("sumy", map("square.y", weighted_square{}, y, y)));
    add_loss("up", sum_columns("sumu", map("square.u", weighted_square{}, up, up)));
    add_loss("still", sum_columns("sums", convolve("outside", both, s, 2, 3, 1, still)));
    for (const bool hoist : {true, false})
        check(g, store, {.steps = 3, .batch = 2, .hoist = hoist}, {"x", "goal"}, 100);
}

TEST_CASE("an image that wants no gradient, and one that has no time at all") {
    const image_shape s{4, 4, 1};
    auto store = std::make_shared<parameters<double>>(4);
    graph<backend> g(store);
    const auto x = g.input("x", s.size());
    const auto goal = g.input("goal", s.size(), extent::batch, true);
    const auto w = declare_convolution(g, "conv", 1, 2, 3), v = declare_convolution(g, "goal", 1, 2, 3);
    add_loss("x", sum_columns("sumx", map("square", weighted_square{}, convolve("conv", x, s, 2, 3, 2, w),
                                          convolve("goal", goal, s, 2, 3, 2, v))));
    add_loss("pool", sum_columns("sump", max_pool("pool", goal, s)));
    check(g, store, {.steps = 3, .batch = 2}, {"x", "goal"}, 40);
}

TEST_CASE("wrong images and weights are told when traced, with both shapes") {
    auto store = std::make_shared<parameters<double>>();
    graph<backend> g(store);
    const auto x = g.input("x", 18);
    const auto scope = g.scope("encoder");
    const auto w = declare_convolution(g, "conv", 2, 4, 3);
    CHECK_THROWS_WITH_AS(convolve("conv", x, {3, 3, 1}, 4, 3, 1, w),
                         "encoder.conv: the input has 18 columns, an image of [3,3,1] has 9", error);
    CHECK_THROWS_WITH_AS(
        convolve("conv", x, {3, 3, 2}, 5, 3, 1, w),
        "encoder.conv: the weight 'encoder.conv.weight' is [18,4], a kernel 3 from [3,3,2] to [3,3,5] needs [18,5]",
        error);
    CHECK_THROWS_WITH_AS(
        deconvolve("back", x, {3, 3, 2}, 4, 3, 2, w),
        "encoder.back: the weight 'encoder.conv.weight' is [18,4], a kernel 3 from [3,3,2] to [6,6,4] needs [36,2]",
        error);
    CHECK_THROWS_WITH_AS(convolve("conv", x, {3, 3, 2}, 4, 3, 0, w),
                         "encoder.conv: kernel 3 and stride 0; a kernel has 1 to 16 rows, a stride is at least 1",
                         error);
    CHECK_THROWS_WITH_AS(max_pool("pool", x, {2, 2, 2}),
                         "encoder.pool: the input has 18 columns, an image of [2,2,2] has 8", error);
    CHECK_THROWS_WITH_AS(upsample("up", x, {2, 2, 2}),
                         "encoder.up: the input has 18 columns, an image of [2,2,2] has 8", error);
    CHECK_THROWS_WITH_AS(convolve("conv", x, {3, 3, 2}, 4, 4, 1, w, padding_rule::valid),
                         "encoder.conv: a kernel 4 without padding does not fit into an image of [3,3,2]", error);
    const linear wrong{w.weight, g.declare("b", 1, 3, initial::zero<double>())};
    CHECK_THROWS_WITH_AS(convolve("conv", x, {3, 3, 2}, 4, 3, 1, wrong),
                         "encoder.conv: the bias 'encoder.b' has 3 entries, an image of [3,3,4] needs 4", error);
}
