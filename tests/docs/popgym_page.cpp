// The tables of modules and of published scores on docs/results/popgym.md, from docs/results/data/popgym_runs.csv,
// popgym_medium_runs.csv and popgym_paper_runs.csv, a row a run and level as engram-campaign writes them, beside what
// is published. A block of the page between
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
table read(const std::string& file) {
    table t;
    for (row r : read_rows(file)) {
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

/// What is published of a GRU after 15 M steps at a difficulty, by task.
struct published_scores {
    std::map<std::string, std::string> mmer, final_return;
};
published_scores published_at(const std::string& difficulty) {
    published_scores all;
    for (row r : read_rows("data/popgym_published.csv"))
        if (r["difficulty"] == difficulty) all.mmer[r["task"]] = r["published"];
    for (row r : read_rows("data/popgym_final.csv"))
        if (r["difficulty"] == difficulty) all.final_return[r["task"]] = r["final"];
    return all;
}
std::string told(const std::map<std::string, std::string>& all, const std::string& task) {
    const auto at = all.find(task);
    return " " + (at == all.end() ? std::string("-") : at->second) + " |";
}

/// A row a task, a column a module that has run at all; the best of a row in bold, and the mean of all rows last.
struct module_table {
    std::vector<std::string> lines;
    std::vector<std::string> columns;
    /// Of every row: a score a column, none where it did not run.
    std::vector<std::vector<double>> scores;
    void mean_of(const std::string& title, const std::vector<std::vector<double>>& rows) {
        std::string line = "| " + title + " |";
        for (std::size_t c = 0; c < columns.size(); ++c) {
            std::vector<double> of;
            for (const auto& row : rows) of.push_back(row[c]);
            line += " " + (std::isnan(mean(of)) ? std::string("-") : engram::fixed(mean(of), 3)) + " |";
        }
        lines.push_back(line);
    }
};
module_table modules_of(const table& t) {
    module_table made;
    std::string head = "| task |", rule = "|---|";
    for (const auto& m : members) {
        const std::string program = std::string("ppo_") + m.name;
        if (!t.mmer.count(program)) continue;
        made.columns.push_back(program);
        head += std::string(" ") + m.title + " |", rule += "---|";
    }
    made.lines = {head, rule};
    for (const auto& task : t.tasks) {
        std::vector<double> row(made.columns.size(), std::nan(""));
        double best = -INFINITY;  // as it is shown: what looks equal is equal
        for (std::size_t c = 0; c < row.size(); ++c) {
            const auto& of = t.mmer.at(made.columns[c]);
            if (const auto at = of.find(task); at != of.end()) {
                row[c] = mean(at->second);
                best = std::max(best, shown(row[c]));
            }
        }
        std::string line = "| " + task.substr(std::string("popgym_").size()) + " |";
        for (std::size_t c = 0; c < row.size(); ++c) {
            const std::string text = std::isnan(row[c]) ? "-" : text_of(t.mmer.at(made.columns[c]).at(task));
            line += shown(row[c]) == best ? " **" + text + "** |" : " " + text + " |";
        }
        made.lines.push_back(line);
        made.scores.push_back(row);
    }
    return made;
}

std::vector<std::string> easy_table() {
    module_table made = modules_of(read("data/popgym_runs.csv"));
    made.mean_of("mean of all", made.scores);
    return made.lines;
}

/// Beside what is published; the last row is the mean of the tasks that every module has played.
std::vector<std::string> medium_table() {
    const table t = read("data/popgym_medium_runs.csv");
    module_table made = modules_of(t);
    const auto known = published_at("medium");
    made.lines[0] += " published GRU, 15 M | final return |", made.lines[1] += "---|---|";
    for (std::size_t i = 0; i < t.tasks.size(); ++i)
        made.lines[i + 2] += told(known.mmer, t.tasks[i]) + told(known.final_return, t.tasks[i]);
    std::vector<std::vector<double>> common;
    for (const auto& row : made.scores)
        if (std::none_of(row.begin(), row.end(), [](double x) { return std::isnan(x); })) common.push_back(row);
    made.mean_of("mean of all", made.scores);
    made.lines.back() += " | |";
    made.mean_of("mean of the " + std::to_string(common.size()) + " that all have played", common);
    made.lines.back() += " | |";
    return made.lines;
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
    compare_blocks("docs/results/popgym.md", "popgym",
                   {{"modules", easy_table}, {"medium", medium_table}, {"paper", paper_table}});
}
