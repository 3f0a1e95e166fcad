#pragma once
// SPDX-License-Identifier: MIT

// The FIFO k-NN memory on a device (equations: kernels/knn.hpp; meaning: graph/ops/knn.hpp).
//
// A read is one batched product (query times every cached key), one launch that turns it into distances, selects the K
// nearest slots exactly, ties to the lower slot, and copies their contents, one product that gives them keys under the
// current weights, and one launch that mixes them. A copy is kept for every read (t, b, j), so that no two reads share
// a row and no thread waits for another; the host keeps one for every entry. Rows of neighbours that do not exist are
// zero, which makes the deferred gradient of W_k one product over all of them.

#include <engram/device/kernel.hpp>
#include <engram/device/ops/affine.hpp>
#include <engram/graph/ops/knn.hpp>

namespace engram {

// --- forget and write ---

template <class Real>
struct knn_forget_rows {
    device_rows<Real> reset;
    std::int64_t* written;
    int batch, steps;
    ENGRAM_HD void operator()(std::ptrdiff_t b) const {
        for (int t = 0; t < steps; ++t)
            if (*reset.row(std::ptrdiff_t{t} * batch + b) > Real(0.5)) written[b] = 0;
    }
};

template <device_backend Backend>
struct knn_forget_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    knn_forget_kernel(const binder<Backend>& b, knn_memory m)
        : device_kernel<Backend>(b), reset(b.in(0)), memory(b.bound_resource(m.resource)) {}
    void forward(int t, int steps) override {
        auto& rings = static_cast<typename knn_rings_of<Backend>::type&>(**memory);
        this->launch(1, 1, knn_forget_rows<real>{{reset, t}, rings.first().written, this->batch, steps});
    }
    operand<real> reset;
    std::shared_ptr<resource>* memory;
};

/// Block b overwrites the oldest slot of ring b.
template <class Real>
struct knn_write_rows {
    static constexpr int lanes = 128;
    device_rows<Real> content, key;
    knn_ring<Real> rings;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int b) const {
        std::int64_t* const written = rings.written + b;
        const std::ptrdiff_t slot = *written % rings.slots, place = std::ptrdiff_t{b} * rings.slots + slot;
        Real* const to = rings.content + place * rings.content_width;
        Real* const key_to = rings.key + place * rings.key_width;
        Real* const norm_to = rings.norm + place;
        const Real *from = content.row(b), *key_from = key.row(b);
        block_for(block, rings.content_width, [=](int i) { to[i] = from[i]; });
        const Real norm = block_sum(block, rings.key_width, [=](int i) {
            key_to[i] = key_from[i];
            return key_from[i] * key_from[i];
        });
        block_for(block, 1, [=](int) {
            *norm_to = norm;
            ++*written;
        });
    }
};

template <device_backend Backend>
struct knn_write_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    knn_write_kernel(const binder<Backend>& b, knn_memory m)
        : device_kernel<Backend>(b), content(b.in(0)), key(b.in(1)), memory(b.bound_resource(m.resource)) {}
    void forward(int t, int) override {
        auto& rings = static_cast<typename knn_rings_of<Backend>::type&>(**memory);
        this->launch_blocks(1, 1, knn_write_rows<real>::lanes,
                            knn_write_rows<real>{{content, t}, {key, t}, rings.first()});
    }
    operand<real> content, key;
    std::shared_ptr<resource>* memory;
};

// --- read ---

/// What the reads of one step keep, [B, K, ...] each.
template <class Real>
struct knn_reads {
    Real *content, *keys, *distance;  // [B, K, C], [B, K, D], [B, K]
    int* found;                       // [B]
    int neighbours;
};

/// Block b: products [N] of its query with its keys become distances, of which the K smallest are taken one by one.
template <class Real>
struct knn_select_rows {
    static constexpr int lanes = 128;
    knn_ring<Real> rings;
    Real* products;  // [B, N], used up
    knn_reads<Real> to;
    device_rows<Real> when;
    bool keep_keys;

    template <class Block>
    ENGRAM_HD void operator()(Block& block, int b) const {
        constexpr Real infinity = std::numeric_limits<Real>::infinity();
        const int K = to.neighbours, N = rings.slots, C = rings.content_width, D = rings.key_width;
        const std::int64_t written = rings.written[b];
        const int valid = written < N ? static_cast<int>(written) : N, found = K < valid ? K : valid;
        Real* const distance = products + std::ptrdiff_t{b} * N;
        const Real* const norm = rings.norm + std::ptrdiff_t{b} * N;
        block_for(block, valid, [=](int i) {
            const Real d = norm[i] - 2 * distance[i];
            distance[i] = d < infinity ? d : infinity;
        });
        Real* const when_to = when.row(b);
        Real *const best = block.scratch, *const where = block.scratch + lanes;
        for (int j = 0; j < K; ++j) {
            const std::ptrdiff_t read = std::ptrdiff_t{b} * K + j;
            Real *const content = to.content + read * C, *const keys = to.keys + read * D;
            if (j >= found) {
                block_for(block, C, [=](int i) { content[i] = 0; });
                block_for(block, D, [=](int i) { keys[i] = 0; });
                block_for(block, 1, [=](int) { when_to[j] = -1; });
                continue;
            }
            // A slot that was taken is NaN, which is smaller than nothing.
            block.each([=](int lane) {
                best[lane] = infinity;
                where[lane] = Real(N);
                for (int i = lane; i < valid; i += lanes)
                    if (distance[i] < best[lane] || (distance[i] == best[lane] && Real(i) < where[lane])) {
                        best[lane] = distance[i];
                        where[lane] = Real(i);
                    }
            });
            for (int half = lanes / 2; half > 0; half /= 2)
                block.each([=](int lane) {
                    if (lane >= half) return;
                    const int other = lane + half;
                    if (best[other] < best[lane] || (best[other] == best[lane] && where[other] < where[lane])) {
                        best[lane] = best[other];
                        where[lane] = where[other];
                    }
                });
            const int slot = static_cast<int>(where[0]);
            const std::ptrdiff_t place = std::ptrdiff_t{b} * N + slot;
            const Real *from = rings.content + place * C, *key = rings.key + place * D;
            const bool with_keys = keep_keys;
            const std::int64_t newest = written - 1;
            block_for(block, C, [=](int i) { content[i] = from[i]; });
            block_for(block, with_keys ? D : 0, [=](int i) { keys[i] = key[i]; });
            block_for(block, 1, [=](int) {
                distance[slot] = std::numeric_limits<Real>::quiet_NaN();
                when_to[j] = static_cast<Real>(newest - (newest - slot) % N);
            });
        }
        int* const found_to = to.found + b;
        block_for(block, 1, [=](int) { *found_to = found; });
    }
};

/// Block b mixes the values of its neighbours by inverse squared distance.
template <class Real>
struct knn_mix_rows {
    static constexpr int lanes = 128;
    device_rows<Real> query, weight, read;
    knn_reads<Real> reads;
    int content_width, key_width, value_offset;
    Real epsilon;

    template <class Block>
    ENGRAM_HD void operator()(Block& block, int b) const {
        const int K = reads.neighbours, C = content_width, D = key_width, found = reads.found[b];
        const Real* const q = query.row(b);
        const Real* const content = reads.content + std::ptrdiff_t{b} * K * C + value_offset;
        Real *const distance = reads.distance + std::ptrdiff_t{b} * K, *const w = weight.row(b), *const m = read.row(b);
        for (int j = 0; j < found; ++j) {
            const Real* const key = reads.keys + (std::ptrdiff_t{b} * K + j) * D;
            const Real d = block_sum(block, D, [=](int i) { return (q[i] - key[i]) * (q[i] - key[i]); });
            block_for(block, 1, [=](int) { distance[j] = d; });
        }
        const Real e = epsilon;
        block_for(block, 1, [=](int) {
            // Scaled by the nearest, as on the host.
            Real nearest = found > 0 ? distance[0] : Real(0), total = 0;
            for (int j = 1; j < found; ++j) nearest = distance[j] < nearest ? distance[j] : nearest;
            for (int j = 0; j < found; ++j) total += w[j] = (e + nearest) / (e + distance[j]);
            for (int j = 0; j < K; ++j) w[j] = j < found ? w[j] / total : Real(0);
        });
        block_for(block, read.width, [=](int i) {
            Real sum = 0;
            for (int j = 0; j < found; ++j) sum += w[j] * content[std::ptrdiff_t{j} * C + i];
            m[i] = sum;
        });
    }
};

/// Block b gives the gradients of its query and of its neighbours' keys.
template <class Real>
struct knn_mix_gradient {
    static constexpr int lanes = 128;
    device_rows<Real> query, weight, d_read, d_query;
    knn_reads<Real> reads;
    Real* d_keys;  // [B, K, D], or null
    int content_width, key_width, value_offset;
    Real epsilon;

    template <class Block>
    ENGRAM_HD void operator()(Block& block, int b) const {
        const int K = reads.neighbours, C = content_width, D = key_width, found = reads.found[b];
        const Real *const q = query.row(b), *const w = weight.row(b), *const dm = d_read.row(b);
        const Real *const keys = reads.keys + std::ptrdiff_t{b} * K * D, *const distance =
                                                                             reads.distance + std::ptrdiff_t{b} * K;
        Real* const slope = block.scratch + lanes;  // [K]: 2 dL/dd_j
        for (int j = 0; j < found; ++j) {
            const Real* const value = reads.content + (std::ptrdiff_t{b} * K + j) * C + value_offset;
            const Real d = block_sum(block, d_read.width, [=](int i) { return dm[i] * value[i]; });
            block_for(block, 1, [=](int) { slope[j] = d; });
        }
        const Real e = epsilon;
        block_for(block, 1, [=](int) {
            Real mean = 0;
            for (int j = 0; j < found; ++j) mean += w[j] * slope[j];
            for (int j = 0; j < found; ++j) slope[j] = 2 * w[j] * (mean - slope[j]) / (e + distance[j]);
        });
        const device_rows<Real> dq = d_query;
        Real* const dk = d_keys ? d_keys + std::ptrdiff_t{b} * K * D : nullptr;
        block_for(block, D, [=](int i) {
            Real sum = 0;
            for (int j = 0; j < K; ++j) {
                const Real by = j < found ? slope[j] * (q[i] - keys[std::ptrdiff_t{j} * D + i]) : Real(0);
                sum += by;
                if (dk) dk[std::ptrdiff_t{j} * D + i] = -by;
            }
            if (dq.wanted()) dq.take(b, i, sum);
        });
    }
};

template <device_backend Backend>
struct knn_read_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    knn_read_kernel(const binder<Backend>& b, const knn_read_settings& s)
        : device_kernel<Backend>(b),
          settings_(s),
          query_(b.in(0)),
          d_query_(b.d_in(0)),
          read_(b.out(0)),
          d_read_(b.d_out(0)),
          weight_(b.out(1)),
          when_(b.out(2)),
          memory_(b.bound_resource(s.memory.resource)),
          key_weight_(b.weights(s.weight)),
          key_bias_(b.weights(s.bias)),
          keep_(b.needs_backward() ? b.steps() : 1),
          products_(static_cast<std::size_t>(b.batch() * std::ptrdiff_t{s.memory.slots})),
          content_(reads(s.memory.content)),
          keys_(reads(s.memory.key)),
          distance_(reads(1)),
          d_keys_(s.jumpy && b.needs_backward() ? reads(s.memory.key) : 0),
          found_(static_cast<std::size_t>(keep_) * static_cast<std::size_t>(b.batch())) {
        if (d_keys_.empty()) return;
        dw_ = b.d_parameter(s.weight);
        db_ = b.d_parameter(s.bias);
    }

    void forward(int t, int) override {
        auto& rings = static_cast<typename knn_rings_of<Backend>::type&>(**memory_);
        const knn_ring<real> ring = rings.first();
        const int K = settings_.neighbours, C = settings_.memory.content, D = settings_.memory.key, N = ring.slots;
        this->on->products(this->name, this->batch, {ring.key, D}, std::ptrdiff_t{N} * D, {query_.at(t), D, true},
                           query_.stride, false, products_.data(), 1, N, N, 1, D);
        this->launch_blocks(1, 1, 2 * knn_select_rows<real>::lanes,
                            knn_select_rows<real>{ring, products_.data(), kept(t), {when_, t}, !settings_.jumpy});
        if (settings_.jumpy) {
            const int rows = this->batch * K;
            const operand<real> keys{kept(t).keys, D, 0, D};
            this->on->launch(this->name, std::ptrdiff_t{rows} * D, start_affine<real>{{keys, 0}, key_bias_});
            this->on->product(this->name, {kept(t).content, C}, {key_weight_, D}, true, keys.data, D, rows, D, C);
        }
        this->launch_blocks(1, 1, knn_mix_rows<real>::lanes,
                            knn_mix_rows<real>{{query_, t},
                                               {weight_, t},
                                               {read_, t},
                                               kept(t),
                                               C,
                                               D,
                                               settings_.value_offset,
                                               static_cast<real>(settings_.epsilon)});
    }

    void backward(int t, int) override {
        const int K = settings_.neighbours, C = settings_.memory.content, D = settings_.memory.key;
        real* const d_keys = d_keys_.empty() ? nullptr : d_keys_.data() + first(t) * K * D;
        this->launch_blocks(1, 1, knn_mix_gradient<real>::lanes + K,
                            knn_mix_gradient<real>{{query_, t},
                                                   {weight_, t},
                                                   {d_read_, t},
                                                   {d_query_, t},
                                                   kept(t),
                                                   d_keys,
                                                   C,
                                                   D,
                                                   settings_.value_offset,
                                                   static_cast<real>(settings_.epsilon)});
    }

    void after() override {
        if (!dw_) return;
        const int rows = keep_ * this->batch * settings_.neighbours, C = settings_.memory.content,
                  D = settings_.memory.key;
        this->on->product(this->name, {content_.data(), C, true}, {d_keys_.data(), D}, dw_.accumulate, dw_.data,
                          dw_.stride, C, D, rows);
        this->on->launch_blocks(this->name, D, sum_column<real>::lanes,
                                sum_column<real>{d_keys_.data(), D, rows, db_.data, db_.accumulate});
    }

private:
    using numbers = typename executor<Backend>::buffer;

    std::size_t reads(int width) const {
        return static_cast<std::size_t>(keep_) * static_cast<std::size_t>(this->batch) *
               static_cast<std::size_t>(settings_.neighbours) * static_cast<std::size_t>(width);
    }
    std::ptrdiff_t first(int t) const { return keep_ == 1 ? 0 : std::ptrdiff_t{t} * this->batch; }
    knn_reads<real> kept(int t) {
        const std::ptrdiff_t K = settings_.neighbours, read = first(t) * K;
        return {content_.data() + read * settings_.memory.content, keys_.data() + read * settings_.memory.key,
                distance_.data() + read, found_.data() + first(t), static_cast<int>(K)};
    }

    knn_read_settings settings_;
    operand<real> query_, d_query_, read_, d_read_, weight_, when_, dw_, db_;
    std::shared_ptr<resource>* memory_;
    const real *key_weight_, *key_bias_;
    int keep_;
    numbers products_, content_, keys_, distance_, d_keys_;
    typename executor<Backend>::template array<int> found_;
};

}  // namespace engram
