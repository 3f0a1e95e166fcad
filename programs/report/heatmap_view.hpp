#pragma once
// SPDX-License-Identifier: MIT

// Maps of ablation x task on the report page: SVG with a number in every cell and its error under the pointer.
//
// Colours go from light to dark with strictly falling luminance, in hues that are told apart without red or green
// (the sequential scales YlGnBu and, for the gap, YlOrBr of ColorBrewer); scores are clamped to 0 .. 100, gaps too.
// A number is black or white, whichever stands out more: never less than a contrast of 4.5. What is not to be trusted
// is hatched and carries a dagger that a footnote explains; what was not measured is an empty frame.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <engram/evaluate/heatmap.hpp>

#include "comparison_view.hpp"
#include "svg_chart.hpp"

namespace engram {

struct map_colour {
    double r = 0, g = 0, b = 0;  // 0 to 255

    std::string text() const {
        char out[8];
        std::snprintf(out, sizeof out, "#%02x%02x%02x", static_cast<int>(std::lround(r)) & 255,
                      static_cast<int>(std::lround(g)) & 255, static_cast<int>(std::lround(b)) & 255);
        return out;
    }
    /// Relative luminance, 0 black to 1 white (WCAG 2).
    double luminance() const {
        const auto linear = [](double c) {
            c /= 255;
            return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
        };
        return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    }
    bool takes_black() const { return (luminance() + 0.05) / 0.05 >= 1.05 / (luminance() + 0.05); }
};

/// The colour of a score in %, or of a gap in points.
inline map_colour heat_colour(double percent, bool gap = false) {
    static constexpr map_colour scales[2][9] = {{{255, 255, 217},
                                                 {237, 248, 177},
                                                 {199, 233, 180},
                                                 {127, 205, 187},
                                                 {65, 182, 196},
                                                 {29, 145, 192},
                                                 {34, 94, 168},
                                                 {37, 52, 148},
                                                 {8, 29, 88}},
                                                {{255, 255, 229},
                                                 {255, 247, 188},
                                                 {254, 227, 145},
                                                 {254, 196, 79},
                                                 {254, 153, 41},
                                                 {236, 112, 20},
                                                 {204, 76, 2},
                                                 {153, 52, 4},
                                                 {102, 37, 6}}};
    const double at = 8 * std::clamp(percent / 100, 0.0, 1.0);
    const int i = std::min(static_cast<int>(at), 7);
    const map_colour &low = scales[gap][i], &high = scales[gap][i + 1];
    const double f = at - i;
    return {low.r + f * (high.r - low.r), low.g + f * (high.g - low.g), low.b + f * (high.b - low.b)};
}

/// `id` is unique on the page.
inline std::string heat_map_svg(const heat_map& map, const std::string& id) {
    constexpr double cell = 46, tall = 34, left = 132, head = 148, space = 10;
    const bool gap = map.level == gap_level;
    std::vector<double> x;  // left edges of the columns; the last one is that of the averages
    double at = left;
    for (std::size_t t = 0; t < map.tasks.size(); ++t) {
        const auto family = [&](std::size_t i) { return std::string(suite_tasks[map.tasks[i]].family); };
        if (t > 0 && family(t) != family(t - 1)) at += space;
        x.push_back(at);
        at += cell;
    }
    x.push_back(at + space);
    const double width = x.back() + cell + 44;  // room for the last slanted title
    const double bottom = head + tall * static_cast<double>(map.rows.size()) + space;
    const double height = bottom + tall + 4;
    const std::string name = (map.of_paper ? "The paper: " : "Measured: ") + heat_title(map);
    std::string out = "<svg class='heatmap' style='max-width:" + fixed(1.25 * width, 0) + "px' viewBox='0 0 " +
                      fixed(width, 0) + " " + fixed(height, 0) + "' role='img' aria-label='" + escape_html(name) +
                      "'><defs><pattern id='" + id +
                      "' width='6' height='6' patternUnits='userSpaceOnUse' patternTransform='rotate(45)'>"
                      "<path d='M0,0V6' stroke='#808080' stroke-width='2.4' stroke-opacity='.5'/></pattern></defs>";
    const auto slanted = [&](double column, const std::string& text) {
        out += "<text transform='translate(" + fixed(column + cell / 2, 1) + "," + fixed(head - 8, 1) +
               ") rotate(-48)' class='title'>" + escape_html(text) + "</text>";
    };
    for (std::size_t t = 0; t < map.tasks.size(); ++t) slanted(x[t], suite_tasks[map.tasks[t]].title);
    slanted(x.back(), "Mean");
    // Families over their columns, where there are several.
    for (std::size_t t = 0, from = 0; t < map.tasks.size(); ++t) {
        const std::string family = suite_tasks[map.tasks[t]].family;
        if (t + 1 < map.tasks.size() && suite_tasks[map.tasks[t + 1]].family == family) continue;
        out += "<path class='axis' d='M" + fixed(x[from] + 1, 1) + "," + fixed(head - 3, 1) + "H" +
               fixed(x[t] + cell - 1, 1) + "'><title>" + escape_html(family) + "</title></path>";
        from = t + 1;
    }
    const auto draw = [&](double column, double y, const std::optional<heat_cell>& c, const std::string& what,
                          bool average) {
        const std::string box = "x='" + fixed(column + 1, 1) + "' y='" + fixed(y + 1, 1) + "' width='" +
                                fixed(cell - 2, 1) + "' height='" + fixed(tall - 2, 1) + "' rx='4'";
        if (!c) {
            out +=
                "<rect class='unknown' " + box + "><title>" + escape_html(what + ": not measured") + "</title></rect>";
            return;
        }
        const map_colour colour = heat_colour(c->score.mean, gap);
        const std::string ink = colour.takes_black() ? "#000" : "#fff";
        std::string told = what + ": " + fixed(c->score.mean, 1);
        if (std::isfinite(c->score.standard_error)) told += " \u00b1 " + fixed(c->score.standard_error, 1);
        told += average ? ", mean of " + counted(c->score.count, "cell") : ", " + counted(c->score.count, "seed");
        if (c->after_training) told += "; evaluated after training";
        if (!c->doubt.empty()) told += "; not to be trusted: " + c->doubt;
        out += "<g><title>" + escape_html(told) + "</title><rect " + box + " fill='" + colour.text() + "'/>";
        if (!c->doubt.empty()) out += "<rect " + box + " fill='url(#" + id + ")'/>";
        const double middle = column + cell / 2, line = y + tall / 2 + (average ? -1 : 4.5);
        out += "<text x='" + fixed(middle, 1) + "' y='" + fixed(line, 1) + "' text-anchor='middle' style='fill:" + ink +
               "'>" + fixed(c->score.mean, std::abs(c->score.mean) >= 999.5 ? 0 : 1) +
               (c->doubt.empty() ? "" : "\u2020") + "</text>";
        if (average)
            out += "<text x='" + fixed(middle, 1) + "' y='" + fixed(y + tall / 2 + 11.5, 1) +
                   "' text-anchor='middle' style='font-size:9.5px;fill:" + ink + "'>of " +
                   std::to_string(c->score.count) + "</text>";
        out += "</g>";
    };
    const auto row = [&](double y, const std::string& title, const auto& cells, const std::optional<heat_cell>& mean,
                         bool average) {
        out += svg_text(left - 8, y + tall / 2 + 4.5, "end", shortened(title), "name");
        for (std::size_t t = 0; t < map.tasks.size(); ++t)
            draw(x[t], y, cells[t], title + " on " + plain_words(suite_tasks[map.tasks[t]].name), average);
        draw(x.back(), y, mean, title, true);
    };
    double y = head;
    for (const auto& r : map.rows) {
        row(y, ablation_title(r.ablation), r.cells, r.average, false);
        y += tall;
    }
    row(bottom, "Mean", map.averages, map.averages.back(), true);
    return out + "</svg>";
}

/// A bar from 0 to 100 in the colours of the maps.
inline std::string heat_scale_svg(bool gap) {
    std::string out =
        "<svg class='heatmap' style='max-width:340px' viewBox='0 0 340 34' role='img' aria-label='Colours'>";
    for (int i = 0; i < 50; ++i)
        out += "<rect x='" + std::to_string(10 + 6 * i) + "' y='2' width='6.5' height='12' fill='" +
               heat_colour(2 * i + 1, gap).text() + "'/>";
    for (const int percent : {0, 50, 100})
        out += svg_text(10 + 3 * percent, 29, "middle",
                        percent == 0     ? "0 or less"
                        : percent == 100 ? "100 or more"
                                         : "50",
                        "tick");
    return out + "</svg>";
}

/// The section of the page: for every fidelity and level what was measured, and the paper's beside it. Empty where
/// fewer than two tasks of the suite have scores.
inline std::string html_heat_maps(const std::vector<run_record>& runs) {
    std::string out, fidelity;
    for (const auto& map : measured_heat_maps(runs)) {
        if (map.tasks.size() < 2) continue;
        const bool gap = map.level == gap_level;
        const std::string id = "doubt-" + map.fidelity + "-" + std::to_string(map.level);
        if (fidelity != map.fidelity) {
            fidelity = map.fidelity;
            out += "<h2>" + counted(map.tasks.size(), "task") + " of the Memory Tasks Suite, " + fidelity +
                   " fidelity</h2><p class='sub'>Normalised scores, means over seeds; their standard errors are under "
                   "the pointer. Measured: " +
                   scale_in_words(fidelity) + ". The paper: " + scale_in_words("paper") +
                   ", from its raw tables for the same tasks. Means are over the cells that are there.</p>";
        }
        const heat_map paper = published_heat_map(map.level, map.tasks);
        out +=
            "<h3>" + escape_html(heat_title(map)) + "</h3>" +
            (gap ? "<p class='sub'>Train minus the mean of both holdout levels, in points; less is better.</p>" : "") +
            heat_scale_svg(gap) + "<div class='" + (map.tasks.size() > 5 ? "stack" : "pair") +
            "'><figure><figcaption>Measured</figcaption>" + heat_map_svg(map, id) +
            "</figure><figure><figcaption>The paper</figcaption>" + heat_map_svg(paper, id + "-paper") +
            "</figure></div>";
        std::string notes;
        for (const auto& [which, of] : {std::pair{"Measured", &map}, {"The paper", &paper}})
            for (const auto& note : of->notes())
                notes += "<li>" + std::string(which) + (note.find(':') != note.npos && of->of_paper ? ", " : ": ") +
                         escape_html(note) + ".</li>";
        const bool hatched = std::any_of(paper.rows.begin(), paper.rows.end(),
                                         [](const auto& r) { return r.average && !r.average->doubt.empty(); });
        if (hatched) notes = "<li>\u2020 Hatched cells, and means that hold one, are not to be trusted.</li>" + notes;
        if (!notes.empty()) out += "<ul class='footnotes'>" + notes + "</ul>";
    }
    return out.empty() ? out : "<section>" + out + "</section>\n";
}

/// All tasks of agents at a glance: the maps of the suite, and in % of the maximum where a task is not of the suite or
/// nothing has a score.
inline std::string html_all_tasks(const std::vector<run_record>& runs,
                                  const std::vector<std::pair<const task_comparison*, std::string>>& tasks) {
    const std::string maps = html_heat_maps(runs);
    const bool whole = !maps.empty() && std::all_of(tasks.begin(), tasks.end(),
                                                    [](const auto& t) { return suite_index(t.first->task); });
    return whole ? maps : maps + html_heat_map(tasks);
}

}  // namespace engram
