#pragma once
// SPDX-License-Identifier: MIT

// A configuration's sequence model on one backend: traced for learning, and once more for being judged.

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <engram/evaluate/answers.hpp>
#include <engram/evaluate/sequences.hpp>
#include <engram/program/configuration.hpp>
#include <engram/program/run_files.hpp>

namespace engram {

template <class Backend>
struct prepared_model final : prepared_sequences {
    explicit prepared_model(const configuration& config)
        : prepared_sequences(config),
          learning(traced<Backend>(config, shape_of(source->info()))),
          generating(traced<Backend>(config, shape_of(source->info()), purpose::generating)) {
        const auto& info = source->info();
        require(!learning.capacity || info.steps <= *learning.capacity, info.name, ": a sequence has ", info.steps,
                " steps, but the memory holds ", learning.capacity.value_or(0), "; set memory.slots=", info.steps);
    }
    prepared_model(const prepared_model&) = delete;
    prepared_model& operator=(const prepared_model&) = delete;

    /// The generating model gets the weights of the learning one's store, and the statistics that a plan of it
    /// gathered.
    void share_weights(program<Backend>& learner) {
        const auto from = learning.store->flat();
        auto edit = generating.store->edit();
        std::copy(from.begin(), from.end(), edit.flat().begin());
        each_statistic([&](std::size_t r, std::size_t k, std::span<std::byte> to) {
            const auto part = learner.bound_resource(r)->bytes()[k];
            if (part.size() == to.size()) std::copy(part.begin(), part.end(), to.begin());
        });
    }
    void load_weights(const safetensors& file) override {
        // MemUP is judged by its moving averages (facts 3.4).
        load_values(file, generating.schedule ? "slow." : "", *generating.store);
        if (generating.schedule) return;
        each_statistic([&](std::size_t r, std::size_t k, std::span<std::byte> to) {
            const auto part = file.values<std::uint8_t>(message("shard.0.resource.", r, ".", k));
            if (part.size() == to.size()) std::memcpy(to.data(), part.data(), to.size());
        });
    }

    bool generates() const override { return generating.generative.has_value(); }
    sequence_score score(const std::string& level, int sequences, std::uint64_t seed, const std::function<bool()>& stop,
                         processes* others) override {
        const int rows = std::min(sequences, 50);
        return gives_answers() ? answers_of(rows, others).score(level, sequences, seed, stop)
                               : player_of(rows, others).score(level, sequences, seed, stop);
    }
    sequence_drawing draw(const std::string& level, std::uint64_t seed, int rows, int alone_from) override {
        return player_of(rows).draw(level, seed, alone_from);
    }
    std::vector<std::pair<int, given_answer>> answer(const std::string& level, std::uint64_t seed, int rows) override {
        std::vector<std::pair<int, given_answer>> all;
        answers_of(rows).play(level, seed, 0, [&](int b, const given_answer& a) { all.emplace_back(b, a); });
        return all;
    }

    traced_agent<Backend> learning, generating;

private:
    template <class Player>
    struct planned {
        std::unique_ptr<Player> player;
        int rows = 0;
        processes* others = nullptr;
    };

    sequence_player<Backend>& player_of(int rows, processes* others = nullptr) {
        return planned_for(player_, rows, others);
    }
    answer_player<Backend>& answers_of(int rows, processes* others = nullptr) {
        return planned_for(answers_, rows, others);
    }
    /// Planned once for all levels.
    template <class Player>
    Player& planned_for(planned<Player>& p, int rows, processes* others) {
        if (!p.player || p.rows != rows || p.others != others) {
            p.player = std::make_unique<Player>(generating, source, rows, others);
            p.rows = rows, p.others = others;
        }
        return *p.player;
    }

    // Statistics of batches are one resource for all plans of a graph; what a memory holds belongs to a plan, and
    // making it here gives one that nobody sees.
    template <class Copy>
    void each_statistic(Copy copy) {
        for (std::size_t r = 0; r < generating.g->resources().size(); ++r) {
            const auto shared = generating.g->resources()[r].make(1);
            std::size_t k = 0;
            for (auto part : shared->bytes()) copy(r, k++, part);
        }
    }

    planned<sequence_player<Backend>> player_;
    planned<answer_player<Backend>> answers_;
};

}  // namespace engram
