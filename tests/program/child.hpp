#pragma once
// SPDX-License-Identifier: MIT

// Programs of small agents as child processes of the test: their exit codes, what they print, how they take signals.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/io/file.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/program/ablation.hpp>

#include "../io/temporary.hpp"

using recalling = engram::agent<engram::mlp, engram::lstm, engram::fifo_knn, engram::no_auxiliary, engram::vtrace>;
using reacting =
    engram::agent<engram::mlp, engram::feed_forward, engram::no_memory, engram::no_auxiliary, engram::vtrace>;

struct finished {
    int code = -1;
    std::string out, err;
};

/// A running program; `before` runs in the child first. Devices: where it runs besides the host.
template <class Agent = recalling, class... Devices>
class child {
public:
    explicit child(const std::vector<std::string>& arguments, const std::string& name = "recalling",
                   const std::function<void()>& before = {}) {
        std::fflush(nullptr);
        process_ = ::fork();
        if (process_ != 0) return;
        const bool redirected = std::freopen((folder_ / "out").c_str(), "w", stdout) &&
                                std::freopen((folder_ / "err").c_str(), "w", stderr);
        if (before) before();
        std::vector<std::string> words{"engram-" + name};
        words.insert(words.end(), arguments.begin(), arguments.end());
        std::vector<char*> argv;
        for (auto& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        const int code = redirected ? engram::run_ablation<Agent, Devices...>(
                                          name.c_str(), static_cast<int>(words.size()), argv.data())
                                    : 99;
        std::fflush(nullptr);
        ::_exit(code);
    }
    void signal(int number) const { ::kill(process_, number); }

    /// Waits for its end; the exit code is 128 + the signal that ended it, if one did.
    finished wait() {
        int status = 0;
        ::waitpid(process_, &status, 0);
        const auto text = [&](const char* name) {
            const engram::bytes content = engram::read_file(folder_ / name);
            return std::string(content.begin(), content.end());
        };
        return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text("out"), text("err")};
    }

private:
    temporary_folder folder_;
    ::pid_t process_;
};

template <class Agent = recalling>
finished run(const std::vector<std::string>& arguments, const std::string& name = "recalling",
             const std::function<void()>& before = {}) {
    return child<Agent>(arguments, name, before).wait();
}

/// Of `recalling`: what an update of it takes is not noticed.
inline const std::vector<std::string> small_sizes{"--encoder.layers",       "16,8", "--controller.hidden", "16",
                                                  "--rollout.environments", "12",   "--rollout.unroll",    "10",
                                                  "--memory.slots",         "20",   "--memory.key",        "8"};

/// A short training: 480 steps an iteration, a row and perhaps a checkpoint every five of them.
inline std::vector<std::string> short_training(const std::string& folder, std::vector<std::string> more = {}) {
    std::vector<std::string> all{"train",
                                 "--task",
                                 "arbitrary_visuomotor_mapping",
                                 "--out",
                                 folder,
                                 "--threads",
                                 "1",
                                 "--quiet",
                                 "--task.stimulus_count",
                                 "100",
                                 "--checkpoint-every",
                                 "600",
                                 "--evaluate",
                                 "0"};
    all.insert(all.end(), small_sizes.begin(), small_sizes.end());
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

inline engram::bytes checkpoint_of(const std::string& folder) {
    return engram::read_file(folder + "/checkpoint/latest.safetensors");
}
