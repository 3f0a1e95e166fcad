#pragma once
// SPDX-License-Identifier: MIT

// point_kernel<Backend>: the kernel of an operation whose numbers are found each by itself, of one body for all
// backends.
//
//   template <class Real>
//   struct twice_point {                                         // what is found at a point
//       step_rows<Real> x, y;
//       ENGRAM_HD void operator()(std::ptrdiff_t row, int column) const { y.put(row, column, 2 * x.at(row, column)); }
//   };
//   template <class Backend>
//   struct twice_kernel final : point_kernel<Backend> {          // where it is found
//       twice_kernel(const binder<Backend>& b, no_settings) : point_kernel<Backend>(b), x(b.in(0)), y(b.out(0)) {}
//       void forward(int t, int steps) override {
//           this->each(steps * this->batch, y.width, twice_point<real>{{x, t}, {y, t}});
//       }
//   };
//
// The host calls a point for one row after the other, a device runs a thread a point: no point may read what another
// one writes. What needs sums of numbers that do not lie side by side is written for a block (device/executor.hpp),
// which on the host is one lane. Sums and maxima of a row are a row_operation (operations/row_operation.hpp), and maths
// of columns that lie one above the other is a `map` (operations/map.hpp): both use packs on the host.

#include <string>
#include <utility>

#include <engram/device/kernel.hpp>
#include <engram/graph/simple_operation.hpp>

namespace engram {

namespace internal {

template <class Point>
struct launched_point {
    Point point;
    int columns;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const { point(i / columns, static_cast<int>(i % columns)); }
};

/// *to += scale * the sum of term(row, column), by one block.
template <class Term>
struct launched_sum {
    static constexpr int lanes = 128;
    Term term;
    int count, columns;
    double scale;
    double* to;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int) const {
        const auto sum = block_sum(block, count * columns, [&](int i) { return term(i / columns, i % columns); });
        block_for(block, 1, [&](int) { *to += scale * static_cast<double>(sum); });
    }
};

/// A block on the host.
template <class Real>
struct one_lane {
    using real = Real;
    static constexpr int lanes = 1;
    Real scratch[1];
    template <class Phase>
    void each(Phase phase) {
        phase(0);
    }
};

}  // namespace internal

template <class Backend>
struct point_kernel : launched_kernel<Backend> {
    using real = typename Backend::real;
    using launched_kernel<Backend>::launched_kernel;

    /// point(row, column) for row < rows and column < columns.
    template <class Point>
    void each(std::ptrdiff_t rows, int columns, const Point& point) {
        if constexpr (device_backend<Backend>) {
            this->on->launch(this->name, rows * columns, internal::launched_point<Point>{point, columns});
        } else {
            for (std::ptrdiff_t row = 0; row < rows; ++row)
                for (int column = 0; column < columns; ++column) point(row, column);
            require(std::exchange(alarm_, 0) == 0, this->name, ": ", sentence_);
        }
    }
    /// What a point sets where its numbers are wrong: the host throws the sentence behind each(), a device when its
    /// program next waits for it.
    int* alarm(const binder<Backend>& b, const std::string& sentence) {
        if constexpr (device_backend<Backend>)
            return b.alarm(sentence);
        else
            return sentence_ = sentence, &alarm_;
    }
    /// body(block, index) for index < count, with a scratch of Body::lanes numbers.
    template <class Body>
    void each_block(std::ptrdiff_t count, const Body& body) {
        if constexpr (device_backend<Backend>) {
            this->on->launch_blocks(this->name, count, Body::lanes, body);
        } else {
            internal::one_lane<real> block;
            for (std::ptrdiff_t index = 0; index < count; ++index) body(block, static_cast<int>(index));
        }
    }
    /// *to += scale * the sum of term(row, column) over row < rows and column < columns.
    template <class Term>
    void add_sum(int rows, int columns, const Term& term, double scale, double* to) {
        if constexpr (device_backend<Backend>) {
            using sum = internal::launched_sum<Term>;
            this->on->launch_blocks(this->name, 1, sum::lanes, sum{term, rows, columns, scale, to});
        } else {
            double sum = 0;
            for (int row = 0; row < rows; ++row)
                for (int column = 0; column < columns; ++column) sum += static_cast<double>(term(row, column));
            *to += scale * sum;
        }
    }

private:
    int alarm_ = 0;
    std::string sentence_;
};

}  // namespace engram
