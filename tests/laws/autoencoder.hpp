#pragma once
// An encoder and its decoder traced as an autoencoder, and what is checked of it in double and in float.

#include <doctest/doctest.h>

#include <cstring>

#include <engram/encoder/gtmm_vision.hpp>
#include <engram/graph/program.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/softmax.hpp>

namespace autoencoding {

using namespace engram;

struct frame_error {
    auto operator()(auto a, auto b) const { return square(a - b); }
};

/// observation -> encoder -> linear code -> decoder -> squared error to a target, as an autoencoder.
template <class Vision, class Backend>
struct autoencoder {
    using real = typename Backend::real;

    typename Vision::settings settings;
    image_shape image;
    std::shared_ptr<parameters<real>> store = std::make_shared<parameters<real>>(4);
    graph<Backend> g{store};
    var<Backend> observation, x, code, pixels;
    linear to_code;
    typename Vision::weights encoder;
    typename Vision::decoder_weights decoder;
    std::int64_t encoder_count = 0, decoder_count = 0;

    autoencoder(const typename Vision::settings& s, image_shape size, int code_width, bool trace = true)
        : settings(s), image(size) {
        observation = g.input("observation", image.size(), extent::sequence, true);
        encoder = named("encoder", [&] { return Vision::declare(g, s, image); });
        encoder_count = store->total();
        decoder = named("decoder", [&] { return Vision::declare_decoder(g, s, image, code_width); });
        decoder_count = store->total() - encoder_count;
        if (!trace) return;
        x = encode(observation);
        declare_code(x.width, code_width);
        code = affine("code", x, to_code);
        pixels = decode(code);
        const var<Backend> target = g.input("target", image.size());
        add_loss("error", sum_columns("error", map("squared", frame_error{}, pixels, target)), 1, reduction::mean);
        unsettle();
    }
    template <class Body>
    auto named(const std::string& name, Body body) {
        const auto scope = g.scope(name);
        return body();
    }
    var<Backend> encode(const var<Backend>& v) {
        return named("encoder", [&] { return Vision::encode(settings, encoder, v, image); });
    }
    var<Backend> decode(const var<Backend>& v) {
        return named("decoder", [&] { return Vision::decode(settings, decoder, v, image); });
    }
    void declare_code(int from, int to) { to_code = g.declare_linear("code", from, to); }
    /// Scales, offsets and biases must not stand at their first values, where errors in their use do not show.
    void unsettle() {
        philox random(2, 2);
        auto edit = store->edit();
        for (std::size_t i = 0; i < store->entries().size(); ++i)
            for (int k = 0; store->entries()[i].rows == 1 && k < store->entries()[i].size(); ++k)
                edit.values({static_cast<int>(i)})[k] += static_cast<real>(0.1 * static_cast<double>(random.normal()));
    }
};

template <class Backend>
void draw_statistics(program<Backend>& p) {
    philox random(5, 5);
    for (std::size_t r = 0; r < p.resource_count(); ++r) {
        auto& running = static_cast<running_statistics<typename Backend::real>&>(*p.bound_resource(r));
        for (auto& v : running.mean) v = static_cast<typename Backend::real>(0.3 * double(random.normal()));
        for (auto& v : running.variance) v = static_cast<typename Backend::real>(0.5 + double(random.uniform()));
    }
}
template <class Backend>
void draw_inputs(program<Backend>& p, const graph<Backend>& g) {
    for (const auto& v : g.values()) {
        if (!p.has_input(v.name)) continue;
        philox random(7, v.name.size());
        for (auto& number : p.input(v.name)) number = static_cast<typename Backend::real>(random.uniform());
    }
}

/// Every row of a batch has the bits that it has alone.
template <class Vision, class Backend>
void rows_stand_alone(const typename Vision::settings& s, image_shape image) {
    const int T = 2, B = 5;
    autoencoder<Vision, Backend> m(s, image, 6);
    const std::vector<var<Backend>> watched{m.x, m.code, m.pixels};
    program<Backend> whole(m.g, m.store, {.steps = T, .batch = B}, watched),
        alone(m.g, m.store, {.steps = 1, .batch = 1}, watched);
    draw_statistics(whole);
    draw_inputs(whole, m.g);
    whole.forward();
    for (int r = 0; r < T * B; ++r) {
        std::copy_n(whole.input("observation").data() + r * image.size(), image.size(),
                    alone.input("observation").data());
        alone.forward();
        for (const auto& v : watched)
            CHECK(std::memcmp(alone.output(v).data, whole.output(v).data + r * v.width,
                              sizeof(typename Backend::real) * static_cast<std::size_t>(v.width)) == 0);
    }
}

inline gtmm_vision::settings network(const std::string& name, bool frozen = false) {
    return {.network = {"network", name}, .layers = {7, 6}, .frozen = frozen};
}

}  // namespace autoencoding
