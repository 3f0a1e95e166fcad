// SPDX-License-Identifier: MIT

// play: a task in the terminal. Two pixels a character: the upper half block has one colour, its ground the other.

#include <algorithm>
#include <array>
#include <cstdio>

#include <fmt/format.h>

#include <engram/program/pictures.hpp>
#include <engram/task/time_step.hpp>

#include "tasks.hpp"
#include "terminal.hpp"

namespace engram {

namespace {

/// A key, and the action that it stands for.
struct binding {
    const char* shown;
    key which;
    char letter;
    int action;
};

/// The keys of a task, by its number of actions: walking (first_person.hpp), looking (left, right, up, down, nothing),
/// buttons (left, right, up, down). Besides, every action has its number.
std::vector<binding> keys_of(int actions) {
    if (actions == 8)
        return {{"w", key::other, 'w', 0},
                {"up: forward", key::up, 0, 0},
                {"s", key::other, 's', 1},
                {"down: backward", key::down, 0, 1},
                {"a: step left", key::other, 'a', 2},
                {"d: step right", key::other, 'd', 3},
                {"left: turn", key::left, 0, 4},
                {"right: turn", key::right, 0, 5},
                {"z: turn left and walk", key::other, 'z', 6},
                {"c: turn right and walk", key::other, 'c', 7}};
    std::vector<binding> keys{
        {"left", key::left, 0, 0}, {"", key::other, 'a', 0}, {"right", key::right, 0, 1}, {"", key::other, 'd', 1}};
    if (actions > 3) {
        keys.push_back({"up", key::up, 0, 2}), keys.push_back({"", key::other, 'w', 2});
        keys.push_back({"down", key::down, 0, 3}), keys.push_back({"", key::other, 's', 3});
    }
    if (actions == 5) keys.push_back({"space: nothing (hold it to wait)", key::other, ' ', 4});
    return keys;
}

/// The action that a key press means; -1: none.
int action_of(const std::vector<binding>& keys, const key_press& press, int actions) {
    for (const auto& k : keys)
        if (k.which == press.which && k.letter == press.letter && k.action < actions) return k.action;
    const int number = press.letter - '1';
    return press.which == key::other && number >= 0 && number < std::min(actions, 9) ? number : -1;
}

std::string help_of(const std::vector<binding>& keys, int actions) {
    std::string text;
    for (const auto& k : keys)
        if (*k.shown && k.action < actions) text += std::string(k.shown) + "  ";
    return text + fmt::format("1-{}: actions  n: new episode  q: quit", std::min(actions, 9));
}

/// The picture as large as `columns` x 2 `lines` pixels allow, its sides in proportion.
std::string draw(const picture& seen, int columns, int lines) {
    const int width = std::max(1, std::min(columns, 2 * lines * seen.width / seen.height));
    const int height = std::max(2, width * seen.height / seen.width / 2 * 2);
    picture scaled{height, width, 3, {}};
    scaled.pixels.resize(static_cast<std::size_t>(height) * static_cast<std::size_t>(width * 3));
    paste(scaled, seen, 0, 0, height, width);
    std::string out;
    std::array<int, 6> before;
    for (int y = 0; y < height; y += 2) {
        before.fill(-1);
        for (int x = 0; x < width; ++x) {
            std::array<int, 6> now;
            for (std::size_t i = 0; i < 6; ++i)
                now[i] =
                    scaled.pixels[static_cast<std::size_t>(((y + static_cast<int>(i / 3)) * width + x) * 3) + i % 3];
            if (now != before)
                out += fmt::format("\x1b[38;2;{};{};{};48;2;{};{};{}m", now[0], now[1], now[2], now[3], now[4], now[5]);
            before = now;
            out += "\u2580";
        }
        out += "\x1b[0m\x1b[K\r\n";
    }
    return out;
}

/// Text cut to the screen's width, the rest of its line empty.
std::string line(std::string text, int columns) {
    if (static_cast<int>(text.size()) > columns) text.resize(static_cast<std::size_t>(columns));
    return text + "\x1b[K\r\n";
}

}  // namespace

int play_task(const task_request& asked) {
    const task_info info = asked.only_task("play");
    const std::string level = asked.only_level(info);
    const auto seed = asked.seed_or_default();
    const auto options = asked.options();
    single_environment task(info.name, level, seed, options, task_stimuli(info.name, options));
    const double seconds = options.fidelity == "paper" ? 4.0 / 60 : 0.25;
    const auto keys = keys_of(info.actions);
    const bool walks = info.actions == walking_actions || options.fidelity == "paper";
    int episodes = 0, signal = 0;
    double all = 0;
    {
        const terminal screen;
        time_step now = task.reset();
        int step = 0;
        double total = 0;
        for (;;) {
            const auto [columns, lines] = screen.size();
            const std::string time = walks ? fmt::format("   time {:.1f} s", step * seconds) : "";
            const float most = info.maximum_reward(level);
            std::string status = fmt::format(
                "step {} of {}{}   reward {:+g}   score {:g}{}", step, info.level(level).longest_episode, time,
                static_cast<double>(now.reward.value_or(0)), total, most > 0 ? fmt::format(" of {:g}", most) : "");
            screen.show("\x1b[H" + draw(observation_picture(info, now.observation), columns, std::max(1, lines - 4)) +
                        line(fmt::format("{} {}   episode {}", info.name, level, episodes + 1), columns) +
                        line(now.last() ? status + "   the end; n: new episode" : status, columns) +
                        line(help_of(keys, info.actions), columns) + "\x1b[J");
            const key_press press = screen.wait();
            if (press.which == key::none || (press.which == key::other && press.letter == 'q')) break;
            if (press.which == key::other && press.letter == 'n') {
                ++episodes, all += total;
                now = task.reset();
                total = 0, step = 0;
                continue;
            }
            const int action = action_of(keys, press, info.actions);
            if (action < 0 || now.last()) continue;
            now = task.step(action);
            total += static_cast<double>(now.reward.value_or(0));
            ++step;
        }
        ++episodes, all += total;
        signal = screen.signal();
    }
    fmt::print("{} {}: {} episode{}, score {:g}\n", info.name, level, episodes, episodes == 1 ? "" : "s", all);
    return signal == 0 ? 0 : 128 + signal;
}

}  // namespace engram
