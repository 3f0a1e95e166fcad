// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include <engram/evaluate/answers.hpp>
#include <engram/evaluate/sequences.hpp>
#include <engram/io/file.hpp>
#include <engram/io/npy.hpp>
#include <engram/io/png.hpp>
#include <engram/program/commands.hpp>
#include <engram/program/run_files.hpp>

namespace engram {

namespace {

constexpr int sampled_sequences = 6;
constexpr std::array<std::uint8_t, 3> ground{128, 128, 128}, own{230, 120, 20};

/// A picture in three channels that is filled block by block.
struct canvas {
    picture image;

    canvas(int height, int width) : image{height, width, 3, {}} {
        image.pixels.resize(static_cast<std::size_t>(height * width) * 3);
        fill(0, 0, height, width, ground);
    }
    void fill(int top, int left, int height, int width, const std::array<std::uint8_t, 3>& colour) {
        for (int y = top; y < top + height; ++y)
            for (int x = left; x < left + width; ++x)
                std::copy(colour.begin(), colour.end(),
                          image.pixels.begin() + std::ptrdiff_t{3} * (y * image.width + x));
    }
    static std::uint8_t byte(float v) {
        return static_cast<std::uint8_t>(std::lround(255.0f * std::clamp(v, 0.0f, 1.0f)));
    }
};

// Two lines a sequence: what was shown, and under it what the model expected, in a frame of colour where it drew on
// its own.
picture strips(const sequence_drawing& d, const observation_shape& shape) {
    const int scale = std::max(1, 28 / std::max(shape.height, shape.width)), edge = 1, gap = 2;
    const int height = shape.height * scale + 2 * edge, width = shape.width * scale + 2 * edge;
    canvas all(d.rows * (2 * (height + gap) + 2 * gap) + gap, d.steps * (width + gap) + gap);
    for (int b = 0; b < d.rows; ++b)
        for (int line = 0; line < 2; ++line)
            for (int t = 0; t < d.steps; ++t) {
                const int top = gap + b * (2 * (height + gap) + 2 * gap) + line * (height + gap);
                const int left = gap + t * (width + gap);
                if (line == 1 && t >= d.alone_from) all.fill(top, left, height, width, own);
                const float* frame =
                    (line == 0 ? d.observed : d.generated).data() + (std::ptrdiff_t{t} * d.rows + b) * shape.size();
                for (int y = 0; y < shape.height; ++y)
                    for (int x = 0; x < shape.width; ++x) {
                        const float* pixel = frame + std::ptrdiff_t{y * shape.width + x} * shape.channels;
                        const bool colour = shape.channels == 3;
                        all.fill(top + edge + y * scale, left + edge + x * scale, scale, scale,
                                 {canvas::byte(pixel[0]), canvas::byte(pixel[colour ? 1 : 0]),
                                  canvas::byte(pixel[colour ? 2 : 0])});
                    }
            }
    return all.image;
}

// One block a sequence: a row a step, a column a slot and head; the largest weight of a block is white.
picture weight_picture(const std::vector<float>& weights, const sequence_drawing& d, int width) {
    const int cell = std::max(1, std::min(8, 1200 / width)), gap = 4;
    canvas all(d.rows * (d.steps * cell + gap) + gap, width * cell + 2 * gap);
    for (int b = 0; b < d.rows; ++b) {
        const auto at = [&](int t, int f) { return weights[static_cast<std::size_t>((t * d.rows + b) * width + f)]; };
        float most = 1e-9f;
        for (int t = 0; t < d.steps; ++t)
            for (int f = 0; f < width; ++f) most = std::max(most, at(t, f));
        for (int t = 0; t < d.steps; ++t)
            for (int f = 0; f < width; ++f) {
                const std::uint8_t v = canvas::byte(at(t, f) / most);
                all.fill(gap + b * (d.steps * cell + gap) + t * cell, gap + f * cell, cell, cell, {v, v, v});
            }
    }
    return all.image;
}

// What a model that answers was asked and said: a row a judged step, as CSV, and the first lines to look at.
int sample_answers(prepared_sequences& run, const std::string& level, std::uint64_t seed, const std::string& folder) {
    std::string table = "sequence,step,wanted,given\n";
    std::vector<std::string> wanted(sampled_sequences), given(sampled_sequences);
    for (const auto& [b, a] : run.answer(level, seed, sampled_sequences)) {
        table += fmt::format("{},{},{},{}\n", b, a.step, a.wanted, a.given);
        wanted[static_cast<std::size_t>(b)] += fmt::format(" {:.4g}", a.wanted);
        given[static_cast<std::size_t>(b)] += fmt::format(" {:.4g}", a.given);
    }
    write_file(folder + "/answers.csv", table);
    for (std::size_t b = 0; b < wanted.size(); ++b)
        fmt::print("sequence {}   wanted{}\n             given {}\n", b, wanted[b], given[b]);
    fmt::print("{}: {} sequences of {} steps; in {}: answers.csv\n", level, sampled_sequences, run.source->info().steps,
               folder);
    return 0;
}

}  // namespace

int sample_sequences(const device_runs& on, const configuration& config, const arguments& a) {
    const run_paths paths{*a.from};
    const auto seed = a.seed ? whole_number("--seed", *a.seed, 0) : config.seed;
    const auto about = describe_sequence(config.task, config.run.task);
    const std::string level = !a.level.empty() ? a.level.back() : about.levels.back();
    require_known("level", level, about.levels);
    const int T = about.steps;
    const int alone = a.alone_from       ? parse<int>("--alone-from", *a.alone_from)
                      : about.recall > 0 ? about.recall
                                         : T / 2;
    require(alone >= 0 && alone <= T, "--alone-from: expected a step in 0..", T, ", got ", alone);
    require(file_exists(paths.checkpoint()), paths.folder, " holds no checkpoint yet; train it first");
    const auto file = safetensors::read(paths.checkpoint());
    check_checkpoint(file, config, false);
    const auto run = on.prepare_sequences(config);
    run->load_weights(file);
    require(run->gives_answers() || run->generates(), "sample: engram-", config.model().name(), " generates no frames");
    config.note_slow_products();
    if (run->gives_answers()) {
        const std::string folder = a.out.value_or(paths.folder + "/sample");
        make_folder(folder);
        return sample_answers(*run, level, static_cast<std::uint64_t>(seed), folder);
    }

    const auto d = run->draw(level, static_cast<std::uint64_t>(seed), sampled_sequences, alone);
    const std::string folder = a.out.value_or(paths.folder + "/sample");
    make_folder(folder);
    const auto& shape = about.observation;
    write_png(folder + "/strips.png", strips(d, shape));
    write_npy<float>(folder + "/observed.npy", d.observed, {T, d.rows, shape.height, shape.width, shape.channels});
    write_npy<float>(folder + "/generated.npy", d.generated, {T, d.rows, shape.height, shape.width, shape.channels});
    write_npy<float>(folder + "/kl.npy", d.divergence, {T, d.rows});
    std::string files = "strips.png, observed.npy, generated.npy, kl.npy";
    const auto weights = [&](const char* name, const std::vector<float>& values, int width) {
        if (values.empty()) return;
        write_png(message(folder, "/", name, ".png"), weight_picture(values, d, width));
        write_npy<float>(message(folder, "/", name, ".npy"), values, {T, d.rows, width});
        files += message(", ", name, ".png, ", name, ".npy");
    };
    weights("read_weights", d.read_weight, d.read_width);
    weights("write_weights", d.write_weight, d.write_width);
    fmt::print("{}: {} sequences of {} steps, drawn alone from step {} on; in {}: {}\n", level, d.rows, T, alone,
               folder, files);
    return 0;
}

}  // namespace engram
