// SPDX-License-Identifier: MIT

// The sum over processes in the order of shards (train/processes.hpp) beside MPI_Allreduce, which promises no order,
// and beside a copy of as many bytes. Rounds in turn, the median of each; a round begins together.
//
//   benchmarks/processes/run.sh sum         # as 2, 4 and 8 processes; or mpirun -n 2 PROGRAM [megabytes...]

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include <engram/program/launch.hpp>

using namespace engram;

namespace {

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> x) {
    std::sort(x.begin(), x.end());
    return x[x.size() / 2];
}

void one_size(processes& all, double megabytes) {
    const auto n = static_cast<std::size_t>(megabytes * 1e6 / sizeof(float));
    std::vector<float> values(n, 0.5f), other(n), room;
    const shard_range mine = shards_of(all.rank(), all.count(), all.count());
    const std::vector<std::span<float>> shard{std::span(values)};
    const std::vector<std::function<void()>> ways{
        [&] { sum_by_halves(all, std::span(values), room); },
        [&] { sum_from_shards(all, mine, shard, room); },
        [&] { MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(n), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); },
        [&] { std::memcpy(other.data(), values.data(), n * sizeof(float)); },
    };
    const int rounds = std::clamp(static_cast<int>(400 / megabytes), 15, 400);
    std::vector<std::vector<double>> times(ways.size());
    for (int round = -2; round < rounds; ++round)
        for (std::size_t k = 0; k < ways.size(); ++k) {
            std::fill(values.begin(), values.end(), 0.5f);
            MPI_Barrier(MPI_COMM_WORLD);
            const double start = seconds();
            ways[k]();
            double took = seconds() - start, longest = 0;
            MPI_Allreduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            if (round >= 0) times[k].push_back(longest);
            if (k < 3)
                require(values[0] == 0.5f * static_cast<float>(all.count()) && values[n - 1] == values[0],
                        "a sum is wrong: ", values[0], " and ", values[n - 1]);
        }
    if (all.rank() != 0) return;
    const double halves = median(times[0]), shards = median(times[1]), reduce = median(times[2]),
                 copy = median(times[3]);
    std::printf("| %d | %g | %.0f | %.0f | %.0f | %.0f | %.2f | %.1f |\n", all.count(), megabytes, 1e6 * halves,
                1e6 * shards, 1e6 * reduce, 1e6 * copy, halves / reduce, halves / copy);
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    const auto all = connect_processes();
    if (!all) {
        std::fputs("start it by mpirun, as 2, 4 or 8 processes\n", stderr);
        return 2;
    }
    std::vector<double> sizes;
    for (int i = 1; i < argc; ++i) sizes.push_back(std::atof(argv[i]));
    if (sizes.empty()) sizes = {0.2, 1, 10, 100};
    if (all->rank() == 0)
        std::puts(
            "| processes | MB | by halves, us | from shards, us | MPI_Allreduce, us | copy, us | halves / Allreduce | "
            "halves / copy |\n|---|---|---|---|---|---|---|---|");
    for (const double megabytes : sizes) one_size(*all, megabytes);
}
