#pragma once
// SPDX-License-Identifier: MIT

// A small MemUP run in double on any backend, for comparing one with another.

#include <cmath>
#include <memory>
#include <string>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/stacked_lstm.hpp>
#include <engram/encoder/token_embedding.hpp>
#include <engram/learner/memup.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/agent.hpp>
#include <engram/task/copy_sequences.hpp>
#include <engram/train/memup_update.hpp>

#include "../train/same_file.hpp"

namespace memup_test {

using namespace engram;

using model = agent<token_embedding, stacked_lstm, no_memory, no_auxiliary, memup>;
/// Episodes of 5, 6, ... steps by index, so that rows end anywhere in a rollout.
class of_lengths final : public sequence_source {
public:
    const sequence_info& info() const override { return task_.info(); }
    void draw(const std::string& level, std::uint64_t seed, std::uint64_t index,
              const sequence_place& to) const override {
        task_.draw(level, seed, index, to);
    }
    int length(const std::string&, std::uint64_t, std::uint64_t index) const override {
        return 5 + static_cast<int>(index) % 13;
    }

private:
    copy_task<true> task_{{.items = 2, .steps = 17}};
};

enum class contexts { none, kept, retraced };

inline model::settings tiny(contexts seen = contexts::none, int block = 0) {
    model::settings s;
    s.encoder.width = 4;
    s.controller.hidden = 5;
    s.controller.dropout = 0.2;
    s.learner.rollout = 4;
    s.learner.every = 3;
    s.learner.selected = 2;
    s.learner.hidden = {6};
    s.learner.dropout = 0.2;
    s.learner.period = 2;
    s.learner.block = block;
    s.learner.context.layers = seen == contexts::none ? 0 : 1;
    s.learner.context.hidden = 3;
    s.learner.context.retraced = seen == contexts::retraced;
    return s;
}

template <class Backend>
struct run {
    explicit run(const model::settings& s, int threads = 1, std::uint64_t seed = 1)
        : source(std::make_shared<const of_lengths>()),
          fast(model::trace<Backend>(s, shape_of(source->info()), seed)),
          slow(model::trace<Backend>(s, shape_of(source->info()), seed, purpose::generating)),
          t({3, threads, 0}, fast, slow, source, sequence_settings{5}, rate()) {}
    static optimiser_settings rate() {
        optimiser_settings o;
        o.learning_rate = 3e-3;
        o.epsilon = 1e-8;
        o.clip = 1;
        return o;
    }
    void iterate(int n) {
        for (int i = 0; i < n; ++i) t.iterate();
    }
    safetensors saved() { return ::saved(t); }
    std::shared_ptr<const sequence_source> source;
    traced_agent<Backend> fast, slow;
    training_loop<memup_update<Backend>> t;
};

/// Of weights and of averages.
template <class A, class B>
double difference(run<A>& a, run<B>& b) {
    a.t.sync_weights();
    b.t.sync_weights();
    return std::max(largest_difference(a.fast.store->flat(), b.fast.store->flat()),
                    largest_difference(a.slow.store->flat(), b.slow.store->flat()));
}

}  // namespace memup_test
