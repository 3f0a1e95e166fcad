#pragma once
// SPDX-License-Identifier: MIT

// Sequences of a task in the inputs of a program: row b of the plan holds one sequence, all of them begin at step 0.

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <engram/graph/program.hpp>
#include <engram/model/traced_agent.hpp>
#include <engram/task/sequence.hpp>

namespace engram {

/// What a model must know of a sequence task.
inline task_shape shape_of(const sequence_info& info) {
    return {{info.observation.height, info.observation.width, info.observation.channels, info.tokens},
            info.actions,
            info.targets,
            info.classes,
            info.numbers};
}

template <class Backend>
class sequence_batch {
public:
    using real = typename Backend::real;

    /// The program must have been planned for info().steps steps.
    sequence_batch(program<Backend>& p, std::shared_ptr<const sequence_source> source)
        : program_(&p), source_(std::move(source)), steps_(p.options().steps), rows_(p.options().batch) {
        const sequence_info& info = source_->info();
        require(steps_ == info.steps, info.name, ": a sequence has ", info.steps, " steps, the plan ", steps_);
        observation_ = bind(p, "observation", info.observation.size());
        condition_ = bind(p, "condition", info.actions);
        target_ = bind(p, "target", info.targets);
        weight_ = bind(p, "weight", info.targets > 0 ? 1 : 0);
        if (p.has_input("reset")) std::fill_n(p.input("reset").begin(), rows_, real(1));
        origin_.resize(static_cast<std::size_t>(steps_ * rows_), -1);
        label_.resize(origin_.size(), -1);
    }

    const sequence_source& source() const { return *source_; }
    int rows() const { return rows_; }

    /// Sequences first, first + 1, ... of a level, one a row.
    void draw(const std::string& level, std::uint64_t seed, std::uint64_t first) {
        if constexpr (device_backend<Backend>)
            // Asked for again: a device may still be taking what its last sweep began with.
            for (const input* in : {&observation_, &condition_, &target_, &weight_})
                if (!in->place.empty()) (void)program_->input(in->name);
        for (int b = 0; b < rows_; ++b) {
            const auto at = [&](input& in) {
                return in.numbers.empty() ? nullptr : in.numbers.data() + std::ptrdiff_t{b} * in.width;
            };
            const std::size_t sequence = static_cast<std::size_t>(b) * static_cast<std::size_t>(steps_);
            source_->draw(level, seed, first + static_cast<std::uint64_t>(b),
                          {at(observation_), at(condition_), at(target_), at(weight_), origin_.data() + sequence,
                           label_.data() + sequence, rows_});
        }
        if constexpr (!std::is_same_v<real, float>)
            for (input* in : {&observation_, &condition_, &target_, &weight_})
                std::copy_n(in->numbers.begin(), in->place.size(), in->place.begin());
    }

    /// [T, B, targets] and [T, B, 1] of the sequences drawn.
    std::span<const float> target() const { return target_.numbers; }
    std::span<const float> weight() const { return weight_.numbers; }
    /// Of row b: the earlier step that each step repeats (-1: none), and the class that it shows.
    std::span<const int> origin(int b) const { return row(origin_, b); }
    std::span<const int> label(int b) const { return row(label_, b); }

private:
    struct input {
        const char* name = "";
        int width = 0;
        std::span<real> place;     // in the program
        std::span<float> numbers;  // where a sequence is drawn to: the same memory, or a copy for other number types
        std::vector<float> copy;
    };

    input bind(program<Backend>& p, const char* name, int width) {
        input in;
        if (width == 0) return in;
        in.name = name;
        in.width = width;
        if (!p.has_input(name)) {  // whoever scores the plan's outputs asks for it here
            in.copy.resize(static_cast<std::size_t>(steps_ * rows_ * width));
            in.numbers = in.copy;
            return in;
        }
        in.place = p.input(name);
        require(in.place.size() == static_cast<std::size_t>(steps_ * rows_ * width), source_->info().name, ": '", name,
                "' has ", width, " columns, the model expects ",
                in.place.size() / static_cast<std::size_t>(steps_ * rows_));
        if constexpr (std::is_same_v<real, float>) {
            in.numbers = in.place;
        } else {
            in.copy.resize(in.place.size());
            in.numbers = in.copy;
        }
        return in;
    }
    std::span<const int> row(const std::vector<int>& all, int b) const {
        return std::span(all).subspan(static_cast<std::size_t>(b) * static_cast<std::size_t>(steps_),
                                      static_cast<std::size_t>(steps_));
    }

    program<Backend>* program_;
    std::shared_ptr<const sequence_source> source_;
    int steps_, rows_;
    input observation_, condition_, target_, weight_;
    std::vector<int> origin_, label_;
};

}  // namespace engram
