#pragma once
// SPDX-License-Identifier: MIT

// Measures and writes reference_table.hpp: what random actions and the oracle earn on the judged levels of every
// registered task of the suite, at small fidelity and with the options that the registry starts from.

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include <engram/evaluate/scripted.hpp>
#include <engram/evaluate/suite_tasks.hpp>
#include <engram/task/registry.hpp>

namespace engram {

struct measured_reference {
    std::string task;
    level_score random, oracle;
};

/// Plays a level with random actions and with the oracle.
inline measured_reference measure_reference(const task_info& info, const std::string& level, int episodes,
                                            std::uint64_t seed, const task_options& options = {}) {
    const auto images = task_stimuli(info.name, options);
    const level_maker make = [&](const std::string& name, int count, std::uint64_t own, int first) {
        return make_environment(info.name, name, count, own, static_cast<std::uint32_t>(first), options, images);
    };
    return {info.name, play_scripted(make, level, scripted_policy::random, episodes, seed),
            play_scripted(make, level, scripted_policy::oracle, episodes, seed)};
}

/// The text of the header.
inline std::string reference_header(int episodes) {
    std::vector<std::string> rows;
    const auto number = [](double x) {
        char digits[32];
        return std::string(digits, std::to_chars(digits, digits + sizeof digits, x, std::chars_format::general, 6).ptr);
    };
    std::vector<task_info> infos;
    for (auto& info : all_tasks())
        if (suite_index(info.name)) infos.push_back(std::move(info));
    std::stable_sort(infos.begin(), infos.end(),
                     [](const auto& a, const auto& b) { return *suite_index(a.name) < *suite_index(b.name); });
    for (const auto& info : infos)
        for (const auto& level : info.judged_levels()) {
            const auto m = measure_reference(info, level, episodes, 1);
            rows.push_back("    {\"" + info.name + "\", \"" + level + "\", " + number(m.random.mean) + ", " +
                           number(m.random.standard_error) + ", " + number(m.oracle.mean) + ", " +
                           number(m.oracle.standard_error) + ", " + std::to_string(episodes) + "},\n");
        }
    std::string out =
        "#pragma once\n// SPDX-License-Identifier: MIT\n\n"
        "// What random actions and the oracle earn at small fidelity. Generated:\n"
        "// engram-report --measure-references " +
        std::to_string(episodes) +
        " > include/engram/evaluate/reference_table.hpp\n\n"
        "#include <array>\n\n#include <engram/evaluate/reference_row.hpp>\n\nnamespace engram {\n\n"
        "// clang-format off\ninline constexpr std::array<reference_row, " +
        std::to_string(rows.size()) + "> reference_table{{\n";
    for (const auto& row : rows) out += row;
    return out + "}};\n// clang-format on\n\n}  // namespace engram\n";
}

}  // namespace engram
