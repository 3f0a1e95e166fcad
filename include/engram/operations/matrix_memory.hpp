#pragma once
// SPDX-License-Identifier: MIT

// Reading and writing a memory matrix M [N, W] that is one row [N * W] of a variable, usually the carried state of a
// scan (NTM, LRU and DNC, facts 4.4 to 4.6; equations in kernels/matrix_memory.hpp).
//
//   cosine_scores   M, keys [., R * W] (, written [., 1])               -> [., R * N]
//   weighted_read   weights [., R * N], M                               -> [., R * W]
//   erase_add       M, weights [., H * N], erase and add [., H * W]     -> M' [., N * W]
//
// The word W is given; N, R and H follow from the widths. All gradients go on to all inputs. The state keeps M of every
// step, so nothing but the norms of the cosines is saved besides. With `written` M is a ring (operations/slots.hpp):
// scores of slots that were not written are zero, and nothing of these is looked at.

#include <engram/graph/simple_operation.hpp>
#include <engram/kernels/matrix_memory.hpp>
#include <engram/operations/ring.hpp>

namespace engram {

/// Sizes of a matrix memory and the number of its heads.
struct matrix_memory_shape {
    int slots, word, heads;
    bool by_age = false;  // of a ring: scores go by age, not by slot
};

/// A gradient row for a kernel that stores (or adds): the operand itself, or scratch that is added to it or dropped.
template <class Real>
class gradient_row {
public:
    gradient_row() = default;
    gradient_row(operand<Real> target, int width, bool kernel_adds)
        : target_(target), width_(width), adds_(kernel_adds) {
        if (!target_ || (target_.accumulate && !adds_)) scratch_.resize(static_cast<std::size_t>(width));
    }
    Real* begin(int t, int row) {
        if (!scratch_.empty()) return scratch_.data();
        Real* to = target_.at(t) + row * target_.stride;
        if (adds_ && !target_.accumulate) std::fill_n(to, width_, Real(0));
        return to;
    }
    void end(int t, int row) {
        if (!target_ || scratch_.empty()) return;
        Real* to = target_.at(t) + row * target_.stride;
        for (int f = 0; f < width_; ++f) to[f] += scratch_[static_cast<std::size_t>(f)];
    }

private:
    operand<Real> target_;
    int width_ = 0;
    bool adds_ = false;
    aligned_vector<Real> scratch_;
};

/// Scores [R, N] of a memory, of which a kernel for one that is full sees the slots that were written, [R, n].
template <class Real>
class written_scores {
public:
    template <class Backend>
    written_scores(const binder<Backend>& b, const matrix_memory_shape& s) : shape_(s) {
        if (b.op().inputs.size() <= 2) return;
        written_ = b.in(2);
        for (auto* room : {&room_, &slopes_}) room->resize(static_cast<std::size_t>(s.heads * s.slots));
    }
    ring_places places(int t, int row) const {
        const int all = shape_.slots;
        return {all, written_ ? count_of(written_.at(t)[row * written_.stride]) : all, written_ && shape_.by_age};
    }
    /// Where n scores of every head go that become those at `out`.
    Real* begin(Real* out) { return written_ ? room_.data() : out; }
    void end(const ring_places& at, Real* out) const {
        if (!written_) return;
        std::fill_n(out, shape_.heads * shape_.slots, Real(0));
        each(at, [&](int compact, int place) { out[place] = room_[static_cast<std::size_t>(compact)]; });
    }
    /// The scores and what comes back to them, of n slots.
    const Real* scores(const ring_places& at, const Real* out) { return cut(at, out, room_); }
    const Real* slopes(const ring_places& at, const Real* d_out) { return cut(at, d_out, slopes_); }

private:
    template <class Body>
    void each(const ring_places& at, Body body) const {
        for (int h = 0; h < shape_.heads; ++h)
            for (int n = 0; n < at.valid; ++n) body(h * at.valid + n, h * shape_.slots + at(n));
    }
    const Real* cut(const ring_places& at, const Real* from, aligned_vector<Real>& room) const {
        if (!written_) return from;
        each(at, [&](int compact, int place) { room[static_cast<std::size_t>(compact)] = from[place]; });
        return room.data();
    }

    matrix_memory_shape shape_;
    operand<Real> written_;
    aligned_vector<Real> room_, slopes_;
};

/// Cosines of R keys with N slots, guarded as Norms has it.
template <class Backend, class Norms>
struct cosine_kernel : kernel<Backend> {
    using real = typename Backend::real;

    cosine_kernel(const binder<Backend>& b, const matrix_memory_shape& s)
        : shape(s), batch(b.batch()), memory(b.in(0)), keys(b.in(1)), out(b.out(0)), d_out(b.d_out(0)), written(b, s) {
        keep = b.needs_backward();
        const int rows = keep ? (out.step ? b.steps() : 1) * batch : 1;
        norms.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(s.heads + s.slots));
        if (!keep) return;
        d_memory = {b.d_in(0), memory.width, true};
        d_keys = {b.d_in(1), keys.width, true};
        scratch.resize(static_cast<std::size_t>(Norms::scratch * s.heads * s.slots));
    }
    void forward(int t, int steps) override {
        for (int r = 0; r < steps * batch; ++r) {
            real *norm = norms_of(t, r), *to = out.at(t) + r * out.stride;
            const auto at = written.places(t, r);
            Norms::compare(memory.at(t) + r * memory.stride, at.valid, shape.word, keys.at(t) + r * keys.stride,
                           shape.heads, written.begin(to), norm, norm + shape.heads);
            written.end(at, to);
        }
    }
    void backward(int t, int steps) override {
        if (!d_out) return;
        for (int r = 0; r < steps * batch; ++r) {
            const real* norm = norms_of(t, r);
            real *dm = d_memory.begin(t, r), *dk = d_keys.begin(t, r);
            const auto at = written.places(t, r);
            Norms::gradient(memory.at(t) + r * memory.stride, at.valid, shape.word, keys.at(t) + r * keys.stride,
                            shape.heads, written.scores(at, out.at(t) + r * out.stride), norm, norm + shape.heads,
                            written.slopes(at, d_out.at(t) + r * d_out.stride), dm, dk, scratch.data());
            d_memory.end(t, r);
            d_keys.end(t, r);
        }
    }

private:
    real* norms_of(int t, int r) {
        return norms.data() + (keep ? (std::ptrdiff_t{t} * batch + r) * (shape.heads + shape.slots) : 0);
    }

    matrix_memory_shape shape;
    int batch;
    operand<real> memory, keys, out, d_out;
    written_scores<real> written;
    bool keep;
    gradient_row<real> d_memory, d_keys;
    aligned_vector<real> norms, scratch;
};

/// Norms that are guarded one by one.
struct guarded_norms {
    static constexpr int scratch = 1;
    template <class Real>
    static void compare(const Real* memory, int N, int W, const Real* keys, int R, Real* cosine, Real* key, Real* row) {
        cosine_scores(memory, N, W, keys, R, static_cast<Real>(cosine_epsilon), cosine, key, row);
    }
    template <class Real>
    static void gradient(const Real* memory, int N, int W, const Real* keys, int R, const Real* cosine, const Real* key,
                         const Real* row, const Real* d_cosine, Real* d_memory, Real* d_keys, Real* room) {
        cosine_scores_gradient(memory, N, W, keys, R, static_cast<Real>(cosine_epsilon), cosine, key, row, d_cosine,
                               d_memory, d_keys, room);
    }
};

template <class Backend>
struct cosine_scores_kernel final : cosine_kernel<Backend, guarded_norms> {
    using cosine_kernel<Backend, guarded_norms>::cosine_kernel;
};

template <class Backend>
struct weighted_read_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    weighted_read_kernel(const binder<Backend>& b, const matrix_memory_shape& s)
        : shape(s), batch(b.batch()), weights(b.in(0)), memory(b.in(1)), out(b.out(0)), d_out(b.d_out(0)) {
        if (!b.needs_backward()) return;
        d_weights = {b.d_in(0), weights.width, false};
        d_memory = {b.d_in(1), memory.width, true};
    }
    void forward(int t, int steps) override {
        for (int r = 0; r < steps * batch; ++r)
            weighted_read(memory.at(t) + r * memory.stride, shape.slots, shape.word, weights.at(t) + r * weights.stride,
                          shape.heads, out.at(t) + r * out.stride);
    }
    void backward(int t, int steps) override {
        if (!d_out) return;
        for (int r = 0; r < steps * batch; ++r) {
            real *dw = d_weights.begin(t, r), *dm = d_memory.begin(t, r);
            weighted_read_gradient(memory.at(t) + r * memory.stride, shape.slots, shape.word,
                                   weights.at(t) + r * weights.stride, shape.heads, d_out.at(t) + r * d_out.stride, dm,
                                   dw);
            d_weights.end(t, r);
            d_memory.end(t, r);
        }
    }

private:
    matrix_memory_shape shape;
    int batch;
    operand<real> weights, memory, out, d_out;
    gradient_row<real> d_weights, d_memory;
};

template <class Backend>
struct erase_add_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    erase_add_kernel(const binder<Backend>& b, const matrix_memory_shape& s)
        : shape(s), batch(b.batch()), out(b.out(0)), d_out(b.d_out(0)) {
        for (std::size_t i = 0; i < 4; ++i) in[i] = b.in(i);
        if (!b.needs_backward()) return;
        for (std::size_t i = 0; i < 4; ++i) d_in[i] = {b.d_in(i), in[i].width, i == 0};
    }
    void forward(int t, int steps) override {
        for (int r = 0; r < steps * batch; ++r)
            erase_and_add(row(0, t, r), shape.slots, shape.word, row(1, t, r), row(2, t, r), row(3, t, r), shape.heads,
                          out.at(t) + r * out.stride);
    }
    void backward(int t, int steps) override {
        if (!d_out) return;
        for (int r = 0; r < steps * batch; ++r) {
            real* d[4];
            for (int i = 0; i < 4; ++i) d[i] = d_in[i].begin(t, r);
            erase_and_add_gradient(row(0, t, r), shape.slots, shape.word, row(1, t, r), row(2, t, r), row(3, t, r),
                                   shape.heads, d_out.at(t) + r * d_out.stride, d[0], d[1], d[2], d[3]);
            for (auto& g : d_in) g.end(t, r);
        }
    }

private:
    const real* row(int i, int t, int r) const { return in[i].at(t) + r * in[i].stride; }

    matrix_memory_shape shape;
    int batch;
    operand<real> in[4], out, d_out;
    gradient_row<real> d_in[4];
};

/// Slots of a memory of `columns` columns, checked.
inline int memory_slots(const std::string& who, int columns, int word) {
    require(word > 0 && columns % word == 0, who, ": a memory of ", columns, " columns does not divide into words of ",
            word);
    return columns / word;
}

namespace internal {

/// An operation of Kernel that compares every key with every slot, of a ring with those that were written.
template <template <class> class Kernel, class Backend>
var<Backend> compare_slots(const std::string& name, const var<Backend>& memory, const var<Backend>& keys, int word,
                           const std::vector<var<Backend>>& written, bool by_age) {
    graph<Backend>& g = *memory.owner;
    const int slots = memory_slots(g.full_name(name), memory.width, word);
    require(keys.width % word == 0, g.full_name(name), ": keys of ", keys.width,
            " columns do not divide into words of ", word, ", those of the memory [", slots, ",", word, "]");
    std::vector<var<Backend>> inputs{memory, keys};
    if (!written.empty()) {
        require(written[0].width == 1, g.full_name(name), ": the count of writes must be one column, not ",
                written[0].width);
        inputs.push_back(stop_gradient(written[0]));
    }
    const matrix_memory_shape shape{slots, word, keys.width / word, by_age};
    auto op = make_operation<Kernel>(g, name, inputs, shape);
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {shape.heads * slots}, rows)[0];
}

}  // namespace internal

/// [., R * N]: cosine of every key with every slot; of a ring by slot, or by age.
template <class Backend>
var<Backend> cosine_scores(const std::string& name, const var<Backend>& memory, const var<Backend>& keys, int word,
                           const std::vector<var<Backend>>& written = {}, bool by_age = false) {
    return internal::compare_slots<cosine_scores_kernel>(name, memory, keys, word, written, by_age);
}

/// [., R * W]: r_r = sum_n w_rn M_n, of every head's weights [., R * N], which need not sum to one.
template <class Backend>
var<Backend> weighted_read(const std::string& name, const var<Backend>& weights, const var<Backend>& memory, int word) {
    graph<Backend>& g = *memory.owner;
    const int slots = memory_slots(g.full_name(name), memory.width, word);
    require(weights.width % slots == 0, g.full_name(name), ": weights of ", weights.width,
            " columns do not divide among the slots of the memory [", slots, ",", word, "]");
    const matrix_memory_shape shape{slots, word, weights.width / slots};
    auto op = make_operation<weighted_read_kernel>(g, name, {weights, memory}, shape);
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {shape.heads * word}, rows)[0];
}

/// [., N * W]: M'_n = M_n prod_h (1 - w_hn erase_h) + sum_h w_hn add_h, of weights [., H * N],
/// erase and add [., H * W].
template <class Backend>
var<Backend> erase_add(const std::string& name, const var<Backend>& memory, const var<Backend>& weights,
                       const var<Backend>& erase, const var<Backend>& add, int word) {
    graph<Backend>& g = *memory.owner;
    const int slots = memory_slots(g.full_name(name), memory.width, word);
    require(weights.width % slots == 0, g.full_name(name), ": weights of ", weights.width,
            " columns do not divide among the slots of the memory [", slots, ",", word, "]");
    const matrix_memory_shape shape{slots, word, weights.width / slots};
    require(erase.width == shape.heads * word && add.width == erase.width, g.full_name(name), ": ", shape.heads,
            " heads need ", shape.heads * word, " columns to erase and to add, not ", erase.width, " and ", add.width);
    auto op = make_operation<erase_add_kernel>(g, name, {memory, weights, erase, add}, shape);
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {memory.width}, rows)[0];
}

}  // namespace engram
