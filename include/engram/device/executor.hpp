#pragma once
// SPDX-License-Identifier: MIT

// Executors: what runs the kernels of a device backend, and the executor that emulates a device on the host.
//
// A device kernel is a trivially copyable functor with an ENGRAM_HD call operator, in one of two forms:
//
//   grid    void operator()(std::ptrdiff_t i) const            one thread for each i in [0, count)
//   block   void operator()(Block& block, int index) const     `lanes` threads and a scratch of numbers for each index
//
// A block kernel is written in phases: block.each(phase) calls phase(lane) for every lane, and all lanes have ended it
// before the next one begins. What a lane leaves for a later phase lies in block.scratch or in memory; a local variable
// may only hold what is equal for all lanes. Threads of a grid, blocks of a launch and lanes of a phase come in no
// order, so none may read what another one writes. The emulation runs them in an order that can be chosen: a kernel
// whose bits depend on it is wrong (tests/device/engine.cpp).
//
// An executor also moves numbers and multiplies matrices, where a library does so on a device. Every call names the
// operation on whose behalf it is made; errors name both.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <engram/core/aligned.hpp>
#include <engram/core/device.hpp>
#include <engram/core/error.hpp>
#include <engram/device/emulated_memory.hpp>
#include <engram/device/host_windows.hpp>
#include <engram/graph/kernel.hpp>

namespace engram {

/// y[m, n] (+)= op(a)[m, k] op(b)[k, n], all row-major; `stride` counts numbers from row to row as they are stored.
template <class Real>
struct matrix_operand {
    const Real* data;
    std::ptrdiff_t stride;
    bool transposed = false;
};

/// Threads of a block kernel: F::lanes. Reductions depend on it, so it is the same on every executor.
template <class Functor>
inline constexpr int lanes_of = Functor::lanes;

/// Order in which an emulation runs what has no order.
enum class thread_order { ascending, descending, scrambled };

/// All indices below a count: `first`, and always `step` further, around the end to the start.
struct index_walk {
    std::ptrdiff_t first, step;
};
/// Where `order` begins among `count` indices, and how it goes on.
inline index_walk walk_in(thread_order order, std::ptrdiff_t count) {
    if (order == thread_order::ascending) return {0, 1};
    if (order == thread_order::descending) return {count - 1, count - 1};
    std::ptrdiff_t step = count / 3 + 1;  // without a common divisor it comes to every index once
    while (std::gcd(step, count) != 1) ++step;
    return {0, step};
}

/// The primary template serves the host backend, whose operations are called instead of launched.
template <class Backend>
class executor {
public:
    using real = typename Backend::real;
    template <class T>
    using array = aligned_vector<T>;
    using buffer = array<real>;  // numbers where kernels read them
    struct fence {};

    static void clear(real* at, std::ptrdiff_t count) { std::memset(at, 0, sizeof(real) * std::size_t(count)); }
    static void copy(const real* from, real* to, std::ptrdiff_t count) {
        std::memcpy(to, from, sizeof(real) * std::size_t(count));
    }
};

/// A block of an emulated launch: lanes are iterations of a loop, a phase ends when the loop does.
template <class Real, int Lanes>
class emulated_block {
public:
    using real = Real;
    static constexpr int lanes = Lanes;

    emulated_block(Real* s, index_walk walk)
        : scratch(s), first_(static_cast<int>(walk.first)), step_(static_cast<int>(walk.step)) {}

    /// constexpr, since nvcc also checks this one for the device.
    template <class Phase>
    constexpr void each(Phase phase) {
        for (int i = 0, lane = first_; i < Lanes; ++i, lane = (lane + step_) % Lanes) phase(lane);
    }

    Real* const scratch;

private:
    int first_, step_;
};

/// Makes `known` the addresses of `resources`; tells whether it already was.
template <class Resources>
bool same_resources(std::vector<const void*>& known, const Resources& resources) {
    std::vector<const void*> now;
    for (const auto& r : resources) now.push_back(r.get());
    return std::exchange(known, now) == now;
}

/// Everything that a stream of a device would do, done at once; a captured sweep is a list of what to do.
template <class Real>
class executor<emulated<Real>> {
public:
    using real = Real;
    /// Memory of the device.
    template <class T>
    using array = emulated_vector<T>;
    using buffer = array<Real>;
    /// Lets one executor wait for what another one was given.
    struct fence {
        void record(executor&) {}
        void await(executor&) {}
    };

    thread_order order = thread_order::ascending;

    // --- memory ---
    void clear(Real* at, std::ptrdiff_t count) {
        issue([=] { std::fill_n(at, count, Real(0)); });
    }
    void copy(const Real* from, Real* to, std::ptrdiff_t count) {
        issue([=] { std::copy_n(from, count, to); });
    }
    void upload(const Real* host, Real* device, std::ptrdiff_t count) { copy(host, device, count); }
    void download(const Real* device, Real* host, std::ptrdiff_t count) { copy(device, host, count); }
    /// The same for anything else that is trivially copyable; waits.
    void upload_bytes(const void* host, void* device, std::size_t count) { std::memcpy(device, host, count); }
    void download_bytes(const void* device, void* host, std::size_t count) { std::memcpy(host, device, count); }

    // --- windows of the host (host_windows.hpp) ---
    std::span<Real> input(Real* device, std::ptrdiff_t count) { return windows_.input(device, count); }
    std::span<Real> fetched(Real* device, std::ptrdiff_t count, bool writes) {
        return windows_.fetched(*this, device, count, writes);
    }
    void send_written() { windows_.send(*this, false); }
    /// Sends what the host has filled, and the number of this replay.
    void send(std::uint64_t replays) {
        windows_.send(*this);
        counter_ = replays;
    }
    const std::uint64_t* counter() const { return &counter_; }
    /// Goes on to the number of the next replay.
    void count_replay() {
        issue([this] { ++counter_; });
    }

    // --- numbers and alarms of kernels ---
    /// A number that kernels add to; zero when a sweep begins.
    double* scalar() { return &scalars_.emplace_back(0.0); }
    void clear_scalars() {
        issue([this] { std::fill(scalars_.begin(), scalars_.end(), 0.0); });
    }
    double fetch(const double* scalar) { return *scalar; }
    /// A word that a kernel sets to say `what` is wrong with its numbers, since it cannot throw; wait() does.
    int* alarm(const std::string& what) {
        alarms_.push_back({what, 0});
        return &alarms_.back().raised;
    }
    /// As wait(), where that takes no time.
    void check() { wait(); }
    void wait() {
        if (look_) look_(true);
        for (auto& a : alarms_)
            if (std::exchange(a.raised, 0)) fail(a.what);
    }

    // --- kernels and products ---
    /// One thread for each of `count` indices.
    template <class Functor>
    void launch(const std::string&, std::ptrdiff_t count, const Functor& functor) {
        static_assert(std::is_trivially_copyable_v<Functor>, "launch: a device kernel is copied as bytes");
        issue([=, this] {
            ++launches_;
            each(count, [&](std::ptrdiff_t i) { functor(i); });
        });
    }

    /// A block of Functor::lanes threads with a scratch of `scratch` numbers for each of `count` indices.
    template <class Functor>
    void launch_blocks(const std::string& who, std::ptrdiff_t count, int scratch, const Functor& functor) {
        static_assert(std::is_trivially_copyable_v<Functor>, "launch: a device kernel is copied as bytes");
        constexpr int lanes = lanes_of<Functor>;
        static_assert((lanes & (lanes - 1)) == 0, "launch: the lanes of a block are a power of two");
        require(scratch >= 0, who, ": a block with a scratch of ", scratch, " numbers was asked for");
        issue([=, this] {
            ++launches_;
            aligned_vector<Real> numbers(std::size_t(scratch) + 1);
            const auto walk = walk_in(order, lanes);
            each(count, [&](std::ptrdiff_t i) {
                // What a block finds in its scratch is arbitrary.
                std::fill(numbers.begin(), numbers.end(), std::numeric_limits<Real>::quiet_NaN());
                emulated_block<Real, lanes> block(numbers.data(), walk);
                functor(block, static_cast<int>(i));
            });
        });
    }

    void product(const std::string& who, matrix_operand<Real> a, matrix_operand<Real> b, bool accumulate, Real* y,
                 std::ptrdiff_t y_stride, int m, int n, int k) {
        products(who, 1, a, 0, b, 0, accumulate, y, y_stride, 0, m, n, k);
    }
    /// `count` products of one shape; those of a, b and y lie the given numbers apart.
    void products(const std::string&, int count, matrix_operand<Real> a, std::ptrdiff_t a_apart, matrix_operand<Real> b,
                  std::ptrdiff_t b_apart, bool accumulate, Real* y, std::ptrdiff_t y_stride, std::ptrdiff_t y_apart,
                  int m, int n, int k) {
        issue([=, this] {
            ++launches_;
            for (int i = 0; i < count; ++i)
                multiply({a.data + i * a_apart, a.stride, a.transposed}, {b.data + i * b_apart, b.stride, b.transposed},
                         accumulate, y + i * y_apart, y_stride, m, n, k);
        });
    }

    /// Kernels and products that a device would have run so far; copies and clears do not count.
    std::int64_t launches() const { return launches_; }

    // --- what others do on the stream, or have to be asked for ---
    /// call(stream): what a library puts on the stream of a device, here a null pointer.
    template <class Call>
    void call(const Call& call) {
        issue([call] { call(nullptr); });
    }
    /// Is called again and again, the first time with true, while the host waits for the device.
    void watch(std::function<void(bool)> look) { look_ = std::move(look); }

    // --- replays ---
    /// Runs `body`, from the second time on as a list of what it does, as long as it touches the same `resources`.
    template <class Resources, class Body>
    void replay(int sweep, const Resources& resources, Body body) {
        recorded& r = replays_[sweep];
        if (!same_resources(r.resources, resources)) {
            r.list.clear();
            r.runs = 0;
        }
        if (r.runs++ == 0) return body();
        if (r.list.empty()) {
            recording_ = &r.list;
            body();
            recording_ = nullptr;
        }
        for (const issued& one : r.list) one.run(one.call.data());
    }
    /// What sweeps do has changed: they are run again before they are replayed.
    void forget() {
        for (auto& r : replays_) r = {};
    }

private:
    static constexpr int sweeps = 5;  // forward, backward, update, a caller's own, what shards add up

    struct named_alarm {
        std::string what;
        int raised;
    };
    /// A call as bytes: a std::function of each would be three functions more a kernel for the compiler.
    struct issued {
        void (*run)(const void*);
        aligned_vector<std::byte> call;
    };
    struct recorded {
        std::vector<issued> list;
        int runs = 0;
        std::vector<const void*> resources;
    };

    template <class Call>
    void issue(const Call& call) {
        static_assert(std::is_trivially_copyable_v<Call>);
        issue([](const void* at) { (*static_cast<const Call*>(at))(); }, &call, sizeof(Call));
    }
    void issue(void (*run)(const void*), const void* call, std::size_t size) {
        if (!recording_) return run(call);
        const auto* from = static_cast<const std::byte*>(call);
        recording_->push_back({run, {from, from + size}});
    }

    template <class Body>
    void each(std::ptrdiff_t count, Body body) const {
        const auto [first, step] = walk_in(order, count);
        for (std::ptrdiff_t left = count, i = first; left > 0; --left) {
            body(i);
            if ((i += step) >= count) i -= count;
        }
    }

    static void multiply(matrix_operand<Real> a, matrix_operand<Real> b, bool accumulate, Real* y,
                         std::ptrdiff_t y_stride, int m, int n, int k) {
        for (int i = 0; i < m; ++i)
            for (int c = 0; c < n; ++c) {
                Real& to = y[i * y_stride + c];
                Real sum = accumulate ? to : Real(0);
                for (int j = 0; j < k; ++j)
                    sum = std::fma(a.transposed ? a.data[j * a.stride + i] : a.data[i * a.stride + j],
                                   b.transposed ? b.data[c * b.stride + j] : b.data[j * b.stride + c], sum);
                to = sum;
            }
    }

    host_windows<Real, std::vector<Real>> windows_;
    std::uint64_t counter_ = 0;
    std::int64_t launches_ = 0;
    std::function<void(bool)> look_;
    std::deque<double> scalars_;
    std::deque<named_alarm> alarms_;
    recorded replays_[sweeps];
    std::vector<issued>* recording_ = nullptr;
};

/// The sum of term(i) for i in [0, count), the same for every lane: each lane adds up every lanes-th term, then halves
/// of the lanes are added to each other. Uses scratch [lanes]; term is called once for every i.
template <class Block, class Term>
ENGRAM_HD typename Block::real block_sum(Block& block, int count, Term term) {
    using real = typename Block::real;
    real* const partial = block.scratch;
    block.each([=](int lane) {
        real sum = 0;
        for (int i = lane; i < count; i += Block::lanes) sum += term(i);
        partial[lane] = sum;
    });
    for (int half = Block::lanes / 2; half > 0; half /= 2)
        block.each([=](int lane) {
            if (lane < half) partial[lane] += partial[lane + half];
        });
    const real total = partial[0];
    block.each([](int) {});  // all have read it before the scratch is used again
    return total;
}

/// The largest of term(i); -infinity of nothing. NaN wins.
template <class Block, class Term>
ENGRAM_HD typename Block::real block_max(Block& block, int count, Term term) {
    using real = typename Block::real;
    real* const partial = block.scratch;
    const auto larger = [](real a, real b) { return b > a || b != b ? b : a; };
    block.each([=](int lane) {
        real top = -std::numeric_limits<real>::infinity();
        for (int i = lane; i < count; i += Block::lanes) top = larger(top, term(i));
        partial[lane] = top;
    });
    for (int half = Block::lanes / 2; half > 0; half /= 2)
        block.each([=](int lane) {
            if (lane < half) partial[lane] = larger(partial[lane], partial[lane + half]);
        });
    const real top = partial[0];
    block.each([](int) {});
    return top;
}

/// Calls body(i) for i in [0, count), each by one lane.
template <class Block, class Body>
ENGRAM_HD void block_for(Block& block, int count, Body body) {
    block.each([=](int lane) {
        for (int i = lane; i < count; i += Block::lanes) body(i);
    });
}

/// to = by, or to += by: how gradients are given.
template <class Real>
ENGRAM_HD void give(Real& to, bool accumulate, Real by) {
    to = accumulate ? to + by : by;
}

/// One more replay.
struct count_up {
    std::uint64_t* count;
    ENGRAM_HD void operator()(std::ptrdiff_t) const { ++*count; }
};

/// Rows of one operand into another, at their first step.
template <class Real>
struct row_copy {
    operand<Real> from, to;
    bool add;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / from.width, column = i % from.width;
        give(to.data[row * to.stride + column], add, from.data[row * from.stride + column]);
    }
};

/// to (+)= from over `rows` rows: how states enter a time loop and their gradients leave it.
template <class Backend, class Real>
void send_rows(executor<Backend>& on, const operand<Real>& from, const operand<Real>& to, int rows, bool add) {
    if constexpr (device_backend<Backend>) {
        on.launch("scan", std::ptrdiff_t{rows} * from.width, row_copy<Real>{from, to, add});
    } else {
        for (int r = 0; r < rows; ++r)
            for (int f = 0; f < from.width; ++f) give(to.data[r * to.stride + f], add, from.data[r * from.stride + f]);
    }
}

}  // namespace engram
