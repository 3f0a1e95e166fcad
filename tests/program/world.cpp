// SPDX-License-Identifier: MIT

// Agents in worlds of another process: equal to the native task, unmoved by worlds that die, stall or lie.

#include <doctest/doctest.h>

#include <fcntl.h>

#include <chrono>
#include <cmath>
#include <thread>

#include <engram/io/json.hpp>
#include <engram/io/safetensors.hpp>
#include <engram/program/compiled_tasks.hpp>
#include <engram/program/world.hpp>

#include "child.hpp"
#include "world/cue.hpp"

namespace {

/// tests/program/world/server.cpp on a socket of its own.
class server {
public:
    explicit server(const std::string& folder) : path_(folder + "/socket") { start(); }
    ~server() { kill(); }
    server(const server&) = delete;
    server& operator=(const server&) = delete;

    std::string address() const { return "rpc+unix:" + path_; }
    void kill(int number = SIGKILL) {
        if (process_ <= 0) return;
        ::kill(process_, number);
        if (number != SIGKILL) return;
        ::waitpid(process_, nullptr, 0);
        process_ = -1;
    }
    /// Begins anew after its own end, or another's doing.
    void start() {
        kill();
        int out[2];
        REQUIRE(::pipe(out) == 0);
        process_ = ::fork();
        if (process_ == 0) {
            ::dup2(out[1], 1);
            ::close(out[0]), ::close(out[1]);
            const std::string program = ENGRAM_BIN_DIR "/../tests/bin/world_server", at = "unix:" + path_;
            ::execl(program.c_str(), program.c_str(), at.c_str(), nullptr);
            ::_exit(99);
        }
        ::close(out[1]);
        char word[5] = {};
        const auto got = ::read(out[0], word, 5);
        ::close(out[0]);
        REQUIRE(got == 5);
    }

private:
    std::string path_;
    ::pid_t process_ = -1;
};

std::vector<std::string> plus(std::vector<std::string> a, const std::vector<std::string>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}
std::vector<std::string> elsewhere(const server& at, const std::string& kind,
                                   const std::vector<std::string>& more = {}) {
    return plus({"--world", at.address(), "--world-set", "world=" + kind, "--patience", "20"}, more);
}
/// A short training on a task or a world.
std::vector<std::string> train(const std::string& folder, const std::vector<std::string>& where,
                               const std::string& steps, const std::vector<std::string>& more = {}) {
    const std::vector<std::string> words{"train",
                                         "--out",
                                         folder,
                                         "--steps",
                                         steps,
                                         "--threads",
                                         "1",
                                         "--quiet",
                                         "--evaluate",
                                         "0",
                                         "--checkpoint-every",
                                         "120"};
    return plus(plus(plus(words, small_sizes), where), more);
}
engram::json summary_of(const std::string& folder) {
    return engram::read_json(folder + "/summary.json");
}
bool one_sentence(const finished& f) {
    return std::count(f.err.begin(), f.err.end(), '\n') == 1;
}

template <class Task>
void same_bits(const std::string& task, const std::string& steps) {
    engram::add_task<Task>();
    const temporary_folder folder;
    const server far(folder / "");
    const finished native = run(train(folder / "native", {"--task", task}, steps));
    INFO(native.err);
    REQUIRE(native.code == 0);
    const finished there = run(
        train(folder / "there", elsewhere(far, task, {"--world-set", "seed=1", "--world-set", "row={row}"}), steps));
    INFO(there.err);
    REQUIRE(there.code == 0);
    const auto a = engram::safetensors::read(folder / "native/checkpoint/latest.safetensors"),
               b = engram::safetensors::read(folder / "there/checkpoint/latest.safetensors");
    int compared = 0;
    for (const auto& each : a.tensors) {
        const std::string& name = each.first;
        if (name.find(".environment.") != name.npos) continue;
        CAPTURE(name);
        REQUIRE(b.contains(name));
        CHECK(each.second.data == b.at(name).data);
        ++compared;
    }
    CHECK(compared > 20);
    CHECK(summary_of(folder / "there")["episodes"] == summary_of(folder / "native")["episodes"]);
    CHECK(summary_of(folder / "there")["world"]["lost_episodes"] == 0);
}

}  // namespace

TEST_CASE("what is learnt in a world elsewhere has the bits of what is learnt in the native task") {
    same_bits<cue::numbers>("cue", "1200");
}

TEST_CASE("and so it has from pixels") {
    same_bits<cue::image>("cue_image", "360");
}

TEST_CASE("it is described, evaluated, sampled and resumed") {
    const temporary_folder folder;
    const server far(folder / "");
    const finished described = run(plus({"describe"}, elsewhere(far, "cue_image")));
    INFO(described.err);
    CHECK(described.code == 0);
    CHECK(has(described.out, "72 x 96 x 3 numbers, an image"));
    CHECK(has(described.out, "reward, DOUBLE []"));
    CHECK(has(described.out, "do, INT32 [], -1 to 2"));
    REQUIRE(run(train(folder / "run", elsewhere(far, "cue"), "240")).code == 0);
    CHECK(engram::read_json(folder / "run/config.json")["world"]["create"]["world"] == "cue");
    const finished scored = run({"evaluate", "--from", folder / "run", "--episodes", "20"});
    INFO(scored.err);
    CHECK(scored.code == 0);
    CHECK(has(scored.out, "train"));
    REQUIRE(run({"sample", "--from", folder / "run"}).code == 0);
    CHECK(engram::read_file(folder / "run/sample/episode.gif").size() > 6);
    const finished on = run(train(folder / "run", {}, "480", {"--resume"}));
    INFO(on.err);
    CHECK(on.code == 0);
    CHECK(summary_of(folder / "run")["steps"] == 480);
    CHECK(has(summary_of(folder / "run")["world"]["resuming"].get<std::string>(), "begins new episodes"));
    // It may have moved; it may not have become another one.
    const finished moved =
        run({"evaluate", "--from", folder / "run", "--world", "rpc+unix:" + folder / "nobody", "--patience", "1"});
    CHECK(moved.code == 2);
    CHECK(has(moved.err, "nobody answers there within 1 seconds"));
    const finished other = run(train(folder / "run", {"--world-set", "world=free_numbers"}, "600", {"--resume"}));
    CHECK(other.code == 0);
    const finished image = run(train(folder / "run", {"--world-set", "world=cue_image"}, "720", {"--resume"}));
    CHECK(image.code == 2);
}

TEST_CASE("asynchronous actors are in worlds too") {
    const temporary_folder folder;
    const server far(folder / "");
    const finished f = run(train(folder / "run", elsewhere(far, "cue"), "480", {"--mode", "asynchronous"}));
    INFO(f.err);
    CHECK(f.code == 0);
    CHECK(summary_of(folder / "run")["steps"] >= 480);
}

TEST_CASE("what nobody can be in is refused in a sentence") {
    const temporary_folder folder;
    const server far(folder / "");
    const auto refuses = [&](const std::vector<std::string>& where, const std::string& part) {
        const finished f = run(train(folder / "run", where, "120"));
        INFO(f.err);
        CHECK(f.code == 2);
        CHECK(one_sentence(f));
        CHECK(has(f.err, part));
        CHECK(!std::filesystem::exists(folder / "run"));
    };
    refuses({"--world", "rpc+unix:" + folder / "nobody", "--patience", "1"},
            "nobody: nobody answers there within 1 seconds");
    refuses({"--world", "localhost:10"},
            "--world localhost:10: this is no address of a world; expected rpc://host:port");
    refuses({"--world", "rpc://localhost"}, "the port is missing");
    refuses({"--world", "rpc://localhost:99999"}, "'99999' is no port");
    refuses({"--world", far.address(), "--task", "t_maze"}, "a world stands in place of --task t_maze");
    refuses({"--task", "t_maze", "--actions", "dm_memorytasks"}, "--actions: there is no world elsewhere");
    refuses(elsewhere(far, "two_images"), "shows 2 images (frame UINT8 [72, 96, 3], other_frame UINT8 [72, 96, 3])");
    refuses(elsewhere(far, "text"), "shows texts alone (words STRING [], ");
    refuses(elsewhere(far, "no_reward"), "has no observation 'reward'");
    refuses(elsewhere(far, "mixed"), "takes discrete and continuous actions (do INT32 [], push FLOAT [2])");
    refuses(elsewhere(far, "continuous"), "takes continuous actions (push FLOAT [2]); say with --actions FILE");
    refuses(elsewhere(far, "unbounded"), "action 'do' has no bounds");
    engram::write_file(folder / "three", engram::bytes{'1', ' ', '0', ' ', '0', '\n'});
    refuses(elsewhere(far, "continuous", {"--actions", folder / "three"}), "a line has 3 numbers, world ");
    engram::write_file(folder / "far", engram::bytes{'1', ' ', '7', '\n'});
    refuses(elsewhere(far, "continuous", {"--actions", folder / "far"}),
            "line 1 says 7 for 'push', which world " + far.address() + " bounds by -1 and 1");
    engram::write_file(folder / "ragged", engram::bytes{'1', ' ', '1', '\n', '1', '\n'});
    refuses(elsewhere(far, "continuous", {"--actions", folder / "ragged"}),
            "line 2: 1 columns, the lines before have 2");
    refuses(elsewhere(far, "cue", {"--actions", "dm_memorytasks"}), "a line has 4 numbers");
    refuses(elsewhere(far, "cue", {"--actions", folder / "none"}), "there is no such file");
}

TEST_CASE("bounds of old servers, and tables, are read") {
    const temporary_folder folder;
    const server far(folder / "");
    CHECK(has(run(plus({"describe"}, elsewhere(far, "old_bounds"))).out, "actions     4\n"));
    engram::write_file(folder / "table", engram::bytes{'#', '!', '\n', '1', ',', '0', '\n', '\n', '.', '5', ' ', '-',
                                                       '1', '\n', '0', ' ', '0', '\n'});
    CHECK(has(run(plus({"describe"}, elsewhere(far, "continuous", {"--actions", folder / "table"}))).out,
              "actions     3\n"));
}

TEST_CASE("a world that lies ends the run with a sentence, and the checkpoint is kept") {
    const temporary_folder folder;
    const server far(folder / "");
    int number = 0;
    const auto ends = [&](const std::string& kind, const std::string& trouble, const std::string& part) {
        CAPTURE(trouble);
        const std::string out = folder / ("run" + std::to_string(++number));
        // A row's 80th step is behind a checkpoint, which is made every 600 steps of twelve.
        const finished f = run(
            train(out, elsewhere(far, kind, {"--world-set", "trouble=" + trouble, "--world-set", "at=80"}), "10000"));
        INFO(f.err);
        CHECK(f.code == 1);
        CHECK(one_sentence(f));
        CHECK(has(f.err, "world " + far.address()));
        CHECK(has(f.err, part));
        CHECK(has(f.err, "; the checkpoint of step "));
        CHECK(engram::safetensors::read(out + "/checkpoint/latest.safetensors").contains("trainer.counters"));
    };
    ends("free_numbers", "garbage", "bytes that are no message of dm_env_rpc");
    ends("free_numbers", "nan", "'second' holds inf at 5, which is not finite");
    ends("free", "nan", "'reward' holds nan at 0, which is not finite");
    ends("free_numbers", "type", "'second' came as INT32, expected FLOAT");
    ends("free_numbers", "shape", "'second' came in shape [6, 1], expected [2, 3]");
    ends("free_numbers", "missing", "the answer to a step has no 'second'");
    ends("free_numbers", "huge", "larger than max");
    ends("free_numbers", "state", "answered a step with state 17");
    ends("free_numbers", "error", "answered with an error: it broke in two");
    ends("free_numbers", "wrong", "answered Step with something else");
}

TEST_CASE("a world that is another one when it is joined anew ends the run") {
    const temporary_folder folder;
    const server far(folder / "");
    const finished f = run(
        train(folder / "run", elsewhere(far, "free_numbers", {"--world-set", "trouble=specs", "--world-set", "at=40"}),
              "100000000"));
    INFO(f.err);
    CHECK(f.code == 1);
    CHECK(one_sentence(f));
    CHECK(has(f.err, "has other specs than before"));
}

TEST_CASE("worlds that are killed cost the episodes of their rows, and nothing else") {
    const temporary_folder folder;
    server far(folder / "");
    child<> running(train(folder / "run", elsewhere(far, "free_numbers"), "100000000"));
    constexpr int kills = 5;
    for (int i = 0; i < kills; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(250));
        far.start();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    running.signal(SIGINT);
    const finished f = running.wait();
    INFO(f.err);
    CHECK(f.code == 130);
    const auto summary = summary_of(folder / "run");
    CHECK(summary["world"]["lost_episodes"] >= kills);
    CHECK(summary["world"]["lost_episodes"] <= kills * 12);
    CHECK(summary["world"]["joined"] > 1 + 12 + kills);
    CHECK(run(train(folder / "run", {}, std::to_string(summary["steps"].get<int>() + 240), {"--resume"})).code == 0);
}

TEST_CASE("a world that stalls or closes is joined anew") {
    const temporary_folder folder;
    const server far(folder / "");
    for (const char* trouble : {"stall", "close"}) {
        CAPTURE(trouble);
        const std::string out = folder / trouble;
        // The first row's first world alone: at its step 55, where the second row's is at 155.
        const finished f = run(train(out,
                                     elsewhere(far, "free_numbers",
                                               {"--world-set", std::string("trouble=") + trouble, "--world-set",
                                                "at={row}55", "--patience", "3"}),
                                     "960"));
        INFO(f.err);
        CHECK(f.code == 0);
        CHECK(summary_of(out)["steps"] == 960);
        CHECK(summary_of(out)["world"]["lost_episodes"] >= 1);
    }
}

TEST_CASE("a world that is gone for longer than patience ends the run") {
    const temporary_folder folder;
    server far(folder / "");
    child<> running(train(folder / "run", elsewhere(far, "free_numbers", {"--patience", "1"}), "200000"));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    far.kill();
    const finished f = running.wait();
    INFO(f.err);
    CHECK(f.code == 1);
    CHECK(one_sentence(f));
    CHECK(has(f.err, "world " + far.address() + " has given row "));
    CHECK(has(f.err, "; the checkpoint of step "));
}

TEST_CASE("episodes that the world cuts are counted") {
    const temporary_folder folder;
    const server far(folder / "");
    const finished f =
        run(train(folder / "run",
                  elsewhere(far, "free_numbers", {"--world-set", "trouble=interrupt", "--world-set", "at=33"}), "600"));
    INFO(f.err);
    CHECK(f.code == 0);
    CHECK(summary_of(folder / "run")["world"]["interrupted_episodes"] == 12);
}

TEST_CASE("eight actions go to the names of the Memory Tasks Suite, four times each") {
    const temporary_folder folder;
    const server far(folder / "");
    const auto where = elsewhere(far, "suite",
                                 {"--actions", "dm_memorytasks", "--world-set", "join.width=24", "--world-set",
                                  "join.height=18", "--world-set", "levelName=spot_diff_train"});
    const finished described = run(plus({"describe"}, where));
    CHECK(has(described.out, "18 x 24 x 3 numbers, an image"));
    CHECK(has(described.out, "actions     8\n"));
    CHECK(has(described.out, "repeat      4\n"));
    CHECK(has(described.out, "task world_spot_diff_train"));
    // The presets of spot_diff are this world's.
    CHECK(has(run(plus({"describe", "--preset", "paper"}, where)).out, " task\n"));
    REQUIRE(run(train(folder / "run", where, "120")).code == 0);
    REQUIRE(run({"sample", "--from", folder / "run"}).code == 0);
    REQUIRE(run({"evaluate", "--from", folder / "run", "--episodes", "4"}).code == 0);
    REQUIRE(run({"evaluate", "--from", folder / "run", "--episodes", "4", "--world-set", "levelName=spot_diff_holdout"})
                .code == 0);
    CHECK(summary_of(folder / "run")["levels"].size() == 2);
    CHECK(summary_of(folder / "run")["levels"].contains("spot_diff_holdout"));
    const auto numbers = [&](const std::string& name) {
        const auto file = engram::read_file(folder / ("run/sample/" + name));
        std::string text(file.begin(), file.end());
        return text;
    };
    const std::string actions = numbers("actions.npy"), rewards = numbers("rewards.npy");
    CAPTURE(actions.substr(0, 90));
    const std::size_t steps = 11;  // 42 of the world, four an action, the last one cut
    const auto first_action = actions.size() - steps * sizeof(std::int32_t),
               first_reward = rewards.size() - steps * sizeof(float);
    int different = 0, last = -1;
    for (std::size_t t = 0; t < steps; ++t) {
        std::int32_t action;
        float reward;
        std::memcpy(&action, actions.data() + first_action + t * sizeof action, sizeof action);
        std::memcpy(&reward, rewards.data() + first_reward + t * sizeof reward, sizeof reward);
        CAPTURE(t);
        REQUIRE(action >= 0);
        REQUIRE(action < 8);
        // uid 1 look up 1000, 2 look aside 100, 3 move 10, 4 strafe 1.
        const float one[] = {10, -10, -1, 1, -100, 100, -90, 110};
        CHECK(reward == (t + 1 < steps ? 4 : 2) * one[action]);
        different += action != last;
        last = action;
    }
    CHECK(different > 1);
}
