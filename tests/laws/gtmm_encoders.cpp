// The laws of the visual networks of the generative temporal models: gradients, rows that do not meet, statistics that
// are learnt in one trace and used in another, sizes and errors.

#include "autoencoder.hpp"

#include <engram/core/settings.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/softmax.hpp>

using namespace autoencoding;

namespace {

struct to_pixel {
    auto operator()(auto x) const { return logistic(x); }
};
template <class Var>
struct one_state {
    BOOST_HANA_DEFINE_STRUCT(one_state, (Var, value));
};

/// backward() against central differences (five points), relative to the larger slope but at least to a thousandth of
/// the largest of the same tensor. Among thousands of ReLUs some stand within a step of their corner, where a
/// difference is wrong, and small steps drown in rounding; so a slope is right if it is that of one of four steps.
void compare_slopes(const graph<cpu<double>>& g, std::shared_ptr<parameters<double>> store, plan_options options,
                    int samples, int least) {
    options.gradients = true;
    program<cpu<double>> p(g, store, options);
    const auto loss = [&] {
        p.forward();
        return p.loss();
    };
    draw_inputs(p, g);
    draw_statistics(p);
    loss();
    p.backward();
    const std::vector<double> slopes(p.gradient().begin(), p.gradient().end());
    double worst = 0;
    std::string where;
    int compared = 0;
    const auto compare = [&](const std::string& name, std::span<const double> tensor, const auto& nudge) {
        double largest = 0;
        for (const double v : tensor) largest = std::max(largest, std::abs(v));
        const std::size_t stride = tensor.size() / static_cast<std::size_t>(samples) | 1;
        for (std::size_t i = 0; i < tensor.size(); i += stride, ++compared) {
            double best = INFINITY;
            for (const double step : {1e-3, 1e-4, 1e-5, 1e-6}) {
                const double difference =
                    (nudge(i, -2 * step) - 8 * nudge(i, -step) + 8 * nudge(i, step) - nudge(i, 2 * step)) / (12 * step);
                const double size = std::max({std::abs(tensor[i]), std::abs(difference), 1e-3 * largest, 1e-9});
                best = std::min(best, std::abs(tensor[i] - difference) / size);
                if (best < 1e-7) break;
            }
            if (best <= worst) continue;
            worst = best;
            where = message(name, "[", i, "]: backward ", tensor[i], ", largest ", largest);
        }
    };
    for (std::size_t id = 0; id < store->entries().size(); ++id) {
        const auto& e = store->entries()[id];
        compare(e.name,
                std::span(slopes).subspan(static_cast<std::size_t>(e.offset), static_cast<std::size_t>(e.size())),
                [&](std::size_t i, double by) {
                    const auto set = [&](double to) { store->edit().values({static_cast<int>(id)})[i] = to; };
                    const double before = store->values({static_cast<int>(id)})[i];
                    set(before + by);
                    const double l = loss();
                    set(before);
                    return l;
                });
    }
    const auto seen = p.input("observation");
    var<cpu<double>> observation;
    observation.value = g.wanted_gradients()[0];
    observation.width = g.value(observation.value).width;
    loss();
    p.backward();
    CHECK(std::equal(slopes.begin(), slopes.end(), p.gradient().begin()));
    const auto d = p.gradient_of(observation);
    const std::vector<double> input_slopes(d.data, d.data + seen.size());
    compare("observation", input_slopes, [&](std::size_t i, double by) {
        const double before = seen[i];
        seen[i] = before + by;
        const double l = loss();
        seen[i] = before;
        return l;
    });
    INFO(where);
    MESSAGE(compared, " slopes, worst relative difference ", worst);
    CHECK(worst < 1e-6);
    CHECK(compared >= least);
}

template <class Vision>
void differentiates(const typename Vision::settings& s, image_shape image, int samples, int least) {
    autoencoder<Vision, cpu<double>> m(s, image, 5);
    compare_slopes(m.g, m.store, {.steps = 2, .batch = 2}, samples, least);
}

}  // namespace

TEST_CASE("inception differentiates, through the statistics and around them") {
    for (const bool frozen : {false, true}) {
        differentiates<inception>({.stream_maps = 2, .maps = {3, 4}, .frozen = frozen}, {8, 8, 2}, 24, 400);
        differentiates<inception>({.stream_maps = 1, .maps = {2, 3}, .frozen = frozen}, {12, 12, 2}, 24, 300);
    }
}

TEST_CASE("two_pathway differentiates") {
    differentiates<two_pathway>({.global_maps = {3, 4, 5}, .local_maps = {3, 2}}, {32, 32, 3}, 24, 250);
}

TEST_CASE("gtmm_vision differentiates") {
    differentiates<gtmm_vision>(network("mlp"), {4, 4, 1}, 24, 100);
    differentiates<gtmm_vision>(network("inception"), {4, 4, 2}, 4, 150);
}

TEST_CASE("a row of a batch equals the row alone") {
    rows_stand_alone<inception, cpu<double>>({.stream_maps = 3, .maps = {5, 6}, .frozen = true}, {12, 12, 2});
    rows_stand_alone<gtmm_vision, cpu<double>>(network("inception", true), {28, 28, 1});
    rows_stand_alone<gtmm_vision, cpu<double>>(network("two_pathway", true), {32, 32, 3});
    rows_stand_alone<gtmm_vision, cpu<double>>(network("mlp", true), {28, 28, 1});
}

TEST_CASE("statistics learnt by one trace serve a frozen one, bit for bit") {
    using backend = cpu<double>;
    const image_shape image{12, 12, 1};
    autoencoder<gtmm_vision, backend> learning(network("inception"), image, 6),
        generating(network("inception", true), image, 6);
    program<backend> learner(learning.g, learning.store, {.steps = 2, .batch = 3, .gradients = true});
    draw_inputs(learner, learning.g);
    for (int update = 0; update < 3; ++update) learner.forward();
    program<backend> looking(learning.g, learning.store, {.steps = 2, .batch = 3}, {learning.x, learning.pixels});
    program<backend> frozen(generating.g, learning.store, {.steps = 2, .batch = 3}, {generating.x, generating.pixels});
    REQUIRE(learner.resource_count() == 6);
    REQUIRE(learning.g.resources().size() == generating.g.resources().size());
    for (auto* p : {&looking, &frozen}) {
        draw_inputs(*p, learning.g);
        p->forward();
    }
    const auto differ = [&] {
        int count = 0;
        for (const auto& [a, b] : {std::pair{learning.x, generating.x}, {learning.pixels, generating.pixels}})
            for (int i = 0; i < 6 * a.width; ++i) count += looking.output(a).data[i] != frozen.output(b).data[i];
        return count;
    };
    CHECK(differ() > 1000);
    for (std::size_t r = 0; r < learner.resource_count(); ++r) {
        CHECK(learning.g.resources()[r].name == generating.g.resources()[r].name);
        const auto from = learner.bound_resource(r)->bytes(), to = frozen.bound_resource(r)->bytes();
        REQUIRE(from.size() == to.size());
        for (std::size_t i = 0; i < from.size(); ++i) {
            REQUIRE(from[i].size() == to[i].size());
            std::copy(from[i].begin(), from[i].end(), to[i].begin());
        }
    }
    CHECK(learning.g.resources()[0].name == "encoder.block.0.streams.statistics");
    frozen.forward();
    CHECK(differ() == 0);
    // A plan with gradients of the frozen trace keeps the statistics as they are.
    program<backend> tuned(generating.g, learning.store, {.steps = 2, .batch = 3, .gradients = true}, {generating.x});
    draw_inputs(tuned, generating.g);
    tuned.forward();
    CHECK(static_cast<running_statistics<double>&>(*tuned.bound_resource(0)).updates == 3);
}

TEST_CASE("frozen networks inside a scan: what they dream equals steps made one by one") {
    using backend = cpu<double>;
    const inception::settings s{.stream_maps = 2, .maps = {3, 2}, .frozen = true};
    const image_shape image{8, 8, 1};
    const int T = 4, B = 2;
    // What is seen is encoded in the body as well: it needs no state, but stays in the loop with its statistics.
    autoencoder<inception, backend> m(s, image, 5, false), single(s, image, 5);
    m.declare_code(2 * 2 * 2, 5);
    m.unsettle();
    one_state<var<backend>> start{m.g.state("code", 5)};
    var<backend> seen;
    const auto frames = scan(m.g, start, [&](auto& now) {
        seen = m.encode(m.observation);
        const auto frame = map("frame", to_pixel{}, m.decode(now.value));
        now.value = affine("code", m.named("again", [&] { return m.encode(frame); }), m.to_code);
        return frame;
    });
    const auto target = m.g.input("target", image.size());
    add_loss("frames", sum_columns("f", map("f.squared", frame_error{}, frames, target)));
    add_loss("seen", sum_columns("s", map("s.squared", frame_error{}, seen, seen.columns(0, 1))));

    for (const bool hoist : {true, false}) {
        program<backend> dream(m.g, m.store, {.steps = T, .batch = B, .hoist = hoist}, {frames, seen});
        program<backend> step(single.g, m.store, {.steps = 1, .batch = B}, {single.x, single.pixels});
        draw_inputs(dream, m.g);
        draw_statistics(dream);
        draw_statistics(step);
        // The step's decoder reads what its encoder makes, so it starts one frame later.
        dream.forward();
        for (int t = 0; t < T; ++t) {
            std::copy_n(dream.output(frames).at(t), B * image.size(), step.input("observation").data());
            step.forward();
            for (int i = 0; t + 1 < T && i < B * image.size(); ++i)
                REQUIRE(dream.output(frames).at(t + 1)[i] ==
                        doctest::Approx(1 / (1 + std::exp(-step.output(single.pixels).data[i]))).epsilon(1e-12));
            std::copy_n(dream.input("observation").data() + t * B * image.size(), B * image.size(),
                        step.input("observation").data());
            step.forward();
            REQUIRE(std::memcmp(step.output(single.x).data, dream.output(seen).at(t),
                                sizeof(double) * static_cast<std::size_t>(B * seen.width)) == 0);
        }
        CHECK(dream.output(frames).at(1)[0] != dream.output(frames).at(2)[0]);
    }
    for (const bool hoist : {true, false})
        compare_slopes(m.g, m.store, {.steps = T, .batch = B, .hoist = hoist}, 12, 200);
}

TEST_CASE("a scan and threads are refused while statistics are those of the batch") {
    using backend = cpu<double>;
    autoencoder<inception, backend> m({.stream_maps = 1, .maps = {2, 2}}, {8, 8, 1}, 3);
    CHECK_THROWS_WITH_AS(
        program<backend>(m.g, m.store, {.steps = 2, .batch = 2, .gradients = true, .total_batch = 4}),
        "encoder.block.0.streams: rows of the batch meet in it, so the batch cannot be split; expected a single shard",
        error);
    one_state<var<backend>> start{m.g.state("s", 3)};
    CHECK_THROWS_WITH_AS(scan(m.g, start, [&](auto&) { return m.encode(m.observation); }),
                         "encoder.block.0.streams: statistics of a batch need all its steps at once; normalise outside "
                         "the scan or freeze them",
                         error);
}

TEST_CASE("sizes: x has the maps of half the side twice, and a decoder gives the image's size back") {
    using backend = cpu<double>;
    for (const auto& [side, small] : {std::pair{28, 7}, {32, 8}, {14, 4}, {27, 7}, {1, 1}}) {
        auto store = std::make_shared<parameters<double>>();
        graph<backend> g(store);
        const image_shape image{side, side, 1};
        const auto s = network("inception");
        const auto x = gtmm_vision::encode(s, gtmm_vision::declare(g, s, image), g.input("o", image.size()), image);
        CHECK(x.width == small * small * 64);
    }
    for (const auto& [name, image] : {std::pair{"inception", image_shape{28, 28, 1}},
                                      {"inception", {32, 32, 1}},
                                      {"inception", {4, 8, 3}},
                                      {"two_pathway", {32, 32, 3}},
                                      {"mlp", {5, 7, 2}}}) {
        const std::string encoder = name;  // clang before 16 captures no binding
        CAPTURE(encoder);
        const autoencoder<gtmm_vision, backend> m(network(name), image, 9);
        CHECK(m.pixels.width == image.size());
    }
}

TEST_CASE("parameters at the paper's sizes") {
    using backend = cpu<double>;
    const auto count = [](const std::string& name, image_shape image, int code, const std::string& what) {
        const autoencoder<gtmm_vision, backend> m(network(name), image, code, false);
        MESSAGE(what, ", a code of ", code, ": encoder ", m.encoder_count, ", decoder ", m.decoder_count);
        return std::pair{m.encoder_count, m.decoder_count};
    };
    // Taps of the four kernels: 1 + 9 + 25 + 49.
    const std::int64_t taps = 84, streams = taps * 8 * 1 + taps * 8 * 32, reduced = 9 * 32 * 32 + 9 * 32 * 64;
    const std::int64_t norms = 2 * (32 + 32 + 32);
    for (const auto& [side, small] : {std::pair{28, 7}, {32, 8}}) {
        const auto [encoder, decoder] = count("inception", {side, side, 1}, 192, side == 28 ? "28 x 28" : "32 x 32");
        CHECK(encoder == streams + reduced + norms + 64);
        CHECK(decoder == (192 + 1) * small * small * 64 + streams + reduced + norms + 1);
    }
    const auto [encoder, decoder] = count("two_pathway", {32, 32, 3}, 1536, "32 x 32 x 3");
    const std::int64_t paths = 25 * 3 * 128 + 16 * 128 * 256 + 16 * 256 * 256 + 16 * 3 * 16 + 16 * 16 * 8;
    CHECK(encoder == paths + 128 + 256 + 256 + 16 + 8);
    CHECK(decoder == (1536 + 1) * 768 + paths + 256 + 128 + 3 + 16);
}

TEST_CASE("only the chosen network is declared; a decoder of an mlp has its layers backwards") {
    using backend = cpu<double>;
    const autoencoder<gtmm_vision, backend> m(network("mlp"), {4, 4, 1}, 9);
    std::vector<std::pair<int, int>> shapes;
    for (const auto& e : m.store->entries()) {
        CHECK((e.name.find("layers") != std::string::npos || e.name.find("pixels") != std::string::npos ||
               e.name.find("code") == 0));
        if (e.rows > 1) shapes.emplace_back(e.rows, e.columns);
    }
    CHECK(shapes == std::vector<std::pair<int, int>>{{16, 7}, {7, 6}, {9, 6}, {6, 7}, {7, 16}, {6, 9}});
    CHECK(m.g.resources().empty());
}

TEST_CASE("settings and images that cannot be are told in one sentence") {
    using backend = cpu<double>;
    auto store = std::make_shared<parameters<double>>();
    graph<backend> g(store);
    gtmm_vision::settings s;
    CHECK_THROWS_WITH_AS(set(s, "network", "incepton"), "unknown network 'incepton'; did you mean 'inception'?", error);
    set(s, "frozen", "true");
    CHECK(s.frozen);
    CHECK_THROWS_WITH_AS(set(s, {{"network", "mlp"}, {"layers", "3,0"}}),
                         "encoder.layers: expected positive widths, got 0", error);
    inception::settings i;
    CHECK_THROWS_WITH_AS(set(i, "maps", "32,0"), "encoder.maps: expected positive numbers, got 0", error);
    CHECK_THROWS_WITH_AS(set(i, "stream_maps", "0"), "encoder.stream_maps: expected at least one map a stream, got 0",
                         error);
    CHECK_THROWS_WITH_AS(inception::declare_decoder(g, i, {30, 30, 1}, 4),
                         "encoder.decoder: images of 30 x 30 cannot be doubled back from 2 blocks; height and width "
                         "must be multiples of 4",
                         error);
    two_pathway::settings t;
    CHECK_THROWS_WITH_AS(set(t, "global_maps", "1,2"), "encoder.global_maps: expected three numbers, got 2", error);
    CHECK_THROWS_WITH_AS(set(t, "local_maps", "1,-2"), "encoder.local_maps: expected positive numbers, got -2", error);
    const std::string expected = "encoder: the two-pathway network takes images of 32 x 32 x 3, not 28 x 28 x 1";
    CHECK_THROWS_WITH_AS(two_pathway::declare(g, t, {28, 28, 1}), expected.c_str(), error);
    CHECK_THROWS_WITH_AS(two_pathway::declare_decoder(g, t, {28, 28, 1}, 4), expected.c_str(), error);
}
