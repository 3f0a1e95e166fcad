// SPDX-License-Identifier: MIT

// Frames per second of the recurrent core of the Memory Recall Agent, forward and backward, beside the time of its own
// matrix products alone: the same shapes in the same order, in the same run, without anything between them.
//
//   benchmark-mra_core [--threads N] [--repeats R] [--products float|bfloat16] [--weights FILE] [--outputs FILE]
//
// One JSON line, as benchmarks/peers/run.sh reads it; processor_ms is the least that a pass had of all its threads.
// Putting the memory back between repeats is not timed.

#include <time.h>

#include <cstdio>
#include <numeric>
#include <set>

#include <engram/operations/softmax.hpp>

#include "flags.hpp"
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
        const int X = z.observed, H = z.hidden, all_rows = z.steps * batch;
        const auto rows_of = [&](engram::parameter p, int first, int count, bool sent) {
            const bool reads = p.id == key.id && count == z.content();
            return engram::weight_rows<real>(store, p, first, count, reads ? all_rows * z.neighbours : all_rows, sent,
                                             true, work);
        };
        query_x_ = rows_of(query, 0, X, true), query_h_ = rows_of(query, X, H, true);
        key_x_ = rows_of(key, 0, X, false), key_h_ = rows_of(key, X, H, false);
        key_ = rows_of(key, 0, z.content(), false);
        gates_x_ = rows_of(gates, 0, X, true), gates_m_ = rows_of(gates, X, H, true);
        gates_h_ = rows_of(gates, X + H, H, true);
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
    }
    products_alone(const products_alone&) = delete;

    void forward() {
        const int X = z_.observed, H = z_.hidden, D = z_.key, T = z_.steps, B = batch_;
        times(x.data(), X, query_x_, q.data(), D, false, T * B);
        times(x.data(), X, gates_x_, z4.data(), 4 * H, false, T * B);
        times(x.data(), X, key_x_, written.data(), D, false, T * B);
        int rekeyed = 0;
        for (int t = 0; t < T; ++t) {
            const std::ptrdiff_t row = std::ptrdiff_t(t) * B;
            times(h.data() + row * H, H, query_h_, q.data() + row * D, D, true, B);
            // With all float keys, as written down; the model looks at compact ones first, which are a quarter of the
            // bytes.
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
            times(near.data() + std::ptrdiff_t(rekeyed) * z_.content(), z_.content(), key_,
                  near_key.data() + std::ptrdiff_t(rekeyed) * D, D, false, count);
            rekeyed += count;
            real* const gates = z4.data() + row * 4 * H;
            if (gates_m_.paired()) {
                times(m.data() + row * H, H, gates_m_, gates, 4 * H, true, B);
                times(h.data() + row * H, H, gates_h_, gates, 4 * H, true, B);
            } else {
                const engram::product_part<real> parts[] = {gates_m_.part(m.data() + row * H, H),
                                                            gates_h_.part(h.data() + row * H, H)};
                engram::multiply(parts, 2, static_cast<const real*>(nullptr), true, gates, 4 * H, B);
            }
            times(h.data() + (row + B) * H, H, key_h_, written.data() + row * D, D, true, B);
        }
    }
    void backward() {
        const int X = z_.observed, H = z_.hidden, D = z_.key, T = z_.steps, B = batch_;
        for (int t = T; t-- > 0;) {
            const std::ptrdiff_t row = std::ptrdiff_t(t) * B;
            gates_m_.send(d_z4.data() + row * 4 * H, 4 * H, false, d_m.data() + row * H, H, B);
            gates_h_.send(d_z4.data() + row * 4 * H, 4 * H, true, d_h.data() + row * H, H, B);
            query_h_.send(d_q.data() + row * D, D, true, d_h.data() + row * H, H, B);
        }
        gates_x_.send(d_z4.data(), 4 * H, false, d_x.data(), X, T * B);
        query_x_.send(d_q.data(), D, true, d_x.data(), X, T * B);
        transposed(x.data(), X, d_z4.data(), 4 * H, T * B, 2, gates_x_);
        transposed(m.data(), H, d_z4.data(), 4 * H, T * B, 2, gates_m_);
        transposed(h.data(), H, d_z4.data(), 4 * H, T * B, 2, gates_h_);
        transposed(x.data(), X, d_q.data(), D, T * B, 0, query_x_);
        transposed(h.data(), H, d_q.data(), D, T * B, 0, query_h_);
        transposed(near.data(), z_.content(), d_near_key.data(), D, std::accumulate(fresh_.begin(), fresh_.end(), 0), 1,
                   key_);
    }

private:
    static void times(const real* in, int stride, const engram::weight_rows<real>& w, real* out, int out_stride,
                      bool add, int m) {
        w.multiply(in, stride, nullptr, add, out, out_stride, m);
    }
    void transposed(const real* in, int k, const real* dy, int n, int rows, int weight,
                    const engram::weight_rows<real>& w) {
        w.gradient(in, k, dy, n, rows, d_weight[std::size_t(ids_[weight])].data(), n, false);
    }

    sizes z_;
    int batch_;
    std::vector<int> fresh_;
    engram::product_workspace<real> work;
    engram::weight_rows<real> query_x_, query_h_, key_x_, key_h_, key_, gates_x_, gates_m_, gates_h_;
    engram::aligned_vector<real> x, d_x, h, d_h, m, d_m, z4, d_z4, q, d_q, written, near, near_key, d_near_key, ring,
        norm, distance;
    std::map<std::size_t, engram::aligned_vector<real>> d_weight;
    std::array<int, 3> ids_;
};

/// Of all threads of this process.
double processor_milliseconds() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return 1e3 * double(now.tv_sec) + 1e-6 * double(now.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) try {
    const flags options(argc, argv,
                        {{"--threads", "1"},
                         {"--repeats", "10"},
                         {"--weights", ""},
                         {"--outputs", ""},
                         {"--steps", "50"},
                         {"--batch", "16"},
                         {"--warmup", "2"},
                         {"--products", "float"}});
    const std::string& precision = options.text("--products");
    engram::require(precision == "float" || precision == "bfloat16", "--products: expected float or bfloat16, got '",
                    precision, "'");
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
    if (precision == "bfloat16") store->set_products(engram::product_precision::bfloat16);
    mra::graph<mra::backend> g(store);
    const auto x = g.input("x", z.observed, engram::extent::sequence, true);
    const auto coefficients = g.input("coefficients", z.hidden);
    const auto [h, when] = unroll(g, x, z);
    add_loss("loss", sum_columns("sum", map("product", weighted_sum{}, h, coefficients)));

    mra::shards model(g, store, z.steps, z.batch, options.number("--threads", 1), {h, when});
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
    double processor_ms = 1e30;
    const int warmup = options.number("--warmup");
    for (int turn = 0; turn < warmup + options.number("--repeats"); ++turn) {
        content.restore();
        const double given = processor_milliseconds();
        const auto start = std::chrono::steady_clock::now();
        model.forward();
        const double forward_ms = mra::milliseconds_since(start);
        model.backward();
        const double total_ms = mra::milliseconds_since(start);
        processor_ms = std::min(processor_ms, processor_milliseconds() - given);
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
            "{\"threads\": %d, \"products\": \"%s\", \"total_ms\": %.3f, \"processor_ms\": %.3f, \"forward_ms\": %.3f, "
            "\"frames_per_second\": %.1f, \"products_ms\": "
            "%.3f, "
            "\"over_products\": %.3f}\n",
            model.threads(), precision.c_str(), total_ms, processor_ms, mra::median(forward),
            1e3 * z.steps * z.batch / total_ms, mra::median(alone), mra::median(ratio));
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
