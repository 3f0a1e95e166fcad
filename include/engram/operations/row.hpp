#pragma once
// SPDX-License-Identifier: MIT

// What the body of an operation is given: its operands at one row, and the row itself, which says how columns are gone
// through. A body is written once:
//
//   row.each(n, [&](auto i) { o.y.put(i, 2 * o.x[i]); });            // columns 0 .. n - 1, in no order
//   const auto mean = row.mean(n, [&](auto i) { return o.x[i]; });   // equal for all lanes; so are sum and largest
//   row.once([&] { o.moments.put(0, mean); });                       // what is one number a row
//   row.each_wide(n, ...), row.sums_wide(...)                        // as each and sums, where a column is a long
//                                                                    // chain of sums by itself
//
// On the host `i` is a pack of columns, on a device one column; o.x[i] is a pack or a number, and numbers of any kind
// meet in one expression (core/pack.hpp). A device runs each, sum, mean, largest and once with all lanes of a block,
// each call ended by all before the next one begins, so every lane has to reach it.

#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include <engram/core/error.hpp>
#include <engram/core/flag.hpp>
#include <engram/core/packs.hpp>
#include <engram/device/executor.hpp>
#include <engram/kernels/rows.hpp>

namespace engram {

namespace internal {

/// A pack of columns from `first` on, all of them inside the row.
struct whole_pack {
    int first;
    friend ENGRAM_SIMD whole_pack operator+(whole_pack i, int columns) { return {i.first + columns}; }
    friend ENGRAM_SIMD bool operator<(whole_pack i, int column) { return i.first < column; }
};
/// Count of them beside each other.
template <int Count>
struct whole_packs {
    int first;
    friend ENGRAM_SIMD whole_packs operator+(whole_packs i, int columns) { return {i.first + columns}; }
};
/// The last `count` columns.
struct part_of_pack {
    int first, count;
    friend ENGRAM_SIMD part_of_pack operator+(part_of_pack i, int columns) { return {i.first + columns, i.count}; }
};

/// The largest of all lanes, half of them against the other half.
template <int Half, class Real>
ENGRAM_SIMD Real largest_lane(pack<Real> v) {
    if constexpr (Half == 0) {
        return v[0];
    } else {
#if defined(__CUDACC__)
        // nvcc 13 has an internal error at a shuffle whose lanes are a pack of arguments; the bits are the same.
        pack<Real> other = v;
        for (int i = 0; i < Half; ++i) other.lanes[i] = v.lanes[i + Half];
        return largest_lane<Half / 2>(max(v, other));
#else
        return [&]<int... I>(std::integer_sequence<int, I...>) {
            const pack<Real> other(__builtin_shufflevector(v.lanes, v.lanes, ((I + Half) % pack<Real>::width)...));
            return largest_lane<Half / 2>(max(v, other));
        }
        (std::make_integer_sequence<int, pack<Real>::width>{});
#endif
    }
}

#if !defined(__CUDACC__)
/// Halves of what a and b hold, Count / 2 sums each, added to the other halves. Where a sum has more lanes than a block
/// of 128 bits those of a come first, then those of b; elsewhere so in every block, since that is one step.
template <int Count, class Real, int... J>
ENGRAM_SIMD pack<Real> add_halves(pack<Real> a, pack<Real> b, std::integer_sequence<int, J...>) {
    constexpr int W = pack<Real>::width, block = 16 / static_cast<int>(sizeof(Real));
    constexpr int lanes = 2 * W / Count, half = lanes / 2, part = lanes > block ? W : block;
    const auto halves = [&](auto other) __attribute__((always_inline)) {
        constexpr int second = decltype(other)::value;
        return pack<Real>(__builtin_shufflevector(
            a.lanes, b.lanes,
            (J % part / (part / 2) * W + J / part * part + J % (part / 2) / half * lanes + J % half + second)...));
    };
    return halves(std::integral_constant<int, 0>{}) + halves(std::integral_constant<int, half>{});
}

/// Where add_halves leaves the sums of Count packs.
template <int Count, class Real>
consteval auto places_of_sums() {
    constexpr int W = pack<Real>::width, block = 16 / static_cast<int>(sizeof(Real)), lanes = W / Count;
    std::array<int, W> found{};
    if constexpr (Count > 1) {
        const auto before = places_of_sums<Count / 2, Real>();
        constexpr int part = 2 * lanes > block ? W : block;
        for (int k = 0; k < Count; ++k) {
            const int at = before[static_cast<std::size_t>(k % (Count / 2))];  // lane of a or b where it begins
            found[static_cast<std::size_t>(k)] =
                at / part * part + k / (Count / 2) * (part / 2) + at % part / (2 * lanes) * lanes;
        }
    }
    return found;
}

template <int Count, class Real>
ENGRAM_SIMD pack<Real> scattered_sums(const pack<Real>* all) {
    if constexpr (Count == 1)
        return all[0];
    else
        return add_halves<Count>(scattered_sums<Count / 2>(all), scattered_sums<Count / 2>(all + Count / 2),
                                 std::make_integer_sequence<int, pack<Real>::width>{});
}
#endif

/// The sums of as many packs as one has lanes, a lane each, in the order of pack::sum().
template <class Real>
ENGRAM_SIMD pack<Real> sums_of(const pack<Real>* all) {
    constexpr int W = pack<Real>::width;
#if defined(__CUDACC__)
    pack<Real> sums;
    for (int k = 0; k < W; ++k) sums.lanes[k] = all[k].sum();
    return sums;
#else
    const pack<Real> found = scattered_sums<W>(all);
    return [&]<int... J>(std::integer_sequence<int, J...>) __attribute__((always_inline)) {
        constexpr auto places = places_of_sums<W, Real>();
        return pack<Real>(__builtin_shufflevector(found.lanes, found.lanes, places[J]...));
    }
    (std::make_integer_sequence<int, W>{});
#endif
}

}  // namespace internal

/// Columns of one row by themselves: what a loop over them needs. A copy of it that a body makes stays in registers.
template <class Real>
struct columns_at {
    Real* data = nullptr;
    bool accumulate = false;  // a gradient to which other operations give too

    ENGRAM_HD constexpr explicit operator bool() const { return data != nullptr; }

    ENGRAM_HD Real operator[](int i) const { return data[i]; }
    ENGRAM_SIMD pack<Real> operator[](internal::whole_pack i) const { return pack<Real>::load(data + i.first); }
    template <int Count>
    ENGRAM_SIMD packs<Real, Count> operator[](internal::whole_packs<Count> i) const {
        return packs<Real, Count>::load(data + i.first);
    }
    ENGRAM_SIMD pack<Real> operator[](internal::part_of_pack i) const {
        return pack<Real>::load(data + i.first, i.count);
    }

    /// Stores v, or adds it, as the plan has it; nothing where nobody wants it. Once for every column of a row.
    ENGRAM_HD void put(int i, Real v) const {
        if (data) give(data[i], accumulate, v);
    }
    ENGRAM_SIMD void put(internal::whole_pack i, pack<Real> v) const {
        if (data) (accumulate ? v + (*this)[i] : v).store(data + i.first);
    }
    template <int Count>
    ENGRAM_SIMD void put(internal::whole_packs<Count> i, packs<Real, Count> v) const {
        if (data) (accumulate ? v + (*this)[i] : v).store(data + i.first);
    }
    ENGRAM_SIMD void put(internal::part_of_pack i, pack<Real> v) const {
        if (data) (accumulate ? v + (*this)[i] : v).store(data + i.first, i.count);
    }
};

/// Columns of one row, and how to come to another one.
template <class Real>
struct row_columns : columns_at<Real> {
    std::ptrdiff_t stride = 0, step = 0;  // numbers from row to row, from a time step to the next
    int width = 0;
    int apart = 0;  // numbers from a piece of the row to the next; 0 where one serves all pieces

    /// Moves by steps, rows of a step and pieces of a row.
    ENGRAM_HD void move(std::ptrdiff_t steps, std::ptrdiff_t rows, int pieces) {
        this->data += steps * step + rows * stride + pieces * apart;
    }
};

/// Them alone: what is stored elsewhere might else be what they are.
template <class Real>
ENGRAM_HD columns_at<Real> alone(const row_columns<Real>& columns) {
    return columns;
}

// --- operands: members of a body's `operands` ---

/// Columns [width] that are read, and their gradient `d`.
template <class Real>
struct input_row : row_columns<Real> {
    row_columns<Real> d;
};
/// Columns that are read and get no gradient: an index, a reset. Without one where the inputs have ended.
template <class Real>
struct constant_row : row_columns<Real> {};

/// Whether an episode begins with this row, whose reset column this is; none begins where no reset is given.
template <class Real>
ENGRAM_HD bool begins(const constant_row<Real>& reset) {
    return reset && is_set(reset[0]);
}
/// Columns that are written; `d` is what comes back.
template <class Real>
struct output_row : row_columns<Real> {
    row_columns<Real> d;
};
/// A parameter [entries, width], the same for all rows; its gradient is what a body's `slopes` adds.
template <class Real>
struct weight_row : row_columns<Real> {
    row_columns<Real> d;
};
/// `Count` numbers a row that the backward sweep finds again.
template <class Real, int Count>
struct kept_row : row_columns<Real> {};
/// Count inputs.
template <class Real, int Count>
struct input_array {
    static constexpr int most = Count, count = Count;
    input_row<Real> parts[Count];
    ENGRAM_HD constexpr const input_row<Real>& operator[](int k) const { return parts[k]; }
};
/// One of a list of inputs, and the columns of those ahead of it.
template <class Real>
struct listed_input : input_row<Real> {
    int before = 0;
};
/// The inputs that are left, some at a time: parts[k], k < count, is number first + k of `all`.
template <class Real>
struct input_list {
    static constexpr int most = 8;
    int first = 0, count = 0, all = 0;
    listed_input<Real> parts[most];
};

/// The outputs that are left, beside the inputs of an input_list: number first + k belongs to input first + k.
template <class Real>
struct output_list {
    static constexpr int most = input_list<Real>::most;
    int first = 0, count = 0;
    output_row<Real> parts[most];
};

/// visit(k) for the parts of a list, in order. A device counts to `most`, so that its numbers of the parts are
/// constants: indexed by a variable, a list is copied to memory by every thread.
template <class List, class Visit>
ENGRAM_HD void each_part(const List& list, Visit visit) {
    ENGRAM_UNROLL
    for (int k = 0; k < List::most && k < list.count; ++k) visit(k);
}

/// Zero of a kind of number, whatever its value.
template <class Number>
ENGRAM_HD Number zero_of(const Number&) {
    return Number(0);
}

// --- rows ---

namespace internal {

/// What terms of row.sums call: add(k, v), or add(k, a, b) for their product. Totals are packs.
template <class Real, class Inside>
struct add_to_totals {
    pack<Real>* totals;
    Inside inside;

    ENGRAM_SIMD void operator()(int k, pack<Real> v) const { totals[k] += inside(v); }
    ENGRAM_SIMD void operator()(int k, pack<Real> a, pack<Real> b) const {
        totals[k] = multiply_add(inside(a), inside(b), totals[k]);
    }
    template <int Count>
    ENGRAM_SIMD void operator()(int k, packs<Real, Count> v) const {
        (*this)(k, v.low);
        (*this)(k, v.high);
    }
    template <int Count>
    ENGRAM_SIMD void operator()(int k, packs<Real, Count> a, packs<Real, Count> b) const {
        (*this)(k, a.low, b.low);
        (*this)(k, a.high, b.high);
    }
};
/// The same of a lane, whose totals lie `apart` from each other.
template <class Real>
struct add_of_a_lane {
    Real* totals;
    int apart;

    ENGRAM_HD void operator()(int k, Real v) const { totals[k * apart] += v; }
    ENGRAM_HD void operator()(int k, Real a, Real b) const {
        totals[k * apart] = multiply_add(a, b, totals[k * apart]);
    }
};

}  // namespace internal

/// A row on the host.
template <class Real>
class host_row {
    using P = pack<Real>;

public:
    /// `kind` is what indices are called; room holds what `sums` sums up.
    explicit host_row(const std::string& operation, const char* kind = "", P* room = nullptr)
        : operation_(&operation), kind_(kind), totals_(room) {}

    template <class Body>
    ENGRAM_SIMD void each(int n, Body body) const {
        int c = 0;
        for (; c + P::width <= n; c += P::width) body(internal::whole_pack{c});
        if (c < n) body(internal::part_of_pack{c, n - c});
    }
    /// As each, several packs at a time where there are as many.
    template <class Body>
    ENGRAM_SIMD void each_wide(int n, Body body) const {
        int c = 0;
        if constexpr (pack_bytes == 64)
            for (; c + 4 * P::width <= n; c += 4 * P::width) body(internal::whole_packs<4>{c});
        for (; c + 2 * P::width <= n; c += 2 * P::width) body(internal::whole_packs<2>{c});
        if (c + P::width <= n) body(internal::whole_pack{c}), c += P::width;
        if (c < n) body(internal::part_of_pack{c, n - c});
    }
    template <class Term>
    ENGRAM_SIMD Real sum(int n, Term term) const {
        P total(0);
        int c = 0;
        for (; c + P::width <= n; c += P::width) total += P(term(internal::whole_pack{c}));
        if (c < n) total += inside(n - c, term(internal::part_of_pack{c, n - c}), Real(0));
        return total.sum();
    }
    template <class Term>
    ENGRAM_SIMD Real mean(int n, Term term) const {
        return sum(n, term) / static_cast<Real>(n);
    }
    template <class Term>
    ENGRAM_SIMD Real largest(int n, Term term) const {
        constexpr Real least = -std::numeric_limits<Real>::infinity();
        P top(least);
        int c = 0;
        for (; c + P::width <= n; c += P::width) top = max(top, P(term(internal::whole_pack{c})));
        if (c < n) top = max(top, inside(n - c, term(internal::part_of_pack{c, n - c}), least));
        return internal::largest_lane<P::width / 2>(top);
    }
    /// `count` sums at once: terms(i, add) calls add(k, number), or add(k, a, b) to add a b rounded once; then
    /// done(k, sum k) is called for every k.
    template <class Terms, class Done>
    ENGRAM_SIMD void sums(int count, int n, Terms terms, Done done) const {
        begin_sums(count);
        add_sums(0, n, terms);
        end_sums(0, count, done);
    }
    /// As sums, two packs at a time where there are as many; a total's order is the same. The first `groups` times
    /// `alike` sums are handled alike in each group, so that done may be called for a pack of them.
    template <class Terms, class Done>
    ENGRAM_SIMD void sums_wide(int count, int groups, int alike, int n, Terms terms, Done done) const {
        begin_sums(count);
        int c = 0;
        for (; c + 2 * P::width <= n; c += 2 * P::width)
            terms(internal::whole_packs<2>{c}, internal::add_to_totals<Real, all_lanes>{totals_, {}});
        add_sums(c, n, terms);
        int k = 0;
        if (alike % P::width == 0)
            for (; k < groups * alike; k += alike)
                for (int j = k; j < k + alike; j += P::width)
                    done(internal::whole_pack{j}, internal::sums_of(totals_ + j));
        end_sums(k, count, done);
    }
    template <class Body>
    ENGRAM_SIMD void once(Body body) const {
        body();
    }
    /// The columns' own numbers.
    static ENGRAM_SIMD P number(internal::whole_pack i) { return indices<Real>(i.first); }
    static ENGRAM_SIMD P number(internal::part_of_pack i) { return indices<Real>(i.first); }
    static ENGRAM_SIMD packs<Real, 2> number(internal::whole_packs<2> i) {
        return {indices<Real>(i.first), indices<Real>(i.first + P::width)};
    }
    static ENGRAM_SIMD packs<Real, 4> number(internal::whole_packs<4> i) {
        return {number(internal::whole_packs<2>{i.first}), number(internal::whole_packs<2>{i.first + 2 * P::width})};
    }

    /// `value` as an index below `count`; throws where it is none.
    ENGRAM_SIMD int index(Real value, int count) const {
        if (!(value >= 0 && value < static_cast<Real>(count))) refuse(value, count);
        return static_cast<int>(value);
    }

private:
    struct all_lanes {
        ENGRAM_SIMD P operator()(P v) const { return v; }
    };
    struct first_lanes {
        int count;
        ENGRAM_SIMD P operator()(P v) const { return inside(count, v, Real(0)); }
    };
    ENGRAM_SIMD void begin_sums(int count) const {
        for (int k = 0; k < count; ++k) totals_[k] = P(0);
    }
    template <class Terms>
    ENGRAM_SIMD void add_sums(int c, int n, Terms terms) const {
        for (; c + P::width <= n; c += P::width)
            terms(internal::whole_pack{c}, internal::add_to_totals<Real, all_lanes>{totals_, {}});
        if (c < n)
            terms(internal::part_of_pack{c, n - c}, internal::add_to_totals<Real, first_lanes>{totals_, {n - c}});
    }
    template <class Done>
    ENGRAM_SIMD void end_sums(int k, int count, Done done) const {
        for (; k + P::width <= count; k += P::width) {
            Real found[P::width];
            internal::sums_of(totals_ + k).store(found);
            for (int j = 0; j < P::width; ++j) done(k + j, found[j]);
        }
        for (; k < count; ++k) done(k, totals_[k].sum());
    }
    [[gnu::noinline, gnu::cold, noreturn]] void refuse(Real value, int count) const {
        fail(*operation_, ": ", kind_, " ", value, " is outside 0..", count - 1);
    }
    static ENGRAM_SIMD P inside(int count, P v, Real other) {
        return select(indices<Real>(0) < P(static_cast<Real>(count)), v, P(other));
    }
    const std::string* operation_;
    const char* kind_;
    P* totals_;
};

/// A row as a block of a device.
template <class Block>
class block_row {
    using Real = typename Block::real;

public:
    ENGRAM_HD explicit block_row(Block& block, int* alarm = nullptr) : block_(&block), alarm_(alarm) {}

    template <class Body>
    ENGRAM_HD void each(int n, Body body) const {
        block_for(*block_, n, body);
    }
    template <class Body>
    ENGRAM_HD void each_wide(int n, Body body) const {
        each(n, body);
    }
    template <class Term>
    ENGRAM_HD Real sum(int n, Term term) const {
        return block_sum(*block_, n, term);
    }
    template <class Term>
    ENGRAM_HD Real mean(int n, Term term) const {
        return sum(n, term) / static_cast<Real>(n);
    }
    template <class Term>
    ENGRAM_HD Real largest(int n, Term term) const {
        return block_max(*block_, n, term);
    }
    template <class Terms, class Done>
    ENGRAM_HD void sums(int count, int n, Terms terms, Done done) const {
        constexpr int lanes = Block::lanes;
        Real* const partial = block_->scratch;
        block_->each([&](int lane) {
            for (int k = 0; k < count; ++k) partial[k * lanes + lane] = 0;
            for (int i = lane; i < n; i += lanes) terms(i, internal::add_of_a_lane<Real>{partial + lane, lanes});
        });
        for (int half = lanes / 2; half > 0; half /= 2)
            block_->each([&](int lane) {
                for (int k = 0; lane < half && k < count; ++k)
                    partial[k * lanes + lane] += partial[k * lanes + lane + half];
            });
        block_for(*block_, count, [&](int k) { done(k, partial[k * lanes]); });
    }
    template <class Terms, class Done>
    ENGRAM_HD void sums_wide(int count, int, int, int n, Terms terms, Done done) const {
        sums(count, n, terms, done);
    }
    template <class Body>
    ENGRAM_HD void once(Body body) const {
        block_->each([&](int lane) {
            if (lane == 0) body();
        });
    }
    static ENGRAM_HD Real number(int i) { return static_cast<Real>(i); }

    /// -1 where `value` is no index below `count`, which raises the alarm.
    ENGRAM_HD int index(Real value, int count) const {
        if (value >= 0 && value < static_cast<Real>(count)) return static_cast<int>(value);
        *alarm_ = 1;
        return -1;
    }

private:
    Block* block_;
    int* alarm_;
};

}  // namespace engram
