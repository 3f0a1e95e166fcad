#pragma once
// SPDX-License-Identifier: MIT

// What training does with the gradients of an update: they are summed over the programs that share a store, in the
// order of their shards, so that a run repeats its bits; an update with a number that is not finite is refused with one
// sentence, before the weights change.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <engram/core/error.hpp>
#include <engram/core/thread_pool.hpp>
#include <engram/graph/program.hpp>
#include <engram/train/device_optimiser.hpp>
#include <engram/train/optimiser.hpp>
#include <engram/train/processes.hpp>

namespace engram {

/// A gradient's sum over all shards: of all numbers everywhere, or of every process's own part (`recursive_halving`).
template <class Real>
struct summed_gradient {
    std::span<Real> numbers;
    processes* in_parts = nullptr;
};

/// The sum of the programs' gradients over all shards, in the first one's place; `each` neighbouring programs are a
/// shard, all of them the shards `mine`. Threads take parts of the numbers, whose order of summation is that of the
/// shards.
template <class Backend>
summed_gradient<typename Backend::real> sum_gradients(const std::vector<program<Backend>*>& programs, int each,
                                                      const shard_range& mine, thread_pool& pool, processes* others,
                                                      std::vector<typename Backend::real>& room) {
    using real = typename Backend::real;
    std::vector<std::span<real>> parts;
    for (auto* p : programs) parts.push_back(p->gradient());
    const bool whole = !others || in_even_subtrees(others->count(), mine.all);
    constexpr std::size_t chunk = 4096;  // of all programs, in a cache
    const std::size_t n = parts[0].size(), chunks = (n + chunk - 1) / chunk;
    if (parts.size() > 1)
        pool.run([&](int thread) {
            const auto at = static_cast<std::size_t>(thread), threads = static_cast<std::size_t>(pool.size());
            for (std::size_t c = chunks * at / threads; c < chunks * (at + 1) / threads; ++c) {
                const auto add = [&](int to, int from) {
                    auto* const sum = parts[static_cast<std::size_t>(to)].data();
                    const auto* const part = parts[static_cast<std::size_t>(from)].data();
                    for (std::size_t i = c * chunk; i < std::min(n, (c + 1) * chunk); ++i) sum[i] += part[i];
                };
                if (whole)
                    add_in_order(static_cast<int>(parts.size()), each, add);
                else
                    for (int s = 0; s < mine.count(); ++s)
                        for (int k = 1; k < each; ++k) add(s * each, s * each + k);
            }
        });
    if (!others) return {parts[0]};
    if (whole) {
        add_up_halves(*others, parts[0], room);
        return {parts[0], others};
    }
    std::vector<std::span<real>> shards;
    for (std::size_t s = 0; s < parts.size(); s += static_cast<std::size_t>(each)) shards.push_back(parts[s]);
    sum_from_shards(*others, mine, shards, room);
    return {parts[0]};
}

/// The gradients of one program, run several times before its weights are stepped.
template <class Backend>
class gradient_sum {
public:
    using real = typename Backend::real;

    explicit gradient_sum(program<Backend>& of) : held_(static_cast<std::size_t>(of.gradient_size())) {}

    /// Adds the program's gradient to what is held, or holds it alone.
    void hold(program<Backend>& p, bool alone) {
        const auto n = static_cast<std::ptrdiff_t>(held_.size());
        if (alone)
            p.executor().copy(p.device_gradient(), held_.data(), n);
        else
            add(p, p.device_gradient(), held_.data(), n);
    }
    /// Adds what is held to the program's gradient.
    void give(program<Backend>& p) {
        add(p, held_.data(), p.device_gradient(), static_cast<std::ptrdiff_t>(held_.size()));
    }

private:
    static void add(program<Backend>& p, const real* from, real* to, std::ptrdiff_t n) {
        if constexpr (device_backend<Backend>)
            p.executor().launch("hold gradient", n, add_number<real>{to, from});
        else
            for (std::ptrdiff_t i = 0; i < n; ++i) to[i] += from[i];
    }

    typename executor<Backend>::buffer held_;
};

/// Ends training, naming the first value of the programs that is not finite.
template <class Backend>
[[noreturn]] void refuse_update(std::int64_t step, const char* what, double number,
                                const std::vector<program<Backend>*>& programs, processes* others = nullptr) {
    std::string where;
    for (auto* p : programs)
        if (where.empty()) where = p->first_non_finite();
    where = first_text(others, where);
    const std::string sentence =
        message("training stopped at step ", step, ": the ", what, " is ", number,
                "; first non-finite value: ", where.empty() ? std::string("a gradient") : where);
    if (others) throw agreed_error(sentence);
    fail(sentence);
}

template <class Backend>
struct optimiser_of_backend {
    using type = optimiser<typename Backend::real>;
};
template <device_backend Backend>
struct optimiser_of_backend<Backend> {
    using type = device_optimiser<Backend>;
};
/// What changes the weights where they are: on the host or on a device.
template <class Backend>
using optimiser_of = typename optimiser_of_backend<Backend>::type;

/// Brings the weights that a device has changed into the store of its programs.
template <class Backend>
void fetch_weights(program<Backend>& from, parameters<typename Backend::real>& store) {
    if constexpr (device_backend<Backend>) from.device_weights_in_use().fetch(from.executor(), store);
}

/// The names of a program's losses.
template <class Backend>
std::vector<std::string> names_of_losses(const program<Backend>& p) {
    std::vector<std::string> names;
    for (const auto& loss : p.losses()) names.push_back(loss.first);
    return names;
}

}  // namespace engram
