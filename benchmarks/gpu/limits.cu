// SPDX-License-Identifier: MIT

// What this device can do at most: bytes a second of a copy within its memory, and multiply-adds of a large product.
// The other tables are read against these.

#include "timing.cuh"

int main() {
    using namespace engram;
    return gpu_benchmark::run([] {
        executor<cuda<float>> on;
        const auto wait = [&] { on.wait(); };
        const std::ptrdiff_t count = std::ptrdiff_t{1} << 28;  // 1 GiB
        {
            device_array<float> from(static_cast<std::size_t>(count)), to(static_cast<std::size_t>(count));
            const double us = gpu_benchmark::microseconds(10, wait, [&] { on.copy(from.data(), to.data(), count); });
            gpu_benchmark::line("copy, read and written", 2 * 4 * static_cast<double>(count) / us / 1000, "GB/s");
        }
        constexpr int n = 8192;
        const std::size_t size = std::size_t{n} * n;
        device_array<float> a(size), b(size), y(size);
        for (const auto& [precision, name] :
             {std::pair{tensor_core_rounding::full, "product of 8192, float"},
              std::pair{tensor_core_rounding::tf32, "product of 8192, tf32"},
              std::pair{tensor_core_rounding::bf16, "product of 8192, bf16 of floats"}}) {
            on.precision = precision;
            const double us = gpu_benchmark::microseconds(5, wait, [&] {
                on.product("product", {a.data(), n}, {b.data(), n}, false, y.data(), n, n, n, n);
            });
            gpu_benchmark::line(name, 2 * double{n} * n * n / us / 1e6, "TFLOP/s");
        }
        device_array<float> one(1);
        int sweep = 0;
        const double us = gpu_benchmark::microseconds(200, wait, [&] {
            on.replay(sweep, std::vector<std::shared_ptr<void>>{}, [&] { on.clear(one.data(), 1); });
        });
        gpu_benchmark::line("a graph of one small clear", us, "us");
    });
}
