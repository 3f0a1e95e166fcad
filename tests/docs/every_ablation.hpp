#pragma once
// Every ablation of the catalogue with its policies and its settings, and what else fills a slot; CMake lists the
// names.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <engram/catalogue.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/learner/quantile_regression.hpp>
#include <engram/program/configuration.hpp>

#include <catalogue_names.hpp>

#include "../../examples/copy.hpp"
#include "../../examples/own_memory.hpp"

namespace documents {

struct described_policy {
    std::string slot, name;
    std::vector<engram::setting> settings;
};

struct described_ablation {
    std::string name;
    std::vector<described_policy> slots;  // encoder, controller, memory, auxiliary, learner, wiring

    std::vector<std::string> setting_names() const {
        std::vector<std::string> all;
        for (const auto& part : slots)
            for (const auto& s : part.settings) all.push_back(part.slot + "." + s.name);
        for (const auto& s : engram::list_settings(engram::run_settings{})) all.push_back(s.name);
        return all;
    }
};

template <class P>
described_policy describe_policy(const std::string& slot) {
    return {slot, engram::policy_name<P>(), engram::list_settings(typename P::settings{})};
}

template <class A>
described_ablation describe_ablation(const std::string& name) {
    return {name,
            {describe_policy<typename A::encoder>("encoder"), describe_policy<typename A::controller>("controller"),
             describe_policy<typename A::memory>("memory"), describe_policy<typename A::auxiliary>("auxiliary"),
             describe_policy<typename A::learner>("learner"), describe_policy<typename A::wiring>("wiring")}};
}

inline std::vector<described_ablation> catalogue() {
    return {
#define ENGRAM_DESCRIBE(name) describe_ablation<engram::catalogue::name>(#name),
        ENGRAM_EACH_ABLATION(ENGRAM_DESCRIBE)
#undef ENGRAM_DESCRIBE
    };
}

/// Those of examples/, which have programs too.
inline std::vector<described_ablation> examples() {
    return {describe_ablation<own::model>("own_memory"), describe_ablation<copying::ntm_copy>("ntm_copy"),
            describe_ablation<copying::dnc_copy>("dnc_copy")};
}

/// Every policy once, those of the catalogue first.
inline std::vector<described_policy> policies() {
    std::vector<described_policy> all;
    std::set<std::string> seen;
    const auto add = [&](const described_policy& p) {
        if (seen.insert(p.slot + p.name).second) all.push_back(p);
    };
    for (const auto& ablation : catalogue())
        for (const auto& p : ablation.slots) add(p);
    add(describe_policy<engram::identity>("encoder"));
    add(describe_policy<engram::mlp>("encoder"));
    add(describe_policy<engram::small_conv>("encoder"));
    add(describe_policy<engram::inception>("encoder"));
    add(describe_policy<engram::two_pathway>("encoder"));
    add(describe_policy<engram::quantile_regression>("learner"));
    return all;
}

}  // namespace documents
