#pragma once
// SPDX-License-Identifier: MIT

// Charts as SVG text for the report page: lines with bands, and bars. Colours are the classes c0 to c9 and the few
// others of report_style.hpp, so that light and dark need no second drawing.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <engram/evaluate/learning_curve.hpp>
#include <engram/evaluate/names.hpp>

namespace engram {

/// Text as HTML shows it, in elements and in quoted attributes.
inline std::string escape_html(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            case '\'':
                out += "&#39;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

/// Text as a JSON string within a quoted attribute.
inline std::string quoted(const std::string& text) {
    return escape_html(json(text).dump(-1, ' ', false, json::error_handler_t::replace));
}

/// A label of at most 27 bytes, cut between characters.
inline std::string shortened(std::string text) {
    if (text.size() <= 27) return text;
    std::size_t end = 26;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    return text.substr(0, end) + "\u2026";
}

struct chart_series {
    std::string name;
    int colour = 0;
    curve_band band;
};

struct chart_frame {
    int width = 960, height = 400;
    std::string y_title;
    std::optional<double> maximum = {}, random = {};  // horizontal lines
    bool from_zero = true;                            // the y axis holds 0
    bool label_y = true;                              // y_title stands beside the axis
    bool label_ends = false;                          // names at the right end of the lines, in place of a legend
    std::string x_title = "environment steps";
    std::string x_unit = {};          // what follows x under the pointer; empty: steps
    bool points = false;              // x are whole numbers, each with a dot
    std::optional<double> mark = {};  // a vertical line
    std::string mark_name = {};
};

/// A text at a place of a chart.
inline std::string svg_text(double x, double y, std::string_view anchor, const std::string& text,
                            std::string_view classes = "") {
    return "<text x='" + fixed(x, 1) + "' y='" + fixed(y, 1) + "' text-anchor='" + std::string(anchor) + "' class='" +
           std::string(classes) + "'>" + escape_html(text) + "</text>";
}

/// Moves `y` apart until neighbours are `gap` away from each other, all within [low, high] as far as they fit.
inline void spread_labels(std::vector<double>& y, double gap, double low, double high) {
    std::vector<std::size_t> order(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return y[a] < y[b]; });
    for (int round = 0; round < 50; ++round)
        for (std::size_t i = 1; i < order.size(); ++i) {
            const double missing = gap - (y[order[i]] - y[order[i - 1]]);
            if (missing > 0) y[order[i]] += missing / 2, y[order[i - 1]] -= missing / 2;
        }
    for (std::size_t i = 0; i < order.size(); ++i)
        y[order[i]] = std::max(y[order[i]], i == 0 ? low : y[order[i - 1]] + gap);
    for (std::size_t i = order.size(); i-- > 0;)
        y[order[i]] = std::min(y[order[i]], i + 1 == order.size() ? high : y[order[i + 1]] - gap);
}

/// Curves with bands, axes, reference lines and names at their ends.
inline std::string line_chart(const std::vector<chart_series>& series, const chart_frame& frame) {
    double last = 0, low = frame.from_zero ? 0 : 1e300, high = frame.from_zero ? 0 : -1e300;
    for (const auto& s : series) {
        for (std::size_t i = 0; i < s.band.x.size(); ++i) {
            last = std::max(last, s.band.x[i]);
            low = std::min(low, s.band.low[i]), high = std::max(high, s.band.high[i]);
        }
        for (const auto& t : s.band.tails)
            for (std::size_t i = 0; i < t.x.size(); ++i)
                last = std::max(last, t.x[i]), low = std::min(low, t.y[i]), high = std::max(high, t.y[i]);
    }
    if (frame.maximum) high = std::max(high, *frame.maximum);
    // A constant lies in the middle; smoothing may leave its last digits uneven.
    if (const double size = std::max(std::abs(low), std::abs(high)); !(high - low > 1e-9 * size)) {
        high += size > 0 ? size / 2 : 1;
        low -= size / 2;
    }
    const double slack = 0.05 * (high - low);
    high += slack;
    if (low != 0) low -= slack;
    if (last <= 0) last = 1;

    const double left = 54, top = 16, bottom = frame.height - 46.0;
    std::size_t longest = 0;
    for (const auto& s : series) longest = std::max(longest, shortened(s.name).size());
    const double right =
        frame.width - (frame.label_ends ? std::min(250.0, 34 + 8.2 * static_cast<double>(longest)) : 14.0);
    const auto px = [&](double x) { return left + (right - left) * x / last; };
    const auto py = [&](double y) { return bottom - (bottom - top) * (y - low) / (high - low); };
    const auto path = [&](const std::vector<double>& x, const std::vector<double>& y, const char* start) {
        std::string d = start;
        for (std::size_t i = 0; i < x.size(); ++i) d += (i ? " " : "") + fixed(px(x[i]), 1) + "," + fixed(py(y[i]), 1);
        return d;
    };
    std::string out = "<svg class='chart' viewBox='0 0 " + std::to_string(frame.width) + " " +
                      std::to_string(frame.height) + "' role='img' aria-label='" + escape_html(frame.y_title) +
                      " over " + escape_html(frame.x_title) + "'";
    std::string data = "{\"l\":" + fixed(left, 1) + ",\"r\":" + fixed(right, 1) + ",\"t\":" + fixed(top, 1) +
                       ",\"b\":" + fixed(bottom, 1) + ",\"x\":" + significant(last, 9) +
                       (frame.x_unit.empty() ? "" : ",\"u\":" + quoted(frame.x_unit)) +
                       (frame.points ? ",\"w\":1" : "") + ",\"s\":[";
    for (std::size_t k = 0; k < series.size(); ++k) {
        const auto& s = series[k];
        data += std::string(k ? "," : "") + "{\"c\":" + std::to_string(s.colour % 10) +
                (frame.x_unit.empty() ? "" : ",\"n\":" + quoted(s.name)) + ",\"x\":[";
        for (std::size_t i = 0; i < s.band.x.size(); ++i) data += (i ? "," : "") + significant(s.band.x[i], 6);
        data += "],\"y\":[";
        for (std::size_t i = 0; i < s.band.x.size(); ++i) data += (i ? "," : "") + significant(s.band.middle[i], 4);
        data += "],\"p\":[";
        for (std::size_t i = 0; i < s.band.x.size(); ++i) data += (i ? "," : "") + fixed(py(s.band.middle[i]), 1);
        data += "]}";
    }
    out += " data-curves='" + data + "]}'>";
    const double plot_height = bottom - top, plot_width = right - left;
    for (const double y : round_ticks(low, high, std::max(2, static_cast<int>(plot_height / 62)))) {
        out += "<line class='grid' x1='" + fixed(left, 1) + "' x2='" + fixed(right, 1) + "' y1='" + fixed(py(y), 1) +
               "' y2='" + fixed(py(y), 1) + "'/>" + svg_text(left - 8, py(y) + 4, "end", short_count(y), "tick");
    }
    for (const double x : round_ticks(0, last, std::max(2, static_cast<int>(plot_width / 110)))) {
        if (frame.points && x != std::round(x)) continue;
        out += "<line class='axis' x1='" + fixed(px(x), 1) + "' x2='" + fixed(px(x), 1) + "' y1='" + fixed(bottom, 1) +
               "' y2='" + fixed(bottom + 5, 1) + "'/>" +
               svg_text(px(x), bottom + 19, px(x) > right - 12 && !frame.label_ends ? "end" : "middle", short_count(x),
                        "tick");
    }
    out += "<line class='axis' x1='" + fixed(left, 1) + "' x2='" + fixed(right, 1) + "' y1='" + fixed(bottom, 1) +
           "' y2='" + fixed(bottom, 1) + "'/>" +
           svg_text((left + right) / 2, frame.height - 8.0, "middle", frame.x_title, "title");
    if (frame.label_y)
        out += "<text class='title' text-anchor='middle' transform='translate(13," + fixed((top + bottom) / 2, 1) +
               ") rotate(-90)'>" + escape_html(frame.y_title) + "</text>";
    for (const auto& [value, name] : {std::pair{frame.maximum, "maximum "}, {frame.random, "acting at random "}}) {
        if (!value) continue;
        out += "<line class='reference' x1='" + fixed(left, 1) + "' x2='" + fixed(right, 1) + "' y1='" +
               fixed(py(*value), 1) + "' y2='" + fixed(py(*value), 1) + "'/>" +
               svg_text(right - 4, py(*value) + (value == frame.maximum ? -5 : 14), "end", name + significant(*value),
                        "note");
    }
    if (frame.mark)
        out += "<line class='reference' x1='" + fixed(px(*frame.mark), 1) + "' x2='" + fixed(px(*frame.mark), 1) +
               "' y1='" + fixed(top, 1) + "' y2='" + fixed(bottom, 1) + "'/>" +
               svg_text(px(*frame.mark) - 6, top + 10, "end", frame.mark_name, "note");
    for (const auto& s : series) {
        if (s.band.x.empty()) continue;
        const std::string colour = "c" + std::to_string(s.colour % 10);
        std::vector<double> x = s.band.x, y = s.band.high;
        x.insert(x.end(), s.band.x.rbegin(), s.band.x.rend());
        y.insert(y.end(), s.band.low.rbegin(), s.band.low.rend());
        out += "<path class='band " + colour + "' d='" + path(x, y, "M") + "Z'/>";
    }
    std::vector<double> ends;
    std::vector<const chart_series*> ended;
    for (const auto& s : series) {
        if (s.band.x.empty()) continue;
        const std::string colour = "c" + std::to_string(s.colour % 10);
        for (const auto& t : s.band.tails) out += "<path class='tail " + colour + "' d='" + path(t.x, t.y, "M") + "'/>";
        out += "<path class='line " + colour + "' d='" + path(s.band.x, s.band.middle, "M") + "'><title>" +
               escape_html(s.name) + "</title></path>";
        for (std::size_t i = 0; frame.points && i < s.band.x.size(); ++i)
            out += "<circle class='bar " + colour + "' cx='" + fixed(px(s.band.x[i]), 1) + "' cy='" +
                   fixed(py(s.band.middle[i]), 1) + "' r='3.2'/>";
        ends.push_back(py(s.band.middle.back()));
        ended.push_back(&s);
    }
    if (frame.label_ends) {
        const std::vector<double> exact = ends;
        spread_labels(ends, 17, top + 4, bottom - 2);
        for (std::size_t i = 0; i < ends.size(); ++i) {
            const std::string colour = "c" + std::to_string(ended[i]->colour % 10);
            const double end = px(ended[i]->band.x.back());
            out += "<path class='leader " + colour + "' d='M" + fixed(end + 2, 1) + "," + fixed(exact[i], 1) + " L" +
                   fixed(right + 12, 1) + "," + fixed(ends[i], 1) + "'/>" +
                   svg_text(right + 16, ends[i] + 4, "start", shortened(ended[i]->name), "end " + colour);
        }
    }
    return out + "</svg>";
}

struct chart_bar {
    std::string name, label;
    int colour = 0;
    double value = 0, error = 0;
};

/// Horizontal bars from 0 to `limit`, with error bars; `random` is a vertical line.
inline std::string bar_chart(const std::vector<chart_bar>& bars, double limit, std::optional<double> random,
                             const std::string& title) {
    const double width = 330, row = 38, top = 2, right = width - 6;
    const double height = top + row * static_cast<double>(bars.size()) + (random ? 18 : 4);
    const auto px = [&](double v) { return right * std::clamp(v / limit, 0.0, 1.0); };
    std::string out = "<svg class='bars' viewBox='0 0 " + fixed(width, 0) + " " + fixed(height, 0) +
                      "' role='img' aria-label='" + escape_html(title) + "'>";
    double y = top;
    for (const auto& b : bars) {
        const std::string colour = "c" + std::to_string(b.colour % 10);
        out +=
            svg_text(0, y + 13, "start", shortened(b.name), "name") + svg_text(right, y + 13, "end", b.label, "value");
        out += "<rect class='track' x='0' y='" + fixed(y + 19, 1) + "' width='" + fixed(right, 1) +
               "' height='9' rx='4.5'/>" + "<rect class='bar " + colour + "' x='0' y='" + fixed(y + 19, 1) +
               "' width='" + fixed(std::max(px(b.value), 2.0), 1) + "' height='9' rx='4.5'/>";
        const double from = px(b.value - b.error), to = px(b.value + b.error);
        if (to - from > 3)
            out += "<path class='whisker' d='M" + fixed(from, 1) + "," + fixed(y + 23.5, 1) + "H" + fixed(to, 1) + "M" +
                   fixed(from, 1) + "," + fixed(y + 20.5, 1) + "v6M" + fixed(to, 1) + "," + fixed(y + 20.5, 1) +
                   "v6'/>";
        y += row;
    }
    if (random)
        out += "<line class='reference' x1='" + fixed(px(*random), 1) + "' x2='" + fixed(px(*random), 1) + "' y1='" +
               fixed(top + 16, 1) + "' y2='" + fixed(y - 4, 1) + "'/>" +
               svg_text(px(*random), y + 11,
                        px(*random) < 60           ? "start"
                        : px(*random) > width - 60 ? "end"
                                                   : "middle",
                        "acting at random", "note");
    return out + "</svg>";
}

}  // namespace engram
