// SPDX-License-Identifier: MIT

// sheet, film: pictures and moving pictures of episodes.

#include <algorithm>
#include <bitset>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include <engram/io/gif.hpp>
#include <engram/program/pictures.hpp>

#include "tasks.hpp"

namespace engram {

namespace {

/// Plays one episode, at most so many steps, and returns how many they were; `before` sees every step and `after` what
/// it earned.
int play_through(const task_info& info, const std::string& level, const task_options& options, std::uint64_t seed,
                 scripted_policy policy, const std::shared_ptr<const stimulus_set>& stimuli, int longest,
                 const std::function<void(int, const batch_environment&)>& before,
                 const std::function<void(int, float)>& after) {
    const auto batch = make_environment(info.name, level, 1, seed, 0, options, stimuli);
    scripted_player player{policy, philox(seed, stream_id("action", 0))};
    for (int t = 0; t < longest; ++t) {
        before(t, *batch);
        const outcome got = player.step(*batch, 0);
        after(t, got.reward);
        if (got.done) return t + 1;
    }
    return longest;
}

/// How different two pictures are: mean absolute difference of their bytes.
double difference_of(const picture& a, const picture& b) {
    double total = 0;
    for (std::size_t i = 0; i < a.pixels.size(); ++i) total += std::abs(int(a.pixels[i]) - int(b.pixels[i]));
    return total / static_cast<double>(a.pixels.size());
}

/// How much is to be seen: different colours, eight shades a channel.
double richness_of(const picture& a) {
    std::bitset<512> found;
    for (std::size_t i = 0; i + 2 < a.pixels.size(); i += 3)
        found.set(
            static_cast<std::size_t>((a.pixels[i] >> 5) << 6 | (a.pixels[i + 1] >> 5) << 3 | a.pixels[i + 2] >> 5));
    return static_cast<double>(found.count());
}

/// What an oracle sees first, and the two moments of its way that differ most from that and from each other, in the
/// order of time; views that show something come before bare walls.
std::vector<picture> three_moments(const task_info& info, const task_options& options, std::uint64_t seed) {
    constexpr int watched = 700;
    std::vector<float> seen(static_cast<std::size_t>(info.observation.size()));
    std::vector<picture> way;
    play_through(
        info, info.levels.front(), options, seed, scripted_policy::oracle, task_stimuli(info.name, options), watched,
        [&](int, const batch_environment& batch) {
            batch.observe(0, seen.data());
            way.push_back(observation_picture(info, seen));
        },
        [](int, float) {});
    std::vector<std::size_t> chosen{0};
    while (chosen.size() < 3) {
        std::size_t best = 0;
        double most = -1;
        for (std::size_t t = 0; t < way.size(); ++t) {
            double nearest = 255;
            for (const std::size_t c : chosen) nearest = std::min(nearest, difference_of(way[t], way[c]));
            const double worth = nearest * richness_of(way[t]);
            if (worth > most) most = worth, best = t;
        }
        chosen.push_back(best);
    }
    std::sort(chosen.begin(), chosen.end());
    return {way[chosen[0]], way[chosen[1]], way[chosen[2]]};
}

}  // namespace

void draw_text(picture& to, const std::string& text, int top, int left, int scale) {
    // Five rows of three dots, an octal digit each, from the top: letters, then digits.
    static constexpr int letters[]{025755, 065656, 034443, 065556, 074647, 074644, 034553, 055755, 072227,
                                   011152, 055655, 044447, 057755, 065555, 025552, 065644, 025573, 065655,
                                   034216, 072222, 055557, 055552, 055775, 055255, 055222, 071247};
    static constexpr int digits[]{075557, 026227, 071747, 071717, 055711, 074717, 074757, 071111, 075757, 075717};
    for (const char c : text) {
        const int dots = c >= 'a' && c <= 'z' ? letters[c - 'a'] : c >= '0' && c <= '9' ? digits[c - '0'] : 0;
        for (int y = 0; y < 5 * scale; ++y)
            for (int x = 0; x < 3 * scale; ++x)
                if (dots >> (14 - (y / scale * 3 + x / scale)) & 1)
                    for (int k = 0; k < 3; ++k) {
                        const int row = top + y, column = left + x;
                        if (row < to.height && column < to.width)
                            to.pixels[static_cast<std::size_t>((row * to.width + column) * 3 + k)] = 20;
                    }
        left += 4 * scale;
    }
}

int draw_sheet(const task_request& asked) {
    constexpr int height = 72, width = 96, gap = 4, between = 16, title = 16, letter = 2;
    const std::string out = asked.out.value_or("tasks.png");
    require(std::filesystem::path(out).extension() == ".png", "sheet: --out ", out, " does not end in .png");
    std::vector<std::string> fidelities{"small", "paper"};
    if (asked.fidelity) fidelities = {asked.options().fidelity};
    asked.options();
    auto names = task_names();
    // What is a row of numbers is no picture.
    std::erase_if(
        names, [&](const std::string& name) { return describe_task(name, asked.options()).observation.height == 1; });
    const int half = 3 * width + 2 * gap, row = title + height + gap;
    picture sheet{static_cast<int>(names.size()) * row + gap,
                  static_cast<int>(fidelities.size()) * (half + between) - between + 2 * gap,
                  3,
                  {}};
    sheet.pixels.assign(static_cast<std::size_t>(sheet.height) * static_cast<std::size_t>(sheet.width * 3), 235);
    for (std::size_t i = 0; i < names.size(); ++i) {
        const int top = gap + static_cast<int>(i) * row;
        std::string text = names[i];
        std::replace(text.begin(), text.end(), '_', ' ');
        draw_text(sheet, text, top, gap, letter);
        for (std::size_t f = 0; f < fidelities.size(); ++f) {
            task_request one = asked;
            one.fidelity = fidelities[f];
            const auto moments =
                three_moments(describe_task(names[i], one.options()), one.options(), asked.seed_or_default());
            for (std::size_t m = 0; m < 3; ++m) {
                const picture& seen = moments[m];
                // As large as the place allows, its sides in proportion.
                const int wide = std::min(width, std::max(1, height * seen.width / seen.height)),
                          tall = std::max(1, wide * seen.height / seen.width);
                const int left = gap + static_cast<int>(f) * (half + between) + static_cast<int>(m) * (width + gap);
                paste(sheet, seen, top + title - gap + (height - tall) / 2, left + (width - wide) / 2, tall, wide);
            }
        }
    }
    const bytes file = encode_png(sheet);
    write_file(out, file);
    fmt::print("{}: {} x {} pixels, {} kB\n", out, sheet.width, sheet.height, (file.size() + 999) / 1000);
    return 0;
}

int film_task(const task_request& asked) {
    const task_info info = asked.only_task("film");
    const std::string level = asked.only_level(info);
    check_played(asked.player(), info);
    const int longest = task_request::positive("--steps", asked.steps, 500);
    require(longest <= 20000, "--steps: expected 20000 or less, got ", longest);
    require(asked.out.has_value(), "film: --out is missing; name a file that ends in .gif");
    require(std::filesystem::path(*asked.out).extension() == ".gif", "film: --out ", *asked.out,
            " does not end in .gif");
    const auto seed = asked.seed_or_default();
    const auto options = asked.options();
    const int scale = picture_scale(info.observation, 288);
    std::vector<float> seen(static_cast<std::size_t>(info.observation.size()));
    std::vector<picture> frames;
    double total = 0;
    const int steps = play_through(
        info, level, options, seed, asked.player(), task_stimuli(info.name, options), longest,
        [&](int, const batch_environment& batch) {
            batch.observe(0, seen.data());
            frames.push_back(observation_picture(info, seen, scale));
        },
        [&](int, float reward) { total += static_cast<double>(reward); });
    const bytes file = encode_gif(frames, film_delay(options));
    write_file(*asked.out, file);
    fmt::print("{}: {} {}, {} steps, reward {:g}, {} x {} pixels, {} kB\n", *asked.out, info.name, level, steps, total,
               frames[0].width, frames[0].height, (file.size() + 999) / 1000);
    return 0;
}

}  // namespace engram
