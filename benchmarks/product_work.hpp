#pragma once
// SPDX-License-Identifier: MIT

// How much arithmetic the products of a training step are, counted from its graph, and how fast this machine does
// products: what share of its rate the step reaches.

#include <algorithm>
#include <chrono>
#include <vector>

#include <engram/core/thread_pool.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/convolution.hpp>

namespace benchmarks {

/// Which values a loss sends gradients to, and which of them have a use for one: those made from parameters.
template <class Backend>
class gradient_flow {
public:
    explicit gradient_flow(const engram::graph<Backend>& g)
        : received_(g.values().size(), false), computed_(g.values().size(), false) {
        // States lead from the end of a time loop to its start, so both directions are repeated until nothing changes.
        do {
            changed_ = false;
            for (const auto& op : g.operations()) {
                bool trains = !op->parameters.empty();
                for (const auto& in : op->inputs) trains |= !in.detached && computed_[std::size_t(in.value)];
                if (trains)
                    for (const int out : op->outputs) set(computed_, out);
                if (!reached(*op)) continue;
                for (const auto& in : op->inputs)
                    if (!in.detached) set(received_, in.value);
            }
            for (const auto& scan : g.scans())
                for (const auto& state : scan) {
                    if (computed_[std::size_t(state.leaving)]) set(computed_, state.entering);
                    if (received_[std::size_t(state.entering)]) set(received_, state.leaving);
                }
        } while (changed_);
    }

    /// A gradient arrives at this operation.
    bool reached(const engram::operation<Backend>& op) const {
        return op.is_loss || std::any_of(op.outputs.begin(), op.outputs.end(),
                                         [this](int out) { return bool(received_[std::size_t(out)]); });
    }
    /// A gradient leaves for this input.
    bool wanted(const engram::view& in) const { return !in.detached && computed_[std::size_t(in.value)]; }

private:
    void set(std::vector<bool>& marks, int value) {
        changed_ |= !marks[std::size_t(value)];
        marks[std::size_t(value)] = true;
    }

    std::vector<bool> received_, computed_;
    bool changed_ = false;
};

/// Floating-point operations, two a multiply-add, of all affine maps and convolutions of one forward and backward pass
/// over [steps, batch]. Other products (scores, distances of keys) are not counted.
template <class Backend>
double product_work(const engram::graph<Backend>& g, int steps, int batch) {
    const gradient_flow<Backend> flow(g);
    double all = 0;
    for (const auto& op : g.operations()) {
        const bool each_step = g.value(op->outputs.empty() ? 0 : op->outputs[0]).rows == engram::extent::sequence;
        const double rows = each_step ? double(steps) * batch : batch;
        const bool backward = flow.reached(*op);
        if (const auto* affine = dynamic_cast<const engram::affine_operation<Backend>*>(op.get())) {
            const double columns = g.store()[affine->weights.weight].columns;
            for (const auto& in : op->inputs)
                all += 2 * rows * in.width * columns * (1 + backward + (backward && flow.wanted(in)));
        } else if (const auto* convolution =
                       dynamic_cast<const engram::simple_operation<Backend, engram::convolution_kernel,
                                                                   engram::convolution_settings>*>(op.get())) {
            const auto& shape = convolution->settings.shape;
            const double once = double(shape.out_height()) * shape.out_width() * shape.weight_rows() * shape.filters;
            all += 2 * rows * once * (1 + backward + (backward && flow.wanted(op->inputs[0])));
        }
    }
    return all;
}

/// GFLOP/s by the clock of 16 x 512 times 512 x 2048 on every thread of the pool at once, the best of `rounds` of about
/// a tenth of a second. That of one thread by its processor time is product_rate (processor_time.hpp).
inline double pooled_product_rate(engram::thread_pool& pool, int rounds = 5) {
    constexpr int m = 16, k = 512, n = 2048, calls = 300;
    const std::vector<float> x(m * k, 0.5f), w(k * n, 0.25f);
    engram::packed_weights<float> weights(k, n);
    weights.pack(w.data(), n);
    std::vector<std::vector<float>> y(std::size_t(pool.size()), std::vector<float>(m * n));
    double best = 0;
    for (int round = 0; round < rounds; ++round) {
        const auto start = std::chrono::steady_clock::now();
        pool.run([&](int i) {
            const engram::product_part<float> part{x.data(), k, &weights, 0, k};
            for (int call = 0; call < calls; ++call)
                engram::multiply(&part, 1, static_cast<const float*>(nullptr), false, y[std::size_t(i)].data(), n, m);
        });
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        best = std::max(best, 2e-9 * m * k * n * calls * pool.size() / seconds.count());
    }
    return best;
}

}  // namespace benchmarks
