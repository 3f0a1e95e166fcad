// SPDX-License-Identifier: MIT

// Every hot path of the library on one thread: microseconds, and what of this machine it reaches: the share of the rate
// of a product (GFLOP/s), or of a copy that touches as much memory (GB/s), both measured in the same run and in turn.
// Then how the time grows with T, B and N; the last column is the exponent between the two largest sizes.
//
//   benchmark-hot_paths [--seconds S] [--only WORD]
//
// S is the processor time given to each measurement, 0.05 by default; WORD picks the paths whose names contain it.

#include <cmath>
#include <cstdio>
#include <string>

#include "flags.hpp"
#include "hot_paths.hpp"

namespace {

using namespace benchmarks;

std::string share(double found, double best) {
    if (found <= 0) return "-";
    char text[16];
    std::snprintf(text, sizeof text, "%.0f %%", 100 * found / best);
    return text;
}

void table(const std::vector<hot_path>& paths, double budget) {
    std::printf("%-30s %-38s %10s %9s %9s %9s %9s\n", "path", "shape", "us", "GFLOP/s", "of prod.", "GB/s", "of copy");
    for (const auto& [name, grows, usual, make] : paths) {
        const path p = make(usual);
        const auto [took, product, copy] = measure(p, budget);
        const auto number = [](double x) {
            char text[16];
            std::snprintf(text, sizeof text, "%.1f", x);
            return x > 0 ? std::string(text) : "-";
        };
        const double speed = 1e-9 * p.operations / took, traffic = 1e-9 * p.bytes / took;
        std::printf("%-30s %-38s %10.2f %9s %9s %9s %9s\n", name.c_str(), p.shape.c_str(), 1e6 * took,
                    number(speed).c_str(), share(speed, product).c_str(), number(traffic).c_str(),
                    share(traffic, copy).c_str());
        std::fflush(stdout);
    }
}

void growth(const std::vector<hot_path>& paths, char along, std::vector<int> points, double budget) {
    std::printf("\nmicroseconds along %c\n%-30s", along, "path");
    for (const int n : points) std::printf(" %10d", n);
    std::printf(" %9s\n", "exponent");
    for (const auto& [name, grows, usual, make] : paths) {
        if (grows.find(along) == std::string::npos) continue;
        std::printf("%-30s", name.c_str());
        double before = 0, now = 0;
        for (const int n : points) {
            sizes z = usual;
            if (along == 'N') z.B = 1;
            (along == 'T' ? z.T : along == 'B' ? z.B : z.N) = n;
            before = now;
            now = least_seconds(make(z).run, budget);
            std::printf(" %10.2f", 1e6 * now);
            std::fflush(stdout);
        }
        const auto last = points.end() - 1;
        std::printf(" %9.2f\n", std::log(now / before) / std::log(double(*last) / *(last - 1)));
    }
}

}  // namespace

int main(int argc, char** argv) {
    const flags told(argc, argv, {{"--seconds", "0.05"}, {"--only", ""}});
    const auto budget = told.number<double>("--seconds");
    const std::string& only = told.text("--only");
    auto paths = hot_paths();
    std::erase_if(paths, [&](const hot_path& p) { return p.name.find(only) == std::string::npos; });
    if (paths.empty()) {
        std::fprintf(stderr, "benchmark-hot_paths: no path's name contains '%s'\n", only.c_str());
        return 2;
    }
    std::printf("one thread, processor time; product %.1f GFLOP/s; a copy of 32 KB, 512 KB, 8 MB, 128 MB: ",
                product_rate(budget));
    for (const double bytes : {32e3, 512e3, 8e6, 128e6}) std::printf("%.1f ", copy_rate(bytes, budget));
    std::printf("GB/s\n\n");
    table(paths, budget);
    growth(paths, 'T', {25, 50, 100, 200}, budget / 4);
    growth(paths, 'B', {1, 4, 16, 64}, budget / 4);
    growth(paths, 'N', {64, 256, 1024, 4096}, budget / 4);
}
