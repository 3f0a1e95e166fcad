#pragma once
// SPDX-License-Identifier: MIT

// Numbers between the devices of processes, without the host (docs/decisions/0023): what a link moves, and the sums
// that are made of it in the order of the shards. A link only carries. Every sum of two is a kernel of this library, so
// the bits are those of the host's sums whatever the link.
//
// A process that waits for its device waits for others' devices too; it calls look() meanwhile.

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include <engram/device/executor.hpp>
#include <engram/train/processes.hpp>

namespace engram {

/// What carries numbers between devices, on the stream of an executor, and may be recorded with the rest of a sweep.
/// All processes make the same calls in the same order.
template <class Backend>
class device_links : public between_devices {
public:
    using real = typename Backend::real;

    /// Sends to and receives from one partner at the same time; either part may be empty.
    virtual void exchange(executor<Backend>& on, int partner, const real* out, std::ptrdiff_t n, real* in,
                          std::ptrdiff_t m) = 0;
    /// The numbers of `root`, everywhere.
    virtual void broadcast(executor<Backend>& on, real* what, std::ptrdiff_t n, int root) = 0;
    /// Again and again while a process waits for its device; throws, or ends the job, when that is in vain.
    virtual void look(bool begins) = 0;
};

/// to[i] += from[i].
template <class Real>
struct add_number {
    Real* to;
    const Real* from;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const { to[i] += from[i]; }
};

/// sum_by_halves() of train/processes.hpp on a device. `room`: for as many numbers as come at a time.
template <class Backend>
void sum_by_halves(const processes& all, device_links<Backend>& links, executor<Backend>& on,
                   typename Backend::real* values, std::ptrdiff_t count, typename Backend::real* room) {
    using real = typename Backend::real;
    const auto number = [](std::size_t n) { return static_cast<std::ptrdiff_t>(n); };
    const recursive_halving by(all.rank(), all.count(), static_cast<std::size_t>(count));
    by.add_up([&](int partner, std::size_t away, std::size_t theirs, std::size_t at, std::size_t mine) {
        links.exchange(on, partner, values + away, number(theirs), room, number(mine));
        on.launch("sum", number(mine), add_number<real>{values + at, room});
    });
    by.collect([&](int partner, std::size_t at, std::size_t mine, std::size_t away, std::size_t theirs) {
        links.exchange(on, partner, values + at, number(mine), values + away, number(theirs));
    });
}
/// sum_from_shards() of train/processes.hpp on a device. `room`: for all of the numbers.
template <class Backend>
void sum_from_shards(const processes& all, device_links<Backend>& links, executor<Backend>& on, const shard_range& mine,
                     const std::vector<typename Backend::real*>& parts, std::ptrdiff_t count,
                     typename Backend::real* room) {
    using real = typename Backend::real;
    const auto part = [&](int k) { return parts[static_cast<std::size_t>(k)]; };
    up_the_tree(
        all.count(), mine,
        [&](int to, int from) {
            on.launch("sum", count, add_number<real>{part(to), part(from)});
        },
        [&](int to, int process) {
            links.exchange(on, process, nullptr, 0, room, count);
            on.launch("sum", count, add_number<real>{part(to), room});
        },
        [&](int from, int process) { links.exchange(on, process, part(from), count, nullptr, 0); });
    links.broadcast(on, parts[0], count, 0);
}

/// Emulated devices: their numbers are the host's, and so is what carries them.
template <class Real>
class emulated_links final : public device_links<emulated<Real>> {
public:
    explicit emulated_links(processes& others) : others_(&others) {}

    void exchange(executor<emulated<Real>>& on, int partner, const Real* out, std::ptrdiff_t n, Real* in,
                  std::ptrdiff_t m) override {
        on.call([=, this](std::nullptr_t) {
            others_->exchange(partner, std::as_bytes(std::span(out, static_cast<std::size_t>(n))),
                              std::as_writable_bytes(std::span(in, static_cast<std::size_t>(m))));
        });
    }
    void broadcast(executor<emulated<Real>>& on, Real* what, std::ptrdiff_t n, int root) override {
        on.call([=, this](std::nullptr_t) {
            others_->broadcast(std::as_writable_bytes(std::span(what, static_cast<std::size_t>(n))), root);
        });
    }
    void look(bool begins) override { others_->keep_watch(begins); }

private:
    processes* others_;
};

/// Whether no two processes say the same of their device.
inline bool one_device_each(processes& all, std::span<const std::byte> own) {
    const auto names = all.gather(own);
    for (std::size_t i = 0; i < names.size(); ++i)
        for (std::size_t k = 0; k < i; ++k)
            if (names[i] == names[k]) return false;
    return true;
}

}  // namespace engram
