// The tables of modules and of published scores on docs/results/popgym.md, from docs/results/data/popgym_runs.csv and
// popgym_paper_runs.csv, a row a run and level as engram-campaign writes them. A block of the page between
//
//     <!-- popgym: modules -->
//     <!-- end -->
//
// ENGRAM_WRITE_DOCS=1 ./dev test docs writes it.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <engram/evaluate/comparison.hpp>
#include <engram/evaluate/names.hpp>

#include "members.hpp"
#include "tables.hpp"

using namespace documents;

namespace {

/// MMER of a program on a task: the mean of its seeds.
using scores = std::map<std::string, std::map<std::string, std::vector<double>>>;

struct table {
    std::vector<std::string> tasks;  // in the order of the file
    scores mmer;
};
table read() {
    table t;
    for (row r : read_rows("data/popgym_runs.csv")) {
        if (std::find(t.tasks.begin(), t.tasks.end(), r["task"]) == t.tasks.end()) t.tasks.push_back(r["task"]);
        t.mmer[r["program"]][r["task"]].push_back(std::stod(r.at("mmer")));
    }
    return t;
}
double mean(const std::vector<double>& of) {
    return std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size());
}

double shown(double score) {
    return std::round(1000 * score) / 1000;
}

/// "0.524", and with several seeds the standard error of their mean behind it.
std::string text_of(const std::vector<double>& seeds) {
    const auto all = engram::over_runs(seeds, {0.0});
    return engram::fixed(all.mean, 3) + (all.count > 1 ? " ± " + engram::fixed(all.standard_error, 3) : "");
}

/// A row a task, a column a module that has run at all; the best of a row in bold, and the mean of all rows last.
std::vector<std::string> modules_table() {
    const table t = read();
    std::string head = "| task |", rule = "|---|";
    std::vector<std::string> columns;
    for (const auto& m : members) {
        const std::string program = std::string("ppo_") + m.name;
        if (!t.mmer.count(program)) continue;
        columns.push_back(program);
        head += std::string(" ") + m.title + " |", rule += "---|";
    }
    std::vector<std::string> lines{head, rule};
    std::vector<std::vector<double>> all(columns.size());
    for (const auto& task : t.tasks) {
        std::vector<double> row(columns.size(), std::nan(""));
        double best = -INFINITY;  // as it is shown: what looks equal is equal
        for (std::size_t c = 0; c < columns.size(); ++c) {
            const auto& of = t.mmer.at(columns[c]);
            if (const auto at = of.find(task); at != of.end()) {
                row[c] = mean(at->second);
                all[c].push_back(row[c]);
                best = std::max(best, shown(row[c]));
            }
        }
        std::string line = "| " + task.substr(std::string("popgym_").size()) + " |";
        for (std::size_t c = 0; c < columns.size(); ++c) {
            const std::string text = std::isnan(row[c]) ? "-" : text_of(t.mmer.at(columns[c]).at(task));
            line += shown(row[c]) == best ? " **" + text + "** |" : " " + text + " |";
        }
        lines.push_back(line);
    }
    std::string last = "| mean of all |";
    for (const auto& of : all) last += " " + (of.size() == t.tasks.size() ? engram::fixed(mean(of), 3) : "-") + " |";
    lines.push_back(last);
    return lines;
}

/// A row a run at the published sizes and settings, beside the published score; what is compared is its MMER.
std::vector<std::string> paper_table() {
    std::map<std::pair<std::string, std::string>, std::pair<double, double>> published;
    for (row r : read_rows("data/popgym_published.csv"))
        published[{r["task"], r["difficulty"]}] = {std::stod(r["published"]), std::stod(r["deviation"])};
    std::vector<std::string> lines{
        "| task | difficulty | steps | MMER | 200 episodes after training | published | apart | within 0.03, or three "
        "deviations |",
        "|---|---|---|---|---|---|---|---|"};
    std::map<std::pair<std::string, std::string>, std::string> rows;  // in the order of names
    for (row r : read_rows("data/popgym_paper_runs.csv")) {
        const auto key = std::pair{r["task"], r["task.difficulty"]};
        const auto [mean, deviation] = published.at(key);
        const double score = std::stod(r["mmer"]), apart = score - mean;
        // Both are printed to three digits.
        const bool within = std::abs(apart) <= std::max(0.03, 3 * deviation) + 0.0005;
        const std::string penalty = r["learner.divergence_cost"].empty() ? "" : ", with the penalty";
        rows[key] = "| " + key.first.substr(std::string("popgym_").size()) + " | " + key.second + penalty + " | " +
                    engram::fixed(std::stod(r["steps"]) / 1e6, 2) + " M | " + engram::fixed(score, 3) + " | " +
                    engram::fixed(std::stod(r["reward"]), 3) + " ± " +
                    engram::fixed(std::stod(r["standard_error"]), 3) + " | " + engram::fixed(mean, 3) + " ± " +
                    engram::fixed(deviation, 3) + " | " + engram::fixed(apart, 3) + " | " + (within ? "yes" : "no") +
                    " |";
    }
    for (const auto& [key, line] : rows) lines.push_back(line);
    return lines;
}

}  // namespace

TEST_CASE("POPGym's table of modules is what its runs say") {
    compare_blocks("docs/results/popgym.md", "popgym", {{"modules", modules_table}, {"paper", paper_table}});
}
