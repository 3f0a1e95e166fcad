#pragma once
// Kernels against differences: how far apart two rows are, and gradients against central differences.

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

/// Largest difference of two rows of one length.
inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
    return worst;
}

/// Largest error of `gradient` against fourth-order differences of `loss` over x, relative to the largest difference.
inline double gradient_error(std::vector<double>& x, const std::vector<double>& gradient, double h,
                             const std::function<double()>& loss) {
    double worst = 0, scale = 1e-3;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double keep = x[i];
        double difference = 0;
        for (int step : {-2, -1, 1, 2}) {
            x[i] = keep + step * h;
            difference += (step == 1 || step == -1 ? 8.0 : -1.0) * (step > 0 ? 1.0 : -1.0) * loss();
        }
        x[i] = keep;
        difference /= 12 * h;
        worst = std::max(worst, std::abs(difference - gradient[i]));
        scale = std::max(scale, std::abs(difference));
    }
    return worst / scale;
}
