// Channels of images joined and parted: values against plain loops, gradients against central differences.

#include <doctest/doctest.h>

#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/channels.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;
using backend = cpu<double>;

namespace {

struct cubic {
    auto operator()(auto a, auto b) const { return a * b + 0.3 * square(a) * a; }
};
template <class Var>
struct one_state {
    BOOST_HANA_DEFINE_STRUCT(one_state, (Var, value));
};

void draw(std::span<double> to, std::uint64_t stream) {
    philox random(9, stream);
    for (double& v : to) v = static_cast<double>(random.normal());
}

void add_cubic_loss(const std::string& name, const var<backend>& x) {
    add_loss(name, sum_columns(name + ".sum", map(name + ".cubic", cubic{}, x, x)));
}

void check(const graph<backend>& g, std::shared_ptr<parameters<double>> store, plan_options o, int at_least) {
    const auto report = check_gradients<backend>(g, store, o, [&](auto& p) {
        for (const auto& v : g.values())
            if (p.has_input(v.name)) draw(p.input(v.name), v.name.size());
    });
    INFO(report.where);
    CHECK(report.worst < 1e-6);
    CHECK(report.compared >= at_least);
    CHECK(report.same_bits_twice);
}

}  // namespace

TEST_CASE("joined and parted as plain loops do it, and back") {
    const int H = 3, W = 2, T = 2, B = 3;
    const std::vector<int> channels{1, 3, 2};
    auto store = std::make_shared<parameters<double>>();
    graph<backend> g(store);
    const auto x = g.input("x", 1 + H * W * 6);  // the images stand one column in
    std::vector<var<backend>> images;
    int first = 1;
    for (const int c : channels) {
        images.push_back(x.columns(first, H * W * c));
        first += H * W * c;
    }
    const auto all = concatenate_channels("join", images, {H, W, 1});
    const auto parts = split_channels("part", all, {H, W, 6}, channels);
    REQUIRE(all.width == H * W * 6);
    REQUIRE(parts.size() == 3);
    program<backend> p(g, store, {.steps = T, .batch = B}, {all, parts[0], parts[1], parts[2]});
    draw(p.input("x"), 1);
    p.forward();
    for (int r = 0; r < T * B; ++r) {
        const double* row = p.input("x").data() + r * x.width + 1;
        int before = 0;
        for (std::size_t i = 0; i < 3; ++i) {
            REQUIRE(parts[i].width == H * W * channels[i]);
            for (int pixel = 0; pixel < H * W; ++pixel)
                for (int c = 0; c < channels[i]; ++c) {
                    const double expected = row[H * W * before + pixel * channels[i] + c];
                    CHECK(p.output(all).data[r * all.width + pixel * 6 + before + c] == expected);
                    CHECK(p.output(parts[i]).data[r * parts[i].width + pixel * channels[i] + c] == expected);
                }
            before += channels[i];
        }
    }
}

TEST_CASE("gradients: parts used never, once and twice; an image that wants none") {
    const image_shape s{2, 3, 5};
    auto store = std::make_shared<parameters<double>>(4);
    graph<backend> g(store);
    const auto in = g.input("x", 4, extent::sequence, true), extra = g.input("extra", 6);
    // A weight, because a second backward() is compared by the gradients of weights.
    const auto w = g.declare_linear("w", 4, s.size());
    const auto x = affine("in", in, w);
    const auto parts = split_channels("part", x, s, {2, 1, 2});
    const auto joined = concatenate_channels<backend>("join", {parts[2], extra, parts[0], parts[2]}, s);
    add_cubic_loss("joined", joined);
    add_cubic_loss("again", x);  // a second writer of the gradient of x
    check(g, store, {.steps = 2, .batch = 2}, 24);
    // The only writer stores: channel 1 of the five passes nothing back, and must still be written.
    graph<backend> alone(store);
    const auto y = affine("in", alone.input("y", 4, extent::sequence, true), w);
    const auto some = split_channels("part", y, s, {2, 1, 2});
    add_cubic_loss("first", some[0]);
    add_cubic_loss("last", some[2]);
    check(alone, store, {.steps = 2, .batch = 2}, 24);
}

TEST_CASE("in a scan, with an image that has no time") {
    const image_shape s{2, 2, 3};
    auto store = std::make_shared<parameters<double>>(4);
    graph<backend> g(store);
    const auto x = g.input("x", 4, extent::sequence, true);
    const auto goal = g.input("goal", 12, extent::batch, true);
    one_state<var<backend>> start{g.state("s", s.size())};
    const auto y = scan(g, start, [&](auto& state) {
        const auto parts = split_channels("part", state.value, s, {1, 2}),
                   still = split_channels("still", goal, s, {2, 1});
        state.value = concatenate_channels<backend>("join", {map("mix", cubic{}, still[1], x), still[0]}, s);
        return map("out", cubic{}, parts[0], concatenate_channels<backend>("again", {x}, s));
    });
    add_cubic_loss("y", y);
    add_cubic_loss("goal", concatenate_channels<backend>("still.join", {goal, goal}, s));
    for (const bool hoist : {true, false}) check(g, store, {.steps = 3, .batch = 2, .hoist = hoist}, 36);
}

TEST_CASE("images that do not fit are told when traced") {
    auto store = std::make_shared<parameters<double>>();
    graph<backend> g(store);
    const auto x = g.input("x", 18), y = g.input("y", 10);
    const auto scope = g.scope("encoder");
    CHECK_THROWS_WITH_AS(concatenate_channels<backend>("join", {x, y}, {3, 3, 1}),
                         "encoder.join: 10 columns are not an image of height 3 and width 3", error);
    CHECK_THROWS_WITH_AS(concatenate_channels<backend>("join", {}, {3, 3, 1}), "join: nothing to concatenate", error);
    CHECK_THROWS_WITH_AS(split_channels("part", x, {3, 3, 1}, {1}),
                         "encoder.part: the input has 18 columns, an image of [3,3,1] has 9", error);
    CHECK_THROWS_WITH_AS(split_channels("part", x, {3, 3, 2}, {1, 2}),
                         "encoder.part: parts of 3 channels do not make up an image of [3,3,2]", error);
    CHECK_THROWS_WITH_AS(split_channels("part", x, {3, 3, 2}, {2, 0}),
                         "encoder.part: an image needs at least one channel, not 0", error);
}

TEST_CASE("an image without its mean colour: plain loops, gradients, and grounds do not matter") {
    const int H = 3, W = 2, C = 3, T = 2, B = 3;
    auto store = std::make_shared<parameters<double>>();
    graph<backend> g(store);
    const auto x = g.input("x", H * W * C);
    const auto relative = subtract_mean_colour(
        "relative", affine("mixed", x, g.declare_linear("mixed", H * W * C, H * W * C)), {H, W, C});
    const auto plain = subtract_mean_colour("plain", x, {H, W, C});
    add_cubic_loss("loss", relative);
    program<backend> p(g, store, {.steps = T, .batch = B, .gradients = true}, {plain});
    draw(p.input("x"), 3);
    p.forward();
    const auto out = p.output(plain);
    const std::vector<double> first(out.at(1) + out.stride, out.at(1) + out.stride + H * W * C);
    for (int c = 0; c < C; ++c) {
        const double* image = p.input("x").data() + (1 * B + 1) * H * W * C;
        double mean = 0;
        for (int i = 0; i < H * W; ++i) mean += image[i * C + c] / (H * W);
        for (int i = 0; i < H * W; ++i)
            CHECK(first[static_cast<std::size_t>(i * C + c)] == doctest::Approx(image[i * C + c] - mean));
    }
    for (std::size_t i = 0; i < p.input("x").size(); ++i) p.input("x")[i] += 0.5 * static_cast<double>(1 + i % C);
    p.forward();
    for (int i = 0; i < H * W * C; ++i)
        CHECK(out.at(1)[out.stride + i] == doctest::Approx(first[static_cast<std::size_t>(i)]));
    check(g, store, {.steps = T, .batch = B, .gradients = true}, 40);
    CHECK_THROWS_AS(subtract_mean_colour("wrong", x, {H, W, 1}), error);
}
