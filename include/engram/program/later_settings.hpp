#pragma once
// SPDX-License-Identifier: MIT

// Settings that programs got after runs had been made, with the value under which a run is what it was without them.
// Checkpoints and campaigns take a run that does not say for one with that value. A setting that changes what runs from
// before do does not belong here: they are refused.

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <engram/version.hpp>

namespace engram {

/// By the end of its name, as a learner may be part of another one.
struct later_setting {
    std::string_view name, before;
};
inline constexpr std::array later_settings{later_setting{"divergence_cost", "0"},
                                           later_setting{"divergence_target", "0.01"}};

/// What a run that does not know the setting had; nothing where it is not one of these.
inline std::optional<std::string> value_before(std::string_view setting) {
    for (const auto& [name, before] : later_settings)
        if (setting.ends_with(name) && setting.substr(0, setting.size() - name.size()).ends_with('.'))
            return std::string(before);
    return {};
}

}  // namespace engram
