#pragma once
// SPDX-License-Identifier: MIT

// Presets: values of settings for agents of the library's policies, by the policies' names (program/preset_table.hpp).
//
//   small   learns on two cores in minutes: 16 x 16 frames, IMPALA's summed loss, Adam with epsilon 1e-4 and clip 40
//   paper   the sizes of the source papers (facts 1.8, 1.9, 3.4, 3.8, 3.9, 4.7, 4.8) and of the recurrences of today;
//   72 x 96 frames published  what the authors' public code does where it differs from its paper; MemUP alone has one
//   tuned   the tasks and sizes of MemUP's paper, with what made them learn here

#include <cstdint>
#include <string>
#include <vector>

#include <engram/program/acting_presets.hpp>
#include <engram/program/generative_presets.hpp>
#include <engram/program/memup_presets.hpp>
#include <engram/program/popgym_presets.hpp>
#include <engram/program/preset_table.hpp>
#include <engram/program/recurrence_presets.hpp>
#include <engram/program/suite_presets.hpp>

namespace engram {

struct preset {
    std::string name;
    std::vector<preset_line> lines;  // later ones win
};

/// All presets, by name.
inline const std::vector<preset>& presets() {
    static const std::vector<preset> all = [] {
        const auto joined = [](std::initializer_list<preset_table> parts) {
            preset_table whole;
            for (const auto& part : parts) whole.then(part);
            return whole.then(tokens_preset()).lines();
        };
        return std::vector<preset>{
            {"small",
             joined({small_suite_preset(), generative_preset(), small_generative_preset(), small_memup_preset(),
                     copying_preset(), small_acting_preset(), small_recurrence_preset(), small_popgym_preset()})},
            {"paper",
             joined({paper_suite_preset(), generative_preset(), paper_generative_preset(), paper_memup_preset(),
                     paper_acting_preset(), paper_recurrence_preset(), paper_popgym_preset()})},
            {"published", joined({published_memup_preset(), published_acting_preset()})},
            {"tuned", joined({tuned_memup_preset()})},
        };
    }();
    return all;
}

/// Parameters that a paper gives for one of its models (facts 4.8), to stand beside ours in `describe`.
struct published_total {
    const char* ablation;
    bool rotation;  // the column of the 3D task, or that of digits and characters
    std::int64_t parameters;
};

/// Every total that a paper gives.
inline const std::vector<published_total>& published_totals() {
    static const std::vector<published_total> all{
        {"vrnn", false, 1'884'177},     {"introspective_gtmm", false, 1'863'107}, {"ntm_gtmm", false, 1'869'381},
        {"lru_gtmm", false, 1'866'282}, {"dnc_gtmm", false, 1'859'336},           {"vrnn", true, 5'912'706},
        {"ntm_gtmm", true, 5'986'692},  {"introspective_gtmm", true, 5'972'806},  {"lru_gtmm", true, 5'979'115},
        {"dnc_gtmm", true, 5'980'327}};
    return all;
}

/// The preset called `name`; throws with the nearest name when there is none.
inline const preset& find_preset(const std::string& name) {
    std::vector<std::string> names;
    for (const auto& p : presets()) {
        if (p.name == name) return p;
        names.push_back(p.name);
    }
    require_known("preset", name, names);
    return presets().front();
}

}  // namespace engram
