// SPDX-License-Identifier: MIT

// engram-tasks as a child process: what it prints and writes, what it refuses, and how it leaves a terminal behind.

#include <doctest/doctest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <engram/io/file.hpp>
#include <engram/io/png.hpp>
#include <engram/program/compiled_tasks.hpp>

#include "../io/temporary.hpp"

namespace {

const std::string program = std::string(ENGRAM_BIN_DIR) + "/engram-tasks";

std::vector<char*> words_of(std::vector<std::string>& arguments) {
    std::vector<char*> argv;
    for (auto& word : arguments) argv.push_back(word.data());
    argv.push_back(nullptr);
    return argv;
}

struct finished {
    int code = -1;
    std::string out, err;
};

finished run(std::vector<std::string> arguments) {
    REQUIRE_MESSAGE(std::filesystem::exists(program), program << " is missing; build the target engram-tasks");
    const temporary_folder folder;
    arguments.insert(arguments.begin(), program);
    std::fflush(nullptr);
    const ::pid_t child = ::fork();
    if (child == 0) {
        const bool redirected = std::freopen((folder / "out").c_str(), "w", stdout) &&
                                std::freopen((folder / "err").c_str(), "w", stderr) &&
                                std::freopen("/dev/null", "r", stdin);
        if (redirected) ::execv(program.c_str(), words_of(arguments).data());
        ::_exit(99);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    const auto text = [&](const char* name) {
        const engram::bytes content = engram::read_file(folder / name);
        return std::string(content.begin(), content.end());
    };
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text("out"), text("err")};
}

void refuses(const std::vector<std::string>& arguments, const std::string& part) {
    const finished f = run(arguments);
    INFO(f.err);
    CHECK(f.code == 2);
    CHECK(f.out.empty());
    CHECK(std::count(f.err.begin(), f.err.end(), '\n') == 1);
    CHECK(has(f.err, part));
}

/// The program in a terminal of 80 x 30 of its own.
class session {
public:
    explicit session(std::vector<std::string> arguments) {
        REQUIRE_MESSAGE(std::filesystem::exists(program), program << " is missing; build the target engram-tasks");
        arguments.insert(arguments.begin(), program);
        master_ = ::posix_openpt(O_RDWR | O_NOCTTY);
        REQUIRE((master_ >= 0 && ::grantpt(master_) == 0 && ::unlockpt(master_) == 0));
        slave_ = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
        winsize window{30, 80, 0, 0};
        ::ioctl(slave_, TIOCSWINSZ, &window);
        std::fflush(nullptr);
        process_ = ::fork();
        if (process_ != 0) return;
        ::setsid();
        ::ioctl(slave_, TIOCSCTTY, 0);
        for (const int file : {0, 1, 2}) ::dup2(slave_, file);
        ::execv(program.c_str(), words_of(arguments).data());
        ::_exit(99);
    }
    session(const session&) = delete;
    session& operator=(const session&) = delete;
    ~session() {
        ::close(master_);
        ::close(slave_);
    }

    void type(const std::string& keys) { CHECK(::write(master_, keys.data(), keys.size()) == std::ssize(keys)); }
    void signal(int number) const { ::kill(process_, number); }
    bool raw() const {
        termios now{};
        ::tcgetattr(slave_, &now);
        return (now.c_lflag & (ICANON | ECHO)) == 0;
    }

    /// Reads the screen until the text appears; false after ten seconds.
    bool shows(const std::string& text) {
        for (int tries = 0; tries < 1000; ++tries) {
            if (const auto found = seen_.find(text); found != std::string::npos) {
                seen_.erase(0, found + text.size());
                return true;
            }
            pollfd ready{master_, POLLIN, 0};
            if (::poll(&ready, 1, 10) <= 0) continue;
            char buffer[4096];
            const auto got = ::read(master_, buffer, sizeof buffer);
            if (got > 0) seen_.append(buffer, static_cast<std::size_t>(got));
        }
        return false;
    }
    int end() {
        int status = 0;
        ::waitpid(process_, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }

private:
    int master_ = -1, slave_ = -1;
    ::pid_t process_ = -1;
    std::string seen_;
};

}  // namespace

TEST_CASE("list names every task and level") {
    const finished f = run({"list"});
    CHECK(f.code == 0);
    for (const auto& info : engram::all_tasks()) {
        CHECK(has(f.out, info.name + ":"));
        for (const auto& level : info.levels) CHECK(has(f.out, "  " + level));
    }
    CHECK(has(run({"list", "--fidelity", "paper"}).out, "72 x 96 x 3"));
}

TEST_CASE("score: the oracle is right, chance is not, and threads change nothing") {
    const temporary_folder folder;
    const std::vector<std::string> ask{"score", "--task",  "continuous_recognition", "--task",     "t_maze", "--level",
                                       "train", "--level", "holdout_extrapolate",    "--episodes", "60"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), ask.begin(), ask.end());
        return run(more);
    };
    const finished oracle = with({"--csv", folder / "scores.csv"});
    CHECK(oracle.code == 0);
    CHECK(std::count(oracle.out.begin(), oracle.out.end(), '\n') == 5);
    const engram::bytes csv = engram::read_file(folder / "scores.csv");
    CHECK(std::string(csv.begin(), csv.end()) ==
          "task,fidelity,policy,level,episodes,mean,standard_error,maximum\n"
          "continuous_recognition,small,oracle,train,60,50,0,50\n"
          "continuous_recognition,small,oracle,holdout_extrapolate,60,75,0,75\n"
          "t_maze,small,oracle,train,60,4,0,4\n"
          "t_maze,small,oracle,holdout_extrapolate,60,4,0,4\n");
    const finished one = with({"--policy", "random", "--threads", "1"}),
                   three = with({"--policy", "random", "--threads", "3"});
    CHECK(one.code == 0);
    CHECK(one.out == three.out);
    CHECK(one.out != with({"--policy", "random", "--seed", "2"}).out);
    CHECK(!has(one.out, " 50.000"));
}

TEST_CASE("speed, sheet and film") {
    const finished speed = run({"speed", "--task", "t_maze", "--environments", "1,8", "--threads", "1,2"});
    CHECK(speed.code == 0);
    CHECK(std::count(speed.out.begin(), speed.out.end(), '\n') == 5);

    const temporary_folder folder;
    REQUIRE(run({"sheet", "--out", folder / "tasks.png"}).code == 0);
    const engram::picture sheet = engram::read_png(folder / "tasks.png");
    CHECK(sheet.width == 616);
    CHECK(sheet.height == 4 + 92 * 14);  // the suite and Two Colors: others are seen as numbers
    CHECK(std::filesystem::file_size(folder / "tasks.png") < 400'000);

    for (const char* policy : {"oracle", "random"})
        REQUIRE(run({"film", "--task", "arbitrary_visuomotor_mapping", "--policy", policy, "--fidelity", "paper",
                     "--steps", "20", "--out", folder / (std::string(policy) + ".gif")})
                    .code == 0);
    const auto film = engram::read_file(folder / "oracle.gif");
    CHECK(std::string(film.begin(), film.begin() + 6) == "GIF89a");
    CHECK(film != engram::read_file(folder / "random.gif"));
    CHECK(folder.files() == 3);
}

TEST_CASE("mistakes are one sentence each, and leave no file") {
    const temporary_folder folder;
    refuses({"scor"}, "unknown command 'scor'; did you mean 'score'?");
    refuses({"score", "--taks", "t_maze"}, "unknown score flag '--taks'; did you mean '--task'?");
    refuses({"score", "--task", "t_mase"}, "unknown task 't_mase'; did you mean 't_maze'?");
    refuses({"score", "--task", "t_maze", "--level", "trian"}, "unknown level 'trian'; did you mean 'train'?");
    refuses({"score", "--policy", "oracel"}, "unknown policy 'oracel'; did you mean 'oracle'?");
    refuses({"score", "--task", "t_maze", "--seed", "-1"}, "--seed: expected 0 or more, got -1");
    refuses({"score", "--episodes", "0"}, "--episodes: expected 1 or more, got 0");
    refuses({"score", "--episodes", "many"}, "--episodes: expected an integer, got 'many'");
    refuses({"score", "--seed", "x"}, "--seed: expected an integer, got 'x'");
    refuses({"score", "--csv", folder / "no/scores.csv"}, "cannot write");
    refuses({"list", "--fidelity", "papr"}, "unknown fidelity 'papr'; did you mean 'paper'?");
    refuses({"speed", "--environments", "1,x"}, "--environments: expected a list of integers");
    refuses({"speed", "--threads", "0"}, "--threads: expected 1 or more, got 0");
    refuses({"film", "--out", folder / "a.gif"}, "film: --task is missing");
    refuses({"film", "--task", "t_maze"}, "film: --out is missing");
    refuses({"film", "--task", "t_maze", "--out", folder / "a.png"}, "does not end in .gif");
    refuses({"film", "--task", "t_maze", "--level", "trian", "--out", folder / "a.gif"}, "did you mean 'train'?");
    refuses({"sheet", "--out", folder / "no/tasks.png"}, "cannot write");
    refuses({"sheet", "--out", folder / "tasks.gif"}, "does not end in .png");
    refuses({"play", "--task", "t_maze"}, "stdin or stdout is not a terminal");
    CHECK(folder.files() == 0);
    for (const auto& asked : std::vector<std::vector<std::string>>{{}, {"help"}, {"--help"}}) {
        const finished f = run(asked);
        CHECK(f.code == 0);
        CHECK(f.err.empty());
        for (const char* command : {"list", "score", "speed", "play", "sheet", "film"}) CHECK(has(f.out, command));
    }
    for (const auto& asked : std::vector<std::vector<std::string>>{{"film", "--help"}, {"help", "film"}})
        CHECK(has(run(asked).out, "--policy"));
}

TEST_CASE("play: keys act, and the terminal is restored") {
    session s({"play", "--task", "continuous_recognition", "--seed", "3"});
    REQUIRE(s.shows("step 0 of 50"));
    CHECK(s.shows("left  right  1-2: actions  n: new episode  q: quit"));
    CHECK(s.raw());
    s.type("\x1b[D");
    CHECK(s.shows("step 1 of 50   reward +1   score 1 of 50"));  // the first image is new: left
    s.type("x2");                                                // x is no key
    CHECK(s.shows("step 2 of 50"));
    s.type("n");
    CHECK(s.shows("episode 2"));
    CHECK(s.shows("step 0 of 50"));
    for (int i = 0; i < 50; ++i) s.type("a");
    CHECK(s.shows("the end; n: new episode"));
    s.type("a");
    s.type("q");
    CHECK(s.shows("continuous_recognition train: 2 episodes, score"));
    CHECK(s.end() == 0);
    CHECK(!s.raw());
}

TEST_CASE("play: signals restore the terminal") {
    for (const int number : {SIGTERM, SIGHUP, SIGINT}) {
        session s({"play", "--task", "t_maze"});
        REQUIRE(s.shows("step 0 of"));
        CHECK(s.raw());
        if (number == SIGINT)
            s.type("\x03");
        else
            s.signal(number);
        CHECK(s.shows("t_maze train: 1 episode, score 0"));
        CHECK(s.end() == 128 + number);
        CHECK(!s.raw());
    }
}
