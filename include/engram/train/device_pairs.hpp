#pragma once
// SPDX-License-Identifier: MIT

// The pairs of a MemUP rollout (train/memup_rollout.hpp) on a device: what their rows are is copied from the programs
// that computed it, and their gradients are summed where it came from, without a number passing through the host.
//
//   list      for each pair q B + b the step of row b that it reads of a source [T, B, F], or -1: it reads none
//   gather    pair [P, B, F] <- source[step, b]
//   scatter   gradient of the source[t, b] <- sum of the gradients of the pairs whose step is t, in their order
//
// The host chooses the pairs, since it is a search through a few numbers a row, and sends the lists: four integers a
// pair. A thread of a scatter owns one number of the source and goes through all P pairs of its row, so that the sum
// has one order; P is some tens to some hundreds.

#include <span>

#include <engram/device/kernel.hpp>

namespace engram {

namespace internal {

/// Row b of step step[q B + b] into pair q B + b. A pair that reads none becomes zero, or stays where `others_stay`.
template <class Real>
struct gather_pairs {
    const int* step;
    operand<Real> from, to;
    int rows;
    bool others_stay;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t pair = i / to.width, f = i % to.width, b = pair % rows, q = pair / rows;
        const std::ptrdiff_t t = step[pair];
        if (t < 0 && others_stay) return;
        to.data[q * to.step + b * to.stride + f] = t < 0 ? Real(0) : from.data[t * from.step + b * from.stride + f];
    }
};

/// The sum of the gradients of the pairs that read a number.
template <class Real>
struct scatter_pairs {
    const int* step;
    operand<Real> from, to;
    int rows, pairs;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t f = i % to.width, b = i / to.width % rows, t = i / to.width / rows;
        Real sum = 0;
        for (int q = 0; q < pairs; ++q)
            if (step[std::ptrdiff_t{q} * rows + b] == t) sum += from.data[q * from.step + b * from.stride + f];
        to.data[t * to.step + b * to.stride + f] = sum;
    }
};

/// Steps of the rows that are marked from one place to another one: both [T, B, F], as operands say.
template <class Real>
struct keep_steps {
    const int* marked;  // [B]
    operand<Real> from, to;
    int rows, first;  // the step of `to` that the first one of `from` is
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t f = i % to.width, b = i / to.width % rows, t = i / to.width / rows;
        if (marked[b])
            to.data[(first + t) * to.step + b * to.stride + f] = from.data[t * from.step + b * from.stride + f];
    }
};

/// to += by (from - to): moving averages.
template <class Real>
struct follow_number {
    Real* to;
    const Real* from;
    Real by;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const { to[i] += by * (from[i] - to[i]); }
};

}  // namespace internal

/// The primary template serves the host, whose rollouts gather and scatter themselves.
template <class Backend>
struct device_pairs {
    device_pairs(int, int) {}
};

template <device_backend Backend>
class device_pairs<Backend> {
public:
    using real = typename Backend::real;
    static constexpr int lists = 4;

    /// `count` pairs of each of `rows` rows.
    device_pairs(int count, int rows)
        : count_(count), rows_(rows), step_(static_cast<std::size_t>(lists) * static_cast<std::size_t>(count * rows)) {}

    /// All lists, one after the other [4, P, B]; waits.
    void send(executor<Backend>& on, std::span<const int> steps) {
        on.upload_bytes(steps.data(), step_.data(), steps.size_bytes());
    }
    void gather(executor<Backend>& on, int list, const operand<real>& from, const operand<real>& to, bool others_stay) {
        on.launch("pairs", std::ptrdiff_t{count_} * rows_ * to.width,
                  internal::gather_pairs<real>{at(list), from, to, rows_, others_stay});
    }
    /// Into `steps` steps of the source's gradient.
    void scatter(executor<Backend>& on, int list, const operand<real>& from, const operand<real>& to, int steps) {
        on.launch("pairs", std::ptrdiff_t{steps} * rows_ * to.width,
                  internal::scatter_pairs<real>{at(list), from, to, rows_, count_});
    }
    /// What `on` is given next sees what `from` was given so far.
    void order(executor<Backend>& from, executor<Backend>& on) {
        ran_.record(from);
        ran_.await(on);
    }

private:
    const int* at(int list) const { return step_.data() + std::ptrdiff_t{list} * count_ * rows_; }

    int count_, rows_;
    typename executor<Backend>::template array<int> step_;
    typename executor<Backend>::fence ran_;
};

}  // namespace engram
