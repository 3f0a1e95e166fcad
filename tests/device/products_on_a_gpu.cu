// Products on a CUDA device against plain loops in double: few rows by a transposed matrix, which a kernel of this
// library has, at sizes that are no multiples of anything, and those of cuBLAS.

#include "gpu_main.cuh"

#include <engram/core/philox.hpp>

namespace {

template <class Real>
double worst_of_product(int m, int n, int k, bool a_turned, bool b_turned, bool accumulate) {
    using namespace engram;
    executor<cuda<Real>> on;
    philox random(3, static_cast<std::uint64_t>(m + 100 * n + 10000 * k));
    const auto numbers = [&](int rows, int stride) {
        std::vector<Real> all(static_cast<std::size_t>(rows) * static_cast<std::size_t>(stride));
        for (Real& v : all) v = random.normal();
        return all;
    };
    const int a_stride = (a_turned ? m : k) + 3, b_stride = (b_turned ? k : n) + 1, y_stride = n + 2;
    const auto a = numbers(a_turned ? k : m, a_stride), b = numbers(b_turned ? n : k, b_stride);
    auto y = numbers(m, y_stride);
    const auto before = y;
    typename executor<cuda<Real>>::buffer on_a(a.size()), on_b(b.size()), on_y(y.size());
    const auto count = [](const auto& v) { return static_cast<std::ptrdiff_t>(v.size()); };
    on.upload(a.data(), on_a.data(), count(a));
    on.upload(b.data(), on_b.data(), count(b));
    on.upload(y.data(), on_y.data(), count(y));
    on.product("product", {on_a.data(), a_stride, a_turned}, {on_b.data(), b_stride, b_turned}, accumulate, on_y.data(),
               y_stride, m, n, k);
    on.download(on_y.data(), y.data(), count(y));
    double worst = 0;
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < y_stride; ++j) {
            const std::size_t at = static_cast<std::size_t>(i * y_stride + j);
            double sum = accumulate || j >= n ? static_cast<double>(before[at]) : 0;
            for (int c = 0; c < k && j < n; ++c)
                sum +=
                    static_cast<double>(a[static_cast<std::size_t>(a_turned ? c * a_stride + i : i * a_stride + c)]) *
                    static_cast<double>(b[static_cast<std::size_t>(b_turned ? j * b_stride + c : c * b_stride + j)]);
            worst = std::max(worst, std::abs(static_cast<double>(y[at]) - sum) / std::sqrt(static_cast<double>(k)));
        }
    return worst;
}

}  // namespace

TEST_CASE("products on a GPU equal plain loops, and leave what lies between rows") {
    for (const auto& [m, n, k] : {std::array{1, 1, 128},
                                  {16, 32, 832},
                                  {10, 33, 832},
                                  {3, 7, 1000},
                                  {16, 770, 2048},
                                  {11, 5, 131},
                                  {17, 40, 200},
                                  {16, 40, 100}})
        for (const bool a_turned : {false, true})
            for (const bool b_turned : {false, true})
                for (const bool accumulate : {false, true}) {
                    CAPTURE(m);
                    CAPTURE(n);
                    CAPTURE(k);
                    CAPTURE(a_turned);
                    CAPTURE(b_turned);
                    CHECK(worst_of_product<float>(m, n, k, a_turned, b_turned, accumulate) < 1e-5);
                    CHECK(worst_of_product<double>(m, n, k, a_turned, b_turned, accumulate) < 1e-13);
                }
}
