// The visual networks of the generative temporal models (facts 4.7) and their transposes by naive loops over every tap.

#include "loops.hpp"

#include <engram/encoder/inception.hpp>
#include <engram/encoder/two_pathway.hpp>
#include <engram/operations/loss.hpp>

using namespace engram;
using oracle::numbers;
using backend = cpu<double>;

namespace {

struct image {
    int height, width, channels;
    numbers data;

    double& at(int y, int x, int c) { return data[static_cast<std::size_t>((y * width + x) * channels + c)]; }
    bool inside(int y, int x) const { return y >= 0 && y < height && x >= 0 && x < width; }
};
using images = std::vector<image>;

image blank(int height, int width, int channels) {
    return {height, width, channels, numbers(static_cast<std::size_t>(height * width * channels))};
}

/// A weight or a bias by name; a layer without a bias has zeros.
numbers all_of(const parameters<double>& store, const std::string& name, int otherwise = 0) {
    for (std::size_t i = 0; i < store.entries().size(); ++i)
        if (store.entries()[i].name == name) {
            const double* first = store.values({static_cast<int>(i)});
            return {first, first + store.entries()[i].size()};
        }
    REQUIRE(otherwise > 0);
    return numbers(static_cast<std::size_t>(otherwise));
}

// Output o looks at inputs o * stride - before + tap.
image convolve(const parameters<double>& store, const std::string& name, image from, int filters, int kernel,
               int stride, int before, int size) {
    image to = blank(size, size, filters);
    const numbers w = all_of(store, name + ".weight"), b = all_of(store, name + ".bias", filters);
    REQUIRE(static_cast<int>(w.size()) == kernel * kernel * from.channels * filters);
    for (int y = 0; y < size; ++y)
        for (int x = 0; x < size; ++x)
            for (int f = 0; f < filters; ++f) {
                double sum = b[static_cast<std::size_t>(f)];
                for (int i = 0; i < kernel; ++i)
                    for (int j = 0; j < kernel; ++j)
                        for (int c = 0; c < from.channels; ++c) {
                            const int v = y * stride - before + i, u = x * stride - before + j;
                            if (from.inside(v, u))
                                sum +=
                                    from.at(v, u, c) *
                                    w[static_cast<std::size_t>(((i * kernel + j) * from.channels + c) * filters + f)];
                        }
                to.at(y, x, f) = sum;
            }
    return to;
}

// Input i sends its taps to outputs i * stride - before + tap.
image send_back(const parameters<double>& store, const std::string& name, image from, int filters, int kernel,
                int stride, int before, int size) {
    image to = blank(size, size, filters);
    const numbers w = all_of(store, name + ".weight"), b = all_of(store, name + ".bias", filters);
    REQUIRE(static_cast<int>(w.size()) == kernel * kernel * filters * from.channels);
    for (int y = 0; y < from.height; ++y)
        for (int x = 0; x < from.width; ++x)
            for (int i = 0; i < kernel; ++i)
                for (int j = 0; j < kernel; ++j) {
                    const int v = y * stride - before + i, u = x * stride - before + j;
                    for (int f = 0; f < filters && to.inside(v, u); ++f)
                        for (int c = 0; c < from.channels; ++c)
                            to.at(v, u, f) +=
                                from.at(y, x, c) *
                                w[static_cast<std::size_t>(((i * kernel + j) * filters + f) * from.channels + c)];
                }
    for (std::size_t k = 0; k < to.data.size(); ++k) to.data[k] += b[k % static_cast<std::size_t>(filters)];
    return to;
}

/// Mean and variance of every channel over all images, or those given.
struct statistics {
    numbers mean, variance;
};

images normalise(const parameters<double>& store, const std::string& name, images all, const statistics* running) {
    const int channels = all[0].channels;
    for (int c = 0; c < channels; ++c) {
        double mean = 0, variance = 0, n = 0;
        for (image& x : all)
            for (std::size_t k = static_cast<std::size_t>(c); k < x.data.size();
                 k += static_cast<std::size_t>(channels))
                mean += x.data[k], n += 1;
        mean /= n;
        for (image& x : all)
            for (std::size_t k = static_cast<std::size_t>(c); k < x.data.size();
                 k += static_cast<std::size_t>(channels))
                variance += (x.data[k] - mean) * (x.data[k] - mean) / n;
        if (running) mean = running->mean[static_cast<std::size_t>(c)];
        if (running) variance = running->variance[static_cast<std::size_t>(c)];
        const double scale = oracle::weight(store, name + ".scale", 0, c),
                     offset = oracle::weight(store, name + ".offset", 0, c);
        for (image& x : all)
            for (std::size_t k = static_cast<std::size_t>(c); k < x.data.size();
                 k += static_cast<std::size_t>(channels))
                x.data[k] = std::max(0.0, scale * (x.data[k] - mean) / std::sqrt(variance + 1e-5) + offset);
    }
    return all;
}

numbers centred(numbers pixels) {
    for (double& p : pixels) p = 2 * p - 1;
    return pixels;
}
image relu(image x) {
    x.data = oracle::relu(x.data);
    return x;
}

/// Encoder and decoder of Vision traced side by side, every weight moved off its first value.
template <class Vision>
struct traced {
    static constexpr int T = 2, B = 2;

    std::shared_ptr<parameters<double>> store = std::make_shared<parameters<double>>(4);
    graph<backend> g{store};
    var<backend> observation, x, code, pixels;
    std::unique_ptr<program<backend>> p;

    traced(const typename Vision::settings& s, image_shape image, int code_width, bool gradients) {
        observation = g.input("observation", image.size());
        code = g.input("code", code_width);
        {
            const auto scope = g.scope("encoder");
            x = Vision::encode(s, Vision::declare(g, s, image), observation, image);
        }
        {
            const auto scope = g.scope("decoder");
            pixels = Vision::decode(s, Vision::declare_decoder(g, s, image, code_width), code, image);
        }
        philox random(2, 2);
        {
            auto edit = store->edit();
            for (double& w : edit.flat()) w += 0.1 * static_cast<double>(random.normal());
        }
        if (gradients)
            for (const auto& v : {x, pixels}) add_loss(g.info(v).name + ".loss", sum_columns("sum", v));
        p = std::make_unique<program<backend>>(g, store, plan_options{.steps = T, .batch = B, .gradients = gradients},
                                               std::vector{x, pixels});
        for (double& v : p->input("observation")) v = static_cast<double>(random.uniform());
        for (double& v : p->input("code")) v = static_cast<double>(random.normal());
        for (std::size_t r = 0; r < g.resources().size(); ++r) {
            auto& running = static_cast<running_statistics<double>&>(*p->bound_resource(r));
            for (double& v : running.mean) v = 0.3 * static_cast<double>(random.normal());
            for (double& v : running.variance) v = 0.5 + static_cast<double>(random.uniform());
        }
        for (std::size_t r = 0; r < g.resources().size(); ++r) {
            const auto& running = static_cast<running_statistics<double>&>(*p->bound_resource(r));
            known.emplace_back(g.resources()[r].name, statistics{{running.mean.begin(), running.mean.end()},
                                                                 {running.variance.begin(), running.variance.end()}});
        }
        p->forward();
    }
    std::vector<std::pair<std::string, statistics>> known;

    const statistics* running(const std::string& name) const {
        for (const auto& [full, s] : known)
            if (full == name + ".statistics") return &s;
        FAIL(name);
        return nullptr;
    }
    numbers row(const var<backend>& v, int r) const { return oracle::row(p->output(v), r / B, r % B); }
};

void compare_inception(int side, int channels, int stream_maps, std::vector<int> maps, bool frozen, bool gradients) {
    CAPTURE(side);
    CAPTURE(frozen);
    const image_shape size{side, side, channels};
    const traced<inception> m({.stream_maps = stream_maps, .maps = maps, .frozen = frozen}, size, 5, gradients);
    const auto& store = *m.store;
    const bool batch_statistics = gradients && !frozen;
    const auto normal = [&](const std::string& name, const images& all) {
        return normalise(store, name, all, batch_statistics ? nullptr : m.running(name));
    };
    const int rows = traced<inception>::T * traced<inception>::B, joined = 4 * stream_maps;
    images all;
    for (int r = 0; r < rows; ++r) all.push_back({side, side, channels, centred(m.row(m.observation, r))});
    std::vector<int> sides{side};
    for (std::size_t i = 0; i < maps.size(); ++i) {
        const std::string name = "encoder.block." + std::to_string(i);
        const int now = sides.back(), next = (now + 1) / 2;
        images streams;
        for (const image& x : all) {
            image together = blank(now, now, joined);
            for (int k = 0; k < 4; ++k) {
                const int kernel = 2 * k + 1;
                image one =
                    convolve(store, name + ".stream." + std::to_string(kernel), x, stream_maps, kernel, 1, k, now);
                for (int v = 0; v < now; ++v)
                    for (int u = 0; u < now; ++u)
                        for (int c = 0; c < stream_maps; ++c) together.at(v, u, k * stream_maps + c) = one.at(v, u, c);
            }
            streams.push_back(together);
        }
        // 3 x 3, stride 2, SAME: an even side needs one zero, which goes after; an odd one two.
        all = normal(name + ".streams", streams);
        for (image& x : all) x = convolve(store, name + ".reduce", x, maps[i], 3, 2, now % 2, next);
        if (i + 1 < maps.size()) all = normal(name + ".maps", all);
        sides.push_back(next);
    }
    for (int r = 0; r < rows; ++r) oracle::check_near(m.row(m.x, r), all[static_cast<std::size_t>(r)].data);

    all.clear();
    for (int r = 0; r < rows; ++r)
        all.push_back({sides.back(), sides.back(), maps.back(),
                       oracle::relu(oracle::affine(store, "decoder.layers.0", m.row(m.code, r)))});
    for (std::size_t i = maps.size(); i-- > 0;) {
        const std::string name = "decoder.block." + std::to_string(i);
        const int to = i > 0 ? maps[i - 1] : channels, now = sides[i];
        for (image& x : all) x = send_back(store, name + ".enlarge", x, joined, 3, 2, 0, now);
        all = normal(name + ".streams", all);
        for (image& x : all) {
            image sum = blank(now, now, to);
            for (int k = 0; k < 4; ++k) {
                const int kernel = 2 * k + 1;
                image few = blank(now, now, stream_maps);
                for (int v = 0; v < now; ++v)
                    for (int u = 0; u < now; ++u)
                        for (int c = 0; c < stream_maps; ++c) few.at(v, u, c) = x.at(v, u, k * stream_maps + c);
                const image one =
                    send_back(store, name + ".stream." + std::to_string(kernel), few, to, kernel, 1, k, now);
                for (std::size_t j = 0; j < sum.data.size(); ++j) sum.data[j] += one.data[j];
            }
            x = sum;
        }
        if (i > 0) all = normal(name + ".maps", all);
    }
    for (int r = 0; r < rows; ++r) oracle::check_near(m.row(m.pixels, r), all[static_cast<std::size_t>(r)].data);
}

}  // namespace

TEST_CASE("inception: two blocks with statistics of the batch, running ones in a plan without gradients, frozen ones") {
    compare_inception(8, 1, 2, {3, 4}, false, true);
    compare_inception(8, 1, 2, {3, 4}, false, false);
    compare_inception(12, 2, 1, {3, 2}, true, true);
}

TEST_CASE("inception at the paper's sizes") {
    compare_inception(28, 1, 8, {32, 64}, true, false);
}

TEST_CASE("inception: one block") {
    compare_inception(6, 1, 2, {3}, false, true);
}

TEST_CASE("inception: an odd side is halved upwards") {
    const image_shape size{7, 7, 1};
    auto store = std::make_shared<parameters<double>>(4);
    graph<backend> g(store);
    const inception::settings s{.stream_maps = 1, .maps = {2, 3}, .frozen = true};
    const auto o = g.input("observation", size.size());
    const auto x = inception::encode(s, inception::declare(g, s, size), o, size);
    program<backend> p(g, store, {.steps = 1, .batch = 1}, {x});
    philox random(3, 3);
    for (double& v : p.input("observation")) v = static_cast<double>(random.uniform());
    p.forward();
    images all{{7, 7, 1, centred(oracle::row(p.output(o), 0, 0))}};
    const statistics first{numbers(4, 0.0), numbers(4, 1.0)};
    for (const auto& [name, now, maps] : {std::tuple{"block.0", 7, 2}, {"block.1", 4, 3}}) {
        image together = blank(now, now, 4);
        for (int k = 0; k < 4; ++k) {
            image one = convolve(*store, std::string(name) + ".stream." + std::to_string(2 * k + 1), all[0], 1,
                                 2 * k + 1, 1, k, now);
            for (int v = 0; v < now * now; ++v) together.data[static_cast<std::size_t>(4 * v + k)] = one.at(0, v, 0);
        }
        all = normalise(*store, std::string(name) + ".streams", {together}, &first);
        all = {convolve(*store, std::string(name) + ".reduce", all[0], maps, 3, 2, now % 2, (now + 1) / 2)};
        if (now == 7) all = normalise(*store, "block.0.maps", all, &first);
    }
    oracle::check_near(oracle::row(p.output(x), 0, 0), all[0].data);
}

TEST_CASE("two_pathway") {
    for (const auto& [global, local] :
         {std::pair{std::vector{3, 4, 5}, std::vector{2, 3}}, {std::vector{64, 64, 9}, std::vector{16, 8}}}) {
        const traced<two_pathway> m({.global_maps = global, .local_maps = local}, {32, 32, 3}, 6, false);
        const auto& store = *m.store;
        for (int r = 0; r < 4; ++r) {
            const image start{32, 32, 3, centred(m.row(m.observation, r))};
            image far = relu(convolve(store, "encoder.global.0", start, global[0], 5, 3, 0, 10));
            far = relu(convolve(store, "encoder.global.1", far, global[1], 4, 2, 0, 4));
            far = convolve(store, "encoder.global.2", far, global[2], 4, 1, 0, 1);
            image near = relu(convolve(store, "encoder.local.0", start, local[0], 4, 2, 1, 16));
            near = convolve(store, "encoder.local.1", near, local[1], 4, 2, 1, 8);
            using oracle::operator+;
            oracle::check_near(m.row(m.x, r), far.data + near.data);

            const auto both = oracle::relu(oracle::affine(store, "decoder.layers.0", m.row(m.code, r)));
            far = {1, 1, global[2], numbers(both.begin(), both.begin() + global[2])};
            near = {8, 8, local[1], numbers(both.begin() + global[2], both.end())};
            far = relu(send_back(store, "decoder.global.2", far, global[1], 4, 1, 0, 4));
            far = relu(send_back(store, "decoder.global.1", far, global[0], 4, 2, 0, 10));
            far = send_back(store, "decoder.global.0", far, 3, 5, 3, 0, 32);
            near = relu(send_back(store, "decoder.local.1", near, local[0], 4, 2, 1, 16));
            near = send_back(store, "decoder.local.0", near, 3, 4, 2, 1, 32);
            for (std::size_t j = 0; j < far.data.size(); ++j) far.data[j] += near.data[j];
            oracle::check_near(m.row(m.pixels, r), far.data);
        }
    }
}
