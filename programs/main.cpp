// SPDX-License-Identifier: MIT

#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdio>

#include <engram/core/subnormals.hpp>
#include <engram/program/commands.hpp>
#include <engram/program/launch.hpp>

namespace engram {

namespace {

volatile std::sig_atomic_t interrupts = 0;

void note_interrupt(int) {
    interrupts = interrupts + 1;
    if (interrupts > 2) ::_exit(130);
}

}  // namespace

void catch_interrupts() {
    struct sigaction action {};
    action.sa_handler = note_interrupt;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    // Also where the shell that started this one in the background had SIGINT ignored.
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGUSR1, &action, nullptr);  // what Slurm is asked to send before it takes a machine away
}

bool interrupted() {
    still_working();  // whoever asks does something long
    return interrupts > 0;
}

template <int PackBytes>
int run_program(ablation& model, int argc, char** argv) {
    const zero_subnormals on_every_thread;  // those made from here on have it from this one
    // A file that may not grow is an error of write(), with a sentence, and no reason to die.
    std::signal(SIGXFSZ, SIG_IGN);
    std::unique_ptr<processes> others;
    bool alike = true;  // all processes of a launch do the same
    // What all say alike one of them says; one that fails alone ends the others.
    const auto ended = [&](const char* problem, int code, bool all) {
        if (!all || how_launched().rank == 0) std::fprintf(stderr, "engram-%s: %s\n", model.name().c_str(), problem);
        if (!all && others) end_all_processes(code);
        return code;
    };
    try {
        const auto a = parse_arguments(model.name(), argc, argv);
        if (!a) return 0;
        if (a->command == "train") {
            const auto patience = a->patience ? whole_number("--patience", *a->patience, 1) : std::int64_t{300};
            // Who waits for a world gives no sign of life, and says itself when its patience ends.
            others = connect_processes(
                static_cast<double>(a->world.empty() ? patience : std::max<std::int64_t>(300, 3 * patience)));
            alike = !others;
            require_same_program(others.get(), model.name(), argc, argv);
            return train(model, *a, others.get());
        }
        require(how_launched().count == 1, a->command, ": one process does that, not ", how_launched().count);
        if (a->command == "evaluate") return evaluate(model, *a);
        if (a->command == "describe") return describe(model, *a);
        return sample(model, *a);
    } catch (const agreed_run_error& problem) {
        return ended(problem.what(), 1, true);
    } catch (const agreed_error& problem) {
        return ended(problem.what(), 2, true);
    } catch (const run_error& problem) {
        return ended(problem.what(), 1, alike);
    } catch (const error& problem) {
        return ended(problem.what(), 2, alike);
    } catch (const std::bad_alloc&) {
        return ended("out of memory", 1, alike);
    } catch (const std::exception& problem) {
        return ended(problem.what(), 1, alike);
    }
}

template int run_program<pack_bytes>(ablation&, int, char**);

}  // namespace engram
