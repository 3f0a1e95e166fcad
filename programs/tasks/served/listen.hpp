#pragma once
// SPDX-License-Identifier: MIT

// The worlds of a server behind an address, until it is told to end.

#include <functional>
#include <string>

#include "worlds.hpp"

namespace engram {

/// Where a server listens, and what it takes from there.
struct listening {
    std::string host = "127.0.0.1";  // or unix:PATH, which has no port
    int port = 0;                    // 0: one that is free
    int clients = 64;                // streams at once
    int message_bytes = 1 << 20;     // of a request
};

/// Serves until SIGINT or SIGTERM, which all threads of the caller must have left to it: `signals_for_serving`. Says
/// where it listens as soon as it does; throws where that is impossible.
void serve_until_signalled(served_worlds& worlds, const listening& at,
                           const std::function<void(const std::string& address)>& begun);

/// Leaves SIGINT and SIGTERM to `serve_until_signalled`; before any other thread starts.
void signals_for_serving();

}  // namespace engram
