#pragma once
// The other tasks of the suite on a device, as environments.hpp walks them: shorter, so that every one of them is
// compiled for the device and compared.

#include <memory>

#include <engram/task/change_detection.hpp>
#include <engram/task/continuous_recognition.hpp>
#include <engram/task/procedural_maze.hpp>
#include <engram/task/spot_diff.hpp>
#include <engram/task/transitive_inference.hpp>
#include <engram/task/what_then_where.hpp>

#include "environments.hpp"

namespace device_test {

template <class Backend, environment E>
void walks(const char* fidelity, int steps, float tolerance, double wrong) {
    task_options options;
    options.fidelity = fidelity;
    std::shared_ptr<const stimulus_set> stimuli;
    if constexpr (requires { E::load_stimuli(options); })
        stimuli = E::load_stimuli(options);
    else if (E::uses_stimuli)
        stimuli = std::make_shared<const stimulus_set>(builtin_stimuli(80));
    const task_info info = E::describe(options);
    const walked found = walk_both<Backend, E>(options, info.levels.back(), 2, steps, steps / 4, tolerance, stimuli);
    INFO(info.name, " at fidelity ", fidelity, ": ", found.wrong_pixels, " of ", found.pixels, " numbers differ");
    CHECK(found.pixels > 0);
    CHECK(static_cast<double>(found.wrong_pixels) <= wrong * static_cast<double>(found.pixels));
}

template <class Backend>
void suite_walks_as_on_the_host(float tolerance, double wrong) {
    walks<Backend, continuous_recognition>("small", 200, tolerance, wrong);
    walks<Backend, change_detection>("small", 200, tolerance, wrong);
    walks<Backend, change_detection>("paper", 60, tolerance, wrong);
    walks<Backend, what_then_where>("small", 200, tolerance, wrong);
    walks<Backend, spot_diff>("small", 200, tolerance, wrong);
    walks<Backend, spot_diff_motion>("small", 100, tolerance, wrong);
    walks<Backend, invisible_goal_empty_arena>("paper", 40, tolerance, wrong);
    walks<Backend, procedural_maze>("small", 100, tolerance, wrong);
    walks<Backend, transitive_inference>("small", 200, tolerance, wrong);
}

}  // namespace device_test
