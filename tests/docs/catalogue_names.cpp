// Reports have a title for every ablation of the catalogue, and no other: evaluate/names.hpp against the catalogue.

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <engram/evaluate/names.hpp>

#include <catalogue_names.hpp>

TEST_CASE("every ablation of the catalogue has a title of its own") {
#define ENGRAM_NAME(name) #name,
    const std::vector<std::string> catalogue{ENGRAM_EACH_ABLATION(ENGRAM_NAME)};
#undef ENGRAM_NAME
    REQUIRE(catalogue.size() > 20);
    std::set<std::string> titles;
    for (const auto& name : catalogue) {
        CAPTURE(name);
        CHECK(engram::ablation_rank(name) < static_cast<int>(engram::ablation_names.size()));
        CHECK(titles.insert(engram::ablation_title(name)).second);
    }
    for (const auto& entry : engram::ablation_names) {
        CAPTURE(entry.name);
        CHECK(std::count(catalogue.begin(), catalogue.end(), entry.name) == 1);
    }
}
