#pragma once
// SPDX-License-Identifier: MIT

// The body of find_resident(), for the one source of a device that compiles it.

#include <memory>
#include <string>

#include <engram/program/resident_tasks.hpp>
#include <engram/task/registry.hpp>

namespace engram {

template <device_backend Backend>
resident_maker<Backend> find_resident(const std::string& name, const std::string& level, std::uint64_t seed,
                                      const task_options& options, std::shared_ptr<const stimulus_set> stimuli) {
    resident_maker<Backend> found;
    library_tasks::each([&]<class E>() {
        if (E::describe({}).name != name) return;
        found = [=](executor<Backend>& on, int count, int first_row) {
            return std::make_unique<device_environments<Backend, E>>(
                on, level, count, seed, static_cast<std::uint32_t>(first_row), options, stimuli.get());
        };
    });
    return found;
}

}  // namespace engram
