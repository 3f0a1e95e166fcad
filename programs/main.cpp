// SPDX-License-Identifier: MIT

#include <unistd.h>
#include <csignal>
#include <cstdio>

#include <engram/program/commands.hpp>

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
}

bool interrupted() {
    return interrupts > 0;
}

template <int PackBytes>
int run_program(ablation& model, int argc, char** argv) {
    // A file that may not grow is an error of write(), with a sentence, and no reason to die.
    std::signal(SIGXFSZ, SIG_IGN);
    const auto say = [&](const std::exception& problem) {
        std::fprintf(stderr, "engram-%s: %s\n", model.name().c_str(), problem.what());
    };
    try {
        const auto a = parse_arguments(model.name(), argc, argv);
        if (!a) return 0;
        if (a->command == "train") return train(model, *a);
        if (a->command == "evaluate") return evaluate(model, *a);
        if (a->command == "describe") return describe(model, *a);
        return sample(model, *a);
    } catch (const run_error& problem) {
        say(problem);
        return 1;
    } catch (const error& problem) {
        say(problem);
        return 2;
    } catch (const std::bad_alloc&) {
        std::fprintf(stderr, "engram-%s: out of memory\n", model.name().c_str());
        return 1;
    } catch (const std::exception& problem) {
        say(problem);
        return 1;
    }
}

template int run_program<pack_bytes>(ablation&, int, char**);

}  // namespace engram
