#pragma once
// SPDX-License-Identifier: MIT

// The recurrent core of the Memory Recall Agent as benchmarks trace it, and what runs of it over several threads share.
//
//   q = W_q [x, h] + b_q;  m = the mixture of the K nearest slots under recomputed keys;  h', c' = LSTM([x, m, h], c);
//   write [x, h'] and its key over the oldest slot, without gradient
//
// It follows benchmarks/peers/mra_core.py name by name; its weights file is what both sides read.

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <engram/controller/lstm.hpp>
#include <engram/core/thread_pool.hpp>
#include <engram/graph/scan.hpp>
#include <engram/io/safetensors.hpp>
#include <engram/operations/concatenate.hpp>
#include <engram/operations/knn.hpp>
#include <engram/operations/loss.hpp>

namespace mra {

using engram::cpu;
using engram::graph;
using engram::var;
using backend = cpu<float>;
using program = engram::program<backend>;

struct sizes {
    int steps = 50, batch = 16, observed = 256, hidden = 512, slots = 1024, key = 128, neighbours = 10;
    int content() const { return observed + hidden; }
};

/// What an unroll gives: h [T, B, H], and the number of the write that each neighbour comes from [T, B, K].
struct core {
    var<backend> h, when;
};

/// The unroll over x [T, B, X]. Parameters query, key, lstm; states initial.c and initial.h.
inline core unroll(graph<backend>& g, const var<backend>& x, const sizes& z) {
    const auto query = g.declare_linear("query", z.content(), z.key);
    const auto key = g.declare_linear("key", z.content(), z.key);
    const auto gates = g.declare_linear("lstm", z.content() + z.hidden, 4 * z.hidden);
    const auto ring = add_knn_memory(g, "ring", z.slots, z.content(), z.key);
    const engram::lstm::state<var<backend>> start{g.state("initial.c", z.hidden), g.state("initial.h", z.hidden)};
    core out;
    out.h = scan(g, start, [&](auto& s) {
        engram::knn_read_settings how;
        how.memory = ring;
        how.neighbours = z.neighbours;
        how.value_offset = z.observed;
        how.value_width = z.hidden;
        const auto read = knn_read(engram::affine<backend>("query", {x, s.hidden}, query), key, how);
        const auto h = engram::lstm::step({}, {gates}, {x, read.value}, s);
        out.when = read.when;
        knn_write(ring, engram::concatenate<backend>("content", {stop_gradient(x), stop_gradient(h)}),
                  engram::affine<backend>("key", {stop_gradient(x), stop_gradient(h)}, key));
        return h;
    });
    return out;
}

inline double milliseconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::vector<double> numbers) {
    std::sort(numbers.begin(), numbers.end());
    const std::size_t n = numbers.size();
    return n == 0 ? 0 : (numbers[(n - 1) / 2] + numbers[n / 2]) / 2;
}

/// One program for each thread, every one over its share of the batch; gradients are summed in the order of the shards.
class shards {
public:
    shards(const graph<backend>& g, const std::shared_ptr<engram::parameters<float>>& store, int steps, int batch,
           int threads, const std::vector<var<backend>>& outputs)
        : steps_(steps), batch_(batch), rows_(batch / threads), pool_(threads) {
        engram::require(batch % threads == 0, "a batch of ", batch, " does not divide among ", threads, " threads");
        programs_.resize(static_cast<std::size_t>(threads));
        for (int i = 0; i < threads; ++i)
            programs_[static_cast<std::size_t>(i)] = std::make_unique<program>(
                g, store, engram::plan_options{.steps = steps, .batch = rows_, .gradients = true, .total_batch = batch},
                outputs);
    }

    int threads() const { return pool_.size(); }
    int rows() const { return rows_; }
    program& operator[](int i) { return *programs_[static_cast<std::size_t>(i)]; }
    engram::thread_pool& pool() { return pool_; }

    void forward() {
        pool_.run([this](int i) { (*this)[i].forward(); });
    }
    void backward() {
        pool_.run([this](int i) { (*this)[i].backward(); });
        if (threads() == 1) return;
        const std::span<float> sum = (*this)[0].gradient();
        const std::ptrdiff_t slice = (std::ptrdiff_t(sum.size()) / threads() + 15) / 16 * 16;
        pool_.run([&](int i) {
            const std::ptrdiff_t last = std::min<std::ptrdiff_t>(sum.size(), (i + 1) * slice);
            for (int s = 1; s < threads(); ++s) {
                const float* more = (*this)[s].gradient().data();
                for (std::ptrdiff_t j = i * slice; j < last; ++j) sum[std::size_t(j)] += more[j];
            }
        });
    }

    /// Copies rows between a whole [T or 1, B, width] and the shards; `to(program)` says where in a shard.
    template <class Place, class Copy>
    void each_block(int steps, int width, Place place, Copy copy) {
        for (int i = 0; i < threads(); ++i) {
            auto* shard = place((*this)[i]);
            for (int t = 0; t < steps; ++t)
                copy((std::ptrdiff_t(t) * batch_ + std::ptrdiff_t(i) * rows_) * width,
                     shard + std::ptrdiff_t(t) * rows_ * width, std::ptrdiff_t(rows_) * width);
        }
    }
    void set_input(const std::string& name, std::span<const float> all, int width, bool timed = true) {
        each_block(
            timed ? steps_ : 1, width, [&](program& p) { return p.input(name).data(); },
            [&](std::ptrdiff_t from, float* to, std::ptrdiff_t n) { std::copy_n(all.data() + from, n, to); });
    }
    void set_state(const std::string& name, std::span<const float> all, int width) {
        each_block(
            1, width, [&](program& p) { return p.state(name).data(); },
            [&](std::ptrdiff_t from, float* to, std::ptrdiff_t n) { std::copy_n(all.data() + from, n, to); });
    }
    /// The whole [T, B, width] of a dense operand of each shard.
    template <class Operand>
    std::vector<float> gather(int width, Operand operand) {
        std::vector<float> all(std::size_t(steps_) * std::size_t(batch_) * std::size_t(width));
        each_block(
            steps_, width, [&](program& p) { return operand(p).data; },
            [&](std::ptrdiff_t to, const float* from, std::ptrdiff_t n) { std::copy_n(from, n, all.data() + to); });
        return all;
    }

private:
    int steps_, batch_, rows_;
    engram::thread_pool pool_;
    std::vector<std::unique_ptr<program>> programs_;
};

/// Fills the rings of the shards with `content` [B, N, C] and its keys under the present weights, `count` slots of
/// them.
class first_content {
public:
    first_content(shards& all, engram::parameters<float>& store, const sizes& z, std::span<const float> content,
                  int count)
        : all_(all), count_(count) {
        const auto key = store.find("key.weight"), bias = store.find("key.bias");
        const int C = z.content();
        engram::product_workspace<float> work;
        const engram::weight_rows<float> key_weight(store, key, 0, C, count, false, false, work);
        for (int i = 0; i < all.threads(); ++i) {
            auto& rings = static_cast<engram::knn_rings<float>&>(*all[i].bound_resource(0));
            for (int b = 0; b < all.rows(); ++b) {
                auto ring = rings.ring(b);
                const float* from = content.data() + (std::ptrdiff_t(i) * all.rows() + b) * z.slots * C;
                std::vector<float> keys(std::size_t(count) * std::size_t(z.key));
                key_weight.multiply(from, C, store.values(bias), false, keys.data(), z.key, count);
                engram::knn_reset(ring);
                for (int n = 0; n < count; ++n)
                    engram::knn_write(ring, from + std::ptrdiff_t(n) * C, keys.data() + std::ptrdiff_t(n) * z.key);
            }
            std::vector<std::vector<std::byte>> kept;
            for (const auto& piece : rings.bytes()) kept.emplace_back(piece.begin(), piece.end());
            kept_.push_back(std::move(kept));
        }
    }
    void restore() {
        for (int i = 0; i < all_.threads(); ++i) {
            const auto pieces = all_[i].bound_resource(0)->bytes();
            for (std::size_t k = 0; k < pieces.size(); ++k)
                std::copy(kept_[std::size_t(i)][k].begin(), kept_[std::size_t(i)][k].end(), pieces[k].begin());
        }
    }

private:
    shards& all_;
    int count_;
    std::vector<std::vector<std::vector<std::byte>>> kept_;
};

/// Random numbers for all that a file would give.
inline engram::safetensors random_file(
    const std::vector<std::tuple<std::string, std::vector<std::int64_t>, double>>& wanted) {
    engram::safetensors file;
    std::uint64_t key = 0;
    for (const auto& [name, shape, scale] : wanted) {
        engram::philox random(7, ++key);
        std::int64_t count = 1;
        for (const auto n : shape) count *= n;
        std::vector<float> numbers(static_cast<std::size_t>(count));
        for (auto& v : numbers) v = static_cast<float>(scale * random.normal());
        file.add(name, shape, numbers);
    }
    return file;
}

/// Takes every parameter of the store from the file.
inline void load(engram::parameters<float>& store, const engram::safetensors& file) {
    auto edit = store.edit();
    for (std::size_t i = 0; i < store.entries().size(); ++i) {
        const auto from = file.values<float>(store.entries()[i].name);
        engram::require(std::ptrdiff_t(from.size()) == store.entries()[i].size(), file.source(), ": tensor '",
                        store.entries()[i].name, "' has ", from.size(), " numbers, expected ",
                        store.entries()[i].size());
        std::copy(from.begin(), from.end(), edit.values({static_cast<int>(i)}));
    }
}

}  // namespace mra
