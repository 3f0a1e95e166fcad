// The tables of docs/reference are what the code says: programs with their policies from the catalogue, settings with
// their defaults from reflection, and what a setting is from the remark beside it in its header.

#include "every_ablation.hpp"
#include "markdown.hpp"

#include <map>
#include <regex>

using namespace documents;

namespace {

const char* const generated = "<!-- Written by tests/docs/reference.cpp: ENGRAM_WRITE_DOCS=1 ./dev test docs -->\n\n";

std::string cell(std::string text) {
    std::string out;
    for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
    return out;
}

// --- the catalogue ---

struct catalogue_line {
    std::string name, title;  // what the paper calls it
    int group;                // separated by empty lines
};

std::vector<catalogue_line> catalogue_lines() {
    static const std::regex form(R"(^using +([a-z0-9_]+) *=.*// *ablation (.*)$)");
    std::vector<catalogue_line> all;
    int group = 0;
    bool apart = false;
    for (const auto& line : read_lines(root() / "include/engram/catalogue.hpp")) {
        std::smatch found;
        if (std::regex_match(line, found, form)) {
            if (apart && !all.empty()) ++group;
            apart = false;
            all.push_back({found[1], found[2], group});
        } else {
            apart |= line.empty();
        }
    }
    return all;
}

// --- settings ---

/// Where a group of settings is declared.
struct declaration {
    std::string file, structure;
};

/// The remark beside a member: behind it on its line, or on the lines above it.
std::string remark(const declaration& where, const std::string& member) {
    const std::regex opening("struct " + where.structure + "( : [a-z_:]+)? \\{");
    const std::regex here("(^|[ ,])" + member + " *(=|\\{|;|,)");
    const std::regex behind(R"(; *// *(.*)$)");
    bool inside = false;
    std::string above;
    for (const auto& line : read_lines(root() / "include/engram" / where.file)) {
        if (!inside && std::regex_search(line, opening)) {
            inside = true;
            continue;
        }
        if (!inside) continue;
        const auto text = strip(line);
        if (text.starts_with("};") || text.starts_with("void check")) inside = false;
        if (text.starts_with("// ")) {
            above += (above.empty() ? "" : " ") + text.substr(3);
            continue;
        }
        std::smatch found;
        if (inside && std::regex_search(line.substr(0, line.find("//")), here))
            return std::regex_search(line, found, behind) ? std::string(found[1]) : above;
        above.clear();
    }
    return "";
}

/// The header of a slot's folder that declares a policy.
std::string header_of(const described_policy& p) {
    const std::regex form("(struct|using) " + p.name + "\\b[^;]*(\\{|=)");
    std::vector<std::string> files;
    const std::string folder = p.slot == "wiring" ? "model" : p.slot;
    for (const auto& entry : fs::directory_iterator(root() / "include/engram" / folder))
        files.push_back(folder + "/" + entry.path().filename().string());
    std::sort(files.begin(), files.end());
    for (const auto& file : files)
        for (const auto& line : read_lines(root() / "include/engram" / file))
            if (std::regex_search(line, form)) return file;
    engram::fail(p.name, ": no header in include/engram/", folder, " declares it");
}

/// Groups inside the settings of a policy or of a run, by their names; the longest that fits counts.
const std::vector<std::pair<std::string, declaration>>& groups() {
    static const std::vector<std::pair<std::string, declaration>> all{
        {"encoder.numbers.", {"encoder/mlp.hpp", "settings"}},
        {"encoder.image.", {"encoder/small_conv.hpp", "settings"}},
        {"learner.context.", {"learner/memup.hpp", "context_settings"}},
        {"learner.policy.", {"learner/ppo.hpp", "settings"}},
        {"learner.memory.", {"learner/memup_ppo.hpp", "memory_settings"}},
        {"learner.detector.", {"learner/quantile_regression.hpp", "settings"}},
        {"rollout.", {"train/trainer.hpp", "rollout_settings"}},
        {"asynchronous.", {"train/trainer.hpp", "asynchronous_settings"}},
        {"sequence.", {"train/sequence_trainer.hpp", "sequence_settings"}},
        {"optimiser.", {"train/optimiser.hpp", "optimiser_settings"}},
        {"phases.", {"train/phase_settings.hpp", "phase_settings"}},
        {"phases.detector.", {"train/phase_settings.hpp", "detector_settings"}},
        {"phases.detector.replay.", {"train/phase_settings.hpp", "replay_settings"}},
        {"phases.detector.optimiser.", {"train/optimiser.hpp", "optimiser_settings"}},
        {"phases.memory.", {"train/phase_settings.hpp", "memory_phase_settings"}},
        {"phases.memory.optimiser.", {"train/optimiser.hpp", "optimiser_settings"}},
        {"task.", {"task/environment.hpp", "task_options"}}};
    return all;
}

declaration declared(const std::string& setting, const declaration& otherwise) {
    declaration best = otherwise;
    std::size_t longest = 0;
    for (const auto& [prefix, where] : groups())
        if (setting.starts_with(prefix) && prefix.size() > longest) best = where, longest = prefix.size();
    return best;
}

std::string table(const std::string& prefix, const std::vector<engram::setting>& settings,
                  const declaration& otherwise) {
    std::string out = "| setting | default | what it is |\n|---|---|---|\n";
    for (const auto& s : settings) {
        const auto name = prefix + s.name;
        const auto where = declared(name, otherwise);
        const auto text = remark(where, name.substr(name.rfind('.') + 1));
        CHECK_MESSAGE(!text.empty(), name, ": no remark beside it in ", where.file, ", struct ", where.structure);
        const auto value =
            s.value.empty() ? s.kind == engram::setting_kind::list ? "(no numbers)" : "(empty)" : "`" + s.value + "`";
        out += "| `" + name + "` | " + value + " | " + cell(text) + " |\n";
    }
    return out;
}

}  // namespace

TEST_CASE("the catalogue's table") {
    static const std::vector<std::pair<const char*, const char*>> sources{
        {"The Memory Recall Agent and its ablations",
         "Tables 3 to 16 of the MRA paper; facts 1.10. Trained on the tasks that `engram-tasks list` names."},
        {"Generative temporal models", "Table 1 of the GTMM paper; facts 4.8. Trained on sequences of frames."},
        {"MemUP and its baselines on sequences",
         "Table 1 of the MemUP paper's supplement; facts 3.5. `tbptt` cuts sequences into unrolls."},
        {"MemUP that acts", "Tables 3 to 5 of the MemUP paper's supplement; facts 3.8 and 3.9."}};
    const auto lines = catalogue_lines();
    const auto all = catalogue();
    REQUIRE(lines.size() == all.size());
    REQUIRE(lines.back().group + 1 == static_cast<int>(sources.size()));

    std::string out = "# The catalogue\n\n";
    out += generated;
    out +=
        "Every line is a program, `build/bin/engram-<name>`, and a type, `engram::catalogue::<name>`. The five "
        "columns are its five choices;\neach is a header in the folder of its slot. What its settings are: "
        "[settings](settings.md); what ids such as facts 1.10 mean:\n[sources](sources.md).\n";
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const auto& a = all[i];
        REQUIRE(lines[i].name == a.name);
        if (i == 0 || lines[i].group != lines[i - 1].group) {
            const auto& [title, source] = sources[static_cast<std::size_t>(lines[i].group)];
            out += "\n## " + std::string(title) + "\n\n" + source + "\n\n";
            out +=
                "| name | in the paper | encoder | controller | memory | auxiliary loss | learner |\n"
                "|---|---|---|---|---|---|---|\n";
        }
        out += "| `" + a.name + "` | " + lines[i].title;
        for (std::size_t slot = 0; slot < 5; ++slot) out += " | `" + a.slots[slot].name + "`";
        out += " |\n";
    }
    compare_file("docs/reference/catalogue.md", out);
}

TEST_CASE("the settings' tables") {
    static const std::vector<std::pair<std::string, std::string>> slots{
        {"encoder", "Encoders"},           {"controller", "Controllers"}, {"memory", "Memories"},
        {"auxiliary", "Auxiliary losses"}, {"learner", "Learners"},       {"wiring", "Wirings"}};
    std::string out = "# Settings\n\n";
    out += generated;
    out +=
        "Every number of a model or a run is a setting: `--set memory.slots=2048`, or `--memory.slots 2048`. The "
        "defaults here are those of the\nlibrary; a preset (`small`, `paper`, `published`, `tuned`) replaces some of "
        "them, policy by policy and task by task, and\n`describe --preset P --task T` prints what then holds and "
        "where each value comes from. A list is written `64,64`.\nAn unknown name, a text of the wrong type or a value "
        "out of range is one sentence and exit "
        "code 2.\n";
    const auto all = policies();
    for (const auto& [slot, title] : slots) {
        out += "\n## " + title + "\n";
        for (const auto& p : all) {
            if (p.slot != slot) continue;
            const auto header = header_of(p);
            out += "\n### " + p.name + "\n\n`engram/" + header + "`\n\n";
            if (p.settings.empty()) {
                out += "No settings.\n";
                continue;
            }
            // The k-NN memories name their settings apart; all wirings but one have those of an agent's.
            declaration where{header, p.name.starts_with("fifo_knn") ? "fifo_knn_settings" : "settings"};
            if (slot == "wiring" && p.name != "acts_on_memory") where.file = "model/slots.hpp";
            out += table(slot + ".", p.settings, where);
        }
    }
    out += "\n## Runs\n\nThe same for every program; a group that a program has no use for is ignored.\n";
    std::map<std::string, std::vector<engram::setting>> runs;
    std::vector<std::string> order;
    for (const auto& s : engram::list_settings(engram::run_settings{})) {
        const auto group = s.name.substr(0, s.name.find('.'));
        if (!runs.count(group)) order.push_back(group);
        runs[group].push_back(s);
    }
    for (const auto& group : order) out += "\n### " + group + "\n\n" + table("", runs[group], {});
    compare_file("docs/reference/settings.md", out);
}

TEST_CASE("the operations' table") {
    static const std::regex function(R"(^(?:inline )?(?:var<Backend>|knn_recall<Backend>|auto|void) ([a-z_]+)\((.*)$)"),
        argument(R"(([a-z_]+)( = [^,]*)?$)");
    std::string out = "# Operations\n\n";
    out += generated;
    out +=
        "What a policy is made of, in `engram/graph/ops/`. Values are [T, B, columns] unless said; every operation "
        "has a name, which errors\nshow. Pointwise maths of any kind is `map` with a functor; a range of columns "
        "is `x.columns(first, count)`.\n\n| operation | what it gives | header |\n|---|---|---|\n";
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(root() / "include/engram/graph/ops")) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    int operations = 0;
    for (const auto& file : files) {
        const auto lines = read_lines(file);
        std::string said;
        bool inside = false;  // of namespace detail
        for (std::size_t i = 0; i < lines.size(); ++i) {
            std::smatch found;
            if (lines[i].starts_with("///")) {
                said += (said.empty() ? "" : " ") + strip(lines[i].substr(3));
                continue;
            }
            if (lines[i].starts_with("template") || lines[i].starts_with("    requires")) continue;
            inside |= lines[i] == "namespace detail {";
            inside &= lines[i] != "}  // namespace detail";
            // A function of variables; what begins with add_ or apply_ is what others are made of.
            if (!inside && std::regex_search(lines[i], found, function) &&
                (found.str(2).find("var<") != std::string::npos || found.str(2).find("graph<") != std::string::npos) &&
                (found.str(1) == "add_loss" ||
                 !(found.str(1).starts_with("add_") || found.str(1).starts_with("apply_")))) {
                std::string all = found[2];
                while (all.find(')') == all.npos || all.find('{') == all.npos) all += " " + strip(lines[++i]);
                all = all.substr(0, all.rfind(')'));
                std::string names;
                int depth = 0;
                std::string part;
                for (const char c : all + ",") {
                    depth += c == '<' || c == '(' ? 1 : c == '>' || c == ')' ? -1 : 0;
                    if (c != ',' || depth > 0) {
                        part += c;
                        continue;
                    }
                    std::smatch last;
                    REQUIRE(std::regex_search(part, last, argument));
                    names += (names.empty() ? "" : ", ") + last.str(1);
                    part.clear();
                }
                CHECK_MESSAGE(!said.empty(), found.str(1), " has no docstring");
                out += "| `" + found.str(1) + "(" + names + ")` | " + cell(said) + " | `" + file.filename().string() +
                       "` |\n";
                ++operations;
            }
            said.clear();
        }
    }
    CHECK(operations > 30);
    compare_file("docs/reference/operations.md", out);
}

TEST_CASE("every id of a source that headers, tests, programs and pages cite is explained") {
    std::set<std::string> explained;
    static const std::regex row(R"(^\| *((facts|errata) [0-9A-Z.]+) *\|)");
    for (const auto& line : read_lines(root() / "docs/reference/sources.md")) {
        std::smatch found;
        if (std::regex_search(line, found, row)) explained.insert(found[1]);
    }
    static const std::regex facts(R"(facts (([0-9]\.[0-9]+)((, | and | to )[0-9]\.[0-9]+)*))"),
        errata(R"(errata (([MUG][0-9]+)((, | and | to )[MUG][0-9]+)*))"), number(R"([0-9]\.[0-9]+)"),
        letter(R"([MUG][0-9]+)");
    int cited = 0;
    std::vector<fs::path> files;
    for (const char* folder : {"include", "tests", "programs", "examples", "benchmarks", "docs"})
        for (const auto& entry : fs::recursive_directory_iterator(root() / folder))
            for (const char* ending : {".hpp", ".cpp", ".cuh", ".cu", ".md"})
                if (entry.is_regular_file() && entry.path().extension() == ending) files.push_back(entry.path());
    for (const auto& path : files) {
        std::string text;
        for (const auto& line : read_lines(path)) {
            const auto from = line.find_first_not_of(" /");
            text += (from == line.npos ? "" : line.substr(from)) + " ";
        }
        for (const auto& [word, list, id] : {std::tuple{"facts ", &facts, &number}, {"errata ", &errata, &letter}})
            for (std::sregex_iterator at(text.begin(), text.end(), *list), end; at != end; ++at) {
                const std::string ids = (*at)[1];
                for (std::sregex_iterator one(ids.begin(), ids.end(), *id); one != end; ++one) {
                    const std::string name = word + one->str();
                    CHECK_MESSAGE(explained.count(name) == 1, path.filename().string(), " cites ", name);
                    ++cited;
                }
            }
    }
    CHECK(cited > 100);
}
