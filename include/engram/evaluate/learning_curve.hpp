#pragma once
// SPDX-License-Identifier: MIT

// Learning curves that can be read: each run is smoothed onto a common grid of steps, and the runs of an ablation
// become their mean, or their median as in the papers' figures (errata M44), and the band from their least to their
// greatest; the same for values over time steps or over levels.
//
//   y(g) = sum_i w_i e_i r_i / sum_i w_i e_i,  w_i = max(0, 1 - |x_i - g| / h),  h = 3 % of the longest run,
// where r_i is the mean reward of the e_i episodes that ended in window i; the column `episodes` counts them from the
// start of the run. Grid points out of a run's own steps are
// left out; where no window is within h, the neighbours on both sides are joined by a line.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <engram/evaluate/names.hpp>
#include <engram/evaluate/run_folder.hpp>

namespace engram {

struct curve_points {
    std::vector<double> x, y;
};

struct curve_band {
    std::vector<double> x, middle, low, high;
    std::vector<curve_points> tails;  // of runs that are longer than the shortest one of the ablation
};

/// Steps from 0 to the last one, at equal distances.
inline std::vector<double> curve_grid(double last_step, int points = 160) {
    std::vector<double> grid;
    for (int i = 0; i <= points; ++i) grid.push_back(last_step * i / points);
    return grid;
}

/// The run's values at the grid points between its first and its last value.
inline curve_points smooth_curve(const metrics_columns& metrics, std::string_view column,
                                 const std::vector<double>& grid) {
    curve_points raw, out;
    const auto* steps = metrics.steps();
    const auto* values = metrics.find(column);
    if (!steps || !values || grid.empty()) return out;
    const auto* episodes = column == "reward" ? metrics.find("episodes") : nullptr;
    std::vector<double> weight;
    double before = 0;
    for (std::size_t i = 0; i < values->size(); ++i) {
        if (!std::isfinite((*values)[i]) || !std::isfinite((*steps)[i])) continue;
        if (!raw.x.empty() && (*steps)[i] < raw.x.back()) continue;  // what a resumed run repeated
        const double count = episodes && std::isfinite((*episodes)[i]) ? (*episodes)[i] : before + 1;
        const double e = std::max(1.0, count - before);
        before = count;
        raw.x.push_back((*steps)[i]), raw.y.push_back((*values)[i]), weight.push_back(e);
    }
    if (raw.x.empty()) return out;
    const double width = std::max(0.03 * grid.back(), 1e-9), spacing = grid.size() > 1 ? grid[1] - grid[0] : 1;
    std::size_t begin = 0;
    for (const double g : grid) {
        if (g < raw.x.front() - spacing / 2 || g > raw.x.back() + spacing / 2) continue;
        while (begin < raw.x.size() && raw.x[begin] <= g - width) ++begin;
        double sum = 0, total = 0;
        for (std::size_t i = begin; i < raw.x.size() && raw.x[i] < g + width; ++i) {
            const double w = weight[i] * (1 - std::abs(raw.x[i] - g) / width);
            sum += w * raw.y[i], total += w;
        }
        double y;
        if (total > 0) {
            y = sum / total;
        } else if (begin == 0 || begin == raw.x.size()) {
            y = raw.y[begin == 0 ? 0 : begin - 1];
        } else {
            const double gap = raw.x[begin] - raw.x[begin - 1];
            y = raw.y[begin - 1] + (raw.y[begin] - raw.y[begin - 1]) * (g - raw.x[begin - 1]) / gap;
        }
        out.x.push_back(g), out.y.push_back(y);
    }
    return out;
}

/// What stands for several seeds; scores are means always.
enum class curve_middle { mean, median };

/// The mean or the median of values of several seeds, one at least.
inline double middle_of(std::vector<double> values, curve_middle which) {
    double sum = 0;
    for (const double v : values) sum += v;
    if (which == curve_middle::mean) return sum / static_cast<double>(values.size());
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Mean or median, worst and best of several runs at the steps of a grid.
inline curve_band band_of_runs(const std::vector<const run_record*>& runs, std::string_view column,
                               const std::vector<double>& grid, curve_middle which = curve_middle::mean) {
    std::vector<curve_points> curves;
    for (const auto* run : runs)
        if (auto curve = smooth_curve(run->metrics, column, grid); !curve.x.empty()) curves.push_back(std::move(curve));
    curve_band out;
    if (curves.empty()) return out;
    double from = 0, to = std::numeric_limits<double>::infinity();
    for (const auto& c : curves) from = std::max(from, c.x.front());
    // A seed that has not come to where the others begin has no part in the band yet.
    std::erase_if(curves, [&](const auto& c) { return c.x.back() < from; });
    for (const auto& c : curves) to = std::min(to, c.x.back());
    for (const double g : grid) {
        if (g < from || g > to) continue;
        std::vector<double> at;
        for (const auto& c : curves)
            at.push_back(c.y[static_cast<std::size_t>(std::lower_bound(c.x.begin(), c.x.end(), g) - c.x.begin())]);
        out.x.push_back(g), out.middle.push_back(middle_of(at, which));
        out.low.push_back(*std::min_element(at.begin(), at.end()));
        out.high.push_back(*std::max_element(at.begin(), at.end()));
    }
    for (const auto& c : curves) {
        curve_points tail;
        for (std::size_t i = 0; i < c.x.size(); ++i)
            if (c.x[i] >= to) tail.x.push_back(c.x[i]), tail.y.push_back(c.y[i]);
        if (tail.x.size() > 1) out.tails.push_back(std::move(tail));
    }
    return out;
}

/// The band from `x` on, the whole band where little would remain.
inline curve_band band_from(curve_band band, double x) {
    const auto skip = std::lower_bound(band.x.begin(), band.x.end(), x) - band.x.begin();
    if (skip + 2 > static_cast<std::ptrdiff_t>(band.x.size())) return band;
    for (auto* list : {&band.x, &band.middle, &band.low, &band.high}) list->erase(list->begin(), list->begin() + skip);
    return band;
}

/// Mean, least and greatest of several lists of values at the places `x`; what is not a number does not count.
inline curve_band band_of_lists(const std::vector<std::vector<double>>& lists, const std::vector<double>& x) {
    curve_band out;
    for (std::size_t i = 0; i < x.size(); ++i) {
        double sum = 0, low = std::numeric_limits<double>::infinity(), high = -low;
        int count = 0;
        for (const auto& list : lists) {
            if (i >= list.size() || !std::isfinite(list[i])) continue;
            sum += list[i], low = std::min(low, list[i]), high = std::max(high, list[i]), ++count;
        }
        if (count == 0) continue;
        out.x.push_back(x[i]), out.middle.push_back(sum / count), out.low.push_back(low), out.high.push_back(high);
    }
    return out;
}

/// KL over the time steps of a level, from the runs that were evaluated on it.
inline curve_band band_of_steps(const std::vector<const run_record*>& runs, std::string_view level) {
    std::vector<std::vector<double>> lists;
    std::vector<double> x;
    for (const auto* run : runs)
        for (const auto& result : run->levels)
            if (result.level == level) lists.push_back(result.divergence);
    for (const auto& list : lists)
        while (x.size() < list.size()) x.push_back(static_cast<double>(x.size()));
    return band_of_lists(lists, x);
}

/// Steps to the goal over how often it has been found, of the runs that were evaluated on a level; only as far as half
/// of a run's episodes came.
inline curve_band band_of_goals(const std::vector<const run_record*>& runs, std::string_view level) {
    std::vector<std::vector<double>> lists;
    std::vector<double> x;
    for (const auto* run : runs)
        for (const auto& result : run->levels)
            if (result.level == level) lists.push_back(result.goals.of_most(result.episodes));
    for (const auto& list : lists)
        while (x.size() < list.size()) x.push_back(static_cast<double>(x.size() + 1));
    return band_of_lists(lists, x);
}

/// The mean of a level over the number in its name.
inline curve_band band_of_levels(const std::vector<const run_record*>& runs, const std::vector<std::string>& levels) {
    std::vector<double> x;
    std::vector<std::vector<double>> lists(runs.size());
    for (const auto& level : levels) {
        const auto number = level_number(level);
        if (!number) continue;
        x.push_back(*number);
        for (std::size_t r = 0; r < runs.size(); ++r) {
            lists[r].push_back(std::numeric_limits<double>::quiet_NaN());
            for (const auto& result : runs[r]->levels)
                if (result.level == level) lists[r].back() = result.mean;
        }
    }
    return band_of_lists(lists, x);
}

/// Round numbers from the first at or above `low` to the last at or below `high`, about `count` of them.
inline std::vector<double> round_ticks(double low, double high, int count) {
    // Ticks closer than this could not be told apart, nor counted.
    if (!(high - low > 1e-9 * std::max(std::abs(low), std::abs(high)))) return {low};
    const double raw = (high - low) / count, power = std::pow(10.0, std::floor(std::log10(raw)));
    const double factor = raw / power;
    const double step = power * (factor <= 1.0001 ? 1 : factor <= 2.0001 ? 2 : factor <= 5.0001 ? 5 : 10);
    std::vector<double> ticks;
    for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i) ticks.push_back(i * step);
    return ticks;
}

}  // namespace engram
