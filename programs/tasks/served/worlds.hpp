#pragma once
// SPDX-License-Identifier: MIT

// What clients of dm_env_rpc v1 are answered: a request in, a response out, without a socket (docs/decisions/0029).
//
// A world is one environment with one agent. It is made by CreateWorld, joined by one stream at a time and lives until
// DestroyWorld; a stream that ends leaves its world. Where there are as many worlds as there may be, the oldest goes
// that nobody has joined and whose maker is gone.
//
//   not joined   JoinWorld -> joined
//   joined       Step -> RUNNING, its actions ignored -> ... -> TERMINATED, and again
//                Reset, or ResetWorld of one's own: the next Step begins an episode
//                ResetWorld by another stream: the next Step is INTERRUPTED and nothing has happened in it
//
// A request that is refused changes nothing; its answer is a google.rpc.Status with one sentence. Episodes of a seed
// are those of row `episodeId` of a batch_environment of that seed.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <engram/task/environment.hpp>

namespace dm_env_rpc::v1 {
class EnvironmentRequest;
class EnvironmentResponse;
}  // namespace dm_env_rpc::v1

namespace engram {

/// What a server offers, and how much of it.
struct served_tasks {
    std::string task{}, level{};  // of worlds that name none; empty: they must name a task, and get its first level
    std::uint64_t seed = 1;       // of worlds that name none: each has a stream of its own of it
    task_options options{};       // what worlds do not set; `data` is never theirs to set
    int worlds = 256;
};

struct served_world;
struct served_settings;

/// The worlds of a server. Streams of several threads share them.
class served_worlds {
public:
    /// Throws where a task that is named is none, an option is wrong, or images are missing.
    explicit served_worlds(served_tasks offered);
    ~served_worlds();

    const served_tasks& offered() const { return offered_; }

    std::shared_ptr<served_world> create(const served_settings& asked, const std::shared_ptr<const int>& maker);
    std::shared_ptr<served_world> find(std::string_view request, const std::string& name) const;
    void destroy(const std::string& name);

private:
    served_tasks offered_;
    mutable std::mutex lock_;
    std::vector<std::shared_ptr<served_world>> worlds_;  // the oldest first
    std::uint64_t made_ = 0;
};

/// One client's stream. Its destructor leaves the world that it has joined.
class served_stream {
public:
    explicit served_stream(served_worlds& worlds);
    served_stream(const served_stream&) = delete;
    served_stream& operator=(const served_stream&) = delete;
    ~served_stream();

    /// Never throws: what cannot be done is said in the response.
    void answer(const dm_env_rpc::v1::EnvironmentRequest& request, dm_env_rpc::v1::EnvironmentResponse& response);

private:
    struct requests;
    served_worlds& worlds_;
    std::shared_ptr<const int> presence_;  // alive as long as the stream
    std::shared_ptr<served_world> joined_;
};

}  // namespace engram
