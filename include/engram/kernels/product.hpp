#pragma once
// SPDX-License-Identifier: MIT

// Matrix products of few rows by large weights, y = b + sum_p x_p W_p, and their weight gradients, dW = x^T dy.
//
// General libraries repack the weights at every call; here they are packed once, when they change, into column panels
// that a register tile reads in order. Every output element is ONE chain of fused multiply-adds in a fixed order (bias
// or old y, then the parts, then their rows), whatever the number of rows of the call: a row computed alone, in a batch
// or in a shard has the same bits.
//
// Row-major everywhere: x [m, k], W [k, n], y [m, n]; a row stride may be smaller than the row (overlapping rows, as in
// convolutions). No call allocates but packed_weights::resize.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "engram/core/error.hpp"
#include "engram/core/pack.hpp"

namespace engram {

/// Rows and vectors of the register tile: 8 x 2 accumulators leave room in 32 registers, 6 x 2 fill 16.
#if defined(__AVX512F__)
inline constexpr int product_tile_rows = 8;
#else
inline constexpr int product_tile_rows = 6;
#endif
inline constexpr int product_tile_vectors = 2;

/// Panels first ... last - 1 of packed weights, by default all: threads pack parts of a matrix.
struct panel_range {
    int first = 0, last = std::numeric_limits<int>::max();
};

/// Weights [k, n] as panels of `panel` columns, each panel [k, panel] contiguous, padded with zeros. A last panel that
/// one vector can hold is only that wide.
template <class Real>
class packed_weights {
public:
    static constexpr int width = engram::pack<Real>::width;  // qualified: pack() below is another one to nvcc
    static constexpr int panel = product_tile_vectors * width;

    packed_weights() = default;
    packed_weights(int k, int n) { resize(k, n); }

    void resize(int k, int n) {
        require(k >= 0 && n >= 0, "packed weights: a shape of [", k, ", ", n, "] was asked for");
        const std::ptrdiff_t size = std::ptrdiff_t(k) * ((n + width - 1) / width * width);
        rows_ = k;
        columns_ = n;
        data_.reset(static_cast<Real*>(::operator new(sizeof(Real) * std::size_t(size), alignment)));
        std::fill_n(data_.get(), size, Real(0));
    }

    /// From row-major w[k][n].
    void pack(const Real* w, int stride, panel_range part = {}) {
        pack_from([=](int k, int n) { return w[std::ptrdiff_t(k) * stride + n]; }, part);
    }

    /// From row-major w[n][k]: this then holds its transpose.
    void pack_transposed(const Real* w, int stride, panel_range part = {}) {
        pack_transposed_from(
            [=](int k, int n, auto columns, Real* to) {
                const Real* from = w + std::ptrdiff_t(n) * stride + k;
                for (int j = 0; j < columns(); ++j) to[j] = from[std::ptrdiff_t(j) * stride];
            },
            part);
    }

    /// From whoever writes weights (k, n) to (k, n + columns() - 1) as row(k, n, columns, to), and reads weights (k, n)
    /// and (k + 1, n) beside each other.
    template <class Row>
    void pack_transposed_from(Row row, panel_range part = {}) {
        // A cache line of few rows at a time: more rows, a power of two of numbers apart, would push each other out.
        constexpr int line = 64 / static_cast<int>(sizeof(Real)), few = 8;
        for (int p = part.first; p < std::min(part.last, panels()); ++p) {
            const int span = panel_vectors(p) * width, used = std::min(span, columns_ - p * panel);
            Real* const panel_start = data_.get() + std::ptrdiff_t(p) * panel * rows_;
            const auto block = [&](int first, int last, int column, auto columns) {
                for (int k = first; k < last; ++k)
                    row(k, p * panel + column, columns, panel_start + std::ptrdiff_t(k) * span + column);
            };
            for (int first = 0; first < rows_; first += line) {
                const int last = std::min(first + line, rows_);
                int column = 0;
                for (; column + few <= used; column += few)
                    block(first, last, column, std::integral_constant<int, few>{});
                for (; column < used; ++column) block(first, last, column, std::integral_constant<int, 1>{});
            }
        }
    }

    /// From weight(k, n): any other order of rows.
    template <class Weight>
    void pack_from(Weight weight, panel_range part = {}) {
        // A few rows of all panels at a time: the rows of one panel lie a whole row of weights apart, each in a page of
        // its own.
        constexpr int few = 16;
        for (int first = 0; first < rows_; first += few)
            for (int p = part.first; p < std::min(part.last, panels()); ++p) {
                const int span = panel_vectors(p) * width, used = std::min(span, columns_ - p * panel);
                Real* const to = data_.get() + std::ptrdiff_t(p) * panel * rows_;
                for (int k = first; k < std::min(first + few, rows_); ++k)
                    for (int j = 0; j < used; ++j) to[std::ptrdiff_t(k) * span + j] = weight(k, p * panel + j);
            }
    }

    int rows() const { return rows_; }
    int columns() const { return columns_; }
    int panels() const { return (columns_ + panel - 1) / panel; }
    int panel_vectors(int p) const { return columns_ - p * panel > width ? product_tile_vectors : 1; }

    /// Row `row` of panel p; rows of a panel follow each other.
    const Real* panel_row(int p, int row) const {
        return data_.get() + std::ptrdiff_t(p) * panel * rows_ + std::ptrdiff_t(row) * panel_vectors(p) * width;
    }

private:
    static constexpr std::align_val_t alignment{64};
    struct release {
        void operator()(Real* p) const { ::operator delete(p, alignment); }
    };

    std::unique_ptr<Real[], release> data_;
    int rows_ = 0, columns_ = 0;
};

/// One addend of a product: x [m, rows] times rows first_row .. first_row + rows of the weights.
template <class Real>
struct product_part {
    const Real* x;
    std::ptrdiff_t stride;
    const packed_weights<Real>* weights;
    int first_row;
    int rows;
};

/// Bytes that no second-level cache holds beside the rest: what is larger is fetched before it is needed.
inline constexpr std::ptrdiff_t beyond_cache = 1024 * 1024;

/// Nothing to be fetched while a tile is summed.
struct no_prefetch {
    ENGRAM_SIMD void operator()() const {}
};

/// Fetches the `numbers` behind `from` into the second-level cache, a little with each of `calls` calls: large weights,
/// read once a product, arrive while the panel before them is multiplied. Nothing is read, so `from` may be anywhere.
class prefetch_ahead {
public:
    template <class Real>
    prefetch_ahead(const Real* from, std::ptrdiff_t numbers, int calls)
        : from_(reinterpret_cast<const char*>(from)),
          step_(numbers * static_cast<int>(sizeof(Real)) / std::max(calls, 1)) {}

    ENGRAM_SIMD void operator()() {
        __builtin_prefetch(from_, 0, 2);
        from_ += step_;
    }

private:
    const char* from_;
    std::ptrdiff_t step_;
};

/// Rows x Vectors accumulators that stay in registers. All indices are constants of fold expressions: GCC keeps an
/// array in memory if a loop indexes it, at a third of the speed.
template <class Real, int Rows, int Vectors>
class product_tile {
public:
    static constexpr int width = pack<Real>::width;

    /// From y, a row of biases, or zero; `columns` of the Vectors * width exist in memory.
    ENGRAM_SIMD void start(const Real* bias, const Real* y, std::ptrdiff_t y_stride, bool accumulate, int columns) {
        if (accumulate)
            each([&](auto row, auto vector) __attribute__((always_inline)) {
                at(row, vector) = read(y + row() * y_stride, vector(), columns);
            });
        else if (bias)
            each([&](auto row, auto vector)
                     __attribute__((always_inline)) { at(row, vector) = read(bias, vector(), columns); });
        else
            each([&](auto row, auto vector) __attribute__((always_inline)) { at(row, vector) = pack<Real>(0); });
    }

    /// Adds x[row * row_stride + k * step] * w[k * w_step + column] for k = 0 .. count - 1, in this order; Factors are
    /// registers of what x and w hold. Columns beyond product_tile_vectors are those of further panels, which lie
    /// `panel_step` apart.
    template <class Factors = pack<Real>, class Word, class Prefetch = no_prefetch>
    ENGRAM_SIMD void add(const Word* x, std::ptrdiff_t row_stride, std::ptrdiff_t step, const Word* w,
                         std::ptrdiff_t w_step, int count, std::ptrdiff_t panel_step = 0, Prefetch prefetch = {}) {
        add<Factors>(x, row_stride, step, w, w_step, count, panel_step, prefetch,
                     std::make_integer_sequence<int, Rows>{}, std::make_integer_sequence<int, Vectors>{},
                     std::make_integer_sequence<int, Rows * Vectors>{});
    }

    ENGRAM_SIMD void finish(Real* y, std::ptrdiff_t y_stride, int columns) const {
        each([&](auto row, auto vector) __attribute__((always_inline)) {
            Real* to = y + row() * y_stride + vector() * width;
            if (columns >= (vector() + 1) * width)
                sums_[row() * Vectors + vector()].store(to);
            else
                sums_[row() * Vectors + vector()].store(to, columns - vector() * width);
        });
    }

private:
    template <class Factors, class Word, class Prefetch, int... R, int... V, int... I>
    ENGRAM_SIMD void add(const Word* x, std::ptrdiff_t row_stride, std::ptrdiff_t step, const Word* w,
                         std::ptrdiff_t w_step, int count, std::ptrdiff_t panel_step, Prefetch prefetch,
                         std::integer_sequence<int, R...>, std::integer_sequence<int, V...>,
                         std::integer_sequence<int, I...>) {
        constexpr int side = product_tile_vectors;
        const Word* rows[Rows] = {x + R * row_stride...};
        pack<Real> sums[Rows * Vectors] = {sums_[I]...};
        for (int k = 0; k < count; ++k) {
            prefetch();
            Factors weights[Vectors] = {Factors::load(w + V / side * panel_step + V % side * width)...};
            // With few registers the compiler reads them again for every row, and reading is what bounds small tiles.
            if constexpr (Rows > 2 && pack_bytes < 64) (weights[V].keep_in_register(), ...);
            ((sums[I] = multiply_add(Factors(*rows[I / Vectors]), weights[I % Vectors], sums[I])), ...);
            ((rows[R] += step), ...);
            w += w_step;
        }
        ((sums_[I] = sums[I]), ...);
    }

    template <class Body>
    static ENGRAM_SIMD void each(Body body) {
        [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
            (body(std::integral_constant<int, I / Vectors>{}, std::integral_constant<int, I % Vectors>{}), ...);
        }
        (std::make_integer_sequence<int, Rows * Vectors>{});
    }

    static ENGRAM_SIMD pack<Real> read(const Real* row, int vector, int columns) {
        return columns >= (vector + 1) * width ? pack<Real>::load(row + vector * width)
                                               : pack<Real>::load(row + vector * width, columns - vector * width);
    }

    template <class Row, class Vector>
    ENGRAM_SIMD pack<Real>& at(Row, Vector) {
        return sums_[Row::value * Vectors + Vector::value];
    }

    pack<Real> sums_[Rows * Vectors];
};

/// Calls body(first row, integral_constant<rows of the tile>) over m rows: full tiles, then 4, 2, 1.
template <class Body>
ENGRAM_SIMD void for_row_tiles(int first, int m, Body body) {
    int row = first;
    for (; row + product_tile_rows <= m; row += product_tile_rows)
        body(row, std::integral_constant<int, product_tile_rows>{});
    for (; row + 4 <= m; row += 4) body(row, std::integral_constant<int, 4>{});
    if (row + 2 <= m) {
        body(row, std::integral_constant<int, 2>{});
        row += 2;
    }
    if (row < m) body(row, std::integral_constant<int, 1>{});
}

/// The product of Rows rows by as many whole panels as groups of `Panels` of them cover; returns that number. The
/// chains of one panel alone would leave the multiplier waiting for their sums.
template <int Rows, int Panels, class Real>
int multiply_panels(const product_part<Real>* parts, int count, const Real* bias, bool accumulate, Real* y,
                    std::ptrdiff_t y_stride) {
    using weights = packed_weights<Real>;
    constexpr int columns = Panels * weights::panel;
    const weights& shape = *parts[0].weights;
    int done = 0;
    for (; (done + Panels) * weights::panel <= shape.columns(); done += Panels) {
        product_tile<Real, Rows, Panels * product_tile_vectors> tile;
        Real* to = y + done * weights::panel;
        tile.start(bias ? bias + done * weights::panel : nullptr, to, y_stride, accumulate, columns);
        for (int i = 0; i < count; ++i) {
            const auto& part = parts[i];
            tile.add(part.x, part.stride, 1, part.weights->panel_row(done, part.first_row), weights::panel, part.rows,
                     std::ptrdiff_t(weights::panel) * part.weights->rows());
        }
        tile.finish(to, y_stride, columns);
    }
    return done;
}

/// y[m, n] = (accumulate ? y : bias or 0) + sum over the parts of x[m, 0..rows) W[first_row.., n].
template <class Real>
void multiply(const product_part<Real>* parts, int count, const Real* bias, bool accumulate, Real* y,
              std::ptrdiff_t y_stride, int m) {
    using weights = packed_weights<Real>;
    if (count <= 0 || m <= 0) return;
    const weights& shape = *parts[0].weights;
    std::ptrdiff_t depth = 1;
    for (int i = 0; i < count; ++i) depth += parts[i].rows;
    // Blocks of rows whose inputs stay in the second-level cache while all panels pass over them.
    constexpr std::ptrdiff_t cached = 256 * 1024 / static_cast<int>(sizeof(Real));
    const int fitting = static_cast<int>(std::min<std::ptrdiff_t>(cached / depth, m));
    constexpr std::ptrdiff_t far = beyond_cache / static_cast<int>(sizeof(Real));
    const int block = fitting == m ? m : std::max(2, fitting / product_tile_rows) * product_tile_rows;
    int done = 0;
    if (m == 1) done = multiply_panels<1, 4>(parts, count, bias, accumulate, y, y_stride);
    if (m == 2) done = multiply_panels<2, 2>(parts, count, bias, accumulate, y, y_stride);
    for (int first = 0; first < m; first += block) {
        const int last = std::min(m, first + block);
        for (int p = done; p < shape.panels(); ++p) {
            const int column = p * weights::panel, columns = std::min(weights::panel, shape.columns() - column);
            const auto tiles = [&](auto vectors, auto ahead) __attribute__((always_inline)) {
                for_row_tiles(
                    first, last, [&](int row, auto rows) __attribute__((always_inline)) {
                        product_tile<Real, rows(), vectors()> tile;
                        Real* to = y + row * y_stride + column;
                        tile.start(bias ? bias + column : nullptr, to, y_stride, accumulate, columns);
                        for (int i = 0; i < count; ++i) {
                            const auto& part = parts[i];
                            constexpr std::ptrdiff_t w_step = vectors() * weights::width;
                            const Real* const w = part.weights->panel_row(p, part.first_row);
                            if constexpr (ahead()) {
                                // Each tile of rows fetches its share of the panel that comes next.
                                const std::ptrdiff_t numbers = w_step * part.rows, all = last - first;
                                const Real* const next =
                                    w + w_step * part.weights->rows() + numbers * (row - first) / all;
                                tile.add(part.x + row * part.stride, part.stride, 1, w, w_step, part.rows, 0,
                                         prefetch_ahead(next, numbers * rows() / all, part.rows));
                            } else {
                                tile.add(part.x + row * part.stride, part.stride, 1, w, w_step, part.rows);
                            }
                        }
                        tile.finish(to, y_stride, columns);
                    });
            };
            if (columns <= weights::width)
                tiles(std::integral_constant<int, 1>{}, std::false_type{});
            else if (depth * shape.columns() > far)
                tiles(std::integral_constant<int, product_tile_vectors>{}, std::true_type{});
            else
                tiles(std::integral_constant<int, product_tile_vectors>{}, std::false_type{});
        }
    }
}

/// Rows of x and dy that multiply_transposed takes at a time, at most.
inline constexpr int transposed_block = 192;

/// Elements of the scratch memory of multiply_transposed.
template <class Real>
std::ptrdiff_t transposed_workspace(int k, int n, int m) {
    constexpr int panel = packed_weights<Real>::panel;
    const std::ptrdiff_t rows = std::min(m, transposed_block);
    return rows * (k + (n + panel - 1) / panel * panel);
}

/// dw[k, n] (=|+=) sum over m of x[m, k] dy[m, n], one chain over m; workspace: transposed_workspace(k, n, m) elements.
template <class Real>
void multiply_transposed(const Real* x, std::ptrdiff_t x_stride, int k, const Real* dy, std::ptrdiff_t dy_stride, int n,
                         int m, Real* dw, std::ptrdiff_t dw_stride, bool accumulate, Real* workspace) {
    constexpr int width = pack<Real>::width, panel = packed_weights<Real>::panel;
    if (m <= 0 && !accumulate)
        for (int i = 0; i < k; ++i) std::fill_n(dw + i * dw_stride, n, Real(0));
    // Blocks of short rows are few enough for the first-level cache, where a tile reads them as they lie, unless so
    // many panels read them that gathering is little beside it.
    const bool in_place = (x_stride + dy_stride) * static_cast<int>(sizeof(Real)) <= 1536 && n < 8 * panel;
    const int block = in_place ? transposed_block / 2 : transposed_block;
    for (int first = 0; first < m; first += block) {
        const int rows = std::min(block, m - first);
        const Real* xs = x + first * x_stride;
        const Real* dys = dy + first * dy_stride;
        const bool add = accumulate || first > 0;
        // Columns of longer rows are gathered so that a tile reads them in order, but for those of a few rows, and for
        // overlapping rows, which gathering would multiply.
        constexpr std::ptrdiff_t near = 24 * 1024 / static_cast<int>(sizeof(Real));
        const bool gather_x = !in_place && x_stride >= k && rows * x_stride > near;
        const bool gather_dy = n % width != 0 || (!in_place && rows * dy_stride > near);
        // Sums that lie beyond the second-level cache are fetched while the tile above them is summed.
        constexpr int line = 64 / static_cast<int>(sizeof(Real));
        const bool far = k * dw_stride > beyond_cache / static_cast<int>(sizeof(Real));
        Real* dy_panel = workspace + std::ptrdiff_t(rows) * k;
        // A few rows at a time: more of them, a power of two of numbers apart, would push each other out of the cache
        // before the next tile takes the rest of their lines.
        constexpr int few = 16;
        if (gather_x)
            for (int some = 0; some < rows; some += few)
                for_row_tiles(0, k, [&, end = std::min(some + few, rows)](int row, auto tile_rows) {
                    Real* to = workspace + std::ptrdiff_t(row) * rows;
                    for (int t = some; t < end; ++t)
                        std::memcpy(to + t * tile_rows(), xs + t * x_stride + row, sizeof(Real) * tile_rows());
                });
        for (int column = 0; column < n; column += panel) {
            const int columns = std::min(panel, n - column);
            const auto tiles = [&](auto vectors) __attribute__((always_inline)) {
                constexpr int span = vectors() * width;
                if (gather_dy)
                    for (int t = 0; t < rows; ++t)
                        for (int v = 0; v < vectors(); ++v) {
                            const Real* from = dys + t * dy_stride + column + v * width;
                            const int there = std::min(width, columns - v * width);
                            (there == width ? pack<Real>::load(from) : pack<Real>::load(from, there))
                                .store(dy_panel + t * span + v * width);
                        }
                const Real* w = gather_dy ? dy_panel : dys + column;
                const std::ptrdiff_t w_step = gather_dy ? span : dy_stride;
                for_row_tiles(
                    0, k, [&](int row, auto tile_rows) __attribute__((always_inline)) {
                        product_tile<Real, tile_rows(), vectors()> tile;
                        Real* to = dw + row * dw_stride + column;
                        tile.start(nullptr, to, dw_stride, add, columns);
                        if (far)
                            for (int r = tile_rows(); r < std::min(2 * tile_rows(), k - row); ++r)
                                for (int c = 0; c < columns; c += line)
                                    __builtin_prefetch(to + r * dw_stride + c, 0, 2);
                        if (gather_x)
                            tile.add(workspace + std::ptrdiff_t(row) * rows, 1, tile_rows(), w, w_step, rows);
                        else
                            tile.add(xs + row, 1, x_stride, w, w_step, rows);
                        tile.finish(to, dw_stride, columns);
                    });
            };
            if (columns > width)
                tiles(std::integral_constant<int, product_tile_vectors>{});
            else
                tiles(std::integral_constant<int, 1>{});
        }
    }
}

/// `Vectors` neighbouring packs of columns of sum_rows(), `columns` of them there.
template <int Vectors, class Real>
void sum_strip(const Real* dy, std::ptrdiff_t dy_stride, int columns, int m, Real* db, bool accumulate) {
    constexpr int width = pack<Real>::width;
    // Four chains a pack: additions of one chain would wait for each other.
    pack<Real> sums[4][Vectors];
    const auto part = [&](int v) { return std::min(width, columns - v * width); };
    const auto add = [&](pack<Real>* chain, int t) {
        for (int v = 0; v < Vectors; ++v)
            chain[v] += pack<Real>::load(dy + t * dy_stride + v * width, Vectors == 1 ? part(v) : width);
    };
    for (int v = 0; v < Vectors; ++v) {
        sums[0][v] = accumulate ? pack<Real>::load(db + v * width, part(v)) : pack<Real>(0);
        sums[1][v] = sums[2][v] = sums[3][v] = pack<Real>(0);
    }
    int t = 0;
    for (; t + 4 <= m; t += 4)
        for (int chain = 0; chain < 4; ++chain) add(sums[chain], t + chain);
    for (; t < m; ++t) add(sums[0], t);
    for (int v = 0; v < Vectors; ++v)
        ((sums[0][v] + sums[1][v]) + (sums[2][v] + sums[3][v])).store(db + v * width, part(v));
}

/// db[n] (=|+=) sum over m of dy[m, n].
template <class Real>
void sum_rows(const Real* dy, std::ptrdiff_t dy_stride, int n, int m, Real* db, bool accumulate) {
    constexpr int width = pack<Real>::width;
    // Several packs at once where there are as many: one line of each row after the other is slow to fetch. The order
    // of every column's sum is the same.
    constexpr int vectors = 4;
    int column = 0;
    for (; column + vectors * width <= n; column += vectors * width)
        sum_strip<vectors>(dy + column, dy_stride, vectors * width, m, db + column, accumulate);
    for (; column < n; column += width)
        sum_strip<1>(dy + column, dy_stride, std::min(width, n - column), m, db + column, accumulate);
}

}  // namespace engram
