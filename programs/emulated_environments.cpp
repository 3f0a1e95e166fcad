// SPDX-License-Identifier: MIT

// The environments of the library's tasks in the memory of an emulated device.

#include <engram/device/operations.hpp>

#include "resident_tasks.hpp"

namespace engram {

template resident_maker<emulated<float>> find_resident(const std::string&, const std::string&, std::uint64_t,
                                                       const task_options&, std::shared_ptr<const stimulus_set>);

}  // namespace engram
