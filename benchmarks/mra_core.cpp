// SPDX-License-Identifier: MIT

// Frames per second of the recurrent core of the Memory Recall Agent, forward and backward, beside the time of its own
// matrix products alone: the same shapes in the same order, in the same run, without anything between them.
//
//   benchmark-mra_core [--threads N] [--repeats R] [--weights FILE] [--outputs FILE]
//
// One JSON line, as benchmarks/peers/run.sh reads it. Putting the memory back between repeats is not timed.

#include <cstdio>
#include <numeric>
#include <set>

#include "mra_core.hpp"

namespace {

using mra::sizes;
using real = float;

struct weighted_sum {
    auto operator()(auto h, auto coefficient) const { return h * coefficient; }
};

/// Entries of the memory that step t reads and no earlier step did: those whose keys are recomputed then.
std::vector<int> first_reads(mra::program& p, const mra::var<mra::backend>& when, const sizes& z, int batch) {
    std::vector<int> counts;
    std::set<std::pair<int, int>> seen;
    const auto w = p.output(when);
    for (int t = 0; t < z.steps; ++t) {
        counts.push_back(0);
        for (int b = 0; b < batch; ++b)
            for (int k = 0; k < z.neighbours; ++k) {
                const int write = int(w.at(t)[b * w.stride + k]);
                counts.back() += write >= 0 && seen.insert({b, write}).second;
            }
    }
    return counts;
}

/// The products of one shard of the model and nothing else; buffers as large as the model's.
class products_alone {
public:
    products_alone(const sizes& z, int batch, engram::parameters<real>& store, std::vector<int> fresh)
        : z_(z), batch_(batch), fresh_(std::move(fresh)) {
        const auto query = store.find("query.weight"), key = store.find("key.weight"),
                   gates = store.find("lstm.weight");
        query_ = store.packed_forward(query);
        key_ = store.packed_forward(key);
        gates_ = store.packed_forward(gates);
        const int X = z.observed, H = z.hidden;
        dx_ = store.packed_transposed(gates, 0, X);
        dm_ = store.packed_transposed(gates, X, H);
        dh_ = store.packed_transposed(gates, X + H, H);
        query_dx_ = store.packed_transposed(query, 0, X);
        query_dh_ = store.packed_transposed(query, X, H);
        const auto fill = [&](auto& v, std::ptrdiff_t count) {
            v.resize(std::size_t(count));
            engram::philox random(9, std::uint64_t(count));
            for (auto& number : v) number = static_cast<real>(random.normal());
        };
        const std::ptrdiff_t rows = std::ptrdiff_t(z.steps) * batch;
        fill(x, rows * X), fill(d_x, rows * X);
        fill(h, (rows + batch) * H), fill(d_h, (rows + batch) * H), fill(m, rows * H), fill(d_m, rows * H);
        fill(z4, rows * 4 * H), fill(d_z4, rows * 4 * H);
        fill(q, rows * z.key), fill(d_q, rows * z.key), fill(written, rows * z.key);
        fill(near, rows * z.neighbours * z.content());
        fill(near_key, rows * z.neighbours * z.key), fill(d_near_key, rows * z.neighbours * z.key);
        fill(ring, std::ptrdiff_t(batch) * z.slots * z.key), fill(norm, std::ptrdiff_t(batch) * z.slots),
            fill(distance, z.slots);
        for (const auto p : {query, key, gates}) fill(d_weight[std::size_t(p.id)], store[p].size());
        ids_ = {query.id, key.id, gates.id};
        work.resize(
            std::size_t(std::max(engram::transposed_workspace<real>(H, 4 * H, int(rows)),
                                 engram::transposed_workspace<real>(z.content(), z.key, int(rows) * z.neighbours))));
    }

    void forward() {
        const int X = z_.observed, H = z_.hidden, D = z_.key, T = z_.steps, B = batch_;
        times(x.data(), X, query_, 0, X, q.data(), false, T * B);
        times(x.data(), X, gates_, 0, X, z4.data(), false, T * B);
        times(x.data(), X, key_, 0, X, written.data(), false, T * B);
        int rekeyed = 0;
        for (int t = 0; t < T; ++t) {
            const std::ptrdiff_t row = std::ptrdiff_t(t) * B;
            times(h.data() + row * H, H, query_, X, H, q.data() + row * D, true, B);
            // With all float keys, as written down; the model looks at compact ones first, which are a quarter of the bytes.
            for (int b = 0; b < B; ++b) {
                std::int64_t all = z_.slots;
                const engram::knn_ring<real> one{nullptr,
                                                 ring.data() + std::ptrdiff_t(b) * z_.slots * D,
                                                 norm.data() + std::ptrdiff_t(b) * z_.slots,
                                                 &all,
                                                 z_.slots,
                                                 z_.content(),
                                                 D};
                engram::knn_distances(one, q.data() + (row + b) * D, z_.slots, distance.data());
            }
            const int count = fresh_[std::size_t(t)];
            times(near.data() + std::ptrdiff_t(rekeyed) * z_.content(), z_.content(), key_, 0, z_.content(),
                  near_key.data() + std::ptrdiff_t(rekeyed) * D, false, count);
            rekeyed += count;
            const engram::product_part<real> parts[] = {{m.data() + row * H, H, gates_, X, H},
                                                        {h.data() + row * H, H, gates_, X + H, H}};
            engram::multiply(parts, 2, static_cast<const real*>(nullptr), true, z4.data() + row * 4 * H, 4 * H, B);
            times(h.data() + (row + B) * H, H, key_, X, H, written.data() + row * D, true, B);
        }
    }
    void backward() {
        const int X = z_.observed, H = z_.hidden, D = z_.key, T = z_.steps, B = batch_;
        for (int t = T; t-- > 0;) {
            const std::ptrdiff_t row = std::ptrdiff_t(t) * B;
            times(d_z4.data() + row * 4 * H, 4 * H, dm_, 0, 4 * H, d_m.data() + row * H, false, B);
            times(d_z4.data() + row * 4 * H, 4 * H, dh_, 0, 4 * H, d_h.data() + row * H, true, B);
            times(d_q.data() + row * D, D, query_dh_, 0, D, d_h.data() + row * H, true, B);
        }
        times(d_z4.data(), 4 * H, dx_, 0, 4 * H, d_x.data(), false, T * B);
        times(d_q.data(), D, query_dx_, 0, D, d_x.data(), true, T * B);
        transposed(x.data(), X, d_z4.data(), 4 * H, T * B, 2, 0);
        transposed(m.data(), H, d_z4.data(), 4 * H, T * B, 2, X);
        transposed(h.data(), H, d_z4.data(), 4 * H, T * B, 2, X + H);
        transposed(x.data(), X, d_q.data(), D, T * B, 0, 0);
        transposed(h.data(), H, d_q.data(), D, T * B, 0, X);
        transposed(near.data(), z_.content(), d_near_key.data(), D, std::accumulate(fresh_.begin(), fresh_.end(), 0), 1,
                   0);
    }

private:
    static void times(const real* in, int stride, const engram::packed_weights<real>* w, int first, int rows, real* out,
                      bool add, int m) {
        const engram::product_part<real> part{in, stride, w, first, rows};
        engram::multiply(&part, 1, static_cast<const real*>(nullptr), add, out, w->columns(), m);
    }
    void transposed(const real* in, int k, const real* dy, int n, int rows, int weight, int first_row) {
        engram::multiply_transposed(in, k, k, dy, n, n, rows,
                                    d_weight[std::size_t(ids_[weight])].data() + std::ptrdiff_t(first_row) * n, n,
                                    false, work.data());
    }

    sizes z_;
    int batch_;
    std::vector<int> fresh_;
    const engram::packed_weights<real>*query_, *key_, *gates_, *dx_, *dm_, *dh_, *query_dx_, *query_dh_;
    engram::aligned_vector<real> x, d_x, h, d_h, m, d_m, z4, d_z4, q, d_q, written, near, near_key, d_near_key, ring,
        norm, distance, work;
    std::map<std::size_t, engram::aligned_vector<real>> d_weight;
    std::array<int, 3> ids_;
};

}  // namespace

int main(int argc, char** argv) try {
    const mra::flags options(argc, argv,
                             {{"--threads", "1"},
                              {"--repeats", "10"},
                              {"--weights", ""},
                              {"--outputs", ""},
                              {"--steps", "50"},
                              {"--batch", "16"},
                              {"--warmup", "2"}});
    sizes z{.steps = options.number("--steps"), .batch = options.number("--batch")};
    const int C = z.content();
    const engram::safetensors file = options.text("--weights").empty()
                                         ? mra::random_file({{"x", {z.steps, z.batch, z.observed}, 1},
                                                             {"coefficients", {z.steps, z.batch, z.hidden}, 1},
                                                             {"ring.content", {z.batch, z.slots, C}, 0.6},
                                                             {"initial.h", {z.batch, z.hidden}, 0.3},
                                                             {"initial.c", {z.batch, z.hidden}, 1},
                                                             {"query.weight", {C, z.key}, 0.02},
                                                             {"query.bias", {z.key}, 0.02},
                                                             {"key.weight", {C, z.key}, 0.02},
                                                             {"key.bias", {z.key}, 0.02},
                                                             {"lstm.weight", {C + z.hidden, 4 * z.hidden}, 0.016},
                                                             {"lstm.bias", {4 * z.hidden}, 0.016}})
                                         : engram::safetensors::read(options.text("--weights"));
    const auto& shape = file.at("x").shape;
    z.steps = int(shape[0]), z.batch = int(shape[1]), z.observed = int(shape[2]);
    z.hidden = int(file.at("initial.h").shape[1]), z.key = int(file.at("key.bias").shape[0]),
    z.slots = int(file.at("ring.content").shape[1]);
    int count = z.slots;
    if (file.contains("ring.count"))
        count = file.at("ring.count").dtype == "F32"   ? int(file.values<float>("ring.count")[0])
                : file.at("ring.count").dtype == "I64" ? int(file.values<std::int64_t>("ring.count")[0])
                                                       : file.values<std::int32_t>("ring.count")[0];

    auto store = std::make_shared<engram::parameters<real>>();
    mra::graph<mra::backend> g(store);
    const auto x = g.input("x", z.observed, engram::extent::sequence, true);
    const auto coefficients = g.input("coefficients", z.hidden);
    const auto [h, when] = unroll(g, x, z);
    add_loss("loss", sum_columns("sum", map("product", weighted_sum{}, h, coefficients)));

    mra::shards model(g, store, z.steps, z.batch, options.number("--threads"), {h, when});
    mra::load(*store, file);
    mra::first_content content(model, *store, z, file.values<float>("ring.content"), count);
    model.set_input("x", file.values<float>("x"), z.observed);
    model.set_input("coefficients", file.values<float>("coefficients"), z.hidden);
    model.set_state("initial.h", file.values<float>("initial.h"), z.hidden);
    model.set_state("initial.c", file.values<float>("initial.c"), z.hidden);

    model.forward();
    if (const std::string& path = options.text("--outputs"); !path.empty()) {
        model.backward();
        engram::safetensors out;
        out.add("h", {z.steps, z.batch, z.hidden},
                model.gather(z.hidden, [&, h = h](mra::program& p) { return p.output(h); }));
        out.add("grad.x", {z.steps, z.batch, z.observed},
                model.gather(z.observed, [&](mra::program& p) { return p.gradient_of(x); }));
        for (const auto& e : store->entries())
            out.add<float>(
                "grad." + e.name,
                e.rows == 1 ? std::vector<std::int64_t>{e.columns} : std::vector<std::int64_t>{e.rows, e.columns},
                model[0].gradient().subspan(std::size_t(e.offset), std::size_t(e.size())));
        out.write(path);
    }

    std::vector<std::unique_ptr<products_alone>> products;
    for (int i = 0; i < model.threads(); ++i)
        products.push_back(
            std::make_unique<products_alone>(z, model.rows(), *store, first_reads(model[i], when, z, model.rows())));
    std::vector<double> forward, total, alone, ratio;
    const int warmup = options.number("--warmup");
    for (int turn = 0; turn < warmup + options.number("--repeats"); ++turn) {
        content.restore();
        const auto start = std::chrono::steady_clock::now();
        model.forward();
        const double forward_ms = mra::milliseconds_since(start);
        model.backward();
        const double total_ms = mra::milliseconds_since(start);
        const auto again = std::chrono::steady_clock::now();
        model.pool().run([&](int i) { products[std::size_t(i)]->forward(); });
        model.pool().run([&](int i) { products[std::size_t(i)]->backward(); });
        const double alone_ms = mra::milliseconds_since(again);
        if (turn < warmup) continue;
        forward.push_back(forward_ms), total.push_back(total_ms), alone.push_back(alone_ms),
            ratio.push_back(total_ms / alone_ms);
    }
    const double total_ms = mra::median(total);
    if (!total.empty())
        std::printf(
            "{\"threads\": %d, \"total_ms\": %.3f, \"forward_ms\": %.3f, \"frames_per_second\": %.1f, \"products_ms\": "
            "%.3f, "
            "\"over_products\": %.3f}\n",
            model.threads(), total_ms, mra::median(forward), 1e3 * z.steps * z.batch / total_ms, mra::median(alone),
            mra::median(ratio));
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
