// Operations on images, attention and distributions of returns on a device against the host, one update of gradients.

#include <doctest/doctest.h>

#include <functional>

#include <engram/device/operations.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/concatenate.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;

namespace {

struct squared {
    constexpr auto operator()(auto a) const { return square(a); }
};

struct squashed_sum {
    constexpr auto operator()(auto a, auto b, auto c) const { return tanh(a + b + c); }
};

/// Everything that a program leaves: loss, gradients of parameters and of its inputs.
template <class Backend>
std::vector<double> numbers_of(const graph<Backend>& g, std::shared_ptr<parameters<double>> store, int T, int B,
                               thread_order order, const std::function<double(const std::string&, int)>& fill) {
    program<Backend> p(g, store, {.steps = T, .batch = B, .gradients = true});
    if constexpr (device_backend<Backend>) p.executor().order = order;
    std::vector<double> numbers;
    for (int run = 0; run < 3; ++run) {
        int i = 0;
        for (const auto& v : g.values())
            if (p.has_input(v.name))
                for (auto& x : p.input(v.name)) x = fill(v.name, i++);
        p.forward();
        p.backward();
    }
    numbers.push_back(p.loss());
    for (const double d : p.gradient()) numbers.push_back(d);
    for (const int v : g.wanted_gradients()) {
        var<Backend> x;
        x.value = v;
        x.width = g.value(v).width;
        const auto d = p.gradient_of(x);
        for (int t = 0; t < T; ++t)
            for (int k = 0; k < B * x.width; ++k) numbers.push_back(d.at(t)[k]);
    }
    return numbers;
}

/// `trace(graph)` on both backends gives the same numbers, on the device in any order of threads the same bits.
template <class Trace>
void same_on_both(Trace trace, const std::function<double(const std::string&, int)>& fill) {
    const int T = 3, B = 2;
    const auto of = [&]<class Backend>(Backend, thread_order order) {
        const auto store = std::make_shared<parameters<double>>(3);
        graph<Backend> g(store);
        trace(g);
        return numbers_of<Backend>(g, store, T, B, order, fill);
    };
    const auto host = of(cpu<double>{}, thread_order::ascending);
    const auto device = of(emulated<double>{}, thread_order::ascending);
    REQUIRE(host.size() == device.size());
    CHECK(host.size() > 20);
    for (std::size_t i = 0; i < host.size(); ++i)
        CHECK(std::abs(device[i] - host[i]) < 1e-10 * std::max(1.0, std::abs(host[i])));
    CHECK(of(emulated<double>{}, thread_order::descending) == device);
    CHECK(of(emulated<double>{}, thread_order::scrambled) == device);
}

double noise(const std::string&, int i) {
    return static_cast<double>(philox(7, static_cast<std::uint64_t>(i)).normal());
}

template <class Backend>
struct nothing {
    BOOST_HANA_DEFINE_STRUCT(nothing, (var<Backend>, last));
};

}  // namespace

TEST_CASE("convolutions both ways, pooling, up-sampling and channels") {
    for (const padding_rule padding : {padding_rule::same, padding_rule::valid})
        for (const int stride : {1, 2}) {
            CAPTURE(stride);
            same_on_both(
                [&]<class Backend>(graph<Backend>& g) {
                    const image_shape image{5, 6, 2};
                    const auto x = g.input("x", image.size(), extent::sequence, true);
                    const auto down =
                        convolve("down", x, image, 3, 3, stride, declare_convolution(g, "down", 2, 3, 3), padding);
                    const image_shape small = convolved(image, 3, 3, stride, padding);
                    const auto up = deconvolve("up", down, small, 4, 3, stride,
                                               declare_deconvolution(g, "up", 3, 4, 3, stride), padding);
                    const image_shape large = deconvolved(small, 4, 3, stride, padding);
                    const auto parts = split_channels("parts", up, large, {1, 3});
                    const image_shape three{large.height, large.width, 3};
                    const auto grey = subtract_mean_colour("grey", parts[1], three);
                    const auto both = concatenate_channels<Backend>("both", {grey, parts[0], grey}, large);
                    const image_shape seven{large.height, large.width, 7};
                    const auto pooled = max_pool("pool", both, seven);
                    const auto grown = upsample("grown", pooled, seven.reduced(2, 7));
                    const auto norm = batch_norm("norm", grown, declare_batch_norm(g, "norm", 7));
                    add_loss("loss", sum_columns("sum", map("square", squared{}, norm.columns(0, 5))));
                    add_loss("more", sum_columns("sum.more", map("squares", squared{}, grown)), 0.1);
                },
                noise);
        }
}

TEST_CASE("convolutions both ways of channels that come in fours, and windows that cover the image") {
    for (const int stride : {1, 2})
        same_on_both(
            [&]<class Backend>(graph<Backend>& g) {
                const image_shape image{5, 6, 4};
                const auto x = g.input("x", image.size(), extent::sequence, true);
                const auto down = convolve("down", x, image, 8, 3, stride, declare_convolution(g, "down", 4, 8, 3));
                const image_shape small = convolved(image, 8, 3, stride, padding_rule::same);
                const auto up =
                    deconvolve("up", down, small, 4, 4, stride, declare_deconvolution(g, "up", 8, 4, 4, stride));
                const image_shape large = deconvolved(small, 4, 4, stride, padding_rule::same);
                const auto square = convolve("square", up.columns(0, 4 * 4 * 4), {4, 4, 4}, 3, 4, 1,
                                             declare_convolution(g, "square", 4, 3, 4), padding_rule::valid);
                const auto point = deconvolve("point", square, {1, 1, 3}, 2, 4, 1,
                                              declare_deconvolution(g, "point", 3, 2, 4, 1), padding_rule::valid);
                CHECK(large.channels == 4);
                add_loss("loss", sum_columns("sum", map("square.sum", squared{}, point)));
                add_loss("more", sum_columns("sum.more", map("squares", squared{}, up)), 0.1);
            },
            noise);
}

TEST_CASE("a convolution in a time loop, of an image without time too") {
    same_on_both(
        [&]<class Backend>(graph<Backend>& g) {
            const image_shape image{3, 4, 1};
            const auto x = g.input("x", image.size(), extent::sequence, true);
            const auto still = g.input("still", image.size(), extent::batch);
            const auto w = declare_convolution(g, "w", 1, 1, 3), u = declare_convolution(g, "u", 1, 1, 3);
            nothing<Backend> start{g.state("last", image.size())};
            const auto out = scan(g, start, [&](auto& s) {
                const auto seen = convolve("seen", s.last, image, 1, 3, 1, w);
                const auto ground = convolve("ground", still, image, 1, 3, 1, u);
                return s.last = map("add", squashed_sum{}, seen, ground, x);
            });
            add_loss("loss", sum_columns("sum", map("square", squared{}, out)));
        },
        [](const std::string& name, int i) { return name == "still" && i > 90 ? 0.5 : noise(name, i); });
}

TEST_CASE("more values side by side than one launch takes, some of them twice") {
    same_on_both(
        [&]<class Backend>(graph<Backend>& g) {
            const auto x = g.input("x", 7, extent::sequence, true), y = g.input("y", 3, extent::sequence, true);
            std::vector<var<Backend>> parts{x, y, x.columns(0, 4), x.columns(3, 4), y};
            for (int i = 0; i < 6; ++i) parts.push_back(map("square", squared{}, i % 2 ? x : x.columns(i, 2)));
            const auto all = concatenate<Backend>("all", parts);
            add_loss("loss", sum_columns("sum", map("squares", squared{}, all)));
        },
        noise);
}

TEST_CASE("attention, turned and not, over episodes") {
    for (const bool rotary : {false, true})
        same_on_both(
            [&]<class Backend>(graph<Backend>& g) {
                const auto q = g.input("q", 8, extent::sequence, true), k = g.input("k", 8, extent::sequence, true),
                           v = g.input("v", 8, extent::sequence, true), reset = g.input("reset", 1);
                attention_settings s;
                s.heads = 2;
                s.rotary = rotary;
                const auto y = attention("see", q, k, v, reset, s);
                const auto step = episode_step("step", reset, 9);
                add_loss("loss", sum_columns("sum", map("square", squared{}, y)));
                add_loss("steps", map("steps", squared{}, step));
            },
            [](const std::string& name, int i) { return name == "reset" ? double(i % 3 == 1) : noise(name, i); });
}

TEST_CASE("quantiles of returns") {
    same_on_both(
        [&]<class Backend>(graph<Backend>& g) {
            const auto z = g.input("z", 12, extent::sequence, true), y = g.input("y", 4), a = g.input("a", 1);
            const auto chosen = atoms_of("chosen", z, a, 4);
            add_loss("huber", quantile_huber_loss("loss", chosen, y, 0.7));
            add_loss("mean", sum_columns("sum", map("square", squared{}, mean_of_atoms("mean", z, 3))));
            add_loss("entropy", entropy_of_atoms("entropy", chosen));
        },
        [](const std::string& name, int i) { return name == "a" ? double(i % 3) : noise(name, i); });
}
