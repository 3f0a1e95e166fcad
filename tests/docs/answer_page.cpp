// The page of memories and tasks, docs/results/answer.md, and its picture: from docs/results/data/answer_runs.csv, a
// row a run and level as engram-campaign writes them, answer_unseen.csv, the same of other seeds, and answer_sizes.csv
// (docs/results/answer.sh). A block of the page between
//
//     <!-- answer: NAME -->
//     <!-- end -->
//
// is one of these: ran, scores, heldout, ranks, unseen, good_for, hybrid, cost. ENGRAM_WRITE_DOCS=1 ./dev test docs
// writes them.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <engram/core/philox.hpp>
#include <engram/evaluate/reference_scores.hpp>

#include "report/heatmap_view.hpp"

#include "members.hpp"
#include "tables.hpp"

using namespace documents;

namespace {

using engram::fixed;
using lines = std::vector<std::string>;

struct asked {
    const char *name, *title;
};
constexpr std::array<asked, 9> tasks{{{"t_maze", "T-Maze"},
                                      {"popgym_repeat_previous", "RepeatPrevious"},
                                      {"arbitrary_visuomotor_mapping", "mapping"},
                                      {"continuous_recognition", "recognition"},
                                      {"change_detection", "change detection"},
                                      {"spot_diff_passive", "spot the difference"},
                                      {"popgym_count_recall", "CountRecall"},
                                      {"popgym_autoencode", "Autoencode"},
                                      {"copy", "copy"}}};
constexpr int planned_seeds = 3;
constexpr double most_apart = 5;  // percent of the LSTM's parameters

std::string member_of(const std::string& program) {
    return program.substr(program.find('_') + 1);
}
std::optional<double> number(const std::string& cell) {
    if (cell.empty()) return {};
    return std::stod(cell);
}

/// Percent of the way from random actions to the best that can be done.
struct scale {
    double random, best;
    double way(double reward) const { return 100 * (reward - random) / (best - random); }
    double error(double e) const { return 100 * e / std::abs(best - random); }
};

scale scale_of(const row& r) {
    const std::string& task = r.at("task");
    const std::array<const char*, 3> levels{"train", "holdout_interpolate", "holdout_extrapolate"};
    for (std::size_t l = 0; l < levels.size(); ++l)
        if (r.at("level") == levels[l])
            if (const auto known = engram::scale_of(task, l, "small")) return {known->zero, known->hundred};
    static const auto popgym = read_rows("data/popgym.csv");
    for (const auto& p : popgym)
        if (p.at("task") == task && p.at("difficulty") == "easy")
            return {std::stod(p.at("random")), std::stod(p.at("oracle"))};
    const auto random = number(r.at("random")), maximum = number(r.at("maximum"));
    if (r.at("unit") == "% right") return {10, 100};  // one of ten digits
    engram::require(random && maximum, "answer_runs.csv: ", task, " says no random or no maximum");
    return {*random, *maximum};
}

struct score {
    double way = 0, error = 0;
};
struct run {
    std::string member, task;
    int seed = 0;
    double parameters = 0, steps = 0, seconds = 0, processor_seconds = 0;
    double ring = 0;  // bytes of a row's ring of writes, which is no state of the graph
    std::map<std::string, score> levels;
    std::optional<double> most;  // along the curve
};

std::vector<run> read_runs(const std::string& file) {
    std::vector<run> found;
    for (const auto& r : read_rows(file)) {
        const std::string name = member_of(r.at("program")), task = r.at("task");
        const int seed = std::stoi(r.at("seed"));
        auto at = std::find_if(found.begin(), found.end(),
                               [&](const run& f) { return f.member == name && f.task == task && f.seed == seed; });
        if (at == found.end()) {
            at = found.insert(found.end(), run{});
            at->member = name, at->task = task, at->seed = seed;
            at->parameters = std::stod(r.at("parameters")), at->steps = std::stod(r.at("steps"));
            at->seconds = std::stod(r.at("seconds")), at->processor_seconds = std::stod(r.at("processor_seconds"));
        }
        if (!r.at("memory.key").empty()) {
            // Of each write [x, h], its key and the square of that (kernels/knn_ring.hpp); x is what encoders give.
            const auto& encoded = r.at(r.at("encoder.width").empty() ? "encoder.numbers.layers" : "encoder.width");
            const double columns =
                std::stod(encoded) + std::stod(r.at("controller.hidden")) + std::stod(r.at("memory.key")) + 1;
            at->ring = columns * std::stod(r.at("memory.slots")) * sizeof(float);
        }
        const scale s = scale_of(r);
        at->levels[r.at("level")] = {s.way(std::stod(r.at("reward"))), s.error(std::stod(r.at("standard_error")))};
        if (r.at("level") == "train")
            if (const auto most = number(r.at("mmer"))) at->most = s.way(*most);
    }
    return found;
}
const std::vector<run>& all_runs() {
    static const std::vector<run> runs = read_runs("data/answer_runs.csv");
    return runs;
}
/// Of the memories that are ahead: seeds on which nothing was tuned.
const std::vector<run>& unseen_runs() {
    static const std::vector<run> runs = read_runs("data/answer_unseen.csv");
    return runs;
}

std::vector<const run*> runs_of(const std::string& name, const std::string& task,
                                const std::vector<run>& runs = all_runs()) {
    std::vector<const run*> found;
    for (const auto& r : runs)
        if (r.member == name && r.task == task) found.push_back(&r);
    return found;
}

/// Over seeds; the error is that of the episodes, and of the seeds where there are several.
std::optional<score> over_seeds(const std::vector<const run*>& runs, const std::string& level) {
    std::vector<score> all;
    for (const auto* r : runs)
        if (const auto at = r->levels.find(level); at != r->levels.end()) all.push_back(at->second);
    if (all.empty()) return {};
    const double n = static_cast<double>(all.size());
    score mean;
    for (const auto& s : all) mean.way += s.way / n, mean.error += s.error * s.error / n / n;
    double spread = 0;
    for (const auto& s : all) spread += (s.way - mean.way) * (s.way - mean.way);
    if (all.size() > 1) mean.error = std::max(mean.error, spread / (n - 1) / n);
    mean.error = std::sqrt(mean.error);
    return mean;
}

/// The level that is judged: `train`, or of a task of sequences the only one.
std::string trained_level(const std::string& task) {
    for (const auto& r : all_runs())
        if (r.task == task) return r.levels.contains("train") ? "train" : r.levels.begin()->first;
    return "train";
}

/// What was kept from training: the worse of two levels.
std::optional<score> held_out(const std::vector<const run*>& runs) {
    std::optional<score> least;
    for (const char* level : {"holdout_interpolate", "holdout_extrapolate"})
        if (const auto s = over_seeds(runs, level))
            if (!least || s->way < least->way) least = s;
    return least;
}

std::optional<score> trained(const char* name, const char* task) {
    return over_seeds(runs_of(name, task), trained_level(task));
}

/// Tasks on which every memory has run.
std::vector<asked> whole_tasks() {
    std::vector<asked> found;
    for (const auto& t : tasks)
        if (std::all_of(members.begin(), members.end(), [&](auto& m) { return !runs_of(m.name, t.name).empty(); }))
            found.push_back(t);
    return found;
}
/// Tasks on which somebody has.
std::vector<asked> begun_tasks() {
    std::vector<asked> found;
    for (const auto& t : tasks)
        if (std::any_of(members.begin(), members.end(), [&](auto& m) { return !runs_of(m.name, t.name).empty(); }))
            found.push_back(t);
    return found;
}

std::string head_of(const std::vector<asked>& columns, const std::string& first) {
    std::string line = "| " + first + " |";
    for (const auto& t : columns) line += " " + std::string(t.title) + " |";
    return line;
}
std::string rule(std::size_t columns) {
    std::string line = "|";
    for (std::size_t i = 0; i < columns; ++i) line += "---|";
    return line;
}

/// How much of the file has run, and how long all of it would take: of a task, as long as its runs so far.
lines ran() {
    lines out{"| task | memories of 18 | runs of 54 | steps | core minutes so far | core hours of three seeds |",
              rule(6)};
    double so_far = 0, whole = 0;
    int runs = 0;
    bool open = false;
    for (const auto& t : tasks) {
        std::set<std::string> who;
        double seconds = 0, steps = 0;
        int count = 0;
        for (const auto& r : all_runs())
            if (r.task == t.name)
                who.insert(r.member), seconds += r.processor_seconds, steps = std::max(steps, r.steps), ++count;
        so_far += seconds, runs += count;
        const bool all = who.size() == members.size();
        const double hours =
            count > 0 ? seconds / count * static_cast<double>(members.size()) * planned_seeds / 3600 : 0;
        whole += hours, open = open || count == 0;
        out.push_back("| " + std::string(t.title) + " | " + std::to_string(who.size()) + " | " + std::to_string(count) +
                      " | " + (count > 0 ? fixed(steps / 1e6, 1) + " M" : "-") + " | " + fixed(seconds / 60, 1) +
                      " | " + (count > 0 ? (all ? "" : "about ") + fixed(hours, 1) : "-") + " |");
    }
    out.push_back("| all | | " + std::to_string(runs) + " of " +
                  std::to_string(members.size() * tasks.size() * planned_seeds) + " | | " + fixed(so_far / 60, 1) +
                  " | " + fixed(whole, 1) + (open ? " and those of the tasks that have not begun" : "") + " |");
    return out;
}

lines scores() {
    const auto columns = begun_tasks();
    lines out{head_of(columns, "memory"), rule(columns.size() + 1)};
    for (const auto& m : members) {
        std::string line = "| " + std::string(m.title) + " |";
        for (const auto& t : columns) {
            const auto runs = runs_of(m.name, t.name);
            const auto s = trained(m.name, t.name);
            if (!s) {
                line += " - |";
                continue;
            }
            std::optional<double> most;
            for (const auto* r : runs)
                if (r->most) most = most.value_or(0) + *r->most / static_cast<double>(runs.size());
            line +=
                " " + fixed(s->way, 0) + " ± " + fixed(s->error, 1) + (most ? " (" + fixed(*most, 0) + ")" : "") + " |";
        }
        out.push_back(line);
    }
    return out;
}

lines heldout() {
    std::vector<asked> columns;
    for (const auto& t : begun_tasks())
        if (std::any_of(members.begin(), members.end(),
                        [&](auto& m) { return held_out(runs_of(m.name, t.name)).has_value(); }))
            columns.push_back(t);
    lines out{head_of(columns, "memory"), rule(columns.size() + 1)};
    for (const auto& m : members) {
        std::string line = "| " + std::string(m.title) + " |";
        for (const auto& t : columns) {
            const auto here = trained(m.name, t.name), there = held_out(runs_of(m.name, t.name));
            line += here && there ? " " + fixed(there->way, 0) + " (" + (there->way > here->way ? "+" : "") +
                                        fixed(there->way - here->way, 0) + ") |"
                                  : " - |";
        }
        out.push_back(line);
    }
    return out;
}

/// Mean rank over the tasks that all have run, 1 the best; ways that round to one percent share a rank. A draw takes of
/// each memory its seeds with replacement, and a normal error of the episodes of each.
struct rank_of {
    double mean = 0, low = 0, high = 0;  // over the draws
};
std::vector<rank_of> ranks_of(const std::vector<asked>& columns) {
    constexpr int draws = 2000;
    engram::philox random(1, engram::stream_id("answer", 0));
    std::vector<std::vector<double>> drawn(members.size(), std::vector<double>(draws));
    for (int d = 0; d < draws; ++d)
        for (const auto& t : columns) {
            std::vector<double> way;
            for (const auto& m : members) {
                const auto runs = runs_of(m.name, t.name);
                double sum = 0;
                for (std::size_t i = 0; i < runs.size(); ++i) {
                    const auto* run = runs[static_cast<std::size_t>(random.below(static_cast<int>(runs.size())))];
                    const auto& s = run->levels.at(trained_level(t.name));
                    sum += s.way + s.error * static_cast<double>(random.normal());
                }
                way.push_back(std::round(sum / static_cast<double>(runs.size())));
            }
            for (std::size_t a = 0; a < way.size(); ++a) {
                double rank = 1;
                for (std::size_t b = 0; b < way.size(); ++b)
                    if (b != a) rank += way[b] > way[a] ? 1 : way[b] == way[a] ? 0.5 : 0;
                drawn[a][static_cast<std::size_t>(d)] += rank / static_cast<double>(columns.size());
            }
        }
    std::vector<rank_of> found;
    for (auto& mine : drawn) {
        std::sort(mine.begin(), mine.end());
        double sum = 0;
        for (const auto rank : mine) sum += rank;
        found.push_back({sum / draws, mine[draws * 25 / 1000], mine[draws * 975 / 1000]});
    }
    return found;
}

lines ranks() {
    const auto columns = whole_tasks();
    std::string over;
    for (const auto& t : columns) over += (over.empty() ? "" : ", ") + std::string(t.title);
    std::size_t fewest = planned_seeds;
    for (const auto& t : columns)
        for (const auto& m : members) fewest = std::min(fewest, runs_of(m.name, t.name).size());
    lines out{(over.empty() ? "No task has all memories yet" : "Over " + over + ", ") +
                  (columns.empty() ? ""
                   : fewest == 1   ? "of one seed: what another seed would change is not in the bounds"
                                   : "of " + std::to_string(fewest) + " seeds") +
                  ".",
              ""};
    if (columns.empty()) return out;
    const auto found = ranks_of(columns);
    std::vector<std::size_t> order(members.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return found[a].mean < found[b].mean; });
    out.push_back("| memory | mean rank | 95 % of the draws |");
    out.push_back(rule(3));
    for (const auto i : order)
        out.push_back("| " + std::string(members[i].title) + " | " + fixed(found[i].mean, 1) + " | " +
                      fixed(found[i].low, 1) + " to " + fixed(found[i].high, 1) + " |");
    return out;
}

std::string listed(const lines& words) {
    std::string out;
    for (std::size_t i = 0; i < words.size(); ++i)
        out += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
    return out;
}

/// Other seeds beside those of the tables above: as trained, behind the stroke the worse of the levels held out.
lines unseen() {
    const auto columns = begun_tasks();
    lines out{head_of(columns, "memory"), rule(columns.size() + 1)}, apart;
    int means = 0;
    for (const auto& m : members) {
        if (std::none_of(unseen_runs().begin(), unseen_runs().end(), [&](auto& r) { return r.member == m.name; }))
            continue;
        std::string line = "| " + std::string(m.title) + " |";
        for (const auto& t : columns) {
            const auto theirs = runs_of(m.name, t.name, unseen_runs()), ours = runs_of(m.name, t.name);
            const auto level = trained_level(t.name);
            if (theirs.empty()) {
                line += " - |";
                continue;
            }
            std::string cell;
            const auto beside = [&](const std::optional<score>& there, const std::optional<score>& here,
                                    const std::string& what) {
                if (!there) return;
                cell += (cell.empty() ? " " : " / ") + fixed(there->way, 0) + " ± " + fixed(there->error, 1);
                ++means;
                const double error = std::sqrt(there->error * there->error + here->error * here->error);
                // What is known to a percent is not apart by less.
                if (std::abs(there->way - here->way) > std::max(2 * error, 1.0))
                    apart.push_back(std::string(m.title) + " on " + t.title + what + " (" + fixed(here->way, 0) +
                                    ", now " + fixed(there->way, 0) + ")");
            };
            beside(over_seeds(theirs, level), over_seeds(ours, level), "");
            beside(held_out(theirs), held_out(ours), ", held out");
            line += cell + " |";
        }
        out.push_back(line);
    }
    out.push_back("");
    out.push_back("Of " + std::to_string(means) + " means " + std::to_string(means - static_cast<int>(apart.size())) +
                  " are within two errors of those above, or within a percent" +
                  (apart.empty() ? "." : "; the others: " + listed(apart) + "."));
    return out;
}

/// A sentence a memory, of nothing but the tables above.
lines good_for() {
    lines out;
    for (const auto& m : members) {
        lines learnt, partly, none, kept, lost;
        for (const auto& t : begun_tasks()) {
            const auto s = trained(m.name, t.name);
            if (!s) continue;
            const std::string shown = std::string(t.title) + " (" + fixed(s->way, 0) + ")";
            (std::round(s->way) >= 90 ? learnt : std::round(s->way) >= 25 ? partly : none).push_back(shown);
            if (std::round(s->way) < 90) continue;
            if (const auto h = held_out(runs_of(m.name, t.name)))
                (std::round(h->way) >= 80 ? kept : lost)
                    .push_back(std::string(t.title) + " (" + fixed(h->way, 0) + ")");
        }
        std::string line = "- **" + std::string(m.title) + "**: ";
        if (learnt.empty() && partly.empty() && none.empty()) {
            out.push_back(line + "has not run.");
            continue;
        }
        line += learnt.empty() ? "learns none of them" : "learns " + listed(learnt);
        if (!partly.empty()) line += ", some of " + listed(partly);
        if (!none.empty() && !(learnt.empty() && partly.empty())) line += ", not " + listed(none);
        if (!kept.empty()) line += "; holds where levels were held out in " + listed(kept);
        if (!lost.empty()) line += "; falls where levels were held out in " + listed(lost);
        out.push_back(line + ".");
    }
    return out;
}

/// Of the programs of `first`, ppo_ or bptt_: parameters and bytes of each task.
struct sizes {
    double parameters, bytes;
};
const std::map<std::pair<std::string, std::string>, sizes>& all_sizes() {
    static const auto found = [] {
        std::map<std::pair<std::string, std::string>, sizes> all;
        for (const auto& r : read_rows("data/answer_sizes.csv"))
            all[{member_of(r.at("program")), r.at("task")}] = {std::stod(r.at("parameters")), std::stod(r.at("bytes"))};
        return all;
    }();
    return found;
}

/// A number with its thousands apart.
std::string thousands(double x) {
    std::string digits = fixed(x, 0);
    for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
        digits.insert(static_cast<std::size_t>(at), " ");
    return digits;
}

lines cost() {
    lines out{
        "| memory | parameters, RepeatPrevious | of the LSTM's, over the tasks | bytes a row, RepeatPrevious | steps a "
        "second, RepeatPrevious | of the LSTM's, over the tasks |",
        rule(6)};
    const char* usual = "popgym_repeat_previous";
    for (const auto& m : members) {
        double least = 1e9, greatest = -1e9;
        for (const auto& t : tasks)
            if (const auto at = all_sizes().find({m.name, t.name}); at != all_sizes().end()) {
                const double apart = 100 * (at->second.parameters / all_sizes().at({"lstm", t.name}).parameters - 1);
                least = std::min(least, apart), greatest = std::max(greatest, apart);
            }
        const auto signed_ = [](double x) { return (x >= 0.05 ? "+" : "") + fixed(std::abs(x) < 0.05 ? 0 : x, 1); };
        const auto& here = all_sizes().at({m.name, usual});
        const auto usual_runs = runs_of(m.name, usual);
        const double ring = usual_runs.empty() ? 0 : usual_runs[0]->ring;
        double logs = 0, count = 0;
        std::string speed = "-";
        for (const auto& t : tasks) {
            const auto own = runs_of(m.name, t.name), others = runs_of("lstm", t.name);
            if (own.empty() || others.empty()) continue;
            const auto rate = [](const std::vector<const run*>& runs) {
                double steps = 0, seconds = 0;
                for (const auto* r : runs) steps += r->steps, seconds += r->processor_seconds;
                return steps / seconds;
            };
            logs += std::log(rate(own) / rate(others)), ++count;
            if (std::string(t.name) == usual) speed = thousands(std::round(rate(own) / 100) * 100);
        }
        out.push_back("| " + std::string(m.title) + " | " + thousands(here.parameters) + " | " +
                      (std::string(m.name) == "lstm" ? "1" : signed_(least) + " to " + signed_(greatest) + " %") +
                      " | " + thousands(here.bytes) + (ring > 0 ? " + " + thousands(ring) : "") + " | " + speed +
                      " | " + (count > 0 ? fixed(std::exp(logs / count), 2) : "-") + " |");
    }
    return out;
}

/// The hybrid beside the best of the memories whose reads it mixes: seven generative tasks, and those of this page that
/// the conjecture names.
lines hybrid() {
    struct result {
        std::string who;
        double value, error;
    };
    lines out{"| task | hybrid | the best of its parts | | hybrid ahead by, in errors of both |", rule(5)};
    int won = 0, within = 0, all = 0;
    const auto line = [&](const std::string& task, const result& own, const std::vector<result>& parts, double sign,
                          int places) {
        const auto best = *std::max_element(parts.begin(), parts.end(), [&](const result& a, const result& b) {
            return sign * a.value < sign * b.value;
        });
        const double error = std::hypot(own.error, best.error), ahead = sign * (own.value - best.value);
        won += ahead > 0, within += ahead <= 0 && ahead >= -2 * error, ++all;
        const auto shown = [&](const result& r) {
            return fixed(r.value, places) + (r.error > 0 ? " ± " + fixed(r.error, 1) : "");
        };
        out.push_back("| " + task + " | " + shown(own) + " | " + shown(best) + " | " + best.who + " | " +
                      (error > 0 ? fixed(ahead / error, 1) : "-") + " |");
    };
    const std::pair<const char*, const char*> generative[] = {{"perfect_recall", "perfect recall"},
                                                              {"parity_recall", "parity recall"},
                                                              {"one_shot_recall", "one-shot recall"},
                                                              {"dynamic_dependency", "dynamic dependency"},
                                                              {"similarity_cued_recall_10", "similarity-cued recall"},
                                                              {"mnist_map", "MNIST map"},
                                                              {"rotation", "3D rotation"}};
    const std::map<std::string, std::string> gtmm_titles{
        {"introspective_gtmm", "introspection"}, {"ntm_gtmm", "NTM"}, {"lru_gtmm", "LRU access"}, {"dnc_gtmm", "DNC"}};
    const auto gtmm = read_rows("data/gtmm.csv");
    for (const auto& [name, title] : generative) {
        std::optional<result> own;
        std::vector<result> parts;
        for (const auto& r : gtmm) {
            if (r.at("task") != name) continue;
            const double error = r.at("elbo_se").empty() ? 0 : std::stod(r.at("elbo_se"));
            const result found{"", std::stod(r.at("elbo")), error};
            if (r.at("model") == "hybrid_gtmm") own = found;
            if (const auto at = gtmm_titles.find(r.at("model")); at != gtmm_titles.end())
                parts.push_back({at->second, found.value, found.error});
        }
        if (own) line(std::string(title) + ", -ELBO in nats", *own, parts, -1, 1);
    }
    for (const char* name :
         {"arbitrary_visuomotor_mapping", "continuous_recognition", "copy", "popgym_repeat_previous"}) {
        const auto own = trained("hybrid", name);
        std::vector<result> parts;
        for (const char* part : {"lstm_mem", "introspection", "ntm", "lru_access", "dnc"})
            if (const auto s = trained(part, name))
                for (const auto& m : members)
                    if (std::string(m.name) == part) parts.push_back({m.title, s->way, s->error});
        const auto title =
            std::find_if(tasks.begin(), tasks.end(), [&](auto& t) { return std::string(t.name) == name; });
        if (own && !parts.empty())
            line(std::string(title->title) + ", % of the way", {"", own->way, own->error}, parts, 1, 1);
    }
    out.push_back("");
    out.push_back("Ahead on " + std::to_string(won) + " of " + std::to_string(all) + ", within two errors on " +
                  std::to_string(within) + ", behind on " + std::to_string(all - won - within) + ".");
    return out;
}

/// Memories x tasks: as trained, and on what was held out.
std::string picture() {
    constexpr double cell = 50, tall = 24, left = 178, head = 112, gap = 34, foot = 34;
    std::vector<asked> kept;
    for (const auto& t : tasks)
        if (engram::suite_index(t.name) || std::string(t.name) == "t_maze" || std::string(t.name) == "copy")
            kept.push_back(t);
    const double second = left + cell * static_cast<double>(tasks.size()) + gap;
    const double width = second + cell * static_cast<double>(kept.size()) + 70;
    const double height = head + tall * static_cast<double>(members.size()) + foot;
    const auto text = [](double x, double y, const std::string& anchor, const std::string& ink,
                         const std::string& what) {
        return "<text x='" + fixed(x, 1) + "' y='" + fixed(y, 1) + "' text-anchor='" + anchor + "' fill='" + ink +
               "'>" + what + "</text>\n";
    };
    std::string out = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 " + fixed(width, 0) + " " +
                      fixed(height, 0) +
                      "' font-family='sans-serif' font-size='12'>\n<rect width='100%' height='100%' fill='#fff'/>\n";
    const auto map = [&](double at, const auto& columns, const std::string& title, const auto& value_of) {
        for (std::size_t t = 0; t < columns.size(); ++t) {
            const double x = at + cell * static_cast<double>(t);
            out += "<text transform='translate(" + fixed(x + cell / 2, 1) + "," + fixed(head - 8, 1) +
                   ") rotate(-40)' font-size='11'>" + columns[t].title + "</text>\n";
            for (std::size_t m = 0; m < members.size(); ++m) {
                const double y = head + tall * static_cast<double>(m);
                const std::string box = "<rect x='" + fixed(x + 1, 1) + "' y='" + fixed(y + 1, 1) + "' width='" +
                                        fixed(cell - 2, 1) + "' height='" + fixed(tall - 2, 1) + "' rx='3' ";
                const std::optional<score> value = value_of(members[m], columns[t]);
                if (!value) {
                    out += box + "fill='none' stroke='#ccc'/>\n";
                    continue;
                }
                const auto colour = engram::heat_colour(value->way);
                const auto seeds = runs_of(members[m].name, columns[t].name).size();
                out += box + "fill='" + colour.text() + "'><title>" + members[m].title + ", " + columns[t].title +
                       ", " + title + ": " + fixed(value->way, 1) + " ± " + fixed(value->error, 1) + " %, " +
                       std::to_string(seeds) + (seeds == 1 ? " seed" : " seeds") + "</title></rect>\n" +
                       text(x + cell / 2, y + tall / 2 + 4.5, "middle", colour.takes_black() ? "#000" : "#fff",
                            fixed(std::abs(value->way) < 0.5 ? 0 : value->way, 0));
            }
        }
        out += text(at, head + tall * static_cast<double>(members.size()) + 20, "start", "#555", title);
    };
    for (std::size_t m = 0; m < members.size(); ++m)
        out += text(left - 8, head + tall * (static_cast<double>(m) + 0.5) + 4.5, "end", "#000", members[m].title);
    map(left, tasks, "as trained; % of the way from random to the best possible",
        [](const member& m, const asked& t) { return trained(m.name, t.name); });
    map(second, kept, "held out, the worse level",
        [](const member& m, const asked& t) { return held_out(runs_of(m.name, t.name)); });
    return out + "</svg>\n";
}

}  // namespace

TEST_CASE("memories and tasks: the tables are those of the runs") {
    compare_blocks("docs/results/answer.md", "answer",
                   {{"ran", ran},
                    {"scores", scores},
                    {"heldout", heldout},
                    {"ranks", ranks},
                    {"unseen", unseen},
                    {"good_for", good_for},
                    {"hybrid", hybrid},
                    {"cost", cost}});
}

TEST_CASE("memories and tasks: the picture is that of the runs") {
    compare_file("docs/results/answer.svg", picture());
}

TEST_CASE("memories and tasks: parameters are equal, and those that ran") {
    for (const auto& [at, size] : all_sizes()) {
        const auto &name = at.first, &task = at.second;
        CAPTURE(name);
        CAPTURE(task);
        const double lstm = all_sizes().at({"lstm", task}).parameters;
        CHECK(std::abs(100 * (size.parameters / lstm - 1)) <= most_apart);
    }
    for (const auto* runs : {&all_runs(), &unseen_runs()})
        for (const auto& r : *runs) {
            CAPTURE(r.member);
            CAPTURE(r.task);
            REQUIRE(all_sizes().count({r.member, r.task}) == 1);
            CHECK(r.parameters == all_sizes().at({r.member, r.task}).parameters);
        }
}

TEST_CASE("memories and tasks: the seeds of the two files differ") {
    for (const auto& r : unseen_runs()) {
        const auto ours = runs_of(r.member, r.task);
        CHECK(std::none_of(ours.begin(), ours.end(), [&](const run* o) { return o->seed == r.seed; }));
    }
}
