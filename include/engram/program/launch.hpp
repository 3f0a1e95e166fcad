#pragma once
// SPDX-License-Identifier: MIT

// Several processes of a program, started by mpirun or srun, that train one model (docs/decisions/0022).

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <engram/train/processes.hpp>

namespace engram {

/// A process among those of a launch.
struct launched {
    int rank = 0, count = 1;
};
/// How a launcher started this process, by the variables that it sets; one of one without a launcher.
launched how_launched();

/// What connects the processes of a launch; null for one alone. Throws, with one sentence, where a launcher has started
/// several of a program that was compiled without MPI. When a process gives no sign of life for `patience` seconds
/// while others wait, one of these says which it is and ends all of them.
std::unique_ptr<processes> connect_processes(double patience = 300);
/// Which GPU a process of a launch takes, for CUDA_VISIBLE_DEVICES: of those that it is `shown` (null: all that are
/// `there`) the one of its number on its host, by turns. Empty: CUDA_VISIBLE_DEVICES stays as it is.
std::string own_gpu(const char* shown, int there, int number_on_host);

/// A sign of life to those who wait, from a process that does something long by itself; it may be called often.
void still_working();
/// Ends all processes of a launch, from one that cannot go on.
[[noreturn]] void end_all_processes(int code);

/// An agreed_error of what went wrong while running.
struct agreed_run_error : error {
    using error::error;
};

/// Throws, everywhere, what any process has to say; nothing when all are content. What is not true of the first process
/// is said of the process that it is true of.
inline void agree(processes* all, const std::string& trouble) {
    if (!all) return require(trouble.empty(), trouble);
    const auto said = all->gather(std::as_bytes(std::span(trouble)));
    for (std::size_t rank = 0; rank < said.size(); ++rank) {
        const std::string text(reinterpret_cast<const char*>(said[rank].data()), said[rank].size());
        if (!text.empty()) throw agreed_error(rank == 0 ? text : message("process ", rank, ": ", text));
    }
}

/// What a process is or has, by name.
using traits = std::vector<std::pair<std::string, std::string>>;

/// Throws, everywhere, one sentence about the first process that differs from the first one in one of its traits.
inline void require_alike(processes* all, const traits& mine) {
    if (!all) return;
    std::string flat;
    for (const auto& [name, value] : mine) flat += name + '\0' + value + '\0';
    const auto sent = all->gather(std::as_bytes(std::span(flat)));
    const auto texts = [&](std::size_t rank) {
        std::vector<std::string> list(1);
        for (const std::byte b : sent[rank])
            if (b == std::byte{0})
                list.emplace_back();
            else
                list.back() += static_cast<char>(b);
        return list;
    };
    const auto first = texts(0);
    for (std::size_t rank = 1; rank < sent.size(); ++rank) {
        if (sent[rank] == sent[0]) continue;
        const auto own = texts(rank);
        std::size_t k = 0;
        while (k + 3 < std::min(own.size(), first.size()) && own[k] == first[k] && own[k + 1] == first[k + 1]) k += 2;
        throw agreed_error(message("process ", rank, " has another ", own[k], " than process 0: ", own[k + 1],
                                   ", expected ", first[k + 1]));
    }
}

/// Throws, everywhere, unless all processes of a launch are the same program, and were asked for the same.
void require_same_program(processes* all, const std::string& name, int argc, const char* const* argv);

}  // namespace engram
