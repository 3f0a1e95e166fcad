#pragma once
// SPDX-License-Identifier: MIT

// An episode as pictures: the strip of its trials, under each repeat what the memory gave back, and the map of read
// weights, trial x recalled trial. Pictures are CSS backgrounds, each written once however often it is recalled.

#include <algorithm>
#include <cmath>
#include <string>

#include <engram/evaluate/retrieval.hpp>

#include "svg_chart.hpp"

namespace engram {

/// Share of 0 to 1 as a whole percentage; "under 1 %" is not 0.
inline std::string share_text(double share) {
    const double percent = 100 * share;
    return percent > 0 && percent < 0.5 ? "under 1\u00a0%" : fixed(percent, 0) + "\u00a0%";
}

/// The episode as a picture: trial against recalled trial, the weight as a disc (SVG).
inline std::string retrieval_map(const retrieval_episode& episode) {
    const int n = static_cast<int>(episode.trials.size());
    const double cell = n <= 20 ? 20 : n <= 40 ? 13 : n <= 80 ? 9 : 6, left = 44, top = 8;
    const double size = cell * n, width = left + size + 26, height = top + size + 44;
    std::string out = "<svg class='map' viewBox='0 0 " + fixed(width, 0) + " " + fixed(height, 0) +
                      "' style='max-width:" + fixed(std::max(width * 1.2, 560.0), 0) +
                      "px' role='img' aria-label='Read weight of each trial on each earlier trial'>";
    out += "<rect class='field' x='" + fixed(left, 1) + "' y='" + fixed(top, 1) + "' width='" + fixed(size, 1) +
           "' height='" + fixed(size, 1) + "'/>";
    for (int i = 0; i < n; ++i) {
        const auto& trial = episode.trials[static_cast<std::size_t>(i)];
        const double y = top + cell * i;
        for (const auto& read : trial.read) {
            if (read.weight < 0.005) continue;
            const auto& recalled = episode.trials[static_cast<std::size_t>(read.position)];
            const bool same = recalled.stimulus == trial.stimulus;
            const bool outlined = read.weight >= 0.2;
            const double inset = outlined ? 0.75 : 0;
            out += "<rect class='weight" + std::string(outlined ? same ? " right" : " wrong" : "") + "' x='" +
                   fixed(left + cell * read.position + inset, 2) + "' y='" + fixed(y + inset, 2) + "' width='" +
                   fixed(cell - 2 * inset, 2) + "' height='" + fixed(cell - 2 * inset, 2) + "' fill-opacity='" +
                   fixed(std::sqrt(std::min(read.weight, 1.0)), 2) + "'><title>trial " + escape_html(trial.trial) +
                   " recalls trial " + escape_html(recalled.trial) + " (" + (same ? "same image" : "another image") +
                   "), weight " + fixed(read.weight, 2) + "</title></rect>";
        }
        out += "<circle class='" + std::string(trial.correct ? "right" : "wrong") + (trial.repeat ? "" : " new") +
               "' cx='" + fixed(left + size + 12, 1) + "' cy='" + fixed(y + cell / 2, 1) + "' r='" +
               fixed(std::min(cell / 2 - 1.2, 4.5), 1) + "'><title>trial " + escape_html(trial.trial) + ": " +
               (trial.repeat ? "repeat, " : "new image, ") + (trial.correct ? "right" : "wrong") + "</title></circle>";
    }
    for (const double t : round_ticks(0, n - 1, std::max(2, std::min(n, 6)))) {
        if (t != std::floor(t)) continue;
        const double at = cell * (t + 0.5);
        const std::string& name = episode.trials[static_cast<std::size_t>(t)].trial;
        out += svg_text(left - 6, top + at + 4, "end", name, "tick") +
               svg_text(left + at, top + size + 15, "middle", name, "tick");
    }
    out += svg_text(left + size / 2, height - 8, "middle", "recalled trial", "title") +
           "<text class='title' text-anchor='middle' transform='translate(11," + fixed(top + size / 2, 1) +
           ") rotate(-90)'>trial</text>";
    return out + "</svg>";
}

/// Rules `.<prefix>i7{...}` with the picture of each trial.
inline std::string retrieval_pictures(const retrieval_episode& episode, const std::string& prefix) {
    std::string out;
    for (std::size_t i = 0; i < episode.trials.size(); ++i)
        if (!episode.trials[i].image.empty())
            out += "." + prefix + "i" + std::to_string(i) + "{background-image:url(data:image/png;base64," +
                   episode.trials[i].image + ")}\n";
    return out;
}

/// The episode as a list of trials with what was recalled (HTML).
inline std::string retrieval_strip(const retrieval_episode& episode, const std::string& prefix) {
    constexpr std::size_t shown = 3;
    std::string out = "<ol class='strip'>";
    for (std::size_t i = 0; i < episode.trials.size(); ++i) {
        const auto& trial = episode.trials[i];
        const auto picture = [&](std::size_t of, const std::string& classes, const std::string& words) {
            const auto& t = episode.trials[of];
            return "<i class='" + classes + (t.image.empty() ? " blank" : " " + prefix + "i" + std::to_string(of)) +
                   "' role='img' style='aspect-ratio:" + std::to_string(t.width) + "/" + std::to_string(t.height) +
                   "' title='" + escape_html(words) + "' aria-label='" + escape_html(words) + "'>" +
                   (t.image.empty() ? escape_html(t.stimulus) : "") + "</i>";
        };
        std::string words = "trial " + trial.trial + ", " + (trial.repeat ? "seen before" : "new image");
        if (!trial.action.empty()) words += ", chose " + trial.action;
        if (!trial.answer.empty()) words += ", the answer is " + trial.answer;
        words += trial.correct ? ": right" : ": wrong";
        out += "<li class='" + std::string(trial.correct ? "right" : "wrong") + (trial.repeat ? " repeat" : "") +
               "'><span class='when'><b>" + escape_html(trial.trial) + "</b>" + (trial.repeat ? "" : " new") +
               "</span>" + picture(i, "shown", words);
        if (trial.repeat && !trial.read.empty()) {
            out += "<span class='recalled'>";
            for (std::size_t k = 0; k < std::min(shown, trial.read.size()); ++k) {
                const auto& read = trial.read[k];
                const auto of = static_cast<std::size_t>(read.position);
                const bool same = episode.trials[of].stimulus == trial.stimulus;
                out += "<span class='" + std::string(same ? "same" : "other") +
                       "' style='--w:" + fixed(read.weight, 3) + "'>" +
                       picture(of, "thumb",
                               "recalls trial " + episode.trials[of].trial +
                                   (same ? " (the same image)" : " (another image)") + " with weight " +
                                   fixed(read.weight, 2)) +
                       "<u></u></span>";
            }
            out += "</span>";
        } else if (trial.repeat) {
            out += "<span class='recalled none'>nothing read</span>";
        }
        out += "</li>";
    }
    return out + "</ol>";
}

/// The whole view of one episode; `prefix` keeps the classes of several episodes on one page apart.
inline std::string retrieval_view(const retrieval_episode& episode, const std::string& prefix) {
    const auto figures = retrieval_summary(episode);
    const auto of = [](int part, int whole) {
        return "<b>" + std::to_string(part) + "</b> of " + std::to_string(whole);
    };
    std::string out = "<style>" + retrieval_pictures(episode, prefix) + "</style><ul class='figures'>";
    if (figures.repeats > 0)
        out += "<li>" + of(figures.repeats_correct, figures.repeats) +
               "<span>right when the image was seen before</span></li>";
    if (figures.first > 0)
        out += "<li>" + of(figures.first_correct, figures.first) + "<span>right when the image was new</span></li>";
    if (figures.share)
        out += "<li><b>" + share_text(*figures.share) +
               "</b><span>of the read weight on repeats lies on the same image "
               "(reading all earlier trials alike: " +
               share_text(figures.uniform) + ")</span></li>";
    out +=
        "</ul><p class='key'><span class='swatch right'></span>answered right <span class='swatch "
        "wrong'></span>answered "
        "wrong. Under a repeated image: the trials that the memory gave back, the heaviest first; the bar is the read "
        "weight, "
        "<span class='swatch right bar'></span>on the same image, <span class='swatch wrong bar'></span>on another "
        "one.</p>";
    out += retrieval_strip(episode, prefix);
    out +=
        "<figure class='mapped'>" + retrieval_map(episode) +
        "<figcaption>Each row is a trial, each column an earlier trial; the darker a cell, the more of that trial the "
        "memory "
        "gave back. Cells of a fifth of the weight or more are outlined: green where the recalled image is the one on "
        "the panel, red where it is another. Dots on the right tell whether the answer was right (hollow: a new image)."
        "</figcaption></figure>";
    return out;
}

}  // namespace engram
