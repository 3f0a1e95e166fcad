// SPDX-License-Identifier: MIT

// A resettable linear recurrence of columns, s' = keep s + take, on a CUDA device, forward: as a chain (one launch, a
// thread a column and row that goes through the steps), step by step (a launch a step, in a recorded graph), and by
// Thrust's inclusive_scan_by_key over all columns at once, with
//
//   (k1, a1) . (k2, a2) = (k1 k2, k2 a1 + a2),   k = 0 where an episode begins.
//
// Inputs lie on the device. Which of them is least depends on how many columns there are beside how many steps
// (docs/decisions/0041). The numbers are compared first.

#include "timing.cuh"

#include <cmath>

#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/scan.h>

#include <engram/graph/scan.hpp>
#include <engram/model/slots.hpp>

// Not brought in by a using directive: Thrust has a namespace `cuda` of its own.
namespace engram {
namespace {

using backend = cuda<float>;

struct keep_and_take {
    constexpr auto operator()(auto keep, auto take, auto s) const { return keep * s + take; }
};
template <class Var>
struct carried {
    BOOST_HANA_DEFINE_STRUCT(carried, (Var, memory));
};

/// What a step does to what is carried.
struct lifted {
    float keep, take;
};
struct then {
    ENGRAM_HD lifted operator()(lifted first, lifted second) const {
        return {first.keep * second.keep, second.keep * first.take + second.take};
    }
};
/// Columns lie one behind the other here, each with its T steps; in memory steps do.
struct step_first {
    int steps;
    std::ptrdiff_t points;
    ENGRAM_HD std::ptrdiff_t operator()(std::ptrdiff_t i) const { return i % steps * points + i / steps; }
};
struct column_of {
    int steps;
    ENGRAM_HD std::ptrdiff_t operator()(std::ptrdiff_t i) const { return i / steps; }
};
struct lift {
    const float *keep, *take, *reset;
    step_first place;
    int columns;
    ENGRAM_HD lifted operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t at = place(i);
        return {reset[at / columns] > 0.5f ? 0.0f : keep[at], take[at]};
    }
};

void compare(int T, int B, int F) {
    auto store = std::make_shared<parameters<float>>(1);
    graph<backend> g(store);
    const auto keep = g.input("keep", F), take = g.input("take", F), reset = g.input("reset", 1);
    const auto y = scan(g, carried<var<backend>>{g.own_state("memory", F)}, [&](auto& now) {
        reset_rows(now, reset);
        return now.memory = map("memory", keep_and_take{}, keep, take, now.memory);
    });
    plan_options options{.steps = T, .batch = B};
    program<backend> chain(g, store, options, {y});
    options.hoist = false;
    program<backend> steps(g, store, options, {y});
    philox random(1, 1);
    const auto drawn = [&](int width, auto draw) {
        std::vector<float> numbers(static_cast<std::size_t>(T) * B * width);
        for (float& v : numbers) v = draw();
        return numbers;
    };
    const auto keeps = drawn(F, [&] { return 0.9f + 0.1f * random.uniform(); });
    const auto takes = drawn(F, [&] { return random.normal(); });
    const auto resets = drawn(1, [&] { return random.uniform() < 0.02f ? 1.0f : 0.0f; });
    for (auto* const p : {&chain, &steps}) {
        // Inputs that the host has not asked for are not sent before every sweep.
        p->executor().upload(keeps.data(), p->on_device(keep).data, std::ssize(keeps));
        p->executor().upload(takes.data(), p->on_device(take).data, std::ssize(takes));
        p->executor().upload(resets.data(), p->on_device(reset).data, std::ssize(resets));
        p->forward();
        p->executor().wait();
    }

    const std::ptrdiff_t points = std::ptrdiff_t{B} * F, all = points * T;
    const lift of{chain.on_device(keep).data, chain.on_device(take).data, chain.on_device(reset).data, {T, points}, F};
    thrust::device_vector<lifted> scanned(static_cast<std::size_t>(all));
    const auto index = thrust::make_counting_iterator(std::ptrdiff_t{0});
    const auto keys = thrust::make_transform_iterator(index, column_of{T});
    const auto values = thrust::make_transform_iterator(index, of);
    const auto to = thrust::make_permutation_iterator(scanned.begin(),
                                                      thrust::make_transform_iterator(index, step_first{T, points}));
    const auto scan_by_key = [&] {
        thrust::inclusive_scan_by_key(thrust::device, keys, keys + all, values, to, thrust::equal_to<std::ptrdiff_t>{},
                                      then{});
    };
    scan_by_key();
    std::vector<lifted> found(static_cast<std::size_t>(all));
    thrust::copy(scanned.begin(), scanned.end(), found.begin());
    const auto shown = chain.output(y), stepped = steps.output(y);
    float worst = 0;
    bool same = true;
    for (std::ptrdiff_t i = 0; i < all; ++i) {
        worst = std::max(worst, std::abs(shown.data[i] - found[static_cast<std::size_t>(i)].take));
        same &= shown.data[i] == stepped.data[i];
    }
    require(same && worst < 1e-3f, "recurrence: the chain and steps ", same ? "agree" : "do not agree",
            "; a scan differs by ", worst);

    const std::string what = message("T ", T, ", ", B, " x ", F, " columns: ");
    for (auto* const p : {&chain, &steps})
        gpu_benchmark::line(what + (p == &chain ? "chain" : "steps"),
                            gpu_benchmark::microseconds(
                                20, [&] { p->executor().wait(); }, [&] { p->forward(); }),
                            "us");
    gpu_benchmark::line(what + "inclusive_scan_by_key",
                        gpu_benchmark::microseconds(
                            20, [] { cudaDeviceSynchronize(); }, scan_by_key),
                        "us");
}

}  // namespace
}  // namespace engram

int main() {
    return gpu_benchmark::run([] {
        for (const int T : {64, 1024})
            for (const auto& [B, F] : {std::pair{16, 128}, std::pair{64, 256}, std::pair{256, 512}})
                if (std::ptrdiff_t{T} * B * F <= std::ptrdiff_t{1} << 26) engram::compare(T, B, F);
    });
}
