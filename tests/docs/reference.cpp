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
    static const std::regex form(R"(^using +([a-z0-9_]+) *=.*// *(?:ablation|on request) (.*)$)");
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
        {"rollout.", {"train/acting_update.hpp", "rollout_settings"}},
        {"asynchronous.", {"train/acting_update.hpp", "asynchronous_settings"}},
        {"sequence.", {"train/sequence_update.hpp", "sequence_settings"}},
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
        {"MemUP that acts", "Tables 3 to 5 of the MemUP paper's supplement; facts 3.8 and 3.9."},
        {"PPO with other memories",
         "What POPGym's paper compares, beside `ppo_lstm` ([results](../results/popgym.md)); the k-NN memory is "
         "ours."},
        {"Memories of today",
         "What researchers compare with; of no paper's table. These programs are compiled on request: "
         "`./dev build engram-gru`."},
        {"The papers' memories where PPO acts and on sequences",
         "What [the table of memories and tasks](../results/answer.md) compares; of no paper's table. Compiled on "
         "request."}};
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

namespace {

/// A function as the table shows it.
struct operation_line {
    std::string name, signature, gives, said, header;
};

/// "const std::vector<var<Backend>>& x" is "vector<var> x": what a reader needs of a type.
std::string in_short(std::string text) {
    for (const auto& [long_form, short_form] : std::vector<std::pair<std::string, std::string>>{
             {"<Backend>", ""}, {"std::", ""}, {"const ", ""}, {"engram::", ""}, {"&", ""}, {"<real>", ""}}) {
        for (std::size_t at; (at = text.find(long_form)) != text.npos;) text.replace(at, long_form.size(), short_form);
    }
    return std::regex_replace(strip(text), std::regex("\\bvariable\\b"), "var");
}

/// The functions of a header that take variables or a graph, with the remarks above them; `indent` is that of a member
/// function in a class.
std::vector<operation_line> operations_in(const fs::path& file, const std::string& indent) {
    static const std::regex function(
        R"(^(?:\[\[nodiscard\]\] )?(?:inline )?([A-Za-z_][A-Za-z_:<>, 0-9]*) ([a-z_]+)\((.*)$)");
    std::vector<operation_line> all;
    const auto lines = read_lines(file);
    std::string said;
    bool inside = false;  // of namespace internal
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (!lines[i].starts_with(indent)) {
            if (lines[i].empty()) said.clear();
            continue;
        }
        const auto line = lines[i].substr(indent.size());
        if (line.starts_with("///")) {
            said += (said.empty() ? "" : " ") + strip(line.substr(3));
            continue;
        }
        if (line.starts_with("template") || line.starts_with("    requires")) continue;
        inside |= line == "namespace internal {";
        inside &= line != "}  // namespace internal";
        std::smatch found;
        if (!inside && std::regex_search(line, found, function) && found.str(1) != "return") {
            operation_line f{found[2], "", in_short(found[1]), said, file.filename().string()};
            // To the bracket that closes the arguments.
            std::string rest = found[3];
            std::size_t end = 0;
            for (int depth = 1; depth > 0; ++end) {
                if (end == rest.size()) rest += " " + strip(lines[++i]);
                depth += rest[end] == '(' ? 1 : rest[end] == ')' ? -1 : 0;
            }
            f.signature = in_short(rest.substr(0, end - 1));
            if (!indent.empty() || rest.find("var<") < end || rest.find("graph<") < end) all.push_back(f);
        }
        said.clear();
    }
    return all;
}

}  // namespace

TEST_CASE("the operations' table") {
    const fs::path graph = root() / "include/engram/graph";
    std::string out = "# Operations\n\n";
    out += generated;
    out +=
        "What a policy is made of. Values are [T, B, columns] unless said; every operation has a name, which errors "
        "show. "
        "Pointwise maths of any\nkind is `map` with a functor; a range of columns is `x.columns(first, count)`. Types "
        "are "
        "written short: `var` is `engram::var<Backend>`,\n`string` is `const std::string&`; what stands behind `=` may "
        "be "
        "left out.\n";
    std::set<std::string> shown;
    const auto add = [&](const operation_line& f, const std::string& before = "") {
        CHECK_MESSAGE(!f.said.empty(), f.name, " has no docstring");
        out += "| `" + before + f.name + "(" + cell(f.signature) + ")` | " +
               (f.gives == "void" ? "" : "`" + cell(f.gives) + "`") + " | " + cell(f.said) + " | `" + f.header +
               "` |\n";
        shown.insert(f.name);
    };
    const std::string head = "| operation | type | what it gives | header |\n|---|---|---|---|\n";

    out += "\n## Of a graph\n\nCalled as `g.input(...)`, in `engram/graph/`.\n\n" + head;
    std::set<std::string> members{"input", "state", "declare", "declare_linear", "scope", "hold"};
    for (const auto& f : operations_in(graph / "graph.hpp", "    "))
        if (members.erase(f.name) == 1) add(f, "g.");
    CHECK_MESSAGE(members.empty(), "graph.hpp has no ", members.empty() ? "" : *members.begin());
    for (const auto* file : {"graph.hpp", "scan.hpp"})
        for (const auto& f : operations_in(graph / file, "")) add(f);

    out += "\n## Of variables\n\nIn `engram/operations/`.\n\n" + head;
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(root() / "include/engram/operations"))
        files.push_back(entry.path());
    std::sort(files.begin(), files.end(),
              [](const fs::path& a, const fs::path& b) { return a.filename() < b.filename(); });
    // Of what begins with add_ or apply_, which others are made of, these three are for users.
    const std::set<std::string> made{"add_loss", "add_knn_memory", "add_dnc_link"};
    for (const auto& file : files)
        for (const auto& f : operations_in(file, ""))
            if (made.count(f.name) == 1 ||
                !(f.name.starts_with("add_") || f.name.starts_with("apply_") || f.name == "make_operation"))
                add(f);
    CHECK(shown.size() > 50);
    for (const auto* name :
         {"hold", "stop_gradient", "split_columns", "scan", "vtrace_targets", "generalised_advantage", "split_channels",
          "clear_rows", "temporal_link", "knn_read", "map"})
        CHECK_MESSAGE(shown.count(name) == 1, name, " is missing");
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
