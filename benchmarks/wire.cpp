// SPDX-License-Identifier: MIT

// Steps a second of a world in another process, and where the processor's time goes: a frame of 96 x 72 x 3 bytes and
// ten numbers that nobody computes, on a socket of this machine and on TCP, by rows. It starts the server itself.
//
//   benchmark-wire SERVER [SECONDS]
//
// us are microseconds of processor time a step of one row, of both processes: `environment` and `messages` the
// server's, `parsing` and `unpacking` the client's, `gRPC` all that is left, the kernel's share in it.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <engram/program/world.hpp>

namespace {

using namespace engram;

double processor_seconds(int who) {
    rusage use{};
    getrusage(who, &use);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(use.ru_utime) + seconds(use.ru_stime);
}

struct server {
    ::pid_t process = -1;
    std::FILE* says = nullptr;
    int port = 0;

    server(const char* program, const std::string& address) {
        int out[2];
        if (::pipe(out) != 0) std::exit(1);
        process = ::fork();
        if (process == 0) {
            ::dup2(out[1], 1);
            ::close(out[0]), ::close(out[1]);
            ::execl(program, program, address.c_str(), nullptr);
            ::_exit(99);
        }
        ::close(out[1]);
        says = ::fdopen(out[0], "r");
        if (std::fscanf(says, "ready %d", &port) != 1)
            std::fprintf(stderr, "%s does not start\n", program), std::exit(1);
    }
    /// Nanoseconds of the environment and of its messages, and seconds of the processor.
    std::vector<double> end() {
        const double before = processor_seconds(RUSAGE_CHILDREN);
        ::kill(process, SIGTERM);
        double environment = 0, messages = 0;
        if (std::fscanf(says, " environment %lf messages %lf", &environment, &messages) != 2)
            environment = messages = 0;
        ::waitpid(process, nullptr, 0);
        std::fclose(says);
        return {environment, messages, processor_seconds(RUSAGE_CHILDREN) - before};
    }
};

void measure(const char* program, const char* transport, const char* what, int rows, double seconds) {
    const std::string path = std::filesystem::temp_directory_path() / ("benchmark-wire-" + std::to_string(::getpid()));
    const bool local = std::strcmp(transport, "unix") == 0;
    server far(program, local ? "unix:" + path : "127.0.0.1:0");
    world_settings settings;
    settings.addresses = {local ? "rpc+unix:" + path : "rpc://127.0.0.1:" + std::to_string(far.port)};
    settings.create = {{"world", what}};
    const auto joined = join_world(settings);
    std::int64_t steps = 0;
    double wall = 0, own = 0;
    world_times before, after;
    {
        const auto batch = joined->make(rows, 1, 0);
        const auto size = batch->info().observation.size();
        std::vector<float> seen(static_cast<std::size_t>(size) * static_cast<std::size_t>(rows));
        const auto turn = [&](int t) {
            for (int b = 0; b < rows; ++b) batch->announce(b, (t + b) % 4);
            for (int b = 0; b < rows; ++b) {
                (void)batch->step(b, (t + b) % 4);
                batch->observe(b, seen.data() + std::ptrdiff_t{b} * size);
            }
        };
        for (int t = 0; t < 200; ++t) turn(t);
        before = joined->times();
        const double own_before = processor_seconds(RUSAGE_SELF);
        const auto start = std::chrono::steady_clock::now();
        for (int t = 0; wall < seconds; ++t, steps += rows) {
            turn(t);
            wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        }
        own = processor_seconds(RUSAGE_SELF) - own_before;
        after = joined->times();
    }
    const auto served = far.end();
    const auto all = static_cast<double>(steps);
    // The server also did the first turns; its own share is small enough for that.
    const double environment = 1e-3 * served[0] / all, messages = 1e-3 * served[1] / all;
    const double parsing = 1e6 * (after.parsing - before.parsing) / all,
                 unpacking = 1e6 * (after.unpacking - before.unpacking) / all;
    const double total = 1e6 * (own + served[2]) / all;
    std::printf("| %s | %s | %d | %.0f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", what, transport, rows,
                all / wall, total, environment, messages, parsing, unpacking,
                total - environment - messages - parsing - unpacking);
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2)  // 77: nothing to measure
        return std::fputs("usage: benchmark-wire SERVER [SECONDS]\n", stderr), 77;
    const double seconds = argc > 2 ? std::atof(argv[2]) : 2;
    std::puts(
        "| what | transport | rows | steps a second | us a step | environment | messages | parsing | unpacking | gRPC "
        "|\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (const char* what : {"free", "free_numbers"})
        for (const char* transport : {"unix", "tcp"})
            for (const int rows : {1, 8, 32}) measure(argv[1], transport, what, rows, seconds);
    return 0;
}
