#pragma once
// SPDX-License-Identifier: MIT

// The parameter store: every weight of a model in one flat buffer, found by name, with the packed copies that products
// read.
//
// One buffer means one fused optimiser pass, one copy to publish weights to actors and one tensor file on disk.
// Products read weights in packed panels, which are made once per version of the store and shared by every plan and
// thread, so values may only change through edit(), whose guard packs again when it ends.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <engram/core/error.hpp>
#include <engram/core/philox.hpp>
#include <engram/core/thread_pool.hpp>
#include <engram/kernels/bfloat16_product.hpp>

namespace engram {

/// What products with the weights of a store are of: its own numbers, or those rounded to bfloat16, summed in float.
enum class product_precision { full, bfloat16 };

/// Handle of one parameter of a store.
struct parameter {
    int id = -1;
};

/// Fills the [rows, columns] values of a new parameter.
template <class Real>
using initialiser = std::function<void(std::span<Real> values, int rows, int columns, philox& random)>;

template <class Real>
class parameters {
public:
    /// Name, shape [rows, columns] and place in the flat buffer.
    struct entry {
        std::string name;
        int rows;
        int columns;
        std::ptrdiff_t offset;

        std::ptrdiff_t size() const { return std::ptrdiff_t{rows} * columns; }
    };

    explicit parameters(std::uint64_t seed = 1) : seed_(seed) {}

    /// The same names, values and products, with no packed copies: what an actor thread reads while the learner goes
    /// on.
    parameters(const parameters& other)
        : seed_(other.seed_), entries_(other.entries_), values_(other.values_), products_(other.products_) {}
    parameters& operator=(const parameters&) = delete;

    /// Adds a parameter. Its first values depend on the seed and its name alone, so that ablations that share a part
    /// start it from the same numbers. Throws when the name is taken.
    parameter declare(const std::string& name, int rows, int columns, const initialiser<Real>& initialise) {
        require(rows > 0 && columns > 0, name, ": a parameter of [", rows, ",", columns, "] has no entries");
        for (const entry& e : entries_) require(e.name != name, "parameter '", name, "' is declared twice");
        const auto offset = static_cast<std::ptrdiff_t>(values_.size());
        entries_.push_back({name, rows, columns, offset});
        values_.resize(values_.size() + static_cast<std::size_t>(padded(entries_.back().size())));
        philox random(seed_, hash(name));
        initialise({values_.data() + offset, static_cast<std::size_t>(entries_.back().size())}, rows, columns, random);
        return {static_cast<int>(entries_.size()) - 1};
    }

    /// Chooses the products of models on the host, before the first one is planned: operations pack their weights then.
    /// Weights, gradients and moments stay as they are. Throws for bfloat16 products of doubles, and once something is
    /// packed.
    void set_products(product_precision products) {
        require(products == product_precision::full || std::is_same_v<Real, float>,
                "parameters: products in bfloat16 are of floats, and these are doubles");
        require(products == products_ || (packs_.empty() && pairs_.empty()),
                "parameters: products were chosen after a model was planned; expected before");
        products_ = products;
    }
    product_precision products() const { return products_; }

    const std::vector<entry>& entries() const { return entries_; }
    const entry& operator[](parameter p) const { return entries_[static_cast<std::size_t>(p.id)]; }

    /// Handle of the parameter called `name`; throws with the nearest name when there is no such one.
    parameter find(std::string_view name) const {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            if (entries_[i].name == name) return {static_cast<int>(i)};
            names.push_back(entries_[i].name);
        }
        fail("unknown parameter '", name, "'", instead_of(name, names));
    }

    const Real* values(parameter p) const { return values_.data() + (*this)[p].offset; }
    std::span<const Real> flat() const { return values_; }
    std::ptrdiff_t flat_size() const { return static_cast<std::ptrdiff_t>(values_.size()); }

    /// Number of weights, padding not counted.
    std::int64_t total() const {
        std::int64_t sum = 0;
        for (const entry& e : entries_) sum += e.size();
        return sum;
    }

    /// Bumped whenever an edit ends.
    std::int64_t version() const { return version_; }

    /// Write access; the packed copies are made again when it ends, by the threads of a pool if there is one.
    class edit_guard {
    public:
        explicit edit_guard(parameters& store, thread_pool* pool) : store_(&store), pool_(pool) {}
        edit_guard(const edit_guard&) = delete;
        edit_guard& operator=(const edit_guard&) = delete;
        ~edit_guard() { store_->publish(pool_); }
        std::span<Real> flat() { return store_->values_; }
        Real* values(parameter p) { return store_->values_.data() + (*store_)[p].offset; }

    private:
        parameters* store_;
        thread_pool* pool_;
    };
    edit_guard edit(thread_pool* pool = nullptr) { return edit_guard(*this, pool); }

    /// The copy of the values on a device, kept by device_weights; copies of the store have none.
    std::shared_ptr<void> on_device;

    /// Packs panels of one layout of a parameter; `layout` names it, so that equal requests share one copy.
    template <class Word>
    using packer_of = std::function<void(const Real* values, packed_weights<Word>&, panel_range)>;
    using packer = packer_of<Real>;
    const packed_weights<Real>* packed(parameter p, const std::string& layout, int rows, int columns, packer pack) {
        return found(packs_, p, layout, rows, columns, std::move(pack));
    }

    /// W as it is, for y = x W.
    const packed_weights<Real>* packed_forward(parameter p) {
        const entry& e = (*this)[p];
        return packed(
            p, "forward", e.rows, e.columns,
            [n = e.columns](const Real* w, packed_weights<Real>& to, panel_range part) { to.pack(w, n, part); });
    }

    /// The transpose of rows [first, first + count) of W, for dx = dy W^T.
    const packed_weights<Real>* packed_transposed(parameter p, int first, int count) {
        const int n = (*this)[p].columns;
        return packed(p, message("transposed ", first, " ", count), n, count,
                      [n, first](const Real* w, packed_weights<Real>& to, panel_range part) {
                          to.pack_transposed(w + std::ptrdiff_t{first} * n, n, part);
                      });
    }

    /// Rows [first, first + count) of W in pairs of bfloat16, for y = x W. They are packed by themselves, since a pair
    /// must not be of two inputs.
    const paired_weights* paired_forward(parameter p, int first, int count) requires std::is_same_v<Real, float> {
        const int n = (*this)[p].columns;
        return found<std::uint32_t>(pairs_, p, message("forward ", first, " ", count), (count + 1) / 2, n,
                                    [=](const Real* w, paired_weights& to, panel_range part) {
                                        if constexpr (std::is_same_v<Real, float>)  // clang before 16 asks for it
                                            pack_pairs(w + std::ptrdiff_t{first} * n, n, count, n, to, part);
                                    });
    }

    /// The transpose of rows [first, first + count) of W in pairs of bfloat16, for dx = dy W^T.
    const paired_weights* paired_transposed(parameter p, int first, int count) requires std::is_same_v<Real, float> {
        const int n = (*this)[p].columns;
        return found<std::uint32_t>(pairs_, p, message("transposed ", first, " ", count), (n + 1) / 2, count,
                                    [=](const Real* w, paired_weights& to, panel_range part) {
                                        if constexpr (std::is_same_v<Real, float>)
                                            pack_pairs_transposed(w + std::ptrdiff_t{first} * n, n, n, count, to, part);
                                    });
    }

private:
    // FNV-1a: the same on every platform, unlike std::hash.
    static std::uint64_t hash(std::string_view name) {
        std::uint64_t h = 14695981039346656037ull;
        for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ull;
        return h;
    }

    template <class Word>
    struct packing {
        packed_weights<Word> weights;
        packer_of<Word> pack;

        std::ptrdiff_t words() const { return std::ptrdiff_t{weights.rows()} * weights.columns(); }
        /// The first panel of those behind so many words.
        int panel_at(std::ptrdiff_t words_before) const {
            const std::ptrdiff_t size = words(), n = weights.panels();
            return static_cast<int>(std::clamp<std::ptrdiff_t>(words_before, 0, size) * n / size);
        }
    };
    template <class Word>
    using packings = std::map<std::pair<int, std::string>, std::unique_ptr<packing<Word>>>;

    template <class Word>
    const packed_weights<Word>* found(packings<Word>& packs, parameter p, const std::string& layout, int rows,
                                      int columns, packer_of<Word> pack) {
        auto& slot = packs[{p.id, layout}];
        if (!slot) {
            slot = std::make_unique<packing<Word>>();
            slot->weights.resize(rows, columns);
            slot->pack = std::move(pack);
            slot->pack(values(p), slot->weights, {});
        }
        return &slot->weights;
    }

    // Every parameter starts on a cache line of its own, so that threads summing slices never share one.
    static std::ptrdiff_t padded(std::ptrdiff_t n) { return (n + 15) / 16 * 16; }

    /// body(packing, values) of each.
    template <class Body>
    void each_packing(Body body) {
        for (auto& [key, slot] : packs_) body(*slot, values({key.first}));
        for (auto& [key, slot] : pairs_) body(*slot, values({key.first}));
    }

    void publish(thread_pool* pool) {
        // Waking threads costs as much as packing some hundred thousand numbers.
        constexpr std::ptrdiff_t few = 1 << 20;
        std::ptrdiff_t all = 0;
        each_packing([&](auto& one, const Real*) { all += one.words(); });
        if (!pool || all < few)
            each_packing([](auto& one, const Real* from) { one.pack(from, one.weights, {}); });
        else
            pool->run([&](int thread) {
                const std::ptrdiff_t begin = all * thread / pool->size(), end = all * (thread + 1) / pool->size();
                std::ptrdiff_t at = 0;
                each_packing([&](auto& one, const Real* from) {
                    const panel_range part{one.panel_at(begin - at), one.panel_at(end - at)};
                    if (part.first < part.last) one.pack(from, one.weights, part);
                    at += one.words();
                });
            });
        ++version_;
    }

    std::uint64_t seed_;
    std::vector<entry> entries_;
    std::vector<Real> values_;
    packings<Real> packs_;
    packings<std::uint32_t> pairs_;
    product_precision products_ = product_precision::full;
    std::int64_t version_ = 0;
};

/// Ready-made first values.
namespace initial {

/// All weights 0.
template <class Real>
initialiser<Real> zero() {
    return [](std::span<Real> values, int, int, philox&) {
        for (Real& v : values) v = 0;
    };
}

/// All weights one number.
template <class Real>
initialiser<Real> constant(double number) {
    return [number](std::span<Real> values, int, int, philox&) {
        for (Real& v : values) v = static_cast<Real>(number);
    };
}

/// Normal numbers of variance gain^2 / rows (rows = fan-in).
template <class Real>
initialiser<Real> fan_in(double gain = 1) {
    return [gain](std::span<Real> values, int rows, int, philox& random) {
        const double scale = gain / std::sqrt(static_cast<double>(rows));
        for (Real& v : values) v = static_cast<Real>(scale * random.normal());
    };
}

/// Fan-in scaled numbers in the first `live` rows, zeros in the others.
template <class Real>
initialiser<Real> fan_in_rows(int live, double gain = 1) {
    return [live, gain](std::span<Real> values, int, int columns, philox& random) {
        const double scale = gain / std::sqrt(static_cast<double>(live));
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<int>(i) / columns < live ? static_cast<Real>(scale * random.normal()) : Real(0);
    };
}

/// The values of another parameter of the same shape.
template <class Real>
initialiser<Real> copy_of(const parameters<Real>& store, parameter other) {
    return [&store, other](std::span<Real> values, int, int, philox&) {
        const auto& from = store[other];
        require(from.size() == static_cast<std::ptrdiff_t>(values.size()), "initial values: '", from.name,
                "' has another shape");
        // The store may have grown, so the source is looked up now.
        const Real* source = store.values(other);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = source[i];
    };
}

}  // namespace initial
}  // namespace engram
