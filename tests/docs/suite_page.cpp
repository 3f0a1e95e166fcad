// The suite's page, docs/results/suite.md: its pictures and its tables of agents come from
// docs/results/data/suite_runs.csv, a row a run and level as engram-campaign writes them. A block of the page between
//
//     <!-- suite: NAME -->
//     <!-- end -->
//
// is one of these: met, learnt, kept, seeds, orderings, leaders. ENGRAM_WRITE_DOCS=1 ./dev test docs writes them.

#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include <engram/evaluate/orderings.hpp>
#include <engram/evaluate/reference_scores.hpp>
#include <engram/program/suite_presets.hpp>

#include "report/heatmap_view.hpp"

#include "tables.hpp"

using namespace documents;

namespace {

using engram::fixed;
using engram::level_result;
using engram::run_record;
using engram::suite_scores;
using engram::suite_tasks;

/// From the plainest to the whole agent.
constexpr std::array<const char*, 10> ablations{"ff",       "ff_mem",   "ff_mem_rec",   "ff_mem_cpc",   "lstm",
                                                "lstm_cpc", "lstm_mem", "lstm_mem_rec", "mra_no_jumpy", "mra"};
constexpr std::array<const char*, 3> level_names{"train", "interpolate", "extrapolate"};
constexpr int table_seeds = 3;  // that all agents were to have; others were kept for the end

/// Every run of the file. Where an error was not kept the largest one of the same task and level stands for it.
const std::vector<run_record>& all_runs() {
    static const std::vector<run_record> runs = [] {
        std::vector<run_record> found;
        std::map<std::pair<std::string, std::string>, double> largest;
        for (row at : read_rows("data/suite_runs.csv")) {
            const double seed = std::stod(at["seed"]), steps = std::stod(at["steps"]);
            auto run = std::find_if(found.begin(), found.end(), [&](const run_record& r) {
                return r.ablation == at["program"] && r.task == at["task"] && r.seed == seed;
            });
            if (run == found.end()) {
                run_record r;
                r.ablation = at["program"], r.task = at["task"], r.preset = "small", r.seed = seed, r.steps = steps;
                run = found.insert(found.end(), r);
            }
            const auto& error = at["standard_error"];
            const double known = error.empty() ? std::nan("") : std::stod(error);
            if (!error.empty()) {
                double& most = largest[{at["task"], at["level"]}];
                most = std::max(most, known);
            }
            for (const auto& l : run->levels)
                engram::require(l.level != at["level"], "suite_runs.csv: ", at["program"], " on ", at["task"],
                                ", seed ", at["seed"], ", stands twice on ", at["level"]);
            run->levels.push_back({.level = at["level"],
                                   .unit = at["unit"],
                                   .episodes = std::stod(at["episodes"]),
                                   .mean = std::stod(at["reward"]),
                                   .standard_error = known,
                                   .maximum = {},
                                   .random = {}});
        }
        for (auto& run : found)
            for (auto& l : run.levels)
                if (std::isnan(l.standard_error)) l.standard_error = largest.at({run.task, l.level});
        return found;
    }();
    return runs;
}

/// Those of the table, and those kept for the end.
std::vector<run_record> runs_of_the_table() {
    std::vector<run_record> chosen;
    for (const auto& run : all_runs())
        if (*run.seed <= table_seeds) chosen.push_back(run);
    return chosen;
}

/// Percent of the way from random actions to the oracle.
double way(const run_record& run, std::size_t level) {
    for (const auto& l : run.levels)
        if (l.level == suite_scores[level]) return engram::scale_of(run.task, level, "small").value().score(l.mean);
    engram::fail(run.ablation, " on ", run.task, ": no level ", suite_scores[level]);
}

std::vector<const run_record*> runs_of(const std::string& task, const std::string& ablation, bool kept) {
    std::vector<const run_record*> found;
    for (const auto& run : all_runs())
        if (run.task == task && run.ablation == ablation && (*run.seed > table_seeds) == kept) found.push_back(&run);
    std::sort(found.begin(), found.end(), [](auto* a, auto* b) { return *a->seed < *b->seed; });
    return found;
}

double median(std::vector<double> x) {
    std::sort(x.begin(), x.end());
    return (x[(x.size() - 1) / 2] + x[x.size() / 2]) / 2;
}

std::string three(const run_record& run) {
    return fixed(way(run, 0), 0) + ", " + fixed(way(run, 1), 0) + ", " + fixed(way(run, 2), 0);
}

bool is_met(const run_record& run) {
    return std::round(way(run, 0)) >= 80 && std::round(way(run, 1)) >= 60 && std::round(way(run, 2)) >= 60;
}

std::string title_of(const std::string& ablation) {
    for (const auto& known : engram::ablation_names)
        if (known.name == ablation) return std::string(known.title);
    return ablation;
}

/// Tasks x agents, a map for each level; cell(task, ablation, level) is a number, or none, and what its title says.
std::string maps(const std::function<std::pair<std::optional<double>, std::string>(std::size_t, const std::string&,
                                                                                   std::size_t)>& cell_of) {
    constexpr double cell = 44, tall = 22, left = 150, head = 128, gap = 30;
    const double width = left + cell * static_cast<double>(suite_tasks.size()) + 90;
    const double block = tall * static_cast<double>(ablations.size()) + gap;
    const auto text = [](double x, double y, const std::string& anchor, const std::string& ink,
                         const std::string& what) {
        return "<text x='" + fixed(x, 1) + "' y='" + fixed(y, 1) + "' text-anchor='" + anchor + "' fill='" + ink +
               "'>" + what + "</text>\n";
    };
    std::string out = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 " + fixed(width, 0) + " " +
                      fixed(head + 3 * block, 0) +
                      "' font-family='sans-serif' font-size='12'>\n<rect width='100%' height='100%' fill='#fff'/>\n";
    for (std::size_t t = 0; t < suite_tasks.size(); ++t) {
        std::string title = suite_tasks[t].name;
        std::replace(title.begin(), title.end(), '_', ' ');
        out += "<text transform='translate(" + fixed(left + cell * (static_cast<double>(t) + 0.5), 1) + "," +
               fixed(head - 8, 1) + ") rotate(-40)' font-size='11'>" + title + "</text>\n";
    }
    for (std::size_t l = 0; l < level_names.size(); ++l) {
        const double top = head + block * static_cast<double>(l);
        for (std::size_t a = 0; a < ablations.size(); ++a) {
            const double y = top + tall * static_cast<double>(a);
            const std::string name = title_of(ablations[a]);
            out += text(left - 8, y + tall / 2 + 4.5, "end", "#000", name);
            for (std::size_t t = 0; t < suite_tasks.size(); ++t) {
                const double x = left + cell * static_cast<double>(t);
                const std::string box = "<rect x='" + fixed(x + 1, 1) + "' y='" + fixed(y + 1, 1) + "' width='" +
                                        fixed(cell - 2, 1) + "' height='" + fixed(tall - 2, 1) + "' rx='3' ";
                const auto [value, told] = cell_of(t, ablations[a], l);
                if (!value) {
                    out += box + "fill='none' stroke='#bbb'/>\n";
                    continue;
                }
                const auto colour = engram::heat_colour(*value);
                out += box + "fill='" + colour.text() + "'><title>" + name + ", " + suite_tasks[t].name + ", " +
                       level_names[l] + ": " + told + "</title></rect>\n" +
                       text(x + cell / 2, y + tall / 2 + 4.5, "middle", colour.takes_black() ? "#000" : "#fff",
                            fixed(*value, 0));
            }
        }
        out += text(left, top + block - gap + 14, "start", "#555", level_names[l]);
    }
    return out + "</svg>\n";
}

std::string picture_of_ours() {
    return maps([](std::size_t t, const std::string& ablation,
                   std::size_t level) -> std::pair<std::optional<double>, std::string> {
        std::vector<double> seeds;
        for (const auto* run : runs_of(suite_tasks[t].name, ablation, false)) seeds.push_back(way(*run, level));
        if (seeds.empty()) return {};
        return {median(seeds), "median of " + std::to_string(seeds.size())};
    });
}

/// The same maps of the paper: from random actions to its humans (facts 2.7).
std::string picture_of_the_paper() {
    return maps([](std::size_t t, const std::string& ablation,
                   std::size_t level) -> std::pair<std::optional<double>, std::string> {
        const auto& table = engram::published_tables[t];
        const auto* agent = table.find(ablation);
        if (!agent) return {};
        const std::string doubt = engram::published_doubt(suite_tasks[t].name, ablation);
        return {engram::published_score(table, *agent, level).mean,
                doubt.empty() ? "the paper" : "not to be trusted: " + doubt};
    });
}

bool has_memory(std::string_view ablation) {
    return ablation.starts_with("mra") || ablation.find("mem") != ablation.npos;
}

using lines = std::vector<std::string>;

/// Of each task the agent with the memory that most seeds have learnt, and then the one with the best median.
lines met() {
    lines out{"| task | agent | seeds with 80, 60 and 60 % | medians: train, interpolate, extrapolate | FF on train |",
              "|---|---|---|---|---|"};
    for (const auto& task : suite_tasks) {
        std::tuple<int, double, std::string, std::string> best{-1, 0, "", ""};
        for (const char* ablation : ablations) {
            const auto runs = runs_of(task.name, ablation, false);
            if (runs.empty() || !has_memory(ablation)) continue;
            int learnt = 0;
            std::array<std::vector<double>, 3> ways;
            for (const auto* run : runs) {
                learnt += is_met(*run);
                for (std::size_t l = 0; l < 3; ++l) ways[l].push_back(way(*run, l));
            }
            const double sum = median(ways[0]) + median(ways[1]) + median(ways[2]);
            const std::tuple<int, double, std::string, std::string> found{
                learnt, sum, title_of(ablation),
                std::to_string(learnt) + " of " + std::to_string(runs.size()) + " | " + fixed(median(ways[0]), 0) +
                    ", " + fixed(median(ways[1]), 0) + ", " + fixed(median(ways[2]), 0)};
            best = std::max(best, found);
        }
        const auto plain = runs_of(task.name, "ff", false);
        std::vector<double> without;
        for (const auto* run : plain) without.push_back(way(*run, 0));
        if (std::get<0>(best) >= 0)
            out.push_back("| `" + std::string(task.name) + "` | " + std::get<2>(best) + " | " + std::get<3>(best) +
                          " | " + (without.empty() ? "-" : fixed(median(without), 0)) + " |");
    }
    return out;
}

/// With how many of its seeds each agent has learnt a task.
lines learnt() {
    std::string names = "| task |", rule = "|---|";
    for (const char* ablation : ablations) names += " " + title_of(ablation) + " |", rule += "---|";
    lines out{names, rule};
    for (const auto& task : suite_tasks) {
        std::string line = "| `" + std::string(task.name) + "` |";
        for (const char* ablation : ablations) {
            const auto runs = runs_of(task.name, ablation, false);
            const auto good = std::count_if(runs.begin(), runs.end(), [](const auto* run) { return is_met(*run); });
            line += runs.empty() ? " - |" : " " + std::to_string(good) + " of " + std::to_string(runs.size()) + " |";
        }
        out.push_back(line);
    }
    return out;
}

lines seeds() {
    lines out{"| task | agent | seed 1 | seed 2 | seed 3 | seeds kept for the end |", "|---|---|---|---|---|---|"};
    for (const auto& task : suite_tasks) {
        double usual = 1.5e6;  // the preset's of all tasks, where it says no other
        for (const auto& row : engram::small_rows)
            if (row.task == std::string_view(task.name)) usual = std::stod(row.steps);
        bool first = true;
        for (const char* ablation : ablations) {
            const auto runs = runs_of(task.name, ablation, false), kept = runs_of(task.name, ablation, true);
            if (runs.empty() && kept.empty()) continue;
            std::string line = first ? "| `" + std::string(task.name) + "` |" : "|  |";
            first = false;
            line += " " + title_of(ablation) + " |";
            const auto told = [&](const run_record& run) {
                const bool as_most = std::abs(*run.steps - usual) < 0.05 * usual;
                return three(run) + (as_most ? "" : " (" + fixed(*run.steps / 1e6, 1) + " M)");
            };
            for (int seed = 1; seed <= table_seeds; ++seed) {
                std::string cell = "-";
                for (const auto* run : runs)
                    if (*run->seed == seed) cell = told(*run);
                line += " " + cell + " |";
            }
            std::string rest;
            for (const auto* run : kept) rest += (rest.empty() ? "" : "; ") + told(*run);
            out.push_back(line + (rest.empty() ? "  |" : " " + rest + " |"));
        }
    }
    return out;
}

struct estimate {
    double median = 0, error = 0;
};

/// In percent of the way. The error is that of 2000 draws.
estimate median_of(const std::vector<const run_record*>& runs, std::size_t level) {
    std::vector<run_record> own;
    for (const auto* run : runs) own.push_back(*run);
    const auto scores = engram::scores_of(own, "small", runs[0]->task, runs[0]->ablation, suite_scores[level]);
    const auto scale = engram::scale_of(runs[0]->task, level, "small").value();
    engram::philox random(1, engram::stream_id("kept", 0));
    constexpr int draws = 2000;
    double sum = 0, squares = 0;
    for (int i = 0; i < draws; ++i) {
        std::vector<double> drawn;
        engram::draw_seeds(scores, random, [&](double score) { drawn.push_back(scale.score(score)); });
        const double m = median(drawn);
        sum += m, squares += m * m;
    }
    return {scale.score(median(scores.mean)), std::sqrt(std::max(0.0, squares / draws - sum / draws * (sum / draws)))};
}

/// MRA's seeds that were used for no choice beside those of the table.
lines kept() {
    lines out{"| task | seeds 1 to 3 | kept seeds | of them learnt | apart by more than two errors |",
              "|---|---|---|---|---|"};
    int levels = 0, apart = 0, runs = 0, good = 0;
    for (const auto& task : suite_tasks) {
        const auto table = runs_of(task.name, "mra", false), rest = runs_of(task.name, "mra", true);
        if (table.empty() || rest.size() < engram::fewest_seeds) continue;
        const auto learnt = std::count_if(rest.begin(), rest.end(), [](const auto* run) { return is_met(*run); });
        std::string ours, theirs, which;
        for (std::size_t l = 0; l < 3; ++l) {
            const auto a = median_of(table, l), b = median_of(rest, l);
            const auto told = [](const estimate& e) { return fixed(e.median, 0) + " ± " + fixed(e.error, 1); };
            ours += (l > 0 ? ", " : "") + told(a);
            theirs += (l > 0 ? ", " : "") + told(b);
            const bool is_apart = std::abs(a.median - b.median) > 2 * std::hypot(a.error, b.error);
            if (is_apart) which += (which.empty() ? "" : ", ") + std::string(level_names[l]);
            ++levels, apart += is_apart;
        }
        runs += static_cast<int>(rest.size()), good += static_cast<int>(learnt);
        out.push_back("| `" + std::string(task.name) + "` | " + ours + " | " + theirs + " | " + std::to_string(learnt) +
                      " of " + std::to_string(rest.size()) + " | " + (which.empty() ? "-" : which) + " |");
    }
    out.push_back("");
    out.push_back("On " + std::to_string(levels - apart) + " of " + std::to_string(levels) +
                  " levels the medians are within two errors of each other; " + std::to_string(good) + " of " +
                  std::to_string(runs) + " kept seeds have learnt their task.");
    return out;
}

lines orderings() {
    const auto judged = engram::judge_orderings(runs_of_the_table());
    lines out{"| question | first | second | ahead | behind | open | with the paper | against it |",
              "|---|---|---|---|---|---|---|---|"};
    for (const auto& pair : engram::agent_pairs) {
        int ahead = 0, behind = 0, open = 0;
        std::string with, against;
        for (const auto& j : judged) {
            if (std::string_view(j.pair.first) != pair.first || std::string_view(j.pair.second) != pair.second)
                continue;
            if (std::min(j.first_seeds, j.second_seeds) < static_cast<int>(engram::fewest_seeds)) continue;
            (j.verdict == engram::order::first ? ahead : j.verdict == engram::order::second ? behind : open)++;
            if (!j.published || *j.published == engram::order::open || j.verdict == engram::order::open) continue;
            const auto at = *engram::suite_index(j.task);
            auto& list = *j.published == j.verdict ? with : against;
            list += std::string(list.empty() ? "" : ", ") + suite_tasks[at].code + " " +
                    j.level.substr(j.level.starts_with("holdout_") ? 8 : 0, 1);
        }
        if (ahead + behind + open == 0) continue;
        out.push_back(std::string("| ") + pair.question + " | " + title_of(pair.first) + " | " + title_of(pair.second) +
                      " | " + std::to_string(ahead) + " | " + std::to_string(behind) + " | " + std::to_string(open) +
                      " | " + (with.empty() ? "-" : with) + " | " + (against.empty() ? "-" : against) + " |");
    }
    return out;
}

/// Of the tasks that all agents have learnt with enough seeds to be judged; and on how many the paper's agents lead.
lines leaders() {
    lines out{"| task | train | interpolate | extrapolate |", "|---|---|---|---|"};
    const auto all = engram::leaders_of(runs_of_the_table());
    int judged = 0, first = 0;
    for (const auto& task : suite_tasks) {
        if (std::any_of(ablations.begin(), ablations.end(), [&](const char* ablation) {
                return runs_of(task.name, ablation, false).size() < engram::fewest_seeds;
            }))
            continue;
        std::string line = "| `" + std::string(task.name) + "` |";
        bool on_both = true;
        for (const char* level : suite_scores) {
            std::string cell;
            bool leads = false;
            for (const auto& l : all)
                if (l.task == task.name && l.level == level)
                    for (const auto& leader : l.leaders) {
                        cell += (cell.empty() ? "" : ", ") + title_of(leader);
                        leads = leads || leader == "mra" || leader == "lstm_mem";
                    }
            on_both = on_both && (leads || std::string_view(level) == "train");
            line += " " + cell + " |";
        }
        out.push_back(line);
        ++judged;
        first += on_both;
    }
    out.push_back("");
    out.push_back("MRA or LSTM+MEM is among them on both levels that are held out in " + std::to_string(first) +
                  " of these " + std::to_string(judged) + " tasks.");
    return out;
}

}  // namespace

TEST_CASE("the suite's tables are those of its runs") {
    compare_blocks("docs/results/suite.md", "suite",
                   {{"met", met},
                    {"learnt", learnt},
                    {"kept", kept},
                    {"seeds", seeds},
                    {"orderings", orderings},
                    {"leaders", leaders}});
}

TEST_CASE("the suite's pictures are those of its runs and of the paper") {
    const std::string ours = picture_of_ours(), paper = picture_of_the_paper();
    CHECK(std::count(ours.begin(), ours.end(), '\n') > 3 * 10 * 13);
    compare_file("docs/results/suite-seeds.svg", ours);
    compare_file("docs/results/suite-paper.svg", paper);
}

TEST_CASE("a run is met where its three levels are, rounded as they are shown") {
    const auto run = [](double train, double interpolate, double extrapolate) {
        run_record r;
        r.task = "change_detection";
        for (const auto& [l, percent] : {std::pair{0, train}, {1, interpolate}, {2, extrapolate}}) {
            const auto at = static_cast<std::size_t>(l);
            const auto scale = engram::scale_of(r.task, at, "small").value();
            r.levels.push_back({.level = suite_scores[at],
                                .unit = "episode reward",
                                .mean = scale.zero + percent / 100 * (scale.hundred - scale.zero),
                                .maximum = {},
                                .random = {}});
        }
        return r;
    };
    CHECK(three(run(80, 60, 59.6)) == "80, 60, 60");
    CHECK(is_met(run(79.6, 60, 59.6)));
    CHECK_FALSE(is_met(run(79.4, 60, 60)));
    CHECK_FALSE(is_met(run(90, 90, 59.4)));
    CHECK(median({3, 1, 2}) == 2);
    CHECK(median({4, 1}) == 2.5);
}
