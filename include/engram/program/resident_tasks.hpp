#pragma once
// SPDX-License-Identifier: MIT

// The tasks of the library as environments in a device's memory, by name; compiled once a device, by a source of the
// program (programs/resident_tasks.hpp).

#include <cstdint>
#include <memory>
#include <string>

#include <engram/train/device_environments.hpp>

namespace engram {

/// Makes the environments of a task's level in the memory of a device; no maker of a task that was added, which is the
/// host's. Row i draws from stream i of the seed.
template <device_backend Backend>
resident_maker<Backend> find_resident(const std::string& name, const std::string& level, std::uint64_t seed,
                                      const task_options& options, std::shared_ptr<const stimulus_set> stimuli);

}  // namespace engram
