// SPDX-License-Identifier: MIT

// serve: the tasks for clients of dm_env_rpc.

#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include <engram/core/settings.hpp>
#include <engram/train/trained_run.hpp>

#include "tasks.hpp"
#ifdef ENGRAM_RPC
#include "served/listen.hpp"
#endif

namespace engram {

#ifdef ENGRAM_RPC

int serve_tasks(const task_request& asked) {
    const auto number = [](const char* flag, const std::optional<std::string>& text, int least, int most,
                           int otherwise) {
        const int value = text ? parse<int>(flag, *text) : otherwise;
        require(value >= least && value <= most, flag, ": expected ", least, " to ", most, ", got ", value);
        return value;
    };
    listening at;
    at.host = asked.host.value_or(at.host);
    require(!at.host.empty(), "--host needs an address, such as 127.0.0.1");
    const bool path = at.host.starts_with("unix:");
    require(path != asked.port.has_value(),
            path ? "--port: a server at unix:PATH has none" : "serve: --port is missing (0: one that is free)");
    at.port = number("--port", asked.port, 0, 65535, 0);
    at.clients = number("--clients", asked.clients, 1, 10'000, at.clients);
    at.message_bytes = number("--message-bytes", asked.message_bytes, 1024, 1 << 30, at.message_bytes);

    served_tasks offered;
    if (!asked.task.empty()) offered.task = asked.task.back();
    if (!asked.level.empty()) offered.level = asked.level.back();
    offered.seed = asked.seed_or_default();
    offered.options = asked.options();
    assign(offered.options, asked.set);
    offered.worlds = number("--worlds", asked.worlds, 1, 100'000, offered.worlds);

    signals_for_serving();
    served_worlds worlds(std::move(offered));
    serve_until_signalled(worlds, at, [&](const std::string& address) {
        fmt::print(
            "listening at {}, {}\n", address,
            asked.task.empty() ? "every task by its levelName" : asked.task.back() + " where no levelName is set");
        std::fflush(stdout);
    });
    return 0;
}

#else

int serve_tasks(const task_request&) {
    fail(
        "serve needs gRPC, and this program was built without (Debian: libgrpc++-dev libprotobuf-dev "
        "protobuf-compiler-grpc; then build it again)");
}

#endif

}  // namespace engram
