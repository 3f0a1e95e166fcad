#pragma once
// SPDX-License-Identifier: MIT

// What the panels of the PsychLab tasks are made of (facts 2.3), on a canvas of side 80 (paper fidelity) or 16 (small).
//
//                 80                       16
//   image         60 x 60, 0.75            12 x 12, 0.75
//   button        8 x 8, 0.1               4 along the edge, 2 deep; low ones lie in the lower corners (ours)
//   cross, dot    8 x 8, 0.1; 6 x 6        not shown: fixation takes no step

#include "engram/core/device.hpp"
#include "engram/task/canvas.hpp"

namespace engram {

/// Dull green and red reveal a direction, bright ones tell whether an answer was right.
enum class button : int { absent, black, green, red, white, bright_green, bright_red };

/// The colour of a button.
ENGRAM_HD shade button_shade(button b) {
    switch (b) {
        case button::green:
            return {0, 0.75f, 0};
        case button::red:
            return {0.75f, 0, 0};
        case button::white:
            return {1, 1, 1};
        case button::bright_green:
            return {0, 1, 0};
        case button::bright_red:
            return {1, 0, 0};
        default:
            return {0, 0, 0};
    }
}

struct panel : canvas {
    static constexpr int coarse_side = 16, coarse_size = coarse_side * coarse_side * 3;
    static constexpr int fine_side = 80, fine_size = fine_side * fine_side * 3;

    ENGRAM_HD bool fine() const { return side == fine_side; }

    /// The image in the middle.
    ENGRAM_HD void show(const float* from, int from_side) const {
        const int size = side * 3 / 4;
        image(from, from_side, (side - size) / 2, (side - size) / 2, size);
    }

    ENGRAM_HD_CALL void cross() const {
        const shade paint{1, 0, 0};
        const int middle = side / 2, arm = side / 20, half = side / 80;
        box(middle - arm, middle - half, 2 * arm, 2 * half, paint);
        box(middle - half, middle - arm, 2 * half, 2 * arm, paint);
    }

    ENGRAM_HD void dot(const shade& paint) const { box(side / 2 - 3, side / 2 - 3, 6, 6, paint); }

    /// The button of a direction: left, right, up, down.
    ENGRAM_HD_CALL void press(int direction, button face, bool low = false) const {
        if (face == button::absent) return;
        const int along = fine() ? 8 : 4, deep = fine() ? 8 : 2;
        const int middle = low && !fine() ? side - along : (side - along) / 2;
        const int edge = direction % 2 == 0 ? 0 : side - deep;
        if (direction < 2)
            box(edge, middle, deep, along, button_shade(face));
        else
            box(middle, edge, along, deep, button_shade(face));
    }
};

}  // namespace engram
