#pragma once
// SPDX-License-Identifier: MIT

// What a DNC's memory needs besides matrix_memory.hpp and operations/content_weights.hpp: allocation and temporal links
// (facts 4.6; equations in kernels/dnc_allocate.hpp and kernels/dnc_link.hpp).
//
//   dnc_allocate    usage [., N]                                         -> allocation weights [., N]
//   temporal_link   write weights, precedence [., N], read weights [., R * N]
//                                                                        -> forward, backward [., R * N]
//   link_forget     reset [T, B, 1]: links of rows whose episode begins are zero and pass no gradient
//
// A link [B, N, N] is a resource of the graph, one a write head. As a carried state it would cost T + 1 blocks for its
// values, as many for their gradients and T for the resets. Here a plan of T steps with gradients keeps the T links
// that its steps entered with and one gradient, beside the resource; one without gradients updates the resource in
// place. A plan without side effects looks on: the resource stays as it is.
//
// As with every carried state, gradients stop where an unroll begins.

#include <utility>
#include <vector>

#include <engram/kernels/dnc_allocate.hpp>
#include <engram/kernels/dnc_link.hpp>
#include <engram/operations/episodes.hpp>
#include <engram/operations/matrix_memory.hpp>
#include <engram/operations/points.hpp>

namespace engram {

// --- allocation ---

template <class Backend>
struct dnc_allocate_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    dnc_allocate_kernel(const binder<Backend>& b, no_settings)
        : batch(b.batch()), usage(b.in(0)), out(b.out(0)), d_out(b.d_out(0)), keep(b.needs_backward()) {
        const int rows = keep ? (out.step ? b.steps() : 1) * batch : 1;
        order.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(out.width));
        scratch.resize(static_cast<std::size_t>(out.width));
        if (keep) d_usage = {b.d_in(0), out.width, false};
    }
    void forward(int t, int steps) override {
        for (int r = 0; r < steps * batch; ++r)
            dnc_allocate(usage.at(t) + r * usage.stride, out.width, order_of(t, r), out.at(t) + r * out.stride,
                         scratch.data());
    }
    void backward(int t, int steps) override {
        if (!d_out) return;
        for (int r = 0; r < steps * batch; ++r) {
            dnc_allocate_gradient(usage.at(t) + r * usage.stride, out.width, order_of(t, r),
                                  d_out.at(t) + r * d_out.stride, d_usage.begin(t, r), scratch.data());
            d_usage.end(t, r);
        }
    }

private:
    int* order_of(int t, int r) { return order.data() + (keep ? (std::ptrdiff_t{t} * batch + r) * out.width : 0); }

    int batch;
    operand<real> usage, out, d_out;
    bool keep;
    gradient_row<real> d_usage;
    std::vector<int> order;
    aligned_vector<real> scratch;
};

/// [., N]: weights of the slots that are free by their usage; sums to at most one.
template <class Backend>
var<Backend> dnc_allocate(const std::string& name, const var<Backend>& usage) {
    graph<Backend>& g = *usage.owner;
    auto op = make_operation<dnc_allocate_kernel>(g, name, {usage}, no_settings{});
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {usage.width}, rows)[0];
}

// --- temporal links ---

/// B links of N x N slots, as the last step left them, in memory of the kind that Array is.
template <class Real, template <class> class Array = aligned_vector>
class link_matrices final : public resource {
public:
    link_matrices(int batch, int slots)
        : size_(std::ptrdiff_t{slots} * slots),
          links_(static_cast<std::size_t>(batch) * static_cast<std::size_t>(size_)),
          begins_(static_cast<std::size_t>(batch)) {}

    Real* link(int b) { return links_.data() + b * size_; }
    char* begins() { return begins_.data(); }
    /// Whether the step under way begins an episode of this row; true once.
    bool take_begin(int b) { return std::exchange(begins_[static_cast<std::size_t>(b)], char{0}) != 0; }
    std::vector<std::span<std::byte>> bytes() override {
        return {std::as_writable_bytes(std::span(links_.data(), links_.size()))};
    }

private:
    std::ptrdiff_t size_;
    Array<Real> links_;
    Array<char> begins_;  // between link_forget and temporal_link of one step
};

/// The links of a backend; a device with a memory of its own has others.
template <class Backend>
struct link_matrices_of {
    using type = link_matrices<typename Backend::real>;
};

/// Handle of a link in a trace.
struct dnc_link {
    int resource = -1;
    int slots = 0;
};

/// Link matrices [B, N, N] of one write head, as a resource of the graph.
template <class Backend>
dnc_link add_dnc_link(graph<Backend>& g, const std::string& name, int slots) {
    using matrices = typename link_matrices_of<Backend>::type;
    require(slots > 0, g.full_name(name), ": a link between ", slots, " slots holds nothing");
    return {g.add_resource(name, [=](int batch) { return std::make_shared<matrices>(batch, slots); }), slots};
}

template <class Real>
struct forgotten_link {
    static constexpr int lanes = 128;
    step_rows<Real> reset;
    Real* links;
    char* begins;
    int size;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int b) const {
        if (!is_set(reset.at(b, 0))) return;
        Real* const link = links + std::ptrdiff_t{b} * size;
        char* const begin = begins + b;
        block_for(block, size, [=](int i) {
            link[i] = 0;
            if (i == 0) *begin = 1;
        });
    }
};

template <class Backend>
struct link_forget_kernel final : point_kernel<Backend> {
    using real = typename Backend::real;
    using matrices = typename link_matrices_of<Backend>::type;

    link_forget_kernel(const binder<Backend>& b, dnc_link l)
        : point_kernel<Backend>(b), size(l.slots * l.slots), reset(b.in(0)), link(b.bound_resource(l.resource)) {}
    void forward(int t, int steps) override {
        auto& links = static_cast<matrices&>(**link);
        for (int s = t; s < t + steps; ++s)
            this->each_block(this->batch, forgotten_link<real>{{reset, s}, links.link(0), links.begins(), size});
    }
    int size;
    operand<real> reset;
    std::shared_ptr<resource>* link;
};

/// Clears the link of every row whose reset [T, B, 1] is one; stands before the temporal_link of the same step.
template <class Backend>
void link_forget(const dnc_link& link, const var<Backend>& reset) {
    graph<Backend>& g = *reset.owner;
    auto op = make_operation<link_forget_kernel>(g, "forget", {internal::reset_column("forget", reset)}, link);
    op->resources = {link.resource};
    op->writes_resource = true;
    g.add(std::move(op), {}, extent::sequence);
}

template <class Backend>
struct temporal_link_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    temporal_link_kernel(const binder<Backend>& b, dnc_link l)
        : slots(l.slots),
          heads(b.in(2).width / l.slots),
          batch(b.batch()),
          steps(b.steps()),
          keeps(b.needs_backward()),
          writes(b.side_effects()),
          resource_in_use(b.bound_resource(l.resource)) {
        for (std::size_t i = 0; i < 3; ++i) in[i] = b.in(i);
        for (std::size_t i = 0; i < 2; ++i) {
            out[i] = b.out(i);
            d_out[i] = b.d_out(i);
        }
        const auto matrix = static_cast<std::size_t>(slots) * static_cast<std::size_t>(slots);
        const auto rows = static_cast<std::size_t>(batch), T = static_cast<std::size_t>(steps);
        if (!writes) aside.resize(rows * matrix);
        if (!keeps) return;
        history.resize(T * rows * matrix);
        begins.resize(T * rows);
        d_link.resize(rows * matrix);
        scratch.resize(matrix);
        for (std::size_t i = 0; i < 3; ++i) d_in[i] = {b.d_in(i), in[i].width, false};
    }

    void forward(int t, int) override {
        auto& links = static_cast<link_matrices<real>&>(**resource_in_use);
        for (int b = 0; b < batch; ++b) {
            real* from = keeps ? kept(t, b) : writes || t == 0 ? links.link(b) : row_of(aside, b);
            if (keeps) {
                // The links that a later step enters with were written here by the step before it.
                const bool begin = writes && links.take_begin(b);
                begins[static_cast<std::size_t>(t * batch + b)] = begin;
                if (begin)
                    std::fill_n(from, size(), real(0));
                else if (t == 0)
                    std::copy_n(links.link(b), size(), from);
            } else if (writes) {
                links.take_begin(b);  // it is zero already
            }
            real* to = keeps && t + 1 < steps ? kept(t + 1, b) : writes ? links.link(b) : row_of(aside, b);
            link_update(static_cast<const real*>(from), input(0, t, b), input(1, t, b), slots, to);
            link_read(static_cast<const real*>(to), slots, input(2, t, b), heads, out[0].at(t) + b * out[0].stride,
                      out[1].at(t) + b * out[1].stride, slots);
        }
    }

    void backward(int t, int) override {
        for (int b = 0; b < batch; ++b) {
            real* d = row_of(d_link, b);
            if (t == steps - 1) std::fill_n(d, size(), real(0));
            real* to[3];
            for (int i = 0; i < 3; ++i) to[i] = d_in[i].begin(t, b);
            const auto slope = [&](const operand<real>& o) -> const real* {
                return o ? o.at(t) + b * o.stride : nullptr;
            };
            link_gradient(static_cast<const real*>(kept(t, b)), input(0, t, b), input(1, t, b), slots, input(2, t, b),
                          heads, slope(d_out[0]), slope(d_out[1]), slots, d, to[0], to[1], to[2], scratch.data());
            for (auto& g : d_in) g.end(t, b);
            if (begins[static_cast<std::size_t>(t * batch + b)]) std::fill_n(d, size(), real(0));
        }
    }

private:
    std::ptrdiff_t size() const { return std::ptrdiff_t{slots} * slots; }
    real* row_of(aligned_vector<real>& links, int b) { return links.data() + b * size(); }
    real* kept(int t, int b) { return history.data() + (std::ptrdiff_t{t} * batch + b) * size(); }
    const real* input(int i, int t, int b) const { return in[i].at(t) + b * in[i].stride; }

    int slots, heads, batch, steps;
    bool keeps, writes;
    std::shared_ptr<resource>* resource_in_use;
    operand<real> in[3], out[2], d_out[2];
    gradient_row<real> d_in[3];
    aligned_vector<real> history, d_link, aside, scratch;  // [T, B, N, N], [B, N, N], [B, N, N], [N, N]
    std::vector<char> begins;                              // [T, B]
};

/// What was written right after, and right before, what each head read last [T, B, R * N].
template <class Backend>
struct linked_weights {
    var<Backend> forward, backward;
};

/// Updates the link by a write at `written` [., N], which followed on `precedence` [., N], and moves the read weights
/// [., R * N] along it. Once a step of a scan.
template <class Backend>
linked_weights<Backend> temporal_link(const std::string& name, const dnc_link& link, const var<Backend>& written,
                                      const var<Backend>& precedence, const var<Backend>& read) {
    graph<Backend>& g = *written.owner;
    require(written.width == link.slots && precedence.width == link.slots, g.full_name(name),
            ": write weights and precedence have ", written.width, " and ", precedence.width, " columns, the link has ",
            link.slots, " slots");
    require(read.width % link.slots == 0, g.full_name(name), ": read weights of ", read.width,
            " columns do not divide among ", link.slots, " slots");
    auto op = make_operation<temporal_link_kernel>(g, name, {written, precedence, read}, link);
    require(g.common_rows({}) == extent::sequence, g.full_name(name),
            ": a link goes from step to step; trace it in the body of a scan");
    op->resources = {link.resource};
    const auto out = g.add(std::move(op), {read.width, read.width}, extent::sequence);
    return {out[0], out[1]};
}

}  // namespace engram
