#pragma once
// SPDX-License-Identifier: MIT

// engram-campaign as a child process, in a folder with a campaign.

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <engram/io/file.hpp>
#include <engram/io/json.hpp>

#include "../io/temporary.hpp"

namespace campaigns {

inline std::string text_of(const std::string& path) {
    if (!engram::exists_on_disk(path)) return "";
    const engram::bytes content = engram::read_file(path);
    return {content.begin(), content.end()};
}

inline int lines_with(const std::string& text, const std::string& part) {
    int count = 0;
    for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
    return count;
}

/// Whether something comes true within half a minute.
template <class Condition>
bool in_time(Condition condition) {
    for (int tries = 0; tries < 3000; ++tries) {
        if (condition()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
}

/// A program of the checkout, started in a folder.
class program {
public:
    program(const std::string& name, std::vector<std::string> words, const std::string& folder) {
        const std::string path = std::string(ENGRAM_BIN_DIR) + "/engram-" + name;
        REQUIRE_MESSAGE(std::filesystem::exists(path), path << " is missing; build the target program.campaign");
        words.insert(words.begin(), path);
        std::vector<char*> argv;
        for (auto& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        const std::string out = output_ / "out", err = output_ / "err";
        process = ::fork();
        if (process != 0) return;
        for (const auto& [file, stream] : {std::pair{&out, 1}, {&err, 2}})
            ::dup2(::open(file->c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), stream);
        if (::chdir(folder.c_str()) == 0) ::execv(path.c_str(), argv.data());
        ::_exit(99);
    }
    std::string out() const { return text_of(output_ / "out"); }
    std::string err() const { return text_of(output_ / "err"); }
    /// Its exit code, or 128 + the signal that ended it.
    int end() const {
        int status = 0;
        ::waitpid(process, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    ::pid_t process;

private:
    temporary_folder output_;
};

struct outcome {
    int code;
    std::string out, err;
};

/// A folder with a campaign in it.
struct workplace : temporary_folder {
    explicit workplace(const std::string& lines) { write(lines); }
    void write(const std::string& lines) const { engram::write_file(*this / "some.campaign", lines); }
    program start(std::vector<std::string> words = {}) const {
        words.insert(words.begin(), "some.campaign");
        return {"campaign", words, path};
    }
    outcome run(std::vector<std::string> words = {}) const {
        const program p = start(std::move(words));
        const int code = p.end();
        return {code, p.out(), p.err()};
    }
    std::string log(const std::string& run) const { return text_of(*this / ("runs/" + run + "/log.txt")); }
};

/// T-Mazes by a small agent without a memory: a third of a million steps take a second.
inline std::string small(const std::string& more, const std::string& out = "{task}-{seed}") {
    return "out = runs/" + out +
           "\nprograms = ff\ntasks = t_maze\ncontroller.hidden = 8\nencoder.hidden = 8\n"
           "rollout.environments = 8\nevaluate = 2\n" +
           more;
}

inline engram::json summary_of(const std::string& folder) {
    engram::json summary = engram::read_json(folder + "/summary.json");
    for (const char* timed : {"steps_per_second", "wall_seconds", "cpu_seconds", "peak_memory_bytes"})
        summary.erase(timed);
    return summary;
}

inline void same_run(const std::string& a, const std::string& b) {
    CHECK(summary_of(a) == summary_of(b));
    CHECK(text_of(a + "/checkpoint/latest.safetensors") == text_of(b + "/checkpoint/latest.safetensors"));
}

}  // namespace campaigns
