#pragma once
// SPDX-License-Identifier: MIT

// A little task that is native and, behind a server, elsewhere: a cue is shown once, and the last step earns 1 for the
// action that it named. Its numbers are eighths and its pixels 255ths, so that both ways give the same bits.

#include <engram/task/plugged.hpp>

namespace cue {

inline constexpr int steps = 5, actions = 4;

/// Numbers, Height 1, or an image.
template <int Height, int Width, int Channels>
struct task {
    static constexpr engram::own_task specification{.name = Height > 1 ? "cue_image" : "cue",
                                                    .observation = {Height, Width, Channels},
                                                    .actions = actions,
                                                    .longest_episode = steps,
                                                    .maximum_reward = 1};
    int wanted, time;

    void reset(engram::philox& random) {
        wanted = random.below(actions);
        time = 0;
    }
    engram::outcome step(int action) {
        ++time;
        return {time == steps && action == wanted ? 1.0f : 0.0f, time == steps};
    }
    /// In units of 1 / 8 or 1 / 255.
    int unit(int i) const { return time == 0 ? (i % actions == wanted ? 8 : 0) : (i + time) % 8; }
    void observe(float* numbers) const {
        for (int i = 0; i < Height * Width * Channels; ++i)
            numbers[i] = Height > 1 ? static_cast<float>(unit(i)) * (1.0f / 255) : static_cast<float>(unit(i)) / 8;
    }
};

using numbers = task<1, 1, 10>;
using image = task<72, 96, 3>;

}  // namespace cue
