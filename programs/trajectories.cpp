// SPDX-License-Identifier: MIT

#include <filesystem>

#include <fmt/format.h>

#include <engram/program/run_files.hpp>
#include <engram/program/trajectories.hpp>

namespace engram {

bool write_trajectories(const prepared_run& run, const std::string& level, int episodes, std::uint64_t seed,
                        const std::string& folder, const std::function<bool()>& stop) {
    // Episodes of an earlier call would be taken for some of these.
    make_folder(folder);
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (entry.path().filename().string().starts_with("episode-")) std::filesystem::remove_all(entry.path());
    std::string table = "episode,seed,steps,reward\n";
    int played = 0;
    for (; played < episodes && !stop(); ++played) {
        const std::uint64_t own = seed + static_cast<std::uint64_t>(played);
        const auto steps = run.play(level, own);
        const std::string name = fmt::format("{}/episode-{:04}", folder, played);
        make_folder(name);
        write_steps(name, run.info.observation, steps);
        std::vector<std::uint8_t> resets(steps.size());
        resets.at(0) = 1;
        write_npy<std::uint8_t>(name + "/resets.npy", resets, {static_cast<int>(resets.size())});
        double reward = 0;
        for (const auto& step : steps) reward += static_cast<double>(step.reward);
        table += fmt::format("{},{},{},{:g}\n", played, own, steps.size(), reward);
    }
    write_file(folder + "/episodes.csv", table);
    return played == episodes;
}

}  // namespace engram
