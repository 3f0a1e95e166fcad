#pragma once
// SPDX-License-Identifier: MIT

// Operations within a row: copy and concatenation, log-softmax and softmax, sums over columns, picking one column by an
// index, one-hot codes and embeddings. Indices are numbers in a column of width 1; out of range they throw when
// replayed.

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <vector>

#include <engram/graph/program.hpp>
#include <engram/kernels/rows.hpp>

namespace engram {

/// An operation whose kernel is Kernel<Backend>(binder, settings).
template <class Backend, template <class> class Kernel, class Settings>
struct simple_operation final : operation<Backend> {
    Settings settings;
    std::unique_ptr<kernel<Backend>> bind(const binder<Backend>& b) const override {
        return bind_kernel<Kernel<Backend>>(b, settings);
    }
};

/// An operation with its inputs, checked to be of this graph, and settings.
template <template <class> class Kernel, class Backend, class Settings>
std::unique_ptr<simple_operation<Backend, Kernel, Settings>> make_operation(graph<Backend>& g, const std::string& name,
                                                                            const std::vector<var<Backend>>& inputs,
                                                                            const Settings& settings) {
    auto op = std::make_unique<simple_operation<Backend, Kernel, Settings>>();
    op->name = name;
    op->settings = settings;
    for (const auto& v : inputs) op->inputs.push_back(g.own(name, v));
    return op;
}

struct no_settings {};

// --- concatenation ---

template <class Backend>
struct concatenate_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    concatenate_kernel(const binder<Backend>& b, no_settings) : batch(b.batch()), out(b.out(0)), d_out(b.d_out(0)) {
        for (std::size_t i = 0; i < b.op().inputs.size(); ++i) {
            in.push_back(b.in(i));
            d_in.push_back(b.d_in(i));
        }
    }
    void forward(int t, int steps) override {
        std::ptrdiff_t column = 0;
        for (const auto& x : in) {
            for (int r = 0; r < steps * batch; ++r)
                std::copy_n(x.at(t) + r * x.stride, x.width, out.at(t) + r * out.stride + column);
            column += x.width;
        }
    }
    void backward(int t, int steps) override {
        std::ptrdiff_t column = 0;
        for (const auto& dx : d_in) {
            const std::size_t i = static_cast<std::size_t>(&dx - d_in.data());
            for (int r = 0; dx && r < steps * batch; ++r) {
                const real* from = d_out.at(t) + r * d_out.stride + column;
                real* to = dx.at(t) + r * dx.stride;
                for (int f = 0; f < dx.width; ++f) to[f] = dx.accumulate ? to[f] + from[f] : from[f];
            }
            column += in[i].width;
        }
    }

    int batch;
    std::vector<operand<real>> in, d_in;
    operand<real> out, d_out;
};

/// Columns of all inputs side by side. An affine map takes several inputs as they are and does not need it.
template <class Backend>
var<Backend> concatenate(const std::string& name, const std::vector<var<Backend>>& inputs) {
    require(!inputs.empty(), name, ": nothing to concatenate");
    graph<Backend>& g = *inputs[0].owner;
    auto op = make_operation<concatenate_kernel>(g, name, inputs, no_settings{});
    int width = 0;
    for (const auto& v : inputs) width += v.width;
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {width}, rows)[0];
}

/// The same of inputs that are named where they are joined: concatenate("all", {x, h}).
template <class Backend>
var<Backend> concatenate(const std::string& name, std::initializer_list<var<Backend>> inputs) {
    return concatenate(name, std::vector<var<Backend>>(inputs));
}

/// The same numbers in a buffer of their own.
template <class Backend>
var<Backend> copy(const var<Backend>& x, const std::string& name = "copy") {
    return concatenate<Backend>(name, {x});
}

/// Marks what a behaviour policy must record: an acting plan computes it, a replaying plan reads it from the
/// trajectory, as an input of this name.
template <class Backend>
var<Backend> record(const std::string& name, const std::vector<var<Backend>>& parts) {
    graph<Backend>& g = *parts[0].owner;
    std::vector<var<Backend>> constants;
    int width = 0;
    for (auto v : parts) {
        constants.push_back(stop_gradient(v));
        width += v.width;
    }
    auto op = make_operation<concatenate_kernel>(g, name, constants, no_settings{});
    op->is_record = true;
    const extent rows = g.common_rows(op->inputs);
    return stop_gradient(g.add(std::move(op), {width}, rows)[0]);
}

/// The same of parts that are named here: record("stored", {x, h}).
template <class Backend>
var<Backend> record(const std::string& name, std::initializer_list<var<Backend>> parts) {
    return record(name, std::vector<var<Backend>>(parts));
}

// --- softmax family and sums: maths of one row ---

/// Applies Maths to every group of columns: forward(x, n, y) and slopes(y, dy, n, dx) for the n columns of a group.
template <class Backend, class Maths>
struct row_maths_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    row_maths_kernel(const binder<Backend>& b, int columns)
        : batch(b.batch()),
          group(columns),
          in(b.in(0)),
          d_in(b.d_in(0)),
          out(b.out(0)),
          d_out(b.d_out(0)),
          groups(in.width / group),
          slope(d_in ? static_cast<std::size_t>(group) : 0) {}
    void forward(int t, int steps) override {
        const int made = out.width / groups;
        for (int r = 0; r < steps * batch; ++r)
            for (int i = 0; i < groups; ++i)
                Maths::forward(in.at(t) + r * in.stride + i * group, group, out.at(t) + r * out.stride + i * made);
    }
    void backward(int t, int steps) override {
        if (!d_in) return;
        const int made = out.width / groups;
        for (int r = 0; r < steps * batch; ++r)
            for (int i = 0; i < groups; ++i) {
                real* const dx = d_in.at(t) + r * d_in.stride + i * group;
                real* const to = d_in.accumulate ? slope.data() : dx;
                Maths::slopes(out.at(t) + r * out.stride + i * made, d_out.at(t) + r * d_out.stride + i * made, group,
                              to);
                if (d_in.accumulate)
                    for (int f = 0; f < group; ++f) dx[f] += to[f];
            }
    }
    int batch, group;
    operand<real> in, d_in, out, d_out;
    int groups;
    std::vector<real> slope;
};

template <class Backend, class Maths>
struct row_maths_operation final : operation<Backend> {
    int group = 0;
    std::unique_ptr<kernel<Backend>> bind(const binder<Backend>& b) const override {
        return bind_kernel<row_maths_kernel<Backend, Maths>>(b, group);
    }
};

/// Maths that sees whole rows, such as softmax, or every `group` columns of a row by themselves: `made` columns of
/// each.
template <class Maths, class Backend>
var<Backend> apply_to_rows(const std::string& name, const var<Backend>& x, int group, int made) {
    graph<Backend>& g = *x.owner;
    require(group > 0 && x.width % group == 0, g.full_name(name), ": ", x.width,
            " columns do not divide into groups of ", group);
    auto op = std::make_unique<row_maths_operation<Backend, Maths>>();
    op->name = name;
    op->group = group;
    op->inputs = {g.own(name, x)};
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {x.width / group * made}, rows)[0];
}

struct log_softmax_row {
    template <class Real>
    static void forward(const Real* x, int n, Real* y) {
        const Real top = *std::max_element(x, x + n);
        Real sum = 0;
        for (int f = 0; f < n; ++f) sum += std::exp(x[f] - top);
        const Real shift = top + std::log(sum);
        for (int f = 0; f < n; ++f) y[f] = x[f] - shift;
    }
    template <class Real>
    static void slopes(const Real* y, const Real* dy, int n, Real* dx) {
        Real sum = 0;
        for (int f = 0; f < n; ++f) sum += dy[f];
        for (int f = 0; f < n; ++f) dx[f] = dy[f] - std::exp(y[f]) * sum;
    }
};

struct softmax_row {
    template <class Real>
    static void forward(const Real* x, int n, Real* y) {
        using lanes = pack<Real>;
        const lanes top(*std::max_element(x, x + n));
        lanes total(Real(0));
        for (int f = 0; f < n; f += lanes::width) {
            const int count = std::min(n - f, lanes::width);
            const lanes e = exp(lanes::load(x + f, count) - top);
            e.store(y + f, count);
            total += count < lanes::width ? select(indices<Real>(0) < lanes(count), e, 0) : e;
        }
        const lanes sum(total.sum());
        for (int f = 0; f < n; f += lanes::width) {
            const int count = std::min(n - f, lanes::width);
            (lanes::load(y + f, count) / sum).store(y + f, count);
        }
    }
    template <class Real>
    static void slopes(const Real* y, const Real* dy, int n, Real* dx) {
        using lanes = pack<Real>;
        const lanes sum(dot(y, dy, n));
        for (int f = 0; f < n; f += lanes::width) {
            const int count = std::min(n - f, lanes::width);
            (lanes::load(y + f, count) * (lanes::load(dy + f, count) - sum)).store(dx + f, count);
        }
    }
};

struct sum_row {
    template <class Real>
    static void forward(const Real* x, int n, Real* y) {
        *y = 0;
        for (int f = 0; f < n; ++f) *y += x[f];
    }
    template <class Real>
    static void slopes(const Real*, const Real* dy, int n, Real* dx) {
        std::fill_n(dx, n, *dy);
    }
};

/// x - log sum exp x over the columns of a row.
template <class Backend>
var<Backend> log_softmax(const std::string& name, const var<Backend>& x) {
    return apply_to_rows<log_softmax_row>(name, x, x.width, x.width);
}

/// exp(x) / sum exp(x) over every `group` columns of a row (heads side by side).
template <class Backend>
var<Backend> softmax(const std::string& name, const var<Backend>& x, int group) {
    return apply_to_rows<softmax_row>(name, x, group, group);
}
/// The same over all columns of a row.
template <class Backend>
var<Backend> softmax(const std::string& name, const var<Backend>& x) {
    return softmax(name, x, x.width);
}

/// [T, B, F / group]: sums over every `group` columns of a row.
template <class Backend>
var<Backend> sum_columns(const std::string& name, const var<Backend>& x, int group) {
    return apply_to_rows<sum_row>(name, x, group, 1);
}
/// [T, B, 1]: sum over the columns of a row.
template <class Backend>
var<Backend> sum_columns(const std::string& name, const var<Backend>& x) {
    return sum_columns(name, x, x.width);
}

// --- picks ---

template <class Backend>
struct pick_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    pick_kernel(const binder<Backend>& b, no_settings)
        : name(b.op().name),
          batch(b.batch()),
          in(b.in(0)),
          d_in(b.d_in(0)),
          index(b.in(1)),
          out(b.out(0)),
          d_out(b.d_out(0)) {}
    void forward(int t, int steps) override {
        for (int r = 0; r < steps * batch; ++r) {
            const real i = index.at(t)[r * index.stride];
            require(i >= 0 && static_cast<int>(i) < in.width, name, ": index ", i, " is outside 0..", in.width - 1);
            out.at(t)[r * out.stride] = in.at(t)[r * in.stride + static_cast<int>(i)];
        }
    }
    void backward(int t, int steps) override {
        if (!d_in) return;
        for (int r = 0; r < steps * batch; ++r) {
            real* dx = d_in.at(t) + r * d_in.stride;
            if (!d_in.accumulate) std::fill_n(dx, in.width, real(0));
            dx[static_cast<int>(index.at(t)[r * index.stride])] += d_out.at(t)[r * d_out.stride];
        }
    }
    std::string name;
    int batch;
    operand<real> in, d_in, index, out, d_out;
};

/// [T, B, 1]: the column of x that `index` [T, B, 1] names in each row.
template <class Backend>
var<Backend> pick(const std::string& name, const var<Backend>& x, const var<Backend>& index) {
    require(index.width == 1, name, ": the index must be one column, not ", index.width);
    auto op = make_operation<pick_kernel>(*x.owner, name, {x, stop_gradient(index)}, no_settings{});
    const extent rows = x.owner->common_rows(op->inputs);
    return x.owner->add(std::move(op), {1}, rows)[0];
}

template <class Backend>
struct one_hot_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    one_hot_kernel(const binder<Backend>& b, no_settings) : batch(b.batch()), index(b.in(0)), out(b.out(0)) {}
    void forward(int t, int steps) override {
        for (int r = 0; r < steps * batch; ++r) {
            real* y = out.at(t) + r * out.stride;
            std::fill_n(y, out.width, real(0));
            const real i = index.at(t)[r * index.stride];
            if (i >= 0 && static_cast<int>(i) < out.width) y[static_cast<int>(i)] = 1;
        }
    }
    int batch;
    operand<real> index, out;
};

/// [T, B, count] with a one at `index`; all zeros when the index is negative ("none yet").
template <class Backend>
var<Backend> one_hot(const std::string& name, const var<Backend>& index, int count) {
    require(index.width == 1, name, ": the index must be one column, not ", index.width);
    auto op = make_operation<one_hot_kernel>(*index.owner, name, {stop_gradient(index)}, no_settings{});
    const extent rows = index.owner->common_rows(op->inputs);
    return index.owner->add(std::move(op), {count}, rows)[0];
}

// --- embedding ---

template <class Backend>
struct embed_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    embed_kernel(const binder<Backend>& b, parameter t)
        : name(b.op().name),
          batch(b.batch()),
          all(b.steps()),
          stepwise(b.stepwise()),
          store(&b.store()),
          table(t),
          count(b.store()[t].rows),
          index(b.in(0)),
          out(b.out(0)),
          d_out(b.d_out(0)),
          d_table(b.d_parameter(t)) {}
    void forward(int t, int steps) override {
        const real* rows = store->values(table);
        for (int r = 0; r < steps * batch; ++r) {
            const real i = index.at(t)[r * index.stride];
            require(i >= 0 && static_cast<int>(i) < count, name, ": index ", i, " is outside 0..", count - 1);
            if (out) std::copy_n(rows + static_cast<int>(i) * out.width, out.width, out.at(t) + r * out.stride);
        }
    }
    void backward(int /*t*/, int steps) override {
        if (!stepwise) gather(steps);
    }
    void after() override { gather(all); }

private:
    void gather(int steps) {
        if (!d_out || !d_table) return;
        if (!d_table.accumulate) std::fill_n(d_table.data, count * out.width, real(0));
        for (int r = 0; r < steps * batch; ++r) {
            real* to = d_table.data + static_cast<int>(index.data[r * index.stride]) * out.width;
            for (int f = 0; f < out.width; ++f) to[f] += d_out.data[r * d_out.stride + f];
        }
    }
    std::string name;
    int batch, all;
    bool stepwise;
    parameters<real>* store;
    parameter table;
    int count;
    operand<real> index, out, d_out, d_table;
};

/// Row `index` [T, B, 1] of the table [count, width]. Where only affine maps read it, they multiply the table
/// (graph/ops/table_product.hpp), and what is left to do here is to check the index.
template <class Backend>
var<Backend> embed(const std::string& name, const var<Backend>& index, parameter table) {
    require(index.width == 1, name, ": the index must be one column, not ", index.width);
    graph<Backend>& g = *index.owner;
    auto op = make_operation<embed_kernel>(g, name, {stop_gradient(index)}, table);
    op->parameters = {table.id};
    op->table = table.id;
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {g.store()[table].columns}, rows)[0];
}

}  // namespace engram
