#pragma once
// SPDX-License-Identifier: MIT

// Processes that train one model together (docs/decisions/0022). Each carries neighbouring shards of the run; what is
// summed over shards is summed in the order of the shards, whoever carries them, so a run has the same bits for any
// division of its shards over processes and threads.
//
// All processes make the same calls in the same order; letters alone go when there is something to say. One process
// alone is the default and calls nothing.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <engram/core/error.hpp>
#include <engram/kernels/optimiser.hpp>
#include <engram/train/shards.hpp>

namespace engram {

/// What carries numbers between the devices of processes (train/device_links.hpp).
struct between_devices {
    between_devices() = default;
    between_devices(const between_devices&) = delete;
    between_devices& operator=(const between_devices&) = delete;
    virtual ~between_devices() = default;
};

/// What a transport offers; `mpi_processes` in programs/ is one.
class processes {
public:
    processes() = default;
    processes(const processes&) = delete;
    processes& operator=(const processes&) = delete;
    virtual ~processes() = default;

    virtual int rank() const = 0;
    virtual int count() const = 0;
    /// Sends to and receives from one partner at the same time; either part may be empty.
    virtual void exchange(int partner, std::span<const std::byte> out, std::span<std::byte> in) = 0;
    /// The bytes of `root`, everywhere.
    virtual void broadcast(std::span<std::byte> what, int root) = 0;
    /// Everybody's bytes, everywhere, by rank.
    virtual std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine) = 0;

    /// Bytes of one process for another that neither waits for.
    struct letter {
        int from;
        std::vector<std::byte> content;
    };
    /// Sends one, and keeps it until it has gone. What carries none cannot have actors apart from the learner.
    virtual void post(int to, std::shared_ptr<const std::vector<std::byte>> what) {
        fail("this transport carries no letters: ", what->size(), " bytes for process ", to);
    }
    /// The next one that has come from anybody, those of each sender in the order in which they were sent; nothing when
    /// none has come yet.
    virtual std::optional<letter> take() { fail("this transport carries no letters"); }

    /// For a process that waits for what others do outside this transport, on their devices: to be called again and
    /// again, with `begins` for the first time. A transport that knows when a process hangs then ends the job.
    virtual void keep_watch(bool begins) { static_cast<void>(begins); }

    /// Between the devices on which they train; null: numbers go through the host.
    std::unique_ptr<between_devices> devices;
};

/// What a process does in a training that several carry.
enum class process_role { trains, learns, acts };
/// What a process that only acts is called for by the one that learns: nothing yet, its part of a checkpoint, or to go.
enum class process_call { none, checkpoint, over };

/// An error that all processes throw alike: one of them says it.
struct agreed_error : error {
    using error::error;
};

/// Shards first ... last - 1 of `all`.
struct shard_range {
    int first = 0, last = 0, all = 0;
    int count() const { return last - first; }
};

/// The shards that `rank` of `count` processes carries.
inline shard_range shards_of(int rank, int count, int all) {
    return {first_row(rank, count, all), first_row(rank + 1, count, all), all};
}

/// A text that only some processes have: the first one's that is not empty, everywhere.
inline std::string first_text(processes* all, const std::string& mine) {
    if (!all) return mine;
    for (const auto& text : all->gather(std::as_bytes(std::span(mine))))
        if (!text.empty()) return {reinterpret_cast<const char*>(text.data()), text.size()};
    return "";
}

/// Whether it is true of any process.
inline bool any_of_them(processes* all, bool mine) {
    return first_text(all, mine ? "1" : "").size() > 0;
}

/// Rows of numbers of every shard, in order, everywhere; `mine` are those of this process's shards.
inline std::vector<std::vector<double>> rows_of_all(processes* all, const std::vector<std::vector<double>>& mine) {
    if (!all) return mine;
    std::vector<double> flat;
    for (const auto& row : mine) {
        flat.push_back(static_cast<double>(row.size()));
        flat.insert(flat.end(), row.begin(), row.end());
    }
    std::vector<std::vector<double>> rows;
    for (const auto& sent : all->gather(std::as_bytes(std::span(flat)))) {
        std::vector<double> part(sent.size() / sizeof(double));
        if (!sent.empty()) std::memcpy(part.data(), sent.data(), sent.size());
        for (std::size_t at = 0; at < part.size();) {
            const auto size = static_cast<std::size_t>(part[at]);
            rows.emplace_back(part.begin() + static_cast<std::ptrdiff_t>(at + 1),
                              part.begin() + static_cast<std::ptrdiff_t>(at + 1 + size));
            at += 1 + size;
        }
    }
    return rows;
}

namespace internal {

template <class Real>
void add_numbers(std::span<Real> to, std::span<const Real> from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

}  // namespace internal

/// Whether every process carries one whole subtree of the same height, and there are 2, 4, 8, ... of them.
inline bool in_even_subtrees(int count, int shards) {
    const auto power_of_two = [](int n) { return (n & (n - 1)) == 0; };
    return shards % count == 0 && power_of_two(count) && power_of_two(shards / count);
}

/// How one subtree a process is summed, in even subtrees: partners exchange halves, quarters, ..., so that each process
/// adds up its own part of the numbers; then they may collect the parts. Numbers are cut where squared_norm() cuts
/// them, so a part is one subtree of the norm.
class recursive_halving {
public:
    recursive_halving(int rank, int processes, std::size_t numbers) : count_(numbers) {
        for (int apart = 1; apart < processes; apart *= 2) {
            const int partner = rank ^ apart;
            const auto lower = static_cast<std::size_t>(first_half(static_cast<std::ptrdiff_t>(count_)));
            const std::size_t upper = count_ - lower;
            if (rank < partner)
                turns_.push_back({partner, first_, lower, first_ + lower, upper});
            else
                turns_.push_back({partner, first_ + lower, upper, first_, lower});
            first_ = turns_.back().at, count_ = turns_.back().mine;
        }
    }

    /// The part of this process.
    std::size_t first() const { return first_; }
    std::size_t count() const { return count_; }
    /// The most numbers that come at a time while parts are added up.
    std::size_t most() const { return turns_.empty() ? 0 : turns_.front().mine; }

    /// add(partner, away, theirs, at, mine) sends `theirs` numbers from place `away` and adds the `mine` that come from
    /// place `at` on. The subtree with the lower shards comes first; a sum of two is the same either way.
    template <class Add>
    void add_up(Add add) const {
        for (const turn& t : turns_) add(t.partner, t.away, t.theirs, t.at, t.mine);
    }
    /// collect(partner, at, mine, away, theirs) sends those and receives these.
    template <class Collect>
    void collect(Collect collect) const {
        for (std::size_t k = turns_.size(); k-- > 0;)
            collect(turns_[k].partner, turns_[k].at, turns_[k].mine, turns_[k].away, turns_[k].theirs);
    }
    /// The sum of one number of every part, by rank, in the tree of squared_norm().
    template <class Real>
    static Real sum_of_parts(std::vector<Real> of_part) {
        for (std::size_t apart = of_part.size() / 2; apart > 0; apart /= 2)
            for (std::size_t r = 0; r < apart; ++r) of_part[r] += of_part[r + apart];
        return of_part.front();
    }

private:
    struct turn {
        int partner;
        std::size_t at, mine, away, theirs;
    };
    std::vector<turn> turns_;
    std::size_t first_ = 0, count_;
};

/// How the sum over all shards goes up the tree of train/shards.hpp to the first process: add(to, from) of shards of
/// this process, `add_theirs(to, process)` of what that one sends, `send(from, process)`.
template <class Add, class AddTheirs, class Send>
void up_the_tree(int processes, const shard_range& mine, Add add, AddTheirs add_theirs, Send send) {
    const auto own = [&](int shard) { return shard >= mine.first && shard < mine.last; };
    const auto carrier = [&](int shard) {
        int rank = 0;
        while (shard >= shards_of(rank, processes, mine.all).last) ++rank;
        return rank;
    };
    add_in_order(mine.all, 1, [&](int to, int from) {
        if (own(to) && own(from))
            add(to - mine.first, from - mine.first);
        else if (own(to))
            add_theirs(to - mine.first, carrier(from));
        else if (own(from))
            send(from - mine.first, carrier(to));
    });
}

/// The sum of one subtree a process, in even subtrees: each process has its own part of it.
template <class Real>
void add_up_halves(processes& all, std::span<Real> values, std::vector<Real>& room) {
    const recursive_halving by(all.rank(), all.count(), values.size());
    room.resize(by.most());
    by.add_up([&](int partner, std::size_t away, std::size_t theirs, std::size_t at, std::size_t mine) {
        const std::span<Real> got = std::span(room).first(mine);
        all.exchange(partner, std::as_bytes(values.subspan(away, theirs)), std::as_writable_bytes(got));
        internal::add_numbers(values.subspan(at, mine), std::span<const Real>(got));
    });
}
/// Everybody's own part, everywhere.
template <class Real>
void collect_halves(processes& all, std::span<Real> values) {
    recursive_halving(all.rank(), all.count(), values.size())
        .collect([&](int partner, std::size_t at, std::size_t mine, std::size_t away, std::size_t theirs) {
            all.exchange(partner, std::as_bytes(values.subspan(at, mine)),
                         std::as_writable_bytes(values.subspan(away, theirs)));
        });
}
/// The sum of one subtree a process, everywhere, in even subtrees.
template <class Real>
void sum_by_halves(processes& all, std::span<Real> values, std::vector<Real>& room) {
    add_up_halves(all, values, room);
    collect_halves(all, values);
}

/// The sum over all shards of the run in the tree of train/shards.hpp, everywhere; parts[k] are the numbers of shard
/// mine.first + k, and parts[0] becomes the sum.
template <class Real>
void sum_from_shards(processes& all, const shard_range& mine, const std::vector<std::span<Real>>& parts,
                     std::vector<Real>& room) {
    const auto part = [&](int k) { return parts[static_cast<std::size_t>(k)]; };
    room.resize(parts[0].size());
    up_the_tree(
        all.count(), mine,
        [&](int to, int from) { internal::add_numbers(part(to), std::span<const Real>(part(from))); },
        [&](int to, int process) {
            all.exchange(process, {}, std::as_writable_bytes(std::span(room)));
            internal::add_numbers(part(to), std::span<const Real>(room));
        },
        [&](int from, int process) { all.exchange(process, std::as_bytes(part(from)), {}); });
    all.broadcast(std::as_writable_bytes(parts[0]), 0);
}

}  // namespace engram
