#pragma once
// SPDX-License-Identifier: MIT

// What every trainer does with the gradients of an update: they are summed over the programs that share a store, in the
// order of the programs, so that a run repeats its bits; an update with a number that is not finite is refused with one
// sentence, before the weights change; losses are added up for the metrics.

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <engram/core/error.hpp>
#include <engram/graph/program.hpp>
#include <engram/train/device_optimiser.hpp>
#include <engram/train/optimiser.hpp>

namespace engram {

/// Throws the sentence with which training ends at a number that is not finite; `where` is the value it came from.
[[noreturn]] inline void stop_training(std::int64_t step, const char* what, double number, const std::string& where) {
    fail("training stopped at step ", step, ": the ", what, " is ", number,
         "; first non-finite value: ", where.empty() ? std::string("a gradient") : where);
}

/// The first program's gradient after those of the others were added to it.
template <class Backend>
std::span<typename Backend::real> sum_gradients(const std::vector<program<Backend>*>& programs) {
    const auto total = programs[0]->gradient();
    for (std::size_t i = 1; i < programs.size(); ++i) {
        const auto part = programs[i]->gradient();
        for (std::size_t j = 0; j < total.size(); ++j) total[j] += part[j];
    }
    return total;
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

/// The loss, added up over the programs.
template <class Backend>
double sum_losses(const std::vector<program<Backend>*>& programs) {
    double loss = 0;
    for (auto* p : programs) loss += p->loss();
    return loss;
}

/// Ends training, naming the first value of the programs that is not finite.
template <class Backend>
[[noreturn]] void refuse_update(std::int64_t step, const char* what, double number,
                                const std::vector<program<Backend>*>& programs) {
    std::string where;
    for (auto* p : programs)
        if (where.empty()) where = p->first_non_finite();
    stop_training(step, what, number, where);
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

/// One step by the sum of the programs' gradients, wherever they are; waits for a device. Returns the norm of the
/// gradient; unless that is finite nothing changes.
template <class Backend>
double step_weights(optimiser_of<Backend>& by, parameters<typename Backend::real>& store, double progress,
                    const std::vector<program<Backend>*>& programs) {
    if constexpr (!device_backend<Backend>) {
        return by.update(store, sum_gradients(programs), progress);
    } else {
        by.update(programs, progress);
        const double norm = by.norm(programs[0]->executor());
        if (!std::isfinite(norm)) --by.updates();
        return norm;
    }
}

/// The same, and throws, leaving the weights as they were, unless the norm and the loss are finite.
template <class Backend>
double update_weights(optimiser_of<Backend>& by, parameters<typename Backend::real>& store, double loss,
                      std::int64_t step, double progress, const std::vector<program<Backend>*>& programs) {
    if (!std::isfinite(loss)) refuse_update(step, "loss", loss, programs);
    const double norm = step_weights(by, store, progress, programs);
    if (!std::isfinite(norm)) refuse_update(step, "gradient norm", norm, programs);
    return norm;
}

/// Brings the weights that a device has changed into the store of its programs.
template <class Backend>
void fetch_weights(program<Backend>& from, parameters<typename Backend::real>& store) {
    if constexpr (device_backend<Backend>) from.device_weights_in_use().fetch(from.executor(), store);
}

/// Adds the programs' losses, by name, to those of a window.
template <class Backend>
void add_losses(std::vector<std::pair<std::string, double>>& window, const std::vector<program<Backend>*>& programs,
                double share = 1) {
    const auto& names = programs[0]->losses();
    if (window.empty())
        for (const auto& term : names) window.emplace_back(term.first, 0.0);
    for (std::size_t k = 0; k < names.size(); ++k) {
        double sum = 0;
        for (auto* p : programs) sum += p->losses()[k].second;
        window[k].second += share * sum;
    }
}

}  // namespace engram
