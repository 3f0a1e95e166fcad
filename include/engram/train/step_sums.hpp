#pragma once
// SPDX-License-Identifier: MIT

// Sums over the rows of a batch, a number a time step, added up over updates: what a window of training says of every
// step of a generative model. On a device they are gathered there and fetched with the window, so that no update waits
// for [T, B] numbers.

#include <algorithm>
#include <functional>
#include <vector>

#include <engram/graph/program.hpp>

namespace engram {

/// Of a variable of width 1 that the program was asked for.
template <class Backend>
class step_sums {
public:
    step_sums(program<Backend>& p, const var<Backend>& v) : program_(&p), of_(v) {}

    /// Adds the rows of the last forward sweep to `sums` [T], or to what a device keeps; does not wait.
    void add(std::vector<double>& sums) {
        const auto& options = program_->options();
        sums.resize(static_cast<std::size_t>(options.steps));
        const auto o = program_->output(of_);
        for (int t = 0; t < options.steps; ++t)
            for (int b = 0; b < options.batch; ++b)
                sums[static_cast<std::size_t>(t)] += static_cast<double>(o.at(t)[b * o.stride]);
    }
    /// Adds what a device has gathered to `sums`, and begins anew; waits.
    void fetch(std::vector<double>&) {}

private:
    program<Backend>* program_;
    var<Backend> of_;
};

namespace internal {

/// to[t] += the sum over the rows of step t: a thread a step.
template <class Real>
struct add_step_sum {
    operand<Real> from;
    int rows;
    double* to;
    ENGRAM_HD void operator()(std::ptrdiff_t t) const {
        double sum = 0;
        for (int b = 0; b < rows; ++b) sum += static_cast<double>(from.data[t * from.step + b * from.stride]);
        to[t] += sum;
    }
};

}  // namespace internal

template <device_backend Backend>
class step_sums<Backend> {
public:
    step_sums(program<Backend>& p, const var<Backend>& v)
        : program_(&p), of_(v), kept_(static_cast<std::size_t>(p.options().steps)) {}

    void add(std::vector<double>&) {
        const auto& options = program_->options();
        program_->executor().launch(
            "step sums", options.steps,
            internal::add_step_sum<typename Backend::real>{program_->on_device(of_), options.batch, kept_.data()});
    }
    void fetch(std::vector<double>& sums) {
        std::vector<double> found(kept_.size());
        program_->executor().download_bytes(kept_.data(), found.data(), sizeof(double) * found.size());
        sums.resize(found.size());
        std::transform(found.begin(), found.end(), sums.begin(), sums.begin(), std::plus<>());
        found.assign(found.size(), 0.0);
        program_->executor().upload_bytes(found.data(), kept_.data(), sizeof(double) * found.size());
    }

private:
    program<Backend>* program_;
    var<Backend> of_;
    typename executor<Backend>::template array<double> kept_;
};

}  // namespace engram
