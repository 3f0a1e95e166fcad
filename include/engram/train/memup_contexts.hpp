#pragma once
// SPDX-License-Identifier: MIT

// The contexts c_k of a MemUP predictor that has a network of its own (facts 3.4): one thread's rows.
//
//   of current steps   the weights' own, over the rollout, with a gradient
//   of chosen steps    what the moving averages held when they went through the new episode: no gradient; or,
//   `retraced`
//                      (ours), the block of r steps with most of a row's chosen targets runs again with the weights,
//                      from the state in which the averages entered it, and learns what its targets ask for
//
// Kept for every episode under way: C numbers a step, and where contexts are retraced the states at every r-th step.
// On a device the contexts stay there, since every update reads some of them; the states are the host's, because they
// are written once an episode and one of them a row is read an update.

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <engram/model/traced_agent.hpp>
#include <engram/train/device_pairs.hpp>
#include <engram/train/sequence_rows.hpp>

namespace engram {

template <class Backend>
class memup_contexts {
public:
    using real = typename Backend::real;

    /// Blocks of `o.steps` steps. `fast` and `slow` have contexts.
    memup_contexts(const traced_agent<Backend>& fast, const traced_agent<Backend>& slow, const plan_options& o,
                   const sequence_info& info, bool retraced)
        : fast_(&fast),
          slow_context_(*slow.context),
          steps_(o.steps),
          sequence_(info.steps),
          blocks_((info.steps + o.steps - 1) / o.steps),
          width_(fast.predictor->context.width),
          current(*fast.predictor->context_graph, fast.store, o, {fast.predictor->context_output}),
          kept(size(o.batch) * size(info.steps) * size(width_)),
          block_(size(o.batch), 0),
          begins_(device_backend<Backend> ? block_.size() : 0) {
        if (!retraced) return;
        again = std::make_unique<program<Backend>>(*fast.predictor->context_graph, fast.store, o,
                                                   std::vector<var<Backend>>{fast.predictor->context_output});
        entered.resize(current.state_names().size());
        for (std::size_t i = 0; i < entered.size(); ++i)
            entered[i].resize(current.state(current.state_names()[i]).size() * size(blocks_));
    }

    int width() const { return width_; }

    /// Before the averages' network goes through the piece of new episodes that begins at `from`.
    void keep_states(program<Backend>& detector, const sequence_rows& rows, int from) {
        if (!again) return;
        const auto names = current.state_names();
        for (std::size_t i = 0; i < names.size(); ++i)
            each_new(rows, [&](int b) {
                const auto now = row_of(detector.state(names[i]), rows, b);
                std::copy(now.begin(), now.end(), entered_at(i, rows, b, from / steps_).begin());
            });
    }
    /// After it.
    void keep_contexts(program<Backend>& detector, const sequence_rows& rows, int from) {
        if constexpr (device_backend<Backend>) return keep_there(detector, rows, from);
        const auto c = detector.output(slow_context_);
        each_new(rows, [&](int b) {
            for (int j = 0; j < steps_ && from + j < sequence_; ++j)
                std::copy_n(c.at(j) + b * c.stride, width_, kept_at(b, from + j));
        });
    }

    /// What every row retraces: the block with most of the steps k that target(b, i) gives, i = 0 ... until it is < 0.
    template <class Target>
    void choose_blocks(const sequence_rows& rows, int targets, Target target) {
        if (!again) return;
        std::vector<int> count(size(blocks_));
        for (int b = 0; b < rows.rows(); ++b) {
            std::fill(count.begin(), count.end(), 0);
            for (int i = 0; i < targets; ++i)
                if (const int k = target(b, i); k >= 0) ++count[size(k / steps_)];
            block_[size(b)] = static_cast<int>(std::max_element(count.begin(), count.end()) - count.begin());
        }
    }
    void forward(const sequence_rows& rows, std::uint64_t number) {
        current.replay_count() = number;
        rows.fill(current, steps_);
        current.forward();
        if (!again) return;
        again->replay_count() = number;
        rows.fill(*again, steps_, [this](int b) { return first(b); });
        const auto names = again->state_names();
        for (std::size_t i = 0; i < names.size(); ++i)
            for (int b = 0; b < rows.rows(); ++b) {
                const auto from = entered_at(i, rows, b, block_[size(b)]);
                std::copy(from.begin(), from.end(), row_of(again->state(names[i]), rows, b).begin());
            }
        again->forward();
    }
    /// Context of a current step: step j of the rollout.
    const real* of_current(int b, int j) const {
        const auto c = current.output(fast_->predictor->context_output);
        return c.at(j) + b * c.stride;
    }
    /// Context of a chosen step k.
    const real* of_chosen(int b, int k) {
        if (!is_retraced(b, k)) return kept_at(b, k);
        const auto c = again->output(fast_->predictor->context_output);
        return c.at(k - first(b)) + b * c.stride;
    }
    /// The contexts of all steps of the episodes under way, and those of the steps of a rollout or a block.
    operand<real> all_kept() { return {kept.data(), std::ptrdiff_t{sequence_} * width_, width_, width_, false}; }
    operand<real> on_device(program<Backend>& of) { return of.on_device(fast_->predictor->context_output); }
    /// Whether step k's context carries a gradient as a chosen one, and the step of its block.
    bool is_retraced(int b, int k) const { return again && k / steps_ == block_[size(b)]; }
    int retraced_step(int b, int k) const { return k - first(b); }

    std::vector<program<Backend>*> programs() {
        if (again) return {&current, again.get()};
        return {&current};
    }
    /// body(name, bytes) for what a checkpoint keeps.
    template <class Body>
    void each_part(const std::string& prefix, Body body) {
        if constexpr (device_backend<Backend>)
            body(prefix + ".contexts", std::as_writable_bytes(current.executor().fetched(
                                           kept.data(), static_cast<std::ptrdiff_t>(kept.size()), true)));
        else
            body(prefix + ".contexts", std::as_writable_bytes(std::span(kept)));
        for (std::size_t i = 0; i < entered.size(); ++i)
            body(prefix + ".entered." + current.state_names()[i], std::as_writable_bytes(std::span(entered[i])));
    }

private:
    static std::size_t size(int n) { return static_cast<std::size_t>(n); }
    int first(int b) const { return block_[size(b)] * steps_; }
    real* kept_at(int b, int k) { return kept.data() + (size(b) * size(sequence_) + size(k)) * size(width_); }
    template <class Body>
    static void each_new(const sequence_rows& rows, Body body) {
        for (int b = 0; b < rows.rows(); ++b)
            if (rows.position(b) == 0) body(b);
    }
    static std::span<real> row_of(std::span<real> state, const sequence_rows& rows, int b) {
        const auto width = state.size() / size(rows.rows());
        return state.subspan(size(b) * width, width);
    }
    /// State i of row b where block `block` begins: [B, blocks, width].
    std::span<real> entered_at(std::size_t i, const sequence_rows& rows, int b, int block) {
        const auto width = entered[i].size() / (size(rows.rows()) * size(blocks_));
        return std::span(entered[i]).subspan((size(b) * size(blocks_) + size(block)) * width, width);
    }

    /// keep_contexts() on a device: the steps of the rows that begin an episode, in one launch.
    void keep_there(program<Backend>& detector, const sequence_rows& rows, int from) {
        auto& on = detector.executor();
        if (from == 0) {
            std::vector<int> marked(block_.size(), 0);
            each_new(rows, [&](int b) { marked[size(b)] = 1; });
            on.upload_bytes(marked.data(), begins_.data(), sizeof(int) * marked.size());
            // What the host has restored comes first.
            current.executor().send_written();
            restored_.record(current.executor());
            restored_.await(on);
        }
        const int steps = std::min(steps_, sequence_ - from);
        on.launch("contexts", std::ptrdiff_t{steps} * rows.rows() * width_,
                  internal::keep_steps<real>{begins_.data(), detector.on_device(slow_context_), all_kept(), rows.rows(),
                                             from});
    }

    const traced_agent<Backend>* fast_;
    var<Backend> slow_context_;
    int steps_, sequence_, blocks_, width_;

public:
    program<Backend> current;
    std::unique_ptr<program<Backend>> again;  // null where chosen steps carry no gradient
    typename executor<Backend>::buffer kept;  // [B, T, C], of the moving averages
    std::vector<std::vector<real>> entered;   // states of the averages' network, [B, T / r, .] each

private:
    std::vector<int> block_;  // [B], retraced
    // On a device: [B], the rows that begin an episode; and when what the host has restored is there.
    typename executor<Backend>::template array<int> begins_;
    typename executor<Backend>::fence restored_;
};

}  // namespace engram
