// SPDX-License-Identifier: MIT

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include <engram/core/settings.hpp>
#include <engram/io/file.hpp>

#include "campaign.hpp"

namespace engram {

namespace {

using word_list = std::vector<std::string>;

constexpr std::size_t most_runs = 100'000;  // a slip of the pen is more

const word_list grid_keys{"programs", "tasks", "seeds"};
const word_list pattern_keys{"out", "report", "results", "page"};
/// How a run is started, which changes nothing of what comes out.
const word_list how_keys{"launch", "slurm"};
/// Flags of train that a line may give; a setting is a key with a dot.
const word_list flag_keys{
    "steps",   "until-reward", "preset",   "evaluate", "evaluate-every", "evaluate-episodes", "checkpoint-every",
    "threads", "device",       "products", "mode",     "data",           "stimuli",           "weights"};

bool among(const word_list& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

std::string trimmed(const std::string& text) {
    const auto first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
    return first == text.npos ? "" : text.substr(first, last - first + 1);
}

word_list split(const std::string& text) {
    std::istringstream in(text);
    word_list all;
    for (std::string word; in >> word;) all.push_back(word);
    return all;
}

/// Paths may hold spaces, and commands do; everything else is a list.
word_list values_of(const campaign_line& line) {
    const bool whole =
        line.key == "weights" || line.key == "data" || line.key == "task.data" || among(how_keys, line.key);
    if (whole) return line.value.empty() ? word_list{} : word_list{line.value};
    return split(line.value);
}

void require_name(const std::string& place, const char* what, const std::string& name) {
    const bool plain = !name.empty() && name.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_.-") == name.npos;
    require(plain, place, ": expected ", what, ", got '", name, "'");
}

campaign_line parse_line(const std::string& place, const std::string& text) {
    const auto equals = text.find('=');
    require(equals != text.npos, place, ": expected 'key = value' or '[section]', got '", text, "'");
    campaign_line line{place, {}, trimmed(text.substr(0, equals)), trimmed(text.substr(equals + 1))};
    if (const auto colon = line.key.find(':'); colon != line.key.npos) {
        line.scope = split(line.key.substr(0, colon));
        require(!line.scope.empty(), place, ": expected programs or tasks before ':'");
        line.key = trimmed(line.key.substr(colon + 1));
    }
    require_name(place, "a key before '='", line.key);
    if (among({"program", "task", "seed"}, line.key)) line.key += "s";
    const bool grid = among(grid_keys, line.key) || among(pattern_keys, line.key);
    require(!grid || line.scope.empty(), place, ": '", line.key,
            "' holds for a whole section and stands behind no programs and tasks");
    if (grid) {
        require(!line.value.empty(), place, ": '", line.key, "' is empty");
    } else if (line.key.find('.') == line.key.npos) {
        auto known = flag_keys;
        known.insert(known.end(), grid_keys.begin(), grid_keys.end());
        known.insert(known.end(), pattern_keys.begin(), pattern_keys.end());
        known.insert(known.end(), how_keys.begin(), how_keys.end());
        if (!among(known, line.key))
            fail(place, ": unknown key '", line.key, "'", instead_of(line.key, known), "; settings have a dot");
    }
    return line;
}

void add_line(campaign_section& to, campaign_line line) {
    for (const auto& other : to.lines)
        require(other.key != line.key || other.scope != line.scope, line.place, ": '", line.key,
                "' is given twice, first in ", other.place);
    to.lines.push_back(std::move(line));
}

std::vector<campaign_section> parse_file(const std::string& file) {
    const bytes content = read_file(file);
    std::istringstream in(std::string(content.begin(), content.end()));
    std::vector<campaign_section> sections(1);
    int number = 0;
    for (std::string text; std::getline(in, text);) {
        const std::string place = file + ":" + std::to_string(++number);
        // A remark is a line of its own, or stands behind a space.
        if (const auto remark = text.find(" #"); remark != text.npos) text.resize(remark);
        text = trimmed(text);
        if (text.empty() || text[0] == '#') continue;
        if (text[0] != '[') {
            add_line(sections.back(), parse_line(place, text));
            continue;
        }
        require(text.back() == ']', place, ": expected '[section]', got '", text, "'");
        const std::string name = trimmed(text.substr(1, text.size() - 2));
        require_name(place, "a section's name", name);
        for (const auto& other : sections)
            require(other.name != name, place, ": the section '", name, "' is there twice");
        sections.push_back({name});
    }
    return sections;
}

/// Replaces {program}, {task}, {seed}, {section} and {key} by the run's.
std::string expand(const std::string& pattern, const std::string& place, const planned_run& run) {
    std::map<std::string, std::string> known{
        {"program", run.program}, {"task", run.task}, {"seed", std::to_string(run.seed)}};
    if (!run.section.empty()) known["section"] = run.section;
    for (const auto& value : run.values) known.emplace(value.key, value.value);
    std::string out;
    std::size_t at = 0;
    for (std::size_t open; (open = pattern.find('{', at)) != pattern.npos;) {
        const auto close = pattern.find('}', open);
        require(close != pattern.npos, place, ": '{' without '}' in '", pattern, "'");
        const std::string name = pattern.substr(open + 1, close - open - 1);
        word_list names;
        for (const auto& entry : known) names.push_back(entry.first);
        if (!known.contains(name))
            fail(place, ": '{", name, "}' has no value for engram-", run.program, " on ", run.task,
                 instead_of(name, names));
        out += pattern.substr(at, open - at) + known.at(name);
        at = close + 1;
    }
    return out + pattern.substr(at);
}

/// What the words before a colon are: all that the file names anywhere.
struct campaign_names {
    word_list programs, tasks;
};

/// The runs of one section: `lines` are those of all, its own, and the changes, in this order; the last one counts.
class grid {
public:
    grid(campaign& all, const campaign_names& names, const campaign_section& section, std::vector<campaign_line> lines)
        : all_(all), names_(names), section_(section), lines_(std::move(lines)) {}

    void add_runs() {
        const auto programs = list("programs"), tasks = list("tasks"), seeds = list("seeds");
        for (const auto& program : programs) require_name(last("programs")->place, "a program's name", program);
        // Every seed has been run once before any is run twice.
        for (const auto& text : seeds) {
            std::int64_t seed = 0;
            try {
                seed = parse<std::int64_t>("seeds", text);
            } catch (const error& problem) {
                fail(last("seeds")->place, ": ", problem.what());
            }
            require(seed >= 0, last("seeds")->place, ": seeds: expected 0 or more, got ", seed);
            for (const auto& task : tasks)
                for (const auto& program : programs)
                    add_each({section_.name, program, task, seed, last("programs")->place, last("tasks")->place});
        }
    }

private:
    const campaign_line* last(const std::string& key) const {
        const campaign_line* found = nullptr;
        for (const auto& line : lines_)
            if (line.key == key) found = &line;
        return found;
    }
    word_list list(const std::string& key) const {
        const auto* line = last(key);
        require(line != nullptr, all_.file, ": ",
                section_.name.empty() ? std::string("there are") : "the section '" + section_.name + "' has", " no ",
                key, "; a line '", key, " = ...' was expected");
        return split(line->value);
    }
    bool holds_for(const campaign_line& line, const planned_run& run) const {
        const auto names_any = [&](const word_list& kind) {
            return std::any_of(line.scope.begin(), line.scope.end(), [&](auto& word) { return among(kind, word); });
        };
        return (!names_any(names_.programs) || among(line.scope, run.program)) &&
               (!names_any(names_.tasks) || among(line.scope, run.task));
    }

    /// One run for each choice of the values that lines leave open.
    void add_each(planned_run base) {
        std::vector<campaign_line> chosen{{all_.file, {}, "threads", "1"}};
        for (const auto& line : lines_) {
            if (among(grid_keys, line.key) || among(pattern_keys, line.key)) continue;
            if (!holds_for(line, base)) continue;
            const auto at = std::find_if(chosen.begin(), chosen.end(), [&](auto& c) { return c.key == line.key; });
            if (at == chosen.end())
                chosen.push_back(line);
            else
                *at = line;
        }
        std::vector<planned_run> open{std::move(base)};
        for (const auto& line : chosen) {
            const auto values = values_of(line);
            if (values.empty()) continue;  // what a line above says is taken back
            if (values.size() > 1 && !among(all_.varied, line.key)) all_.varied.push_back(line.key);
            require(all_.runs.size() + open.size() * values.size() <= most_runs, line.place, ": these are more than ",
                    most_runs, " runs");
            std::vector<planned_run> next;
            for (const auto& run : open)
                for (const auto& value : values) {
                    next.push_back(run);
                    campaign_line said{line.place, {}, line.key, value};
                    if (line.key == "launch")
                        next.back().launch = std::move(said);
                    else if (line.key == "slurm")
                        next.back().slurm = std::move(said);
                    else
                        next.back().values.push_back(std::move(said));
                }
            open = std::move(next);
        }
        for (auto& run : open) {
            const std::string usual =
                "runs/" + all_.stem + (section_.name.empty() ? "" : "/{section}") + "/{task}/{program}-{seed}";
            const auto pattern = [&](const char* key, const std::string& otherwise) {
                const auto* line = last(key);
                return expand(line ? line->value : otherwise, line ? line->place : all_.file, run);
            };
            run.folder = pattern("out", usual);
            run.report = pattern("report", "");
            if (const auto* line = last("report")) run.report_place = line->place;
            run.results = pattern("results", "");
            run.page = pattern("page", "");
            for (auto& value : run.values)
                if (value.key == "weights") value.value = expand(value.value, value.place, run);
            all_.runs.push_back(std::move(run));
        }
    }

    campaign& all_;
    const campaign_names& names_;
    const campaign_section& section_;
    std::vector<campaign_line> lines_;
};

std::string plain_path(const std::string& path) {
    auto text = std::filesystem::absolute(path).lexically_normal().string();
    while (text.size() > 1 && text.back() == '/') text.pop_back();
    return text;
}

/// Each folder once; and who begins with the weights of which run.
void connect(campaign& all) {
    std::map<std::string, std::size_t> at;
    for (std::size_t i = 0; i < all.runs.size(); ++i) {
        const auto& run = all.runs[i];
        const auto [other, is_new] = at.emplace(plain_path(run.folder), i);
        if (is_new) continue;
        std::string differs;
        for (const auto& key : all.varied) differs += " {" + key + "}";
        fail(all.file, ": two runs have the folder ", run.folder, ", engram-", all.runs[other->second].program,
             " and engram-", run.program, " on ", run.task,
             "; 'out' should name what they differ in, one or more of {program} {task} {seed}",
             all.has_sections ? " {section}" : "", differs);
    }
    for (std::size_t i = 0; i < all.runs.size(); ++i)
        for (const auto& value : all.runs[i].values) {
            if (value.key != "weights") continue;
            const auto other = at.find(plain_path(value.value));
            if (other == at.end()) continue;
            require(other->second < i, value.place, ": ", all.runs[i].folder, " begins with the weights of ",
                    value.value, ", which should come before it");
            all.runs[i].needs = static_cast<std::ptrdiff_t>(other->second);
        }
    // No file is written by two. engram-report writes three tables beside its page, of its name with other endings.
    std::map<std::string, std::string> written;
    for (const auto& run : all.runs) {
        if (run.report.empty()) continue;
        const std::string report = "the report " + run.report;
        word_list files{run.report};
        for (const char* ending : {"csv", "heatmap.csv", "orderings.csv"})
            files.push_back(std::filesystem::path(run.report).replace_extension(ending).string());
        for (const auto& file : files) {
            const auto [other, is_new] = written.emplace(plain_path(file), report);
            require(is_new || other->second == report, run.report_place, ": ", report, " writes ", file, ", which ",
                    other->second, " writes as well");
        }
    }
    const auto add = [&](const char* key, auto path_of) {
        for (const auto& run : all.runs) {
            const std::string& path = path_of(run);
            const auto other = path.empty() ? written.end() : written.find(plain_path(path));
            require(other == written.end(), all.file, ": '", key, "' is ", path, ", which ",
                    other == written.end() ? "" : other->second, " writes as well");
        }
        for (const auto& run : all.runs)
            if (!path_of(run).empty()) written[plain_path(path_of(run))] = "'" + std::string(key) + "'";
    };
    add("results", [](const planned_run& run) -> const std::string& { return run.results; });
    add("page", [](const planned_run& run) -> const std::string& { return run.page; });
}

}  // namespace

std::vector<std::string> planned_run::words() const {
    std::vector<std::string> all{"--task", task, "--seed", std::to_string(seed)};
    for (const auto& value : values) {
        all.push_back("--" + value.key);
        // A value that begins with two dashes would be a flag.
        if (value.value.starts_with("--"))
            all.back() += "=" + value.value;
        else
            all.push_back(value.value);
    }
    return all;
}

std::string as_shell_word(const std::string& word) {
    const bool plain = !word.empty() && word.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_.,/=:+-@%") == word.npos;
    if (plain) return word;
    std::string out = "'";
    for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

std::vector<std::string> planned_run::command(const std::string& path) const {
    auto all = split(launch.value);
    all.push_back(path);
    all.push_back("train");
    const auto more = words();
    all.insert(all.end(), more.begin(), more.end());
    all.insert(all.end(), {"--out", folder, "--resume", "--quiet"});
    return all;
}

void keep_only(campaign& all, const std::vector<std::string>& folders) {
    if (folders.empty()) return;
    std::vector<bool> kept(all.runs.size(), false);
    for (const auto& folder : folders) {
        std::vector<std::string> known;
        bool found = false;
        for (std::size_t i = 0; i < all.runs.size(); ++i) {
            known.push_back(all.runs[i].folder);
            const auto mine = plain_path(all.runs[i].folder), wanted = plain_path(folder);
            if (mine == wanted || fnmatch(wanted.c_str(), mine.c_str(), FNM_PATHNAME) == 0) kept[i] = found = true;
        }
        if (!found) fail("--only: no run of ", all.file, " has the folder '", folder, "'", instead_of(folder, known));
    }
    // Those whose weights they begin with stay, to be looked at.
    std::vector<planned_run> runs;
    std::vector<std::ptrdiff_t> place(all.runs.size(), -1);
    const auto stays = [&](std::size_t i, bool chosen) {
        if (place[i] >= 0) return;
        place[i] = static_cast<std::ptrdiff_t>(runs.size());
        runs.push_back(all.runs[i]);
        runs.back().chosen = chosen;
    };
    for (std::size_t i = 0; i < all.runs.size(); ++i) {
        if (!kept[i]) continue;
        const auto needs = all.runs[i].needs;
        if (needs >= 0) stays(static_cast<std::size_t>(needs), kept[static_cast<std::size_t>(needs)]);
        stays(i, true);
    }
    for (auto& run : runs) run.page.clear();  // which is of all of them
    for (auto& run : runs)
        if (run.needs >= 0) run.needs = run.chosen ? place[static_cast<std::size_t>(run.needs)] : -1;
    all.runs = std::move(runs);
}

campaign read_campaign(const std::string& file, const std::vector<std::string>& changes) {
    campaign all{file, std::filesystem::path(file).stem().string()};
    const auto sections = parse_file(file);
    campaign_section changed;
    for (const auto& text : changes) add_line(changed, parse_line("'" + text + "'", text));
    all.has_sections = sections.size() > 1;
    auto lines = changed.lines;
    for (const auto& section : sections) lines.insert(lines.end(), section.lines.begin(), section.lines.end());
    campaign_names names;
    for (const auto& line : lines)
        for (const auto& name : split(line.value)) {
            if (line.key == "programs") names.programs.push_back(name);
            if (line.key == "tasks") names.tasks.push_back(name);
        }
    auto named = names.programs;
    named.insert(named.end(), names.tasks.begin(), names.tasks.end());
    for (const auto& line : lines)
        for (const auto& word : line.scope)
            if (!among(named, word))
                fail(line.place, ": '", word, "' is neither a program nor a task of this file",
                     instead_of(word, named));
    for (std::size_t i = all.has_sections ? 1 : 0; i < sections.size(); ++i) {
        lines = sections[0].lines;
        if (i > 0) lines.insert(lines.end(), sections[i].lines.begin(), sections[i].lines.end());
        lines.insert(lines.end(), changed.lines.begin(), changed.lines.end());
        grid(all, names, sections[i], std::move(lines)).add_runs();
    }
    // A setting that only some runs have, or that a section changes, varies too.
    std::map<std::string, std::map<std::string, std::size_t>> values;
    for (const auto& run : all.runs)
        for (const auto& value : run.values)
            if (value.key.find('.') != value.key.npos) ++values[value.key][value.value];
    for (const auto& [key, counts] : values)
        if (counts.begin()->second != all.runs.size() && !among(all.varied, key)) all.varied.push_back(key);
    connect(all);
    return all;
}

}  // namespace engram
