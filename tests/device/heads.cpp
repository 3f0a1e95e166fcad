// Heads side by side on an emulated device: against the host, against central differences, in any order of threads.

#include <engram/device/operations.hpp>

#include "../graph/ops/heads.hpp"

using namespace heads_test;

TEST_CASE("heads on a device equal those on the host, in any order of threads") {
    for (const auto& [N, H, K] : {std::array{3, 2, 3}, std::array{33, 1, 2}, std::array{2, 3, 11}}) {
        const auto host = numbers_of<cpu<double>>(N, H, K), device = numbers_of<emulated<double>>(N, H, K);
        REQUIRE(host.size() == device.size());
        double worst = 0;
        for (std::size_t i = 0; i < host.size(); ++i) worst = std::max(worst, std::abs(host[i] - device[i]));
        CHECK(worst < 1e-12);
        CHECK(numbers_of<emulated<double>>(N, H, K, thread_order::descending) == device);
        CHECK(numbers_of<emulated<double>>(N, H, K, thread_order::scrambled) == device);
    }
}

TEST_CASE("gradients on a device agree with central differences") {
    gradients_agree<emulated<double>>(3, 2, 3);
}
