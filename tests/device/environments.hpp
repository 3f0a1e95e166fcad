#pragma once
// Environments in a device's memory walk as the host's do: the same source for the emulation and for a GPU.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <engram/task/arbitrary_visuomotor_mapping.hpp>
#include <engram/task/goal_arena.hpp>
#include <engram/task/rotation.hpp>
#include <engram/task/t_maze.hpp>
#include <engram/task/two_colors.hpp>
#include <engram/train/device_environments.hpp>

namespace device_test {

using namespace engram;

/// Values from a device's array.
template <class T, class Executor>
std::vector<T> fetched(Executor& on, const T* from, std::size_t count) {
    std::vector<T> values(count);
    on.wait();
    on.download_bytes(from, values.data(), sizeof(T) * count);
    return values;
}

/// Pixels that differ by more than `tolerance`.
inline int different(const std::vector<float>& a, const std::vector<float>& b, float tolerance) {
    int count = 0;
    for (std::size_t i = 0; i < a.size(); ++i) count += !(std::abs(a[i] - b[i]) <= tolerance);
    return count;
}

struct walked {
    int steps = 0, episodes = 0, rewards = 0;
    std::int64_t pixels = 0, wrong_pixels = 0;
};

/// `steps` steps of B environments by the same random actions, the host's and the device's side by side. What decides
/// an episode must be the same to the bit; frames are looked at every `every` steps.
template <class Backend, environment E>
walked walk_both(const task_options& options, const std::string& level, int B, int steps, int every, float tolerance,
                 std::shared_ptr<const stimulus_set> stimuli = nullptr) {
    executor<Backend> on;
    batch_of<E> host(level, B, 11, 3, options, stimuli);
    device_environments<Backend, E> device(on, level, B, 11, 3, options, stimuli.get());
    const auto rows = static_cast<std::size_t>(B), size = static_cast<std::size_t>(host.info().observation.size());
    typename executor<Backend>::template array<int> actions(rows);
    typename executor<Backend>::template array<outcome> outcomes(rows);
    std::vector<float> shown(rows * size);
    std::vector<int> chosen(rows);
    philox random(4, 4);
    walked found;
    for (int t = 0; t < steps; ++t) {
        if (t % every == 0) {
            for (int b = 0; b < B; ++b) host.observe(b, shown.data() + static_cast<std::size_t>(b) * size);
            const auto seen = fetched(on, device.observe(), rows * size);
            found.pixels += static_cast<std::int64_t>(seen.size());
            found.wrong_pixels += different(shown, seen, tolerance);
        }
        for (auto& a : chosen) a = random.below(host.info().actions);
        on.upload_bytes(chosen.data(), actions.data(), sizeof(int) * rows);
        device.step(actions.data(), outcomes.data());
        const auto got = fetched(on, outcomes.data(), rows);
        for (int b = 0; b < B; ++b) {
            const outcome expected = host.step(b, chosen[static_cast<std::size_t>(b)]);
            const outcome& now = got[static_cast<std::size_t>(b)];
            REQUIRE(now.reward == expected.reward);
            REQUIRE(now.done == expected.done);
            found.episodes += now.done;
            found.rewards += now.reward != 0;
            ++found.steps;
        }
    }
    // The whole state, streams of random numbers and all.
    for (int b = 0; b < B; ++b) {
        const auto here = host.state(b), there = device.state(b);
        REQUIRE(here.size() == there.size());
        CHECK(std::memcmp(here.data(), there.data(), here.size()) == 0);
    }
    return found;
}

/// Frames of random rooms, all around, a thread a column.
template <class Backend>
walked draw_rooms(int rooms, const lens& through, float tolerance) {
    executor<Backend> on;
    task_options options;
    options.fidelity = "paper";
    const rotation_task task(options);
    const auto count = static_cast<std::size_t>(rooms);
    const int size = through.height * through.width * 3;
    std::vector<room> places;
    std::vector<float> shown(count * static_cast<std::size_t>(size));
    typename executor<Backend>::template array<room> there(count);
    typename executor<Backend>::template array<room_view> views(count);
    typename executor<Backend>::template array<float> pixels(shown.size());
    std::vector<room_view> wanted;
    for (int i = 0; i < rooms; ++i) {
        const auto scene = task.draw_scene("train", 1, static_cast<std::uint64_t>(i));
        places.push_back(scene.place);
        wanted.push_back({there.data() + i, rotation_task::looking(scene.start, i % rotation_task::period), through});
        render(scene.place, wanted.back().from, through, {}, shown.data() + std::ptrdiff_t{i} * size);
    }
    on.upload_bytes(places.data(), there.data(), sizeof(room) * count);
    on.upload_bytes(wanted.data(), views.data(), sizeof(room_view) * count);
    on.launch("draw", std::ptrdiff_t{rooms} * through.width,
              internal::draw_view_column{views.data(), pixels.data(), size, through.width});
    const auto seen = fetched(on, pixels.data(), shown.size());
    return {0, 0, 0, static_cast<std::int64_t>(seen.size()), different(shown, seen, tolerance)};
}

/// What holds on every device; a frame may differ from the host's by `tolerance`, and beyond it in a share of `wrong`.
template <class Backend>
void environments_walk_as_on_the_host(float tolerance, double wrong) {
    const auto accepted = [&](const walked& w) {
        return static_cast<double>(w.wrong_pixels) <= wrong * static_cast<double>(w.pixels);
    };
    task_options corridor;
    corridor.length = 4;
    corridor.length_spread = 5;
    const walked maze = walk_both<Backend, t_maze>(corridor, "train", 7, 3000, 1, 0, nullptr);
    CHECK(maze.wrong_pixels == 0);
    CHECK(maze.episodes > 1000);
    CHECK(maze.rewards == maze.episodes);

    task_options small;
    const auto stimuli = std::make_shared<const stimulus_set>(builtin_stimuli(80));
    const walked mapping = walk_both<Backend, arbitrary_visuomotor_mapping>(small, "train", 3, 1200, 10, 0, stimuli);
    CHECK(mapping.wrong_pixels == 0);
    CHECK(mapping.episodes > 50);
    CHECK(mapping.rewards > 300);
    task_options paper;
    paper.fidelity = "paper";
    const walked looking =
        walk_both<Backend, arbitrary_visuomotor_mapping>(paper, "train", 2, 300, 50, tolerance, stimuli);
    CHECK(accepted(looking));
    CHECK(looking.pixels > 0);

    const walked arena = walk_both<Backend, visible_goal_with_buildings>(small, "train", 3, 400, 20, tolerance);
    CHECK(accepted(arena));
    CHECK(arena.episodes > 0);
    const walked colours =
        walk_both<Backend, two_colors>(small, two_colors::describe(small).levels[0], 2, 300, 60, tolerance);
    CHECK(accepted(colours));
    CHECK(colours.rewards > 0);

    const walked rooms = draw_rooms<Backend>(12, {}, tolerance);
    CHECK(accepted(rooms));
    CHECK(rooms.pixels == 12 * 72 * 96 * 3);
    const walked smooth = draw_rooms<Backend>(3, {.height = 16, .width = 24, .samples = 2}, tolerance);
    CHECK(accepted(smooth));
}

}  // namespace device_test
