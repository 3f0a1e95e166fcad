#pragma once
// SPDX-License-Identifier: MIT

// The FIFO k-NN memory on a device (equations: kernels/knn.hpp; meaning: operations/knn.hpp).
//
// A read is one launch and its gradient another (knn_read.hpp). A copy of what was found is kept for every read
// (t, b, j), so that no two reads share a row and no thread waits for another; the host keeps one for every entry. Rows
// of neighbours that do not exist are zero, which makes the deferred gradient of W_k one product over all of them.

#include <engram/device/kernel.hpp>
#include <engram/device/ops/affine.hpp>
#include <engram/device/ops/knn_read.hpp>
#include <engram/operations/knn.hpp>

namespace engram {

// --- forget and write ---

namespace internal {

template <class Real>
struct knn_forget_rows {
    step_rows<Real> reset;
    std::int64_t* written;
    int batch, steps;
    ENGRAM_HD void operator()(std::ptrdiff_t b) const {
        for (int t = 0; t < steps; ++t)
            if (is_set(*reset.row(std::ptrdiff_t{t} * batch + b))) written[b] = 0;
    }
};

}  // namespace internal

template <device_backend Backend>
struct knn_forget_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    knn_forget_kernel(const binder<Backend>& b, knn_memory m)
        : device_kernel<Backend>(b), reset(b.in(0)), memory(b.bound_resource(m.resource)) {}
    void forward(int t, int steps) override {
        auto& rings = static_cast<typename knn_rings_of<Backend>::type&>(**memory);
        this->launch(1, 1, internal::knn_forget_rows<real>{{reset, t}, rings.first().written, this->batch, steps});
    }
    operand<real> reset;
    std::shared_ptr<resource>* memory;
};

namespace internal {

/// Block b overwrites the oldest slot of ring b.
template <class Real>
struct knn_write_rows {
    static constexpr int lanes = 128;
    step_rows<Real> content, key;
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

}  // namespace internal

template <device_backend Backend>
struct knn_write_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    knn_write_kernel(const binder<Backend>& b, knn_memory m)
        : device_kernel<Backend>(b), content(b.in(0)), key(b.in(1)), memory(b.bound_resource(m.resource)) {}
    void forward(int t, int) override {
        auto& rings = static_cast<typename knn_rings_of<Backend>::type&>(**memory);
        this->launch_blocks(1, 1, internal::knn_write_rows<real>::lanes,
                            internal::knn_write_rows<real>{{content, t}, {key, t}, rings.first()});
    }
    operand<real> content, key;
    std::shared_ptr<resource>* memory;
};

// --- read ---

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
          far_(s.memory.slots > internal::knn_read_rows<real>::near_slots
                   ? static_cast<std::size_t>(b.batch() * std::ptrdiff_t{s.memory.slots})
                   : 0),
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
        using body = internal::knn_read_rows<real>;
        using distances = internal::knn_distances<real>;
        if (!far_.empty())
            this->launch_blocks(1, distances::blocks(settings_.memory.slots), distances::scratch,
                                distances{rings.first(), {query_, t}, far_.data()});
        const bool jumpy = settings_.jumpy;
        this->launch_blocks(1, 1, body::scratch(settings_.memory.slots, settings_.neighbours),
                            body{rings.first(),
                                 {query_, t},
                                 {weight_, t},
                                 {when_, t},
                                 {read_, t},
                                 kept(t),
                                 jumpy ? key_weight_ : nullptr,
                                 jumpy ? key_bias_ : nullptr,
                                 far_.empty() ? nullptr : far_.data(),
                                 settings_.value_offset,
                                 static_cast<real>(settings_.epsilon)});
    }

    void backward(int t, int) override {
        const int K = settings_.neighbours, C = settings_.memory.content, D = settings_.memory.key;
        real* const d_keys = d_keys_.empty() ? nullptr : d_keys_.data() + first(t) * K * D;
        using body = internal::knn_read_gradient_rows<real>;
        this->launch_blocks(1, 1, body::scratch(K),
                            body{{query_, t},
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
        this->on->launch_blocks(this->name, D, internal::sum_column<real>::lanes,
                                internal::sum_column<real>{d_keys_.data(), D, rows, db_.data, db_.accumulate});
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
    numbers far_, content_, keys_, distance_, d_keys_;
    typename executor<Backend>::template array<int> found_;
};

}  // namespace engram
