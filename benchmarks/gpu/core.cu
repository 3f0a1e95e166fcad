// SPDX-License-Identifier: MIT

// The recurrent core of the Memory Recall Agent (benchmarks/mra_core.hpp) on a CUDA device: microseconds a step forward
// and backward, and of its k-NN read alone, with memories that are full. X 256, H 512, 1024 slots, keys of 128, K = 10,
// T = 50, B = 16.

#include "timing.cuh"

#include <span>

#include <engram/controller/lstm.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/concatenate.hpp>
#include <engram/operations/knn.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/softmax.hpp>

namespace {

using namespace engram;
using backend = cuda<float>;

constexpr int T = 50, B = 16, X = 256, H = 512, N = 1024, D = 128, K = 10;

template <class Var>
struct held {
    BOOST_HANA_DEFINE_STRUCT(held, (Var, value));
};

struct weighted {
    constexpr auto operator()(auto a, auto b) const { return a * b; }
};

knn_read_settings read_settings(const knn_memory& ring) {
    knn_read_settings how;
    how.memory = ring;
    how.neighbours = K;
    how.value_offset = X;
    how.value_width = H;
    return how;
}

void fill(std::span<float> numbers, std::uint64_t stream) {
    philox random(1, stream);
    for (auto& v : numbers) v = random.normal();
}

/// A full memory of random contents and keys.
void fill_ring(program<backend>& p) {
    const auto parts = p.bound_resource(0)->bytes();  // content, key, norm, written
    const auto as_floats = [&](std::size_t i) {
        return std::span(reinterpret_cast<float*>(parts[i].data()), parts[i].size() / sizeof(float));
    };
    fill(as_floats(0), 1);
    fill(as_floats(1), 2);
    const auto keys = as_floats(1), norms = as_floats(2);
    for (std::size_t i = 0; i < norms.size(); ++i) {
        norms[i] = 0;
        for (std::size_t d = 0; d < D; ++d) norms[i] += keys[i * D + d] * keys[i * D + d];
    }
    auto* const written = reinterpret_cast<std::int64_t*>(parts[3].data());
    std::fill_n(written, B, std::int64_t{N});
}

void time_sweeps(const char* name, program<backend>& p) {
    fill_ring(p);
    p.forward();
    p.executor().wait();
    const auto wait = [&] { p.executor().wait(); };
    const double forward = gpu_benchmark::microseconds(20, wait, [&] { p.forward(); });
    const double both = gpu_benchmark::microseconds(20, wait, [&] {
        p.forward();
        p.backward();
    });
    gpu_benchmark::line(std::string(name) + ", forward", forward / T, "us/step");
    gpu_benchmark::line(std::string(name) + ", forward and backward", both / T, "us/step");
}

void read_alone() {
    auto store = std::make_shared<parameters<float>>(1);
    graph<backend> g(store);
    const auto query = g.input("query", D, extent::sequence, true);
    const auto key = g.declare_linear("key", X + H, D);
    const auto ring = add_knn_memory(g, "ring", N, X + H, D);
    const auto out = scan(g, held<var<backend>>{g.state("read", H)}, [&](auto& s) {
        s.value = knn_read(query, key, read_settings(ring)).value;
        return s.value;
    });
    add_loss("loss", sum_columns("sum", out));
    program<backend> p(g, store, {.steps = T, .batch = B, .gradients = true}, {out});
    fill(p.input("query"), 3);
    time_sweeps("k-NN read", p);
}

void core(tensor_core_rounding precision, const char* name) {
    auto store = std::make_shared<parameters<float>>(1);
    graph<backend> g(store);
    const auto x = g.input("x", X, extent::sequence, true), wanted = g.input("coefficients", H);
    const auto query = g.declare_linear("query", X + H, D), key = g.declare_linear("key", X + H, D);
    const auto gates = g.declare_linear("lstm", X + 2 * H, 4 * H);
    const auto ring = add_knn_memory(g, "ring", N, X + H, D);
    const lstm::state<var<backend>> start{g.state("initial.c", H), g.state("initial.h", H)};
    const auto out = scan(g, start, [&](auto& s) {
        const auto read = knn_read(affine<backend>("query", {x, s.hidden}, query), key, read_settings(ring));
        const auto h = lstm::step({}, {gates}, {x, read.value}, s);
        knn_write(ring, concatenate<backend>("content", {stop_gradient(x), stop_gradient(h)}),
                  affine<backend>("key", {stop_gradient(x), stop_gradient(h)}, key));
        return h;
    });
    add_loss("loss", sum_columns("sum", map("product", weighted{}, out, wanted)));
    program<backend> p(g, store, {.steps = T, .batch = B, .gradients = true}, {out});
    p.executor().precision = precision;
    fill(p.input("x"), 3);
    fill(p.input("coefficients"), 4);
    time_sweeps(name, p);
}

}  // namespace

int main() {
    return gpu_benchmark::run([] {
        read_alone();
        core(tensor_core_rounding::full, "MRA core, float");
        core(tensor_core_rounding::tf32, "MRA core, tf32");
    });
}
