#pragma once
// SPDX-License-Identifier: MIT

// What a program's host sees of the memory of its device: copies of the pieces that it asked for.
//
// An input is filled by the host alone and sent before every sweep. Anything else is fetched when it is asked for; what
// the host then writes to a state is sent before the next sweep. A piece stays where it is for the life of the program.

#include <cstddef>
#include <map>
#include <span>
#include <utility>

#include <engram/version.hpp>

namespace engram {

/// Array: memory of the host from which the device copies well.
template <class Real, class Array>
class host_windows {
public:
    std::span<Real> input(Real* device, std::ptrdiff_t count) {
        window& w = at(device, count);
        w.is_input = true;
        return w.host;
    }
    template <class Executor>
    std::span<Real> fetched(Executor& on, Real* device, std::ptrdiff_t count, bool writes) {
        window& w = at(device, count);
        if (!w.pending && !w.is_input) on.download(device, w.host.data(), count);
        w.pending |= writes;
        return w.host;
    }
    /// Inputs and what the host has written; or the latter alone.
    template <class Executor>
    void send(Executor& on, bool inputs = true) {
        for (auto& [place, w] : windows_)
            if ((inputs && w.is_input) || std::exchange(w.pending, false))
                on.upload(w.host.data(), place.first, place.second);
    }

private:
    struct window {
        Array host;
        bool is_input = false, pending = false;
    };

    window& at(Real* device, std::ptrdiff_t count) {
        window& w = windows_[{device, count}];
        if (w.host.empty()) w.host.resize(static_cast<std::size_t>(count));
        return w;
    }

    std::map<std::pair<Real*, std::ptrdiff_t>, window> windows_;
};

}  // namespace engram
