#pragma once
// SPDX-License-Identifier: MIT

// add_recurrent_rows: a row operation that carries a state by itself. Its body is one step, as any other body is; two
// of its operands have names of their own:
//
//   input_row<Real> carried;    // the first input: what the step before left
//   output_row<Real> next;      // the last output; may lie where `carried` lies, so a number is read before it is put
//
// and `reset`, a constant_row and the last input, says where `carried` counts as zero, whatever stands there. Besides
// forward and backward a body has advance(row, o, settings), which puts `next` alone; with parameters also
// backward_and_slopes, which adds their slopes by the way. backward finds both `carried` and
// `next`; the gradient of the one may lie where that of the other lies.
//
// Where the state is one that nobody else sees (graph::own_state), the host runs all steps of a row and piece
// before the next one: what is carried stays in a cache, and of T states two are in memory. The backward sweep makes
// the others again, some steps at a time. To forward and backward it gives zeros to carry and no `reset` where an
// episode begins, and a gradient of `next` always, so that a body is compiled there without what it does otherwise.
// Steps, unrolls of any length and a scan give the same bits. On a device a block goes through the steps of a row and
// piece.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <engram/operations/row_operation.hpp>

namespace engram {

namespace internal {

/// Runs all steps of one row and piece after the other.
template <class Backend, class Body>
struct scan_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    scan_kernel(const binder<Backend>& b, const typename Body::settings& s)
        : name_(b.op().name), settings_(s), operands_(b, s), batch_(b.batch()) {
        if constexpr (requires { Body::sums(s, 0); })
            room_.resize(static_cast<std::size_t>(Body::sums(s, static_cast<int>(b.op().inputs.size()))));
        size_ = operands_.at(0, 0).all.carried.width;
        zeros_.resize(at(1));
        if (!wanted()) return;
        // As many as a second-level cache holds beside the rest, and no fewer than the square root of all.
        constexpr int near = 128 * 1024 / static_cast<int>(sizeof(real));
        chunk_ = std::clamp(near / std::max(size_, 1), static_cast<int>(std::sqrt(b.steps())), b.steps());
        starts_.resize(at((b.steps() + chunk_ - 1) / chunk_));
        states_.resize(at(chunk_ + 1));
        slope_.resize(at(1));
    }
    [[gnu::flatten]] void forward(int t, int count) override {
        at_row piece = operands_.at(t, 0);
        const host_row<real> on(name_, index_kind<Body>, room_.data());
        const auto s = settings_;
        each_piece(piece, [&] {
            at_row here = piece;
            const auto reset = std::exchange(here.all.reset, {});
            here.all.carried.step = here.all.next.step = 0;
            for (int k = 0; k < count; ++k, here.move(1, 0, 0)) {
                if (begins(reset, k)) here.all.carried.data = zeros_.data();
                fetch_all(here, 1);
                Body::forward(on, here.all, s);
                here.all.carried.data = here.all.next.data;
            }
        });
    }
    [[gnu::flatten]] void backward(int t, int count) override {
        if (!wanted()) return;
        at_row piece = operands_.at(t, 0);
        for_members(piece.all, [&](auto& m) {
            if constexpr (is_weight<std::remove_cvref_t<decltype(m)>>)
                if (m.d && !std::exchange(m.d.accumulate, true)) std::fill_n(m.d.data, operands_.width, real(0));
        });
        const host_row<real> on(name_, index_kind<Body>, room_.data());
        const auto s = settings_;
        each_piece(piece, [&] {
            std::copy_n(piece.all.carried.data, size_, starts_.data());
            at_row ahead = piece;
            ahead.all.next.step = ahead.all.carried.step = 0;
            for (int k = 0; k < (count - 1) / chunk_ * chunk_; ++k, ahead.move(1, 0, 0)) {
                const int begun = k / chunk_;
                ahead.all.next.data = starts_.data() + at(begun + 1);
                ahead.all.carried.data = k % chunk_ == 0 ? starts_.data() + at(begun) : ahead.all.next.data;
                fetch_inputs(ahead, 1);
                step::advance(on, ahead.all, s);
            }
            real* const slope = slope_.data();
            std::fill_n(slope, size_, real(0));  // nobody else reads what the last step leaves
            for (int first = (count - 1) / chunk_ * chunk_; first >= 0; first -= chunk_) {
                const int steps = std::min(chunk_, count - first);
                at_row remade = piece;
                remade.all.next.step = remade.all.carried.step = 0;
                remade.move(first, 0, 0);
                real* const states = states_.data();
                std::copy_n(starts_.data() + at(first / chunk_), size_, states);
                for (int k = 0; k < steps; ++k, remade.move(1, 0, 0)) {
                    remade.all.carried.data = states + at(k);
                    remade.all.next.data = states + at(k + 1);
                    fetch_inputs(remade, 1);
                    step::advance(on, remade.all, s);
                }
                at_row here = remade;
                const auto reset = std::exchange(here.all.reset, {});
                if (!slope) __builtin_unreachable();  // as the compiler does not know of a vector
                here.all.next.d = {{slope, false}, 0, 0, size_, 0};
                here.all.carried.d = here.all.next.d;
                for (int k = steps; k-- > 0;) {
                    here.move(-1, 0, 0);
                    const bool begun = begins(reset, k - steps);
                    here.all.carried.data = begun ? zeros_.data() : states + at(k);
                    here.all.next.data = states + at(k + 1);
                    fetch_all(here, -1);
                    if constexpr (requires { Body::backward_and_slopes(on, here.all, s); })
                        Body::backward_and_slopes(on, here.all, s);
                    else
                        Body::backward(on, here.all, s);
                    if (begun) std::fill_n(slope, size_, real(0));
                }
            }
            if (piece.all.carried.d)
                on.each(size_, [&](auto i) { piece.all.carried.d.put(i, columns_at<real>{slope_.data()}[i]); });
        });
    }

private:
    using at_row = operands_at<real, Body>;
    using step = host_step<real, Body>;

    bool wanted() const { return operands_.inputs_want || operands_.parameters_want; }
    std::size_t at(int k) const { return static_cast<std::size_t>(k) * static_cast<std::size_t>(size_); }

    /// Whether an episode begins `steps` further on.
    static bool begins(const row_columns<real>& reset, int steps) {
        return reset && is_set(reset.data[steps * reset.step]);
    }
    template <class Run>
    ENGRAM_SIMD void each_piece(at_row& piece, Run run_piece) const {
        for (int b = 0; b < batch_; ++b, piece.move(0, 1, -operands_.pieces))
            for (int k = 0; k < operands_.pieces; ++k, piece.move(0, 0, 1)) run_piece();
    }
    // Rows of one step lie far from those of the next, which no processor foresees: what the body will read is asked
    // for a step ahead.
    static ENGRAM_SIMD void fetch_inputs(at_row& here, int steps) {
        for_members(here.all, [&](auto& m) {
            if constexpr (!requires { m.d; } || std::is_same_v<std::remove_cvref_t<decltype(m)>, input_row<real>>)
                fetch(m, steps);
        });
    }
    static ENGRAM_SIMD void fetch_all(at_row& here, int steps) {
        for_members(here.all, [&](auto& m) { each_columns(m, [&](const row_columns<real>& c) { fetch(c, steps); }); });
    }
    static ENGRAM_SIMD void fetch(const row_columns<real>& columns, int steps) {
        constexpr int line = 64 / static_cast<int>(sizeof(real));
        if (columns.step != 0)
            for (int i = 0; i < columns.width; i += line) __builtin_prefetch(columns.data + steps * columns.step + i);
    }

    std::string name_;
    typename Body::settings settings_;
    bound_operands<Backend, Body> operands_;
    int batch_, size_ = 0, chunk_ = 1;
    aligned_vector<pack<real>> room_;
    aligned_vector<real> starts_, states_;  // states ahead of a chunk, and those of a chunk
    aligned_vector<real> slope_, zeros_;    // of a state
};

}  // namespace internal

/// Traces Body of `inputs`, the first of which is a state, cleared where an episode begins. Its last output is that
/// state behind the step.
template <class Body, class Backend>
std::vector<var<Backend>> add_recurrent_rows(graph<Backend>& g, const std::string& name,
                                             std::vector<var<Backend>> inputs, const typename Body::settings& settings,
                                             const std::vector<int>& widths,
                                             const std::vector<parameter>& parameters = {}) {
    if (const int reset = std::exchange(inputs.front().reset, -1); reset >= 0) {
        inputs.push_back(stop_gradient(g.variable_of(reset)));
    }
    return add_rows<Body>(g, name, inputs, settings, widths, parameters,
                          [](operation<Backend>& op) { op.scans = true; });
}

}  // namespace engram
