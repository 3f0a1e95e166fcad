// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include <engram/io/gif.hpp>
#include <engram/io/npy.hpp>
#include <engram/program/commands.hpp>
#include <engram/program/episode.hpp>
#include <engram/program/run_files.hpp>
#include <engram/program/trajectories.hpp>

namespace engram {

namespace {

constexpr int most_read_steps = 20'000;  // of an episode whose read weights are written, an array of 1.6 GB
constexpr int shown_steps = 200;         // in pictures; the arrays hold the whole episode
constexpr int strip_columns = 10;
constexpr int filmed_steps = 500;

// Observations in reading order, ten a row, with a gap of two grey pixels.
picture strip(const prepared_run& run, const std::vector<recorded_step>& steps) {
    const int scale = picture_scale(run.info.observation, 48);
    const int count = std::min(shown_steps, static_cast<int>(steps.size()));
    const picture first = observation_picture(run.info, steps[0].observation, scale);
    const int rows = (count + strip_columns - 1) / strip_columns, across = std::min(strip_columns, count), gap = 2;
    picture all{rows * (first.height + gap) + gap, across * (first.width + gap) + gap, first.channels, {}};
    const auto row = static_cast<std::ptrdiff_t>(all.width) * all.channels;
    all.pixels.assign(static_cast<std::size_t>(row * all.height), 128);
    for (int i = 0; i < count; ++i) {
        const picture one = observation_picture(run.info, steps[static_cast<std::size_t>(i)].observation, scale);
        const auto width = static_cast<std::ptrdiff_t>(one.width) * one.channels;
        for (int y = 0; y < one.height; ++y)
            std::copy_n(one.pixels.begin() + y * width, width,
                        all.pixels.begin() + (gap + (i / strip_columns) * (one.height + gap) + y) * row +
                            std::ptrdiff_t{gap + (i % strip_columns) * (one.width + gap)} * one.channels);
    }
    return all;
}

std::vector<picture> film(const prepared_run& run, const std::vector<recorded_step>& steps) {
    std::vector<picture> frames;
    for (int i = 0; i < std::min(filmed_steps, static_cast<int>(steps.size())); ++i)
        frames.push_back(observation_picture(run.info, steps[static_cast<std::size_t>(i)].observation,
                                             picture_scale(run.info.observation, 192)));
    return frames;
}

}  // namespace

int sample(ablation& model, const arguments& a) {
    require(a.from.has_value(), "sample: --from is missing; name a run folder");
    const run_paths paths{*a.from};
    require(file_exists(paths.config()), paths.folder, " is no run folder: it has no config.json");
    configuration config(model);
    config.from_json(read_json(paths.config()), paths.config());
    if (a.data) config.set({{"task.data", *a.data}});
    config.ask_for_world(a);
    if (a.products) config.products = *a.products;
    const device_runs& on = find_device(model, a.device.value_or(config.device));
    (void)config.products_on(on.name());
    const int episodes = a.episodes ? parse<int>("--episodes", *a.episodes) : 0;
    require(episodes >= 0, "--episodes: expected 0 or more, got ", episodes);
    if (model.learns_sequences()) {
        require(episodes == 0, "--episodes: engram-", model.name(),
                " learns from sequences; only agents play episodes");
        return sample_sequences(on, config, a);
    }
    require(!a.alone_from, "--alone-from: engram-", model.name(), " acts; only sequence models draw alone");
    const auto seed = a.seed ? whole_number("--seed", *a.seed, 0) : config.seed;
    config.join();
    const task_info info = describe_task(config.task, config.run.task);
    const bool held_out = std::find(info.levels.begin(), info.levels.end(), "holdout_interpolate") != info.levels.end();
    const std::string level = !a.level.empty() ? a.level.back()
                              : held_out       ? "holdout_interpolate"
                                               : info.levels.front();
    require_known("level", level, info.levels);
    require(file_exists(paths.checkpoint()), paths.folder, " holds no checkpoint yet; train it first");
    const auto file = safetensors::read(paths.checkpoint());
    check_checkpoint(file, config, false);
    config.note_slow_products();
    const auto prepared = on.prepare(config);
    const prepared_run& run = *prepared;
    load_weights(file, run.store());

    const auto steps = run.play(level, static_cast<std::uint64_t>(seed));
    const std::string folder = a.out.value_or(paths.folder + "/sample");
    make_folder(folder);
    const int T = static_cast<int>(steps.size());
    double total = 0;
    for (const auto& step : steps) total += static_cast<double>(step.reward);
    write_png(folder + "/observations.png", strip(run, steps));
    write_gif(folder + "/episode.gif", film(run, steps), film_delay(run.options));
    write_steps(folder, run.info.observation, steps);
    std::string files = "observations.png, episode.gif, observations.npy, actions.npy, rewards.npy";
    if (run.tells_reads() && T > most_read_steps) {
        files += fmt::format("; read weights of at most {} steps are written", most_read_steps);
    } else if (run.tells_reads()) {
        std::vector<float> read(static_cast<std::size_t>(T) * static_cast<std::size_t>(T));
        for (int t = 0; t < T; ++t)
            for (const auto& r : steps[static_cast<std::size_t>(t)].reads)
                read[static_cast<std::size_t>(t) * static_cast<std::size_t>(T) + static_cast<std::size_t>(r.when)] +=
                    r.weight;
        const int side = std::min(shown_steps, T), scale = std::max(1, 400 / side);
        picture image{side * scale, side * scale, 1, {}};
        for (int y = 0; y < image.height; ++y)
            for (int x = 0; x < image.width; ++x) {
                const float w = read[static_cast<std::size_t>(y / scale) * static_cast<std::size_t>(T) +
                                     static_cast<std::size_t>(x / scale)];
                image.pixels.push_back(static_cast<std::uint8_t>(std::lround(255.0f * std::clamp(w, 0.0f, 1.0f))));
            }
        write_png(folder + "/read_weights.png", image);
        write_npy<float>(folder + "/read_weights.npy", read, {T, T});
        files += ", read_weights.png, read_weights.npy (row: step, column: step whose write was read)";
    }
    fmt::print("{}: {} steps, reward {:g} of {:g}; in {}: {}\n", level, T, total,
               static_cast<double>(run.info.maximum_reward(level)), folder, files);
    if (episodes == 0) return 0;
    catch_interrupts();
    const std::string trajectories = folder + "/trajectories";
    if (!write_trajectories(run, level, episodes, static_cast<std::uint64_t>(seed), trajectories, interrupted))
        return 130;
    fmt::print("{} episodes in {}: episodes.csv, and of each observations.npy, actions.npy, rewards.npy, resets.npy\n",
               episodes, trajectories);
    return 0;
}

}  // namespace engram
