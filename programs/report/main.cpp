// SPDX-License-Identifier: MIT

// engram-report RUN... : one HTML page, CSV files and tables of text from run folders.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <engram/core/error.hpp>
#include <engram/core/settings.hpp>
#include <engram/evaluate/comparison_table.hpp>
#include <engram/evaluate/heatmap.hpp>
#include <engram/evaluate/measure_references.hpp>
#include <engram/evaluate/mixed_runs.hpp>
#include <engram/evaluate/orderings.hpp>
#include <engram/evaluate/run_rows.hpp>
#include <engram/io/file.hpp>
#include <engram/program/compiled_tasks.hpp>

#include "report_page.hpp"

namespace {

namespace fs = std::filesystem;

constexpr const char* usage =
    "usage: engram-report RUN... [--out FILE] [--csv FILE] [--runs FILE] [--title TEXT] [--median]\n"
    "       engram-report --measure-references EPISODES\n"
    "       engram-report --version\n\n"
    "Compares runs (folders that train and evaluate wrote): prints a table, writes one HTML page and the table as "
    "CSV. Runs on several tasks of the Memory Tasks Suite also give maps of normalised scores, with the paper's own; "
    "as CSV they stand beside the table, with the ending .heatmap.csv; and of agents that differ in one thing, "
    "which is better by a bootstrap over seeds and episodes, with the ending .orderings.csv.\n\n"
    "  --out FILE     the page; default: report.html in the folder that holds the runs\n"
    "  --csv FILE     the table; default: beside the page, with the ending .csv\n"
    "  --runs FILE    CSV with a row for each run and level, to be kept; written only if it is named\n"
    "  --title TEXT   the page's headline in place of the one that the data give\n"
    "  --median       learning curves are medians over seeds, as in the MRA paper; without it, means\n"
    "  --measure-references EPISODES   play the suite with random actions and with the oracle, and print the header\n"
    "                 that holds what they earn (include/engram/evaluate/reference_table.hpp)\n";

struct options {
    std::vector<std::string> runs;
    std::string out, csv, title, references, rows;
    bool help = false, version = false, median = false;
};

options parse(int argc, char** argv) {
    options o;
    const std::vector<std::string> flags{"--out",    "--csv",  "--runs",   "--title", "--measure-references",
                                         "--median", "--help", "--version"};
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (!word.starts_with("-") || word == "-") {
            o.runs.push_back(word);
            continue;
        }
        const auto equals = word.find('=');
        const std::string flag = word.substr(0, equals);
        if (flag == "-h" || flag == "--help") {
            o.help = true;
            continue;
        }
        if (flag == "--version") {
            o.version = true;
            continue;
        }
        if (flag == "--median") {
            engram::require(equals == std::string::npos, "--median takes no value");
            o.median = true;
            continue;
        }
        engram::require_known("flag", flag, flags);
        std::string& value = flag == "--out"     ? o.out
                             : flag == "--csv"   ? o.csv
                             : flag == "--runs"  ? o.rows
                             : flag == "--title" ? o.title
                                                 : o.references;
        if (equals != std::string::npos) {
            value = word.substr(equals + 1);
        } else {
            engram::require(i + 1 < argc, flag, " needs a value");
            value = argv[++i];
        }
        engram::require(!value.empty(), flag, " needs a value that is not empty");
    }
    return o;
}

/// The folder in which all the runs lie.
fs::path common_parent(const std::vector<std::string>& runs) {
    fs::path common;
    for (const auto& run : runs) {
        fs::path parent = fs::canonical(run).parent_path();
        if (common.empty()) common = parent;
        const auto [end, ignored] = std::mismatch(common.begin(), common.end(), parent.begin(), parent.end());
        fs::path shared;
        for (auto part = common.begin(); part != end; ++part) shared /= *part;
        common = shared;
    }
    return common;
}

int report(const options& o) {
    engram::require(!o.runs.empty(), "no runs: name at least one run folder (engram-report --help)");
    std::vector<engram::run_record> runs;
    std::vector<fs::path> seen;
    for (const auto& folder : o.runs) {
        engram::run_record run = engram::read_run(folder);
        const fs::path real = fs::canonical(folder);
        if (std::find(seen.begin(), seen.end(), real) != seen.end()) continue;
        seen.push_back(real);
        runs.push_back(std::move(run));
    }
    const engram::report_page page(runs, o.title, o.median ? engram::curve_middle::median : engram::curve_middle::mean);
    const std::string out = !o.out.empty() ? o.out : (common_parent(o.runs) / "report.html").string();
    const std::string csv = !o.csv.empty() ? o.csv : fs::path(out).replace_extension(".csv").string();
    engram::require(fs::path(out).lexically_normal() != fs::path(csv).lexically_normal(),
                    "--out and --csv name the same file ", out);
    for (const auto& other : {out, csv})
        engram::require(o.rows.empty() || fs::path(o.rows).lexically_normal() != fs::path(other).lexically_normal(),
                        "--runs names the file ", other, " as well");
    engram::write_file(out, page.html());
    engram::write_file(csv, engram::comparison_csv(page.tasks()));
    if (!o.rows.empty()) engram::write_file(o.rows, engram::run_rows(runs));
    for (const auto& task : page.tasks()) {
        std::printf("%s\n", engram::comparison_text(task).c_str());
        for (const auto& sentence : engram::mixed_runs(task)) std::printf("%s\n\n", sentence.c_str());
    }
    std::vector<engram::heat_map> maps;
    for (auto& map : engram::measured_heat_maps(runs)) {
        if (map.tasks.size() < 2) continue;
        maps.push_back(engram::published_heat_map(map.level, map.tasks));
        maps.insert(maps.end() - 1, std::move(map));
    }
    for (const auto& map : maps) std::printf("%s\n", engram::heat_map_text(map).c_str());
    const auto judged = engram::judge_orderings(runs);
    std::printf("%s%s\n", engram::orderings_text(judged).c_str(),
                engram::leaders_text(engram::leaders_of(runs)).c_str());
    std::printf("%s\n%s\n", out.c_str(), csv.c_str());
    if (!judged.empty()) {
        const std::string orderings = fs::path(csv).replace_extension(".orderings.csv").string();
        engram::write_file(orderings, engram::orderings_csv(judged));
        std::printf("%s\n", orderings.c_str());
    }
    if (maps.empty()) return 0;
    const std::string map_csv = fs::path(csv).replace_extension(".heatmap.csv").string();
    engram::write_file(map_csv, engram::heat_map_csv(maps));
    std::printf("%s\n", map_csv.c_str());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const options o = parse(argc, argv);
        // A run folder may be called help.
        if (o.help || argc == 1 || (argc == 2 && o.runs == std::vector<std::string>{"help"} && !fs::exists("help"))) {
            std::fputs(usage, stdout);
            return 0;
        }
        if (o.version) {
            std::printf("engram-report %s\n", engram::library_version().c_str());
            return 0;
        }
        if (!o.references.empty()) {
            const int episodes = engram::parse<int>("--measure-references", o.references);
            engram::require(episodes > 1, "--measure-references: expected 2 episodes or more, got ", episodes);
            std::fputs(engram::reference_header(episodes).c_str(), stdout);
            return 0;
        }
        return report(o);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "engram-report: %s\n", e.what());
        return 2;
    }
}
