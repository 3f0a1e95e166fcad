#pragma once
// SPDX-License-Identifier: MIT

// Operations within a row on a device: concatenation, softmax and sums (a block a row), picks, codes, embeddings.
//
// An index out of range reads and writes nothing and raises the executor's alarm, which the program's next report of
// losses turns into an error.

#include <engram/device/kernel.hpp>
#include <engram/graph/ops/rows.hpp>

namespace engram {

// --- concatenation ---

/// Columns of up to eight values to columns of as many others; a source that is not there is zero.
template <class Real>
struct copy_columns {
    static constexpr int most = 8;
    device_rows<Real> from[most], to[most];
    int count = 0, width = 0;  // columns in all

    /// Whether the columns would be written by two threads.
    bool shares(const device_rows<Real>& other) const {
        for (int p = 0; p < count; ++p)
            if (other.data < to[p].data + to[p].width && to[p].data < other.data + other.width) return true;
        return false;
    }
    void add(const device_rows<Real>& source, const device_rows<Real>& target) {
        from[count] = source;
        to[count++] = target;
        width += target.width;
    }
    ENGRAM_HD void copy(std::ptrdiff_t i, bool cleared) const {
        const std::ptrdiff_t row = i / width;
        int column = static_cast<int>(i % width), p = 0;
        while (column >= to[p].width) column -= to[p++].width;
        to[p].take(row, column, cleared || !from[p].wanted() ? Real(0) : from[p].row(row)[column]);
    }
    ENGRAM_HD void operator()(std::ptrdiff_t i) const { copy(i, false); }
};

/// An input and an output of the same columns.
template <class Real>
struct copied_part {
    operand<Real> in, d_in, out, d_out;
};

/// Calls launch(columns) for all parts at once, but for those of one variable, whose gradients are added one after the
/// other.
template <class Real, class Launch>
void for_columns(const std::vector<copied_part<Real>>& parts, operand<Real> copied_part<Real>::*from,
                 operand<Real> copied_part<Real>::*to, int t, Launch launch) {
    copy_columns<Real> some;
    const auto send = [&] {
        if (some.count > 0) launch(some);
        some = {};
    };
    for (const copied_part<Real>& p : parts) {
        if (!(p.*to)) continue;
        const device_rows<Real> target(p.*to, t);
        if (some.count == copy_columns<Real>::most || some.shares(target)) send();
        some.add({p.*from, t}, target);
    }
    send();
}

template <device_backend Backend>
struct concatenate_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    concatenate_kernel(const binder<Backend>& b, no_settings) : device_kernel<Backend>(b) {
        std::ptrdiff_t column = 0;
        for (std::size_t i = 0; i < b.op().inputs.size(); ++i) {
            part p{b.in(i), b.d_in(i), b.out(0), b.d_out(0)};
            for (operand<real>* o : {&p.out, &p.d_out})
                if (*o) {
                    o->data += column;
                    o->width = p.in.width;
                }
            column += p.in.width;
            parts.push_back(p);
        }
    }
    void forward(int t, int steps) override {
        for_columns<real>(parts, &part::in, &part::out, t,
                          [&](const copy_columns<real>& some) { this->launch(steps, some.width, some); });
    }
    void backward(int t, int steps) override {
        for_columns<real>(parts, &part::d_out, &part::d_in, t,
                          [&](const copy_columns<real>& some) { this->launch(steps, some.width, some); });
    }

private:
    using part = copied_part<real>;
    std::vector<part> parts;  // out: its columns of the whole
};

// --- softmax family and sums ---

/// The bodies of one row's maths for a block; `row` gives its place to the host's name of it.
template <class Maths>
struct block_maths;

template <>
struct block_maths<log_softmax_row> {
    template <class Block, class Real>
    static ENGRAM_HD void forward(Block& block, const Real* x, int n, Real* y) {
        const Real top = block_max(block, n, [=](int f) { return x[f]; });
        const Real sum = block_sum(block, n, [=](int f) { return exp(x[f] - top); });
        const Real shift = top + log(sum);
        block_for(block, n, [=](int f) { y[f] = x[f] - shift; });
    }
    template <class Block, class Real>
    static ENGRAM_HD void slopes(Block& block, const Real* y, const Real* dy, int n, device_rows<Real> dx, int row) {
        const Real sum = block_sum(block, n, [=](int f) { return dy[f]; });
        block_for(block, n, [=](int f) { dx.take(row, f, dy[f] - exp(y[f]) * sum); });
    }
};

template <>
struct block_maths<softmax_row> {
    template <class Block, class Real>
    static ENGRAM_HD void forward(Block& block, const Real* x, int n, Real* y) {
        const Real top = block_max(block, n, [=](int f) { return x[f]; });
        const Real sum = block_sum(block, n, [=](int f) { return y[f] = exp(x[f] - top); });
        block_for(block, n, [=](int f) { y[f] /= sum; });
    }
    template <class Block, class Real>
    static ENGRAM_HD void slopes(Block& block, const Real* y, const Real* dy, int n, device_rows<Real> dx, int row) {
        const Real sum = block_sum(block, n, [=](int f) { return dy[f] * y[f]; });
        block_for(block, n, [=](int f) { dx.take(row, f, y[f] * (dy[f] - sum)); });
    }
};

template <>
struct block_maths<sum_row> {
    template <class Block, class Real>
    static ENGRAM_HD void forward(Block& block, const Real* x, int n, Real* y) {
        const Real sum = block_sum(block, n, [=](int f) { return x[f]; });
        block_for(block, 1, [=](int) { *y = sum; });
    }
    template <class Block, class Real>
    static ENGRAM_HD void slopes(Block& block, const Real*, const Real* dy, int n, device_rows<Real> dx, int row) {
        block_for(block, n, [=](int f) { dx.take(row, f, *dy); });
    }
};

template <class Real, class Maths>
struct row_forward {
    static constexpr int lanes = 32;
    device_rows<Real> in, out;
    int groups;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const int row = index / groups, i = index % groups, group = in.width / groups, made = out.width / groups;
        block_maths<Maths>::forward(block, static_cast<const Real*>(in.row(row)) + i * group, group,
                                    out.row(row) + i * made);
    }
};

template <class Real, class Maths>
struct row_backward {
    static constexpr int lanes = 32;
    device_rows<Real> out, d_out, d_in;
    int groups;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const int row = index / groups, i = index % groups, group = d_in.width / groups, made = out.width / groups;
        device_rows<Real> to = d_in;
        to.data += i * group;
        block_maths<Maths>::slopes(block, static_cast<const Real*>(out.row(row)) + i * made,
                                   static_cast<const Real*>(d_out.row(row)) + i * made, group, to, row);
    }
};

template <device_backend Backend, class Maths>
struct row_maths_kernel<Backend, Maths> final : device_kernel<Backend> {
    using real = typename Backend::real;

    row_maths_kernel(const binder<Backend>& b, int group)
        : device_kernel<Backend>(b),
          in(b.in(0)),
          d_in(b.d_in(0)),
          out(b.out(0)),
          d_out(b.d_out(0)),
          groups(in.width / group) {}
    void forward(int t, int steps) override {
        this->launch_blocks(steps, groups, 32, row_forward<real, Maths>{{in, t}, {out, t}, groups});
    }
    void backward(int t, int steps) override {
        if (d_in)
            this->launch_blocks(steps, groups, 32, row_backward<real, Maths>{{out, t}, {d_out, t}, {d_in, t}, groups});
    }
    operand<real> in, d_in, out, d_out;
    int groups;
};

// --- picks ---

template <class Real>
struct pick_forward {
    device_rows<Real> in, index, out;
    int* alarm;
    ENGRAM_HD void operator()(std::ptrdiff_t row) const {
        const Real i = *index.row(row);
        const bool there = i >= 0 && i < Real(in.width);
        if (!there) *alarm = 1;
        *out.row(row) = there ? in.row(row)[static_cast<int>(i)] : Real(0);
    }
};

template <class Real>
struct pick_backward {
    device_rows<Real> index, d_out, d_in;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / d_in.width, column = i % d_in.width;
        const Real at = *index.row(row);
        const bool here = at >= 0 && at < Real(d_in.width) && static_cast<int>(at) == column;
        d_in.take(row, column, here ? *d_out.row(row) : Real(0));
    }
};

template <device_backend Backend>
struct pick_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    pick_kernel(const binder<Backend>& b, no_settings)
        : device_kernel<Backend>(b),
          in(b.in(0)),
          d_in(b.d_in(0)),
          index(b.in(1)),
          out(b.out(0)),
          d_out(b.d_out(0)),
          alarm(b.alarm("an index is out of range")) {}
    void forward(int t, int steps) override {
        this->launch(steps, 1, pick_forward<real>{{in, t}, {index, t}, {out, t}, alarm});
    }
    void backward(int t, int steps) override {
        if (d_in) this->launch(steps, in.width, pick_backward<real>{{index, t}, {d_out, t}, {d_in, t}});
    }
    operand<real> in, d_in, index, out, d_out;
    int* alarm;
};

template <class Real>
struct one_hot_forward {
    device_rows<Real> index, out;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / out.width, column = i % out.width;
        const Real at = *index.row(row);
        out.row(row)[column] = at >= 0 && at < Real(out.width) && static_cast<int>(at) == column ? Real(1) : Real(0);
    }
};

template <device_backend Backend>
struct one_hot_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    one_hot_kernel(const binder<Backend>& b, no_settings) : device_kernel<Backend>(b), index(b.in(0)), out(b.out(0)) {}
    void forward(int t, int steps) override {
        this->launch(steps, out.width, one_hot_forward<real>{{index, t}, {out, t}});
    }
    operand<real> index, out;
};

// --- embedding ---

template <class Real>
struct embed_forward {
    const Real* table;
    int count;
    device_rows<Real> index, out;
    int* alarm;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / out.width, column = i % out.width;
        const Real at = *index.row(row);
        const bool there = at >= 0 && at < Real(count);
        if (!there) *alarm = 1;
        out.row(row)[column] = there ? table[static_cast<int>(at) * std::ptrdiff_t{out.width} + column] : Real(0);
    }
};

/// Indices alone, where nobody needs the rows.
template <class Real>
struct check_indices {
    int count;
    device_rows<Real> index;
    int* alarm;
    ENGRAM_HD void operator()(std::ptrdiff_t row) const {
        const Real at = *index.row(row);
        if (!(at >= 0 && at < Real(count))) *alarm = 1;
    }
};

/// Each number of the table looks for the rows that used it: no two threads add to one place, in a fixed order.
template <class Real>
struct embed_gather {
    device_rows<Real> index, d_out;
    int rows;
    Real* d_table;
    bool accumulate;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t entry = i / d_out.width, column = i % d_out.width;
        Real sum = 0;
        for (int r = 0; r < rows; ++r) {
            const Real at = *index.row(r);
            if (at >= 0 && static_cast<int>(at) == entry) sum += d_out.row(r)[column];
        }
        give(d_table[i], accumulate, sum);
    }
};

template <device_backend Backend>
struct embed_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    embed_kernel(const binder<Backend>& b, parameter t)
        : device_kernel<Backend>(b),
          stepwise(b.stepwise()),
          table(b.weights(t)),
          count(b.store()[t].rows),
          index(b.in(0)),
          out(b.out(0)),
          d_out(b.d_out(0)),
          d_table(b.d_parameter(t)),
          alarm(b.alarm("an index is out of range")) {}
    void forward(int t, int steps) override {
        if (out)
            this->launch(steps, out.width, embed_forward<real>{table, count, {index, t}, {out, t}, alarm});
        else  // an affine map multiplies the table instead
            this->launch(steps, 1, check_indices<real>{count, {index, t}, alarm});
    }
    void backward(int, int steps) override {
        if (!stepwise) gather(steps);
    }
    void after() override { gather(this->all_steps); }

private:
    void gather(int steps) {
        if (!d_out || !d_table) return;
        this->on->launch(
            this->name, std::ptrdiff_t{count} * out.width,
            embed_gather<real>{{index, 0}, {d_out, 0}, steps * this->batch, d_table.data, d_table.accumulate});
    }
    bool stepwise;
    const real* table;
    int count;
    operand<real> index, out, d_out, d_table;
    int* alarm;
};

}  // namespace engram
