#pragma once
// SPDX-License-Identifier: MIT

// The addressing of NTM heads as one operation (facts 4.4; equations in kernels/ntm_address.hpp).
//
//   ntm_address   cosines [., R * N], raw [., R * 6], previous weights [., R * N]  -> weights [., R * N]
//
// A head's six raw numbers stand together: strength, gate, shifts -1, 0, +1, sharpening, all before their activations.
// R and N follow from the widths. Gradients go on to all three inputs.

#include <engram/kernels/ntm_address.hpp>
#include <engram/operations/matrix_memory.hpp>

namespace engram {

struct ntm_address_shape {
    int slots, heads;
};

template <class Backend>
struct ntm_address_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    ntm_address_kernel(const binder<Backend>& b, const ntm_address_shape& s)
        : shape(s), batch(b.batch()), out(b.out(0)), d_out(b.d_out(0)) {
        for (std::size_t i = 0; i < 3; ++i) in[i] = b.in(i);
        keep = b.needs_backward();
        const std::size_t rows = static_cast<std::size_t>(keep ? (out.step ? b.steps() : 1) * batch : 1);
        content.resize(rows * static_cast<std::size_t>(s.heads * s.slots));
        shifted.resize(content.size());
        heads.resize(rows * static_cast<std::size_t>(s.heads));
        scratch.resize(static_cast<std::size_t>(ntm_address_scratch(s.slots)));
        if (!keep) return;
        for (std::size_t i = 0; i < 3; ++i) d_in[i] = {b.d_in(i), in[i].width, false};
    }
    void forward(int t, int steps) override {
        for (int r = 0; r < steps * batch; ++r) {
            const std::ptrdiff_t k = kept(t, r), at = k * shape.slots;
            ntm_address(row(0, t, r), row(1, t, r), row(2, t, r), shape.slots, shape.heads, out.at(t) + r * out.stride,
                        content.data() + at, shifted.data() + at, heads.data() + k, scratch.data());
        }
    }
    void backward(int t, int steps) override {
        if (!d_out) return;
        for (int r = 0; r < steps * batch; ++r) {
            const std::ptrdiff_t k = kept(t, r), at = k * shape.slots;
            real* d[3];
            for (int i = 0; i < 3; ++i) d[i] = d_in[i].begin(t, r);
            ntm_address_gradient(row(0, t, r), row(1, t, r), row(2, t, r), shape.slots, shape.heads,
                                 out.at(t) + r * out.stride, content.data() + at, shifted.data() + at, heads.data() + k,
                                 d_out.at(t) + r * d_out.stride, d[0], d[1], d[2], scratch.data());
            for (auto& g : d_in) g.end(t, r);
        }
    }

private:
    const real* row(int i, int t, int r) const { return in[i].at(t) + r * in[i].stride; }
    /// The first head of this row among those that were kept.
    std::ptrdiff_t kept(int t, int r) const {
        return keep ? (std::ptrdiff_t{t} * batch + r) * shape.heads : std::ptrdiff_t{0};
    }

    ntm_address_shape shape;
    int batch;
    operand<real> in[3], out, d_out;
    bool keep;
    gradient_row<real> d_in[3];
    aligned_vector<real> content, shifted, scratch;
    std::vector<ntm_head<real>> heads;
};

/// [., R * N]: where each head points next.
template <class Backend>
var<Backend> ntm_address(const std::string& name, const var<Backend>& cosine, const var<Backend>& raw,
                         const var<Backend>& previous) {
    graph<Backend>& g = *cosine.owner;
    require(raw.width % ntm_address_columns == 0, g.full_name(name), ": a head is steered by ", ntm_address_columns,
            " numbers, which do not divide ", raw.width, " columns");
    const int heads = raw.width / ntm_address_columns;
    require(cosine.width % heads == 0, g.full_name(name), ": ", cosine.width, " cosines do not divide among ", heads,
            " heads");
    require(previous.width == cosine.width, g.full_name(name), ": ", cosine.width, " cosines meet ", previous.width,
            " previous weights");
    const ntm_address_shape shape{cosine.width / heads, heads};
    auto op = make_operation<ntm_address_kernel>(g, name, {cosine, raw, previous}, shape);
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {cosine.width}, rows)[0];
}

}  // namespace engram
