#pragma once
// SPDX-License-Identifier: MIT

// The FIFO k-NN memory as operations of a scan: forget, read, write (facts 1.3, 1.4; errata M17 to M19).
//
// One ring a batch row, kept once for all T steps: contents are constants for the gradient, so an unroll costs no
// copies of it. A read finds the K slots nearest to the query by cached keys, recomputes their keys under the current
// weights ("jumpy backpropagation": the loss reaches W_k through them) and mixes their values by inverse squared
// distance. Neighbours are copied for the deferred gradient of W_k, since a slot may be overwritten later in the
// unroll; W_k does not change within an unroll, so an entry that is read at many steps is copied and given its key
// once, and its gradients meet in one row. Without jumpy backpropagation the cached keys serve as they are and W_k gets
// no gradient at all.

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include <engram/graph/simple_operation.hpp>
#include <engram/kernels/knn.hpp>
#include <engram/kernels/product.hpp>
#include <engram/operations/episodes.hpp>
#include <engram/operations/weight_rows.hpp>

namespace engram {

/// B rings of N slots, each with content [C], key [D] and |key|^2, in memory of the kind that Array is. Keys of float
/// in the host's own memory have a compact copy beside them, which is no part of `bytes()`: whoever asks for those may
/// write them, so that a ring is copied again before its next use.
template <class Real, template <class> class Array = aligned_vector>
class knn_rings final : public resource {
public:
    knn_rings(int batch, int slots, int content, int key)
        : slots_(slots),
          content_width_(content),
          key_width_(key),
          content_(size(batch, slots, content)),
          key_(size(batch, slots, key)),
          norm_(size(batch, slots, 1)),
          written_(static_cast<std::size_t>(batch)),
          episode_(static_cast<std::size_t>(batch)) {
        if constexpr (has_compact) {
            if (!knn_compact_pays(slots, key, 1)) return;
            words_.resize(static_cast<std::size_t>(batch * knn_compact_words(slots, key)));
            outdated_.resize(static_cast<std::size_t>(batch));
        }
    }

    /// For use before the next `bytes()` or `first()`.
    knn_ring<Real> ring(int b) {
        knn_ring<Real> r = whole(b);
        if (outdated_.empty()) return r;
        r.compact = {words_.data() + b * knn_compact_words(slots_, key_width_)};
        if (std::exchange(outdated_[static_cast<std::size_t>(b)], char{0})) rebuild_compact(r);
        return r;
    }
    /// All rings, one after the other, as a device's kernels see and write them.
    knn_ring<Real> first() {
        outdate();
        return whole(0);
    }
    void reset() {
        for (int b = 0; b < batch(); ++b) reset(b);
    }
    void reset(int b) {
        auto r = ring(b);
        knn_reset(r);
        ++episode_[static_cast<std::size_t>(b)];
    }
    /// Counts the resets of a row: within one unroll, it and the number of a write name an entry.
    std::int64_t episode(int b) const { return episode_[static_cast<std::size_t>(b)]; }
    int batch() const { return static_cast<int>(written_.size()); }
    /// To be asked for anew before every change.
    std::vector<std::span<std::byte>> bytes() override {
        outdate();
        const auto raw = [](auto& v) { return std::as_writable_bytes(std::span(v.data(), v.size())); };
        return {raw(content_), raw(key_), raw(norm_), raw(written_)};
    }
    /// What the compact copies take besides.
    std::size_t compact_bytes() const { return 4 * words_.size(); }

private:
    static constexpr bool has_compact = std::is_same_v<Array<Real>, aligned_vector<float>>;

    knn_ring<Real> whole(int b) {
        const std::ptrdiff_t first = std::ptrdiff_t{b} * slots_;
        return {content_.data() + first * content_width_,
                key_.data() + first * key_width_,
                norm_.data() + first,
                written_.data() + b,
                slots_,
                content_width_,
                key_width_};
    }
    void outdate() { std::fill(outdated_.begin(), outdated_.end(), char{1}); }
    static std::size_t size(int batch, int slots, int width) {
        return static_cast<std::size_t>(batch) * static_cast<std::size_t>(slots) * static_cast<std::size_t>(width);
    }
    int slots_, content_width_, key_width_;
    Array<Real> content_, key_, norm_;
    Array<std::int64_t> written_;
    std::vector<std::int64_t> episode_;
    aligned_vector<std::uint32_t> words_;
    std::vector<char> outdated_;  // of each row: its compact copy may be of other keys. A row has one thread at a time.
};

/// The rings of a backend; a device with a memory of its own has others.
template <class Backend>
struct knn_rings_of {
    using type = knn_rings<typename Backend::real>;
};

/// Handle of a k-NN memory in a trace.
struct knn_memory {
    int resource = -1;
    int slots = 0, content = 0, key = 0;
};

/// A ring of `slots` entries for every row of the batch, as a resource of the graph.
template <class Backend>
knn_memory add_knn_memory(graph<Backend>& g, const std::string& name, int slots, int content, int key) {
    using rings = typename knn_rings_of<Backend>::type;
    require(slots > 0 && content > 0 && key > 0, g.full_name(name), ": a memory of ", slots, " slots, content ",
            content, " and keys of ", key, " holds nothing");
    const int id = g.add_resource(name, [=](int batch) { return std::make_shared<rings>(batch, slots, content, key); });
    return {id, slots, content, key};
}

// --- forget ---

template <class Backend>
struct knn_forget_kernel final : kernel<Backend> {
    using real = typename Backend::real;
    knn_forget_kernel(const binder<Backend>& b, knn_memory m)
        : batch(b.batch()), reset(b.in(0)), memory(b.bound_resource(m.resource)) {}
    void forward(int t, int steps) override {
        auto& rings = static_cast<knn_rings<real>&>(**memory);
        for (int r = 0; r < steps * batch; ++r) {
            if (begins(reset, t, r)) rings.reset(r % batch);
        }
    }
    int batch;
    operand<real> reset;
    std::shared_ptr<resource>* memory;
};

/// Empties the memory of every row whose reset [T, B, 1] is one: its episode begins with this step.
template <class Backend>
void knn_forget(const knn_memory& memory, const var<Backend>& reset) {
    graph<Backend>& g = *reset.owner;
    auto op = make_operation<knn_forget_kernel>(g, "forget", {internal::reset_column("forget", reset)}, memory);
    op->resources = {memory.resource};
    op->writes_resource = true;
    g.add(std::move(op), {}, extent::sequence);
}

// --- read ---

struct knn_read_settings {
    knn_memory memory;
    parameter weight, bias;
    int neighbours = 10;
    double epsilon = 1e-3;
    bool jumpy = true;
    int value_offset = 0, value_width = 0;
};

template <class Backend>
struct knn_read_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    knn_read_kernel(const binder<Backend>& b, const knn_read_settings& s)
        : settings_(s),
          batch_(b.batch()),
          steps_(b.steps()),
          query_(b.in(0)),
          d_query_(b.d_in(0)),
          read_(b.out(0)),
          d_read_(b.d_out(0)),
          weight_(b.out(1)),
          when_(b.out(2)),
          memory_(b.bound_resource(s.memory.resource)),
          store_(&b.store()) {
        // A plan without gradients needs the neighbours of one step only.
        keep_ = b.needs_backward() ? steps_ : 1;
        const auto K = static_cast<std::size_t>(s.neighbours), B = static_cast<std::size_t>(batch_);
        const auto reads = static_cast<std::size_t>(keep_) * B * K;
        content_.resize(reads * static_cast<std::size_t>(s.memory.content));
        keys_.resize(reads * static_cast<std::size_t>(s.memory.key));
        origin_.resize(reads);
        row_.resize(reads);
        distance_.resize(reads);
        found_.resize(static_cast<std::size_t>(keep_) * B);
        scratch_.resize(static_cast<std::size_t>(s.memory.slots));
        slots_.resize(K);
        if (keep_ > 1) {
            row_of_.resize(B * static_cast<std::size_t>(s.memory.slots));
            episode_.resize(B);
        }
        if (b.needs_backward() && !d_query_) unwanted_.resize(static_cast<std::size_t>(s.memory.key));
        if (s.jumpy && b.needs_backward()) {
            dw_ = b.d_parameter(s.weight);
            db_ = b.d_parameter(s.bias);
            d_keys_.resize(keys_.size());
        }
        if (s.jumpy)
            key_weight_ = {b.store(), s.weight, 0, s.memory.content, static_cast<int>(reads), false, bool(dw_), work_};
    }

    void before() override {
        rows_ = 0;
        std::fill(row_of_.begin(), row_of_.end(), -1);
    }

    void forward(int t, int) override {
        auto& rings = static_cast<knn_rings<real>&>(**memory_);
        const int K = settings_.neighbours, C = settings_.memory.content, D = settings_.memory.key;
        const std::ptrdiff_t first = first_read(t);
        if (keep_ == 1) rows_ = 0;
        const int fresh = rows_;
        for (int b = 0; b < batch_; ++b) {
            const auto ring = rings.ring(b);
            const int found = found_[static_cast<std::size_t>(first + b)] =
                knn_select(ring, query_.at(t) + b * query_.stride, K, slots_.data(), scratch_.data());
            int* row = row_.data() + (first + b) * K;
            real* when = when_.at(t) + b * when_.stride;
            const std::int64_t newest = *ring.written - 1;
            for (int j = 0; j < found; ++j) {
                const int slot = slots_[static_cast<std::size_t>(j)];
                const std::int64_t write = newest - (newest - slot) % ring.slots;
                row[j] = row_with(rings, ring, b, slot, write);
                when[j] = static_cast<real>(write);
            }
            std::fill(when + found, when + K, real(-1));
        }
        if (settings_.jumpy)
            key_weight_.multiply(content_.data() + std::ptrdiff_t{fresh} * C, C, store_->values(settings_.bias), false,
                                 keys_.data() + std::ptrdiff_t{fresh} * D, D, rows_ - fresh);
        for (int b = 0; b < batch_; ++b) {
            const std::ptrdiff_t r = first + b;
            const int found = found_[static_cast<std::size_t>(r)];
            real* weight = weight_.at(t) + b * weight_.stride;
            std::fill_n(weight, K, real(0));
            knn_read(query_.at(t) + b * query_.stride, keys_.data(), D, content_.data(), C, settings_.value_offset,
                     settings_.value_width, found, static_cast<real>(settings_.epsilon), distance_.data() + r * K,
                     weight, read_.at(t) + b * read_.stride, row_.data() + r * K);
        }
    }

    void backward(int t, int) override {
        const int K = settings_.neighbours, C = settings_.memory.content, D = settings_.memory.key;
        if (!d_keys_.empty() && t == steps_ - 1) std::fill_n(d_keys_.data(), std::ptrdiff_t{rows_} * D, real(0));
        for (int b = 0; b < batch_; ++b) {
            const std::ptrdiff_t r = first_read(t) + b;
            real* d_query = d_query_ ? d_query_.at(t) + b * d_query_.stride : unwanted_.data();
            if (!d_query_ || !d_query_.accumulate) std::fill_n(d_query, D, real(0));
            knn_read_gradient(query_.at(t) + b * query_.stride, keys_.data(), D, content_.data(), C,
                              settings_.value_offset, settings_.value_width, found_[static_cast<std::size_t>(r)],
                              static_cast<real>(settings_.epsilon), distance_.data() + r * K,
                              weight_.at(t) + b * weight_.stride, d_read_.at(t) + b * d_read_.stride, d_query,
                              d_keys_.empty() ? nullptr : d_keys_.data(), row_.data() + r * K);
        }
    }

    void after() override {
        if (!dw_) return;
        const int C = settings_.memory.content, D = settings_.memory.key;
        key_weight_.gradient(content_.data(), C, d_keys_.data(), D, rows_, dw_.data, dw_.stride, dw_.accumulate);
        sum_rows(d_keys_.data(), D, D, rows_, db_.data, db_.accumulate);
    }

private:
    std::ptrdiff_t first_read(int t) const { return keep_ == 1 ? 0 : std::ptrdiff_t{t} * batch_; }

    // The row that holds a copy of what a slot holds now; made if this unroll has not read that entry yet.
    int row_with(const knn_rings<real>& rings, const knn_ring<real>& ring, int b, int slot, std::int64_t write) {
        int* known = nullptr;
        if (keep_ > 1) {
            int* const of_ring = row_of_.data() + std::ptrdiff_t{b} * ring.slots;
            if (std::exchange(episode_[static_cast<std::size_t>(b)], rings.episode(b)) != rings.episode(b))
                std::fill_n(of_ring, ring.slots, -1);
            known = of_ring + slot;
            if (*known >= 0 && origin_[static_cast<std::size_t>(*known)] == write) return *known;
        }
        const int row = rows_++, C = ring.content_width, D = ring.key_width;
        std::copy_n(ring.content + std::ptrdiff_t{slot} * C, C, content_.data() + std::ptrdiff_t{row} * C);
        if (!settings_.jumpy)
            std::copy_n(ring.key + std::ptrdiff_t{slot} * D, D, keys_.data() + std::ptrdiff_t{row} * D);
        origin_[static_cast<std::size_t>(row)] = write;
        if (known) *known = row;
        return row;
    }

    knn_read_settings settings_;
    int batch_, steps_, keep_, rows_ = 0;
    operand<real> query_, d_query_, read_, d_read_, weight_, when_, dw_, db_;
    std::shared_ptr<resource>* memory_;
    parameters<real>* store_;
    product_workspace<real> work_;
    weight_rows<real> key_weight_;
    aligned_vector<real> content_, keys_, d_keys_, distance_, scratch_, unwanted_;
    std::vector<int> found_, slots_, row_, row_of_;  // row_ [T, B, K], row_of_ [B, N]
    std::vector<std::int64_t> origin_, episode_;     // the write that a row copies; the episode that row_of_ is of
};

/// What a read gives: the mixture [T, B, V], and for whoever looks on the weights [T, B, K] and the number of the write
/// that each comes from, counted from the episode's start (-1: no such neighbour).
template <class Backend>
struct knn_recall {
    var<Backend> value, weight, when;
};

/// What the nearest entries hold, mixed by their weights, with those weights and when the entries were written.
template <class Backend>
knn_recall<Backend> knn_read(const var<Backend>& query, const linear& key, const knn_read_settings& wanted) {
    graph<Backend>& g = *query.owner;
    knn_read_settings s = wanted;
    s.weight = key.weight;
    s.bias = key.bias;
    const auto& w = g.store()[key.weight];
    require(query.width == s.memory.key, g.full_name("read"), ": the query has ", query.width, " columns, keys have ",
            s.memory.key);
    require(w.rows == s.memory.content && w.columns == s.memory.key, g.full_name("read"), ": the key weight '", w.name,
            "' is [", w.rows, ",", w.columns, "], contents and keys want [", s.memory.content, ",", s.memory.key, "]");
    require(s.neighbours > 0, g.full_name("read"), ": ", s.neighbours, " neighbours; at least one is needed");
    require(s.value_offset >= 0 && s.value_width > 0 && s.value_offset + s.value_width <= s.memory.content,
            g.full_name("read"), ": value columns ", s.value_offset, "..", s.value_offset + s.value_width,
            " lie outside contents of ", s.memory.content);
    auto op = make_operation<knn_read_kernel>(g, "read", {query}, s);
    op->resources = {s.memory.resource};
    if (s.jumpy) op->parameters = {key.weight.id, key.bias.id};
    const auto out = g.add(std::move(op), {s.value_width, s.neighbours, s.neighbours}, extent::sequence);
    return {out[0], stop_gradient(out[1]), stop_gradient(out[2])};
}

// --- write ---

template <class Backend>
struct knn_write_kernel final : kernel<Backend> {
    using real = typename Backend::real;
    knn_write_kernel(const binder<Backend>& b, knn_memory m)
        : batch(b.batch()), content(b.in(0)), key(b.in(1)), memory(b.bound_resource(m.resource)) {}
    void forward(int t, int) override {
        auto& rings = static_cast<knn_rings<real>&>(**memory);
        for (int b = 0; b < batch; ++b) {
            auto ring = rings.ring(b);
            knn_write(ring, content.at(t) + b * content.stride, key.at(t) + b * key.stride);
        }
    }
    int batch;
    operand<real> content, key;
    std::shared_ptr<resource>* memory;
};

/// Overwrites the oldest slot of every row with content [T, B, C] and its key [T, B, D]; both are constants.
template <class Backend>
void knn_write(const knn_memory& memory, const var<Backend>& content, const var<Backend>& key) {
    graph<Backend>& g = *content.owner;
    require(content.width == memory.content && key.width == memory.key, g.full_name("write"), ": content and key have ",
            content.width, " and ", key.width, " columns, the memory holds ", memory.content, " and ", memory.key);
    auto op = make_operation<knn_write_kernel>(g, "write", {stop_gradient(content), stop_gradient(key)}, memory);
    op->resources = {memory.resource};
    op->writes_resource = true;
    g.add(std::move(op), {}, extent::sequence);
}

}  // namespace engram
