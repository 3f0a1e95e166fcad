// engram.hpp holds every header but those that its first lines leave out, so that a new one is not forgotten.

#include "markdown.hpp"

#include <regex>
#include <set>

using namespace documents;

namespace {

const fs::path include = root() / "include";

/// The engram headers that a header includes by name.
std::vector<std::string> included_by(const std::string& header) {
    static const std::regex form(R"(^ *#include <(engram/[^>]+)>.*)");
    std::vector<std::string> all;
    std::smatch found;
    for (const auto& line : read_lines(include / header))
        if (std::regex_match(line, found, form)) all.push_back(found[1]);
    return all;
}

/// What is included by name, and why it is not in engram.hpp.
bool left_out(const std::string& header) {
    // Trainers, reports, programs and devices: whole folders.
    for (const char* folder : {"engram/train/", "engram/evaluate/", "engram/program/", "engram/device/"})
        if (header.starts_with(folder)) return true;
    static const std::set<std::string> single{"engram/engram.hpp",         "engram/io/json.hpp",
                                              "engram/io/eigen.hpp",       "engram/io/xtensor.hpp",  // their libraries
                                              "engram/io/safetensors.hpp",                           // nlohmann's JSON
                                              "engram/task/registry.hpp",  "engram/task/sequence_registry.hpp",
                                              "engram/task/time_step.hpp"};  // instances of every environment
    return single.count(header) == 1;
}

}  // namespace

TEST_CASE("engram.hpp includes every header but those that are included by name") {
    std::set<std::string> seen;
    std::vector<std::string> open{"engram/engram.hpp"};
    while (!open.empty()) {
        const auto header = open.back();
        open.pop_back();
        if (!seen.insert(header).second) continue;
        REQUIRE_MESSAGE(fs::exists(include / header), header);
        for (const auto& next : included_by(header)) open.push_back(next);
    }
    int held = 0;
    for (const auto& entry : fs::recursive_directory_iterator(include)) {
        if (entry.path().extension() != ".hpp") continue;
        const auto header = fs::relative(entry.path(), include).generic_string();
        CAPTURE(header);
        if (left_out(header)) continue;
        ++held;
        CHECK_MESSAGE(seen.count(header) == 1, "a line in include/engram/engram.hpp is missing");
    }
    CHECK(held > 100);
    for (const char* header : {"engram/io/json.hpp", "engram/task/registry.hpp", "engram/program/ablation.hpp"})
        CHECK_MESSAGE(seen.count(header) == 0, header, " makes engram.hpp slow");
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
