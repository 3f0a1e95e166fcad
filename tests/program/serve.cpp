// SPDX-License-Identifier: MIT

// engram-tasks serve: what a stream is answered, request by request, beside the same task stepped natively; what it
// refuses, and in which words; anything at all as a request; and the program at its port.

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/message_differencer.h>

#include <dm_env_rpc/v1/dm_env_rpc.pb.h>

#include <engram/io/file.hpp>
#include <engram/program/compiled_tasks.hpp>
#include <engram/task/time_step.hpp>

#include "../../programs/tasks/served/worlds.hpp"
#include "../io/temporary.hpp"

namespace {

namespace wire = dm_env_rpc::v1;
using wire::EnvironmentRequest, wire::EnvironmentResponse, wire::Tensor;

enum code { invalid = 3, unknown_name = 5, exhausted = 8, wrong_state = 9, unimplemented = 12 };

Tensor number(std::int64_t value) {
    Tensor t;
    t.mutable_int64s()->add_array(value);
    return t;
}
Tensor text(const std::string& value) {
    Tensor t;
    t.mutable_strings()->add_array(value);
    return t;
}
Tensor action(int value) {
    Tensor t;
    t.mutable_int32s()->add_array(value);
    return t;
}
using settings = std::vector<std::pair<std::string, Tensor>>;

template <class Message>
void put(Message& to, const settings& from) {
    for (const auto& [name, tensor] : from) (*to.mutable_settings())[name] = tensor;
}

EnvironmentRequest create(const settings& asked) {
    EnvironmentRequest r;
    put(*r.mutable_create_world(), asked);
    return r;
}
EnvironmentRequest join(const std::string& world, const settings& asked = {}) {
    EnvironmentRequest r;
    r.mutable_join_world()->set_world_name(world);
    put(*r.mutable_join_world(), asked);
    return r;
}
EnvironmentRequest step(const std::vector<std::pair<std::uint64_t, Tensor>>& actions,
                        const std::vector<std::uint64_t>& wanted = {1, 2, 3}) {
    EnvironmentRequest r;
    for (const auto& [uid, tensor] : actions) (*r.mutable_step()->mutable_actions())[uid] = tensor;
    r.mutable_step();
    for (const auto uid : wanted) r.mutable_step()->add_requested_observations(uid);
    return r;
}
EnvironmentRequest reset(const settings& asked = {}) {
    EnvironmentRequest r;
    r.mutable_reset();
    put(*r.mutable_reset(), asked);
    return r;
}
EnvironmentRequest reset_world(const std::string& world, const settings& asked = {}) {
    EnvironmentRequest r;
    r.mutable_reset_world()->set_world_name(world);
    put(*r.mutable_reset_world(), asked);
    return r;
}
EnvironmentRequest leave() {
    EnvironmentRequest r;
    r.mutable_leave_world();
    return r;
}
EnvironmentRequest destroy(const std::string& world) {
    EnvironmentRequest r;
    r.mutable_destroy_world()->set_world_name(world);
    return r;
}

/// A stream, and what it is answered.
struct client {
    engram::served_stream stream;
    EnvironmentResponse said;

    explicit client(engram::served_worlds& worlds) : stream(worlds) {}
    const EnvironmentResponse& ask(const EnvironmentRequest& request) {
        stream.answer(request, said);
        return said;
    }
    std::string make(const settings& asked) {
        ask(create(asked));
        INFO(said.error().message());
        REQUIRE(said.has_create_world());
        return said.create_world().world_name();
    }
    wire::ActionObservationSpecs enter(const std::string& world) {
        ask(join(world));
        INFO(said.error().message());
        REQUIRE(said.has_join_world());
        return said.join_world().specs();
    }
    wire::EnvironmentStateType move(int chosen) {
        ask(step({{1, action(chosen)}}));
        INFO(said.error().message());
        REQUIRE(said.has_step());
        return said.step().state();
    }
    float seen(std::uint64_t uid) const { return said.step().observations().at(uid).floats().array(0); }
    float reward() const { return seen(2); }
    float discount() const { return seen(3); }
    void is_refused(const EnvironmentRequest& request, int code, const std::string& part) {
        ask(request);
        INFO(part << " | " << said.ShortDebugString());
        REQUIRE(said.has_error());
        CHECK(said.error().code() == code);
        CHECK(has(said.error().message(), part));
        CHECK(std::count(said.error().message().begin(), said.error().message().end(), '\n') == 0);
    }
};

/// The observation as the wire has it.
Tensor shown(const engram::task_info& info, const std::vector<float>& pixels) {
    Tensor t;
    const auto& s = info.observation;
    if (s.height == 1) {
        t.add_shape(s.channels);
        t.mutable_floats()->mutable_array()->Add(pixels.begin(), pixels.end());
    } else {
        for (const int extent : {s.height, s.width, s.channels}) t.add_shape(extent);
        for (const float x : pixels) *t.mutable_uint8s()->mutable_array() += static_cast<char>(std::lround(x * 255));
    }
    return t;
}

int chosen(int t, int count) {
    return (5 * t + t / 7) % count;
}

engram::served_tasks few(int worlds = 8) {
    engram::served_tasks offered;
    offered.worlds = worlds;
    offered.options.stimulus_count = 100;
    return offered;
}

}  // namespace

TEST_CASE("every task over the wire is the task itself: observations, rewards, ends, and within the bounds it says") {
    engram::served_worlds worlds(few());
    for (const auto& name : engram::task_names()) {
        CAPTURE(name);
        client one(worlds);
        const auto world = one.make({{"levelName", text(name)}, {"seed", number(5)}, {"episodeId", number(2)}});
        const auto specs = one.enter(world);
        engram::single_environment native(name, "", 5, few().options, nullptr, 2);
        const auto& info = native.info();
        REQUIRE(specs.actions_size() == 1);
        REQUIRE(specs.observations_size() == 3);
        CHECK(specs.actions().at(1).min().int32s().array(0) == 0);
        CHECK(specs.actions().at(1).max().int32s().array(0) == info.actions - 1);
        const auto& seen = specs.observations().at(1);
        const bool image = info.observation.height > 1;
        CHECK(seen.name() == (image ? "RGB_INTERLEAVED" : "numbers"));
        CHECK(seen.dtype() == (image ? wire::UINT8 : wire::FLOAT));
        CHECK(specs.observations().at(2).name() == "reward");
        CHECK(specs.observations().at(3).name() == "discount");

        auto now = native.reset();
        CHECK(one.move(0) == wire::RUNNING);
        CHECK(one.reward() == 0);
        bool same = true, within = true;
        for (int t = 0; t < 150; ++t) {
            const auto& there = one.said.step().observations().at(1);
            same &= there.SerializeAsString() == shown(info, now.observation).SerializeAsString();
            same &= std::equal(there.shape().begin(), there.shape().end(), seen.shape().begin(), seen.shape().end());
            if (!image)
                for (const float x : there.floats().array())
                    within &= x >= seen.min().floats().array(0) && x <= seen.max().floats().array(0);
            if (now.last()) {
                now = native.reset();
                CHECK(one.ask(step({{77, action(-3)}})).step().state() == wire::RUNNING);  // its actions are ignored
            } else {
                now = native.step(chosen(t, info.actions));
                same &= one.move(chosen(t, info.actions)) == (now.last() ? wire::TERMINATED : wire::RUNNING);
                same &= one.reward() == *now.reward && one.discount() == *now.discount;
            }
            REQUIRE(same);
        }
        CHECK(within);
        one.ask(leave());
        CHECK(one.ask(destroy(world)).has_destroy_world());
    }
}

TEST_CASE("what is asked for is what comes") {
    engram::served_worlds worlds(few());
    client one(worlds);
    one.enter(one.make({{"levelName", text("t_maze")}}));
    CHECK(one.ask(step({}, {})).step().observations_size() == 0);
    CHECK(one.ask(step({{1, action(0)}}, {3, 3, 3})).step().observations_size() == 1);
    CHECK(one.discount() == 1);
    CHECK(one.ask(step({{1, action(0)}}, {2})).step().observations().contains(2));
}

TEST_CASE("levels, seeds and options are settings of a world") {
    engram::served_worlds worlds(few());
    client one(worlds);
    const auto episode = [&](const settings& asked) {
        const auto world = one.make(asked);
        one.enter(world);
        one.move(0);
        int steps = 0;
        for (auto state = wire::RUNNING; state == wire::RUNNING; ++steps) state = one.move(0);
        one.ask(leave());
        one.ask(destroy(world));
        return steps;
    };
    const auto maze = [](const char* name) { return std::pair<std::string, Tensor>{"levelName", text(name)}; };
    const std::pair<std::string, Tensor> length{"length", number(7)}, spread{"length_spread", number(0)};
    CHECK(episode({maze("t_maze"), length, spread}) == 7);
    CHECK(episode({maze("t_maze_train"), length, spread}) == 7);
    CHECK(episode({maze("t_maze_holdout_extrapolate"), length, spread}) == 14);
    CHECK(episode({maze("t_maze"), {"level", text("holdout_extrapolate")}, length, spread}) == 14);
    Tensor no;
    no.mutable_bools()->add_array(false);
    const auto back = one.make({maze("two_colors"), {"backward", no}});
    CHECK(one.enter(back).actions().at(1).max().int32s().array(0) == 4);
    one.ask(leave());
    CHECK(one.enter(one.make({maze("spot_diff_multi_holdout_interpolate"), {"fidelity", text("paper")}}))
              .observations()
              .at(1)
              .shape(1) == 96);
}

TEST_CASE("the server's own task, level and options stand where a world names none; worlds without a seed differ") {
    auto offered = few();
    offered.task = "t_maze";
    offered.level = "holdout_extrapolate";
    offered.options.length = 4;
    offered.options.length_spread = 0;
    engram::served_worlds worlds(offered);
    client one(worlds);
    std::vector<std::string> seen;
    for (int i = 0; i < 2; ++i) {
        one.enter(one.make({}));
        std::string all;
        for (int t = 0; t < 45; ++t) {  // five episodes of eight steps, and the first look at each
            CHECK(one.move(0) == (t % 9 == 8 ? wire::TERMINATED : wire::RUNNING));
            all += one.said.step().observations().at(1).SerializeAsString();
        }
        seen.push_back(all);
        one.ask(leave());
    }
    CHECK(seen[0] != seen[1]);
    CHECK_THROWS_AS(engram::served_worlds({.task = "maze"}), engram::error);
    CHECK_THROWS_AS(engram::served_worlds({.task = "t_maze", .level = "interpolate"}), engram::error);
    CHECK_THROWS_AS(engram::served_worlds({.level = "train"}), engram::error);
}

TEST_CASE("each bad request has its code and its sentence, and changes nothing") {
    engram::served_worlds worlds(few(3));
    client one(worlds), other(worlds);
    one.is_refused(EnvironmentRequest(), invalid, "without content");
    EnvironmentRequest extension;
    extension.mutable_extension()->set_type_url("x");
    one.is_refused(extension, unimplemented, "extension");

    const auto bad = [&](const settings& asked, const char* part) { one.is_refused(create(asked), invalid, part); };
    const std::pair<std::string, Tensor> maze{"levelName", text("t_maze")},
        images{"levelName", text("continuous_recognition")};
    bad({}, "levelName is missing");
    bad({{"levelName", text("t_mase")}}, "did you mean 't_maze'");
    bad({{"levelName", text("t_maze_interpolate")}}, "unknown levelName");
    bad({{"levelName", number(3)}}, "expected a text, got an integer");
    bad({{"levelName", text(std::string(1 << 16, 'x'))}}, "a text of 65536 bytes");
    bad({{std::string(1 << 16, 'x'), number(3)}}, "unknown setting 'xxx");
    bad({maze, {"sed", number(1)}}, "did you mean 'seed'");
    bad({maze, {"seed", text("1")}}, "expected an integer, got a text");
    bad({maze, {"seed", number(-1)}}, "expected 0 or more");
    bad({maze, {"episodeId", number(std::int64_t{1} << 32)}}, "out of range");
    bad({maze, {"seed", Tensor()}}, "expected an integer, true or false, or a text");
    bad({maze, {"level", text("interpolate")}}, "expected one of train, holdout_extrapolate");
    bad({{"levelName", text("t_maze_train")}, {"level", text("holdout_extrapolate")}}, "another level");
    bad({maze, {"difficulty", text("hard")}}, "the task t_maze does not read it; it reads length, length_spread");
    bad({maze, {"length", number(2'000'000'000)}}, "expected 0 to 1000000");
    bad({maze, {"length", number(1)}}, "expected 2 to");
    bad({maze, {"data", text("/etc")}}, "unknown create_world setting 'data'");
    bad({images, {"stimulus_count", number(101)}}, "expected 1 to 100");
    bad({images, {"stimulus_count", number(0)}}, "expected 1 to 100");
    bad({images, {"stimuli", text("mnist")}}, "data folder");
    bad({images, {"fidelity", text("large")}}, "unknown fidelity");
    Tensor two = number(1), wide = number(1), none;
    two.mutable_int64s()->add_array(2);
    wide.add_shape(4);
    none.mutable_uint8s();
    bad({maze, {"seed", two}}, "expected one value, got 2");
    bad({maze, {"seed", wide}}, "a shape with 4");
    bad({maze, {"seed", none}}, "expected one value, got 0");

    for (const auto& request : {step({}), reset()}) one.is_refused(request, wrong_state, "no world is joined");
    for (const auto& request : {join("nowhere"), reset_world("nowhere"), destroy("nowhere")})
        one.is_refused(request, unknown_name, "there is no world 'nowhere'");
    one.is_refused(join(std::string(1000, 'w')), unknown_name, "www...'");
    CHECK(one.ask(leave()).has_leave_world());

    const auto world = one.make({maze, {"seed", number(1)}});
    one.is_refused(join(world, {{"width", number(96)}}), invalid, "unknown setting 'width'");
    one.enter(world);
    one.is_refused(join(world), wrong_state, "has joined a world already");
    other.is_refused(join(world), wrong_state, "another stream has joined");
    other.is_refused(destroy(world), wrong_state, "an agent has joined");
    one.is_refused(destroy(world), wrong_state, "an agent has joined");

    engram::single_environment native("t_maze", "", 1, few().options);
    auto now = native.reset();
    one.is_refused(step({}, {9}), invalid, "uid 9");
    CHECK(one.move(0) == wire::RUNNING);
    const auto wrong = [&](const EnvironmentRequest& request, const char* part) {
        one.is_refused(request, invalid, part);
    };
    wrong(step({}), "is missing");
    wrong(step({{2, action(0)}}), "no action with the uid 2");
    wrong(step({{1, action(0)}, {2, action(0)}}), "no action with the uid 2");
    wrong(step({{1, number(0)}}), "int32");
    wrong(step({{1, action(-1)}}), "action -1 is out of range; expected 0 to 1");
    wrong(step({{1, action(2)}}), "action 2 is out of range");
    Tensor listed = action(0), empty;
    listed.add_shape(1);
    empty.mutable_int32s();
    wrong(step({{1, listed}}), "scalar");
    wrong(step({{1, empty}}), "one number, got 0");
    wrong(step({{1, action(0)}}, {1, 4}), "uid 4");
    wrong(reset({{"length", number(5)}}), "belongs to CreateWorld");
    wrong(reset({{"levelName", text("spot_diff")}}), "this world is of the task t_maze");
    wrong(reset_world(world, {{"level", text("hard")}}), "unknown t_maze level");
    // None of it was a step, nor an end of the episode.
    for (int t = 0; t < 50; ++t) {
        now = native.step(t % 2);
        one.move(t % 2);
        REQUIRE(one.said.step().observations().at(1).SerializeAsString() ==
                shown(native.info(), now.observation).SerializeAsString());
    }

    one.make({maze});
    one.make({maze});
    one.is_refused(create({maze}), exhausted, "there are 3 worlds, as many as this server holds");
}

TEST_CASE("a reset ends the episode, and with a seed the next one is the seed's first") {
    engram::served_worlds worlds(few());
    client one(worlds);
    const auto world = one.make({{"levelName", text("popgym_autoencode")}, {"seed", number(1)}});
    const auto specs = one.enter(world);
    const auto play = [&] {
        std::string all;
        for (int t = 0; t < 30; ++t) {
            one.move(0);
            all += one.said.step().observations().at(1).SerializeAsString();
        }
        return all;
    };
    const auto first = play();
    CHECK(google::protobuf::util::MessageDifferencer::Equals(one.ask(reset()).reset().specs(), specs));
    one.ask(reset());  // nothing more happens in between
    const auto second = play();
    CHECK(first != second);
    one.ask(reset({{"seed", number(1)}}));
    CHECK(play() == first);
    one.ask(reset());
    CHECK(play() == second);
    one.ask(reset_world(world, {{"seed", number(1)}, {"episodeId", number(1)}}));
    CHECK(one.said.has_reset_world());
    const auto third = play();
    CHECK(third != first);
    one.ask(reset_world(world, {{"seed", number(1)}}));
    CHECK(play() == first);
    one.ask(leave());
    one.enter(one.make({{"levelName", text("popgym_autoencode")}}));
    CHECK(play() != first);
    one.ask(reset({{"seed", number(1)}}));
    CHECK(play() == first);
}

TEST_CASE("somebody else's ResetWorld interrupts once, and waits for nobody") {
    engram::served_worlds worlds(few());
    client one(worlds), other(worlds);
    const auto world = one.make({{"levelName", text("t_maze")}, {"seed", number(1)}});
    CHECK(other.ask(reset_world(world)).has_reset_world());
    one.enter(world);
    CHECK(other.ask(reset_world(world)).has_reset_world());
    CHECK(one.move(0) == wire::RUNNING);  // no episode ran that could be interrupted
    one.move(1);
    const auto last = one.said.step().observations().at(1).SerializeAsString();
    CHECK(other.ask(reset_world(world, {{"seed", number(9)}})).has_reset_world());
    CHECK(one.move(1) == wire::INTERRUPTED);
    CHECK(one.said.step().observations().at(1).SerializeAsString() == last);
    CHECK(one.reward() == 0);
    CHECK(one.discount() == 1);
    CHECK(one.move(1) == wire::RUNNING);
    engram::single_environment native("t_maze", "", 9);
    CHECK(one.said.step().observations().at(1).SerializeAsString() ==
          shown(native.info(), native.reset().observation).SerializeAsString());
}

TEST_CASE("a stream that ends leaves its world; worlds that nobody will end make room") {
    engram::served_worlds worlds(few(2));
    client one(worlds);
    const settings maze{{"levelName", text("t_maze")}};
    std::string gone, kept;
    {
        client short_lived(worlds);
        gone = short_lived.make(maze);
        kept = short_lived.make(maze);
        one.enter(kept);
        one.is_refused(create(maze), exhausted, "2 worlds");
        short_lived.enter(gone);
        one.is_refused(destroy(gone), wrong_state, "an agent has joined");
    }
    const auto next = one.make(maze);
    CHECK(next != gone);
    client other(worlds);
    other.is_refused(join(gone), unknown_name, "there is no world");
    other.is_refused(join(kept), wrong_state, "another stream");
    CHECK(one.move(0) == wire::RUNNING);
    other.enter(next);
    one.ask(leave());
    one.enter(kept);
    CHECK(one.move(0) == wire::RUNNING);
}

TEST_CASE("clients of several threads do not disturb each other") {
    engram::served_worlds worlds(few(16));
    std::atomic<int> wrong = 0;
    std::vector<std::thread> all;
    all.reserve(4);
    for (int k = 0; k < 4; ++k)
        all.emplace_back([&, k] {
            engram::single_environment native("popgym_repeat_previous", "", static_cast<std::uint64_t>(k));
            engram::served_stream stream(worlds);
            EnvironmentResponse said;
            const auto ask = [&](const EnvironmentRequest& request) { stream.answer(request, said); };
            ask(create({{"levelName", text("popgym_repeat_previous")}, {"seed", number(k)}}));
            ask(join(said.create_world().world_name()));
            engram::time_step now;
            now.type = engram::step_type::last;
            for (int t = 0; t < 500; ++t) {
                now = now.last() ? native.reset() : native.step(t % 4);
                ask(step({{1, action(t % 4)}}, {1}));
                wrong += said.step().observations().at(1).SerializeAsString() !=
                         shown(native.info(), now.observation).SerializeAsString();
                if (t % 50 == 7) {  // worlds come and go
                    EnvironmentResponse more;
                    stream.answer(create({{"levelName", text("t_maze")}}), more);
                    stream.answer(destroy(more.create_world().world_name()), more);
                    wrong += !more.has_destroy_world();
                }
            }
        });
    for (auto& one : all) one.join();
    CHECK(wrong == 0);
}

TEST_CASE("whatever is sent, the answer is a message of the protocol, and others go on as before") {
    google::protobuf::SetLogHandler(nullptr);
    engram::served_worlds worlds(few(6));
    client bystander(worlds), *sender = nullptr;
    engram::single_environment native("popgym_autoencode", "", 3);
    bystander.enter(bystander.make({{"levelName", text("popgym_autoencode")}, {"seed", number(3)}}));
    bystander.move(0);
    native.reset();

    engram::philox random(11, 0);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random.below(static_cast<int>(n))); };
    std::vector<std::string> known;
    for (const auto& r :
         {create({{"levelName", text("t_maze")}}),
          create({{"levelName", text("two_colors_train")}, {"seed", number(4)}}),
          create({{"levelName", text("popgym_battleship")}, {"difficulty", text("hard")}}), join("t_maze.2"),
          join("popgym_battleship.3"), step({{1, action(1)}}), step({}, {1}), reset(), reset({{"seed", number(2)}}),
          reset_world("t_maze.2", {{"level", text("train")}}), leave(), destroy("t_maze.2")})
        known.push_back(r.SerializeAsString());
    int understood = 0, refused = 0;
    std::string latest;
    std::vector<std::unique_ptr<client>> streams(3);
    for (int i = 0; i < 20000; ++i) {
        auto& at = streams[below(streams.size())];
        if (!at || below(200) == 0) at = std::make_unique<client>(worlds);
        sender = at.get();
        std::string sent = known[below(known.size())];
        for (std::size_t changes = below(3); changes > 0; --changes) {
            const std::size_t where = below(sent.size() + 1);
            switch (below(4)) {
                case 0:
                    sent.insert(where, 1, static_cast<char>(below(256)));
                    break;
                case 1:
                    sent.erase(where, 1 + below(3));
                    break;
                case 2:
                    if (where < sent.size()) sent[where] = static_cast<char>(sent[where] ^ (1 << below(8)));
                    break;
                default: {
                    const std::string& other = known[below(known.size())];
                    sent.replace(where, below(8), other.substr(below(other.size())));
                }
            }
        }
        EnvironmentRequest request;
        if (!request.ParseFromString(sent)) continue;
        ++understood;
        if (below(2) == 0) {  // a world that there is, or was a moment ago
            if (request.has_join_world()) request.mutable_join_world()->set_world_name(latest);
            if (request.has_reset_world()) request.mutable_reset_world()->set_world_name(latest);
            if (request.has_destroy_world()) request.mutable_destroy_world()->set_world_name(latest);
        }
        const auto& said = sender->ask(request);
        const bool error = said.has_error();
        refused += error;
        if (said.has_create_world()) latest = said.create_world().world_name();
        REQUIRE((error ? said.error().code() != 0 && !said.error().message().empty()
                       : static_cast<int>(said.payload_case()) == static_cast<int>(request.payload_case())));
        REQUIRE(EnvironmentResponse().ParseFromString(said.SerializeAsString()));
        if (i % 10 == 0 && bystander.said.step().state() == wire::RUNNING) {
            const auto now = native.step(i % 4);
            CHECK(bystander.move(i % 4) == (now.last() ? wire::TERMINATED : wire::RUNNING));
            REQUIRE(bystander.said.step().observations().at(1).SerializeAsString() ==
                    shown(native.info(), now.observation).SerializeAsString());
        }
    }
    CHECK(understood > 5000);
    CHECK(refused > 2000);
    CHECK(understood - refused > 2000);
}

// What serve.py holds episodes through other people's client to.
TEST_CASE("native episodes for peers") {
    const char* file = std::getenv("ENGRAM_NATIVE_EPISODES");
    if (!file) return;
    struct run {
        const char *task, *level, *settings;
        engram::task_options options;
    };
    std::string all;
    for (const run& r : {run{"continuous_recognition",
                             "holdout_interpolate",
                             R"("levelName": "continuous_recognition_holdout_interpolate")",
                             {}},
                         run{"t_maze", "train", R"("levelName": "t_maze", "length": 9)", {.length = 9}},
                         run{"popgym_autoencode",
                             "train",
                             R"("levelName": "popgym_autoencode", "difficulty": "medium")",
                             {.difficulty = "medium"}}}) {
        engram::single_environment native(r.task, r.level, 7, r.options);
        const int steps = 300;
        auto now = native.reset();
        unsigned long checksum = ::crc32(0, nullptr, 0);
        const auto see = [&] {
            const Tensor t = shown(native.info(), now.observation);
            const std::string& pixels = t.uint8s().array();
            checksum = t.has_uint8s() ? ::crc32(checksum, reinterpret_cast<const Bytef*>(pixels.data()),
                                                static_cast<uInt>(pixels.size()))
                                      : ::crc32(checksum, reinterpret_cast<const Bytef*>(now.observation.data()),
                                                static_cast<uInt>(now.observation.size() * sizeof(float)));
        };
        see();
        double earned = 0;
        int ends = 0;
        for (int t = 0; t < steps; ++t) {
            if (now.last()) {
                ++ends;
                now = native.reset();
            } else {
                now = native.step(chosen(t, native.info().actions));
                earned += *now.reward;
            }
            see();
        }
        CHECK(ends > 0);
        all += fmt::format(
            "{}{{\"settings\": {{{}, \"seed\": 7}}, \"steps\": {}, \"ends\": {}, \"return\": {}, \"checksum\": {}}}",
            all.empty() ? "" : ",\n", r.settings, steps, ends, earned, checksum);
    }
    engram::write_file(file, "[" + all + "]\n");
}

namespace {

/// The program as a child; what it prints first.
class served {
public:
    explicit served(std::vector<std::string> words) {
        words.insert(words.begin(), {"engram-tasks", "serve"});
        std::vector<char*> argv;
        for (auto& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        int out[2];
        REQUIRE(::pipe(out) == 0);
        std::fflush(nullptr);
        process_ = ::fork();
        if (process_ == 0) {
            ::dup2(out[1], 1);
            const bool quiet = std::freopen((folder_ / "err").c_str(), "w", stderr);
            ::close(out[0]);
            if (quiet) ::execv((std::string(ENGRAM_BIN_DIR) + "/engram-tasks").c_str(), argv.data());
            ::_exit(99);
        }
        ::close(out[1]);
        for (char c = 0; ::read(out[0], &c, 1) == 1 && c != '\n';) line += c;
        ::close(out[0]);
    }
    int end(int number) {
        if (number) ::kill(process_, number);
        int status = 0;
        ::waitpid(process_, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    std::string error() const {
        const auto content = engram::read_file(folder_ / "err");
        return {content.begin(), content.end()};
    }
    int port() const { return std::atoi(line.c_str() + line.find(':') + 1); }
    std::string line;

private:
    temporary_folder folder_;
    ::pid_t process_;
};

}  // namespace

TEST_CASE("the program says where it listens, outlives garbage, and ends at a signal") {
    for (const int signal : {SIGINT, SIGTERM}) {
        served program({"--task", "t_maze", "--port", "0"});
        INFO(program.line);
        REQUIRE(program.line.starts_with("listening at 127.0.0.1:"));
        std::vector<int> idle;
        idle.reserve(20);
        for (int i = 0; i < 20; ++i) {
            const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
            sockaddr_in to{};
            to.sin_family = AF_INET;
            to.sin_port = htons(static_cast<std::uint16_t>(program.port()));
            to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            REQUIRE(::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
            const std::string noise(1000, static_cast<char>(i));
            if (i % 2 == 0) CHECK(::send(socket, noise.data(), noise.size(), MSG_NOSIGNAL) == 1000);
            idle.push_back(socket);
        }
        served second({"--port", std::to_string(program.port())});
        CHECK(second.line.empty());
        CHECK(second.end(0) == 2);
        CHECK(has(second.error(), "cannot listen at 127.0.0.1:" + std::to_string(program.port())));
        CHECK(program.end(signal) == 0);
        CHECK(program.error().empty());
        for (const int socket : idle) ::close(socket);
    }
}

TEST_CASE("the program refuses what it cannot serve") {
    const auto refuses = [](const std::vector<std::string>& words, const std::string& part) {
        served program(words);
        CHECK(program.end(0) == 2);
        CHECK(program.line.empty());
        const auto said = program.error();
        INFO(said);
        CHECK(std::count(said.begin(), said.end(), '\n') == 1);
        CHECK(has(said, part));
    };
    refuses({}, "--port is missing");
    refuses({"--port", "65536"}, "--port: expected 0 to 65535");
    refuses({"--port", "x"}, "--port: expected an integer");
    refuses({"--port", "0", "--task", "t_mase"}, "did you mean 't_maze'");
    refuses({"--port", "0", "--level", "train"}, "name the task, too");
    refuses({"--port", "0", "--task", "t_maze", "--level", "interpolate"}, "unknown t_maze level");
    refuses({"--port", "0", "--set", "lenth=5"}, "did you mean 'length'");
    refuses({"--port", "0", "--set", "length=1"}, "expected 2 to");
    refuses({"--port", "0", "--difficulty", "harder"}, "unknown difficulty");
    refuses({"--port", "0", "--stimuli", "mnist"}, "data folder");
    refuses({"--port", "0", "--clients", "0"}, "--clients: expected 1 to");
    refuses({"--port", "0", "--worlds", "0"}, "--worlds: expected 1 to");
    refuses({"--port", "0", "--message-bytes", "5"}, "--message-bytes: expected 1024 to");
    refuses({"--host", "unix:/nowhere/at/all", "--port", "1"}, "--port: a server at unix:PATH has none");
    refuses({"--host", "unix:/nowhere/at/all"}, "cannot listen at unix:/nowhere/at/all");
    refuses({"--host", "203.0.113.1", "--port", "0"}, "cannot listen at 203.0.113.1:0");
}
