#pragma once
// SPDX-License-Identifier: MIT

// An environment of one's own, outside the library: delayed match to sample. One of four signs is shown, two empty
// steps pass, then it stands beside another sign; the action says where (0 left, 1 right). Whoever forgets gets half of
// the choices right.

#include <engram/task/plugged.hpp>

namespace own {

// [struct]
struct match_to_sample {
    // Seen: the sample, then the left and the right choice, four numbers each, of which one is 1.
    static constexpr engram::own_task specification{.name = "match_to_sample",
                                                    .observation = {1, 1, 12},
                                                    .actions = 2,
                                                    .longest_episode = 4,
                                                    .maximum_reward = 1,
                                                    .random_reward = 0.5f};
    int time, sample, other, side;

    void reset(engram::philox& random) {
        time = 0;
        sample = random.below(4);
        other = (sample + 1 + random.below(3)) % 4;
        side = random.below(2);
    }
    engram::outcome step(int action) {
        const bool last = ++time == 4;
        return {last && action == side ? 1.0f : 0.0f, last};
    }
    void observe(float* numbers) const {
        for (int i = 0; i < 12; ++i) numbers[i] = 0;
        if (time == 0) numbers[sample] = 1;
        if (time == 3) numbers[4 + (side == 0 ? sample : other)] = numbers[8 + (side == 1 ? sample : other)] = 1;
    }

    // [extras]
    // Not needed to train: who knows the answer, and which saved bytes are an episode.
    int oracle() const { return side; }
    bool valid() const {
        return time >= 0 && time < 4 && sample >= 0 && sample < 4 && other >= 0 && other < 4 &&
               (side == 0 || side == 1);
    }
    // [extras]
};
// [struct]

}  // namespace own
