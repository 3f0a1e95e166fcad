// engram.hpp and tasks.hpp hold every header but those that their first lines leave out, so that a new one is not
// forgotten.

#include "markdown.hpp"

#include <algorithm>
#include <regex>
#include <set>

using namespace documents;

namespace {

const fs::path include = root() / "include";

/// The engram headers that a header includes by name.
std::vector<std::string> included_by(const std::string& header) {
    static const std::regex form(R"(^ *#include [<"](engram/[^>"]+)[>"].*)");
    std::vector<std::string> all;
    std::smatch found;
    for (const auto& line : read_lines(include / header))
        if (std::regex_match(line, found, form)) all.push_back(found[1]);
    return all;
}

/// What is included by name.
bool left_out(const std::string& header) {
    // Files, training, reports, programs and devices: whole folders.
    for (const char* folder : {"engram/io/", "engram/train/", "engram/evaluate/", "engram/program/", "engram/device/"})
        if (header.starts_with(folder)) return true;
    static const std::set<std::string> instances_of_every_environment{
        "engram/task/registry.hpp", "engram/task/sequence_registry.hpp", "engram/task/time_step.hpp"};
    return instances_of_every_environment.count(header) == 1;
}

/// What a header includes, by whatever way, itself among it.
std::set<std::string> reached_from(const std::string& header) {
    std::set<std::string> seen;
    std::vector<std::string> open{header};
    while (!open.empty()) {
        const auto next = open.back();
        open.pop_back();
        if (!seen.insert(next).second) continue;
        REQUIRE_MESSAGE(fs::exists(include / next), next);
        for (const auto& further : included_by(next)) open.push_back(further);
    }
    return seen;
}

}  // namespace

TEST_CASE("engram.hpp and tasks.hpp include every header but those that are included by name") {
    const auto models = reached_from("engram/engram.hpp");
    const auto tasks = reached_from("engram/tasks.hpp");
    int held = 0;
    for (const auto& entry : fs::recursive_directory_iterator(include)) {
        if (entry.path().extension() != ".hpp") continue;
        const auto header = fs::relative(entry.path(), include).generic_string();
        CAPTURE(header);
        if (header == "engram/engram.hpp" || header == "engram/tasks.hpp" || left_out(header)) continue;
        ++held;
        if (header.starts_with("engram/task/"))
            CHECK_MESSAGE(tasks.count(header) == 1, "a line in include/engram/tasks.hpp is missing");
        else
            CHECK_MESSAGE(models.count(header) == 1, "a line in include/engram/engram.hpp is missing");
    }
    CHECK(held > 100);
    for (const char* header : {"engram/io/json.hpp", "engram/task/registry.hpp", "engram/program/ablation.hpp",
                               "engram/task/ray_caster.hpp", "engram/io/zip.hpp"})
        CHECK_MESSAGE(models.count(header) == 0, header, " makes engram.hpp slow");
    for (const char* header : {"engram/io/json.hpp", "engram/task/registry.hpp"})
        CHECK_MESSAGE(tasks.count(header) == 0, header, " makes tasks.hpp slow");
}

TEST_CASE("policies are named by engram.hpp itself") {
    const auto named = included_by("engram/engram.hpp");
    for (const char* folder : {"encoder", "controller", "memory", "auxiliary", "learner"})
        for (const auto& entry : fs::directory_iterator(include / "engram" / folder)) {
            const auto header = fs::relative(entry.path(), include).generic_string();
            CAPTURE(header);
            CHECK(std::count(named.begin(), named.end(), header) == 1);
        }
}

TEST_CASE("includes run downward: no folder stands on one above it") {
    // Folders of one line stand on each other.
    const std::vector<std::set<std::string>> layers{
        {"core"},  {"kernels"},  {"graph", "operations", "device"},
        {"io"},    {"task"},     {"encoder", "controller", "memory", "auxiliary", "learner", "model"},
        {"train"}, {"evaluate"}, {"program"}};
    const auto layer_of = [&](const std::string& header) {
        const std::string folder = header.substr(7, header.find('/', 7) - 7);  // engram/FOLDER/...
        for (std::size_t i = 0; i < layers.size(); ++i)
            if (layers[i].count(folder) == 1) return static_cast<int>(i);
        return -1;
    };
    // engram.hpp, tasks.hpp, catalogue.hpp and version.hpp lie in no folder.
    const auto lies_in_none = [](const std::string& header) {
        return std::count(header.begin(), header.end(), '/') == 1;
    };
    int seen = 0;
    for (const auto& entry : fs::recursive_directory_iterator(include)) {
        const auto ending = entry.path().extension();
        if (ending != ".hpp" && ending != ".cuh") continue;
        const auto header = fs::relative(entry.path(), include).generic_string();
        if (lies_in_none(header)) continue;
        const int here = layer_of(header);
        CHECK_MESSAGE(here >= 0, header, " lies in a folder without a place in the order");
        for (const auto& other : included_by(header)) {
            if (lies_in_none(other)) continue;
            CHECK_MESSAGE(layer_of(other) <= here, header, " includes ", other);
            ++seen;
        }
    }
    CHECK(seen > 300);
}
