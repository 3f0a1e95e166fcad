// SPDX-License-Identifier: MIT

// A server of dm_env_rpc for tests and benchmarks: world_server ADDRESS. It says "ready" when it listens, and at a
// SIGTERM where its time went. Settings of CreateWorld say what a world is:
//
//   world    cue (ten numbers), cue_image, free (an image that nobody computes), free_numbers, suite (the names and
//            specs of dm_memorytasks), or one that no agent can be in: two_images, text, no_reward, mixed, continuous,
//            unbounded, old_bounds
//   seed, row    the episodes
//   trouble, at  what goes wrong at which step of a stream: die, stall, garbage, nan, type, shape, missing, huge,
//   state,
//            wrong, error, close, specs (it closes, and the next one has others), interrupt (it cuts the episode)

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include "cue.hpp"
#include "dm_env_rpc/v1/dm_env_rpc.grpc.pb.h"

namespace {

namespace rpc = dm_env_rpc::v1;

std::atomic<int> joined{0};                                      // by any stream, for specs that change
std::atomic<std::int64_t> environment_time{0}, message_time{0};  // nanoseconds

struct timer {
    explicit timer(std::atomic<std::int64_t>& to) : sum(to) {}
    ~timer() { sum += (std::chrono::steady_clock::now() - start).count(); }
    std::atomic<std::int64_t>& sum;
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

rpc::TensorSpec& add(google::protobuf::Map<std::uint64_t, rpc::TensorSpec>& to, std::uint64_t uid, const char* name,
                     rpc::DataType type, std::initializer_list<int> shape = {}) {
    auto& spec = to[uid];
    spec.set_name(name);
    spec.set_dtype(type);
    for (const int n : shape) spec.add_shape(n);
    return spec;
}

/// One stream's world.
class world {
public:
    void create(const rpc::CreateWorldRequest& request) {
        for (const auto& [name, value] : request.settings()) {
            if (name == "world") kind_ = value.strings().array(0);
            if (name == "trouble") trouble_ = value.strings().array(0);
            if (name == "seed") seed_ = static_cast<std::uint64_t>(value.int64s().array(0));
            if (name == "row") row_ = static_cast<std::uint32_t>(value.int64s().array(0));
            if (name == "at") at_ = static_cast<int>(value.int64s().array(0));
        }
    }

    rpc::ActionObservationSpecs join(const rpc::JoinWorldRequest& request) {
        for (const auto& [name, value] : request.settings()) {
            if (name == "width") width_ = static_cast<int>(value.int64s().array(0));
            if (name == "height") height_ = static_cast<int>(value.int64s().array(0));
        }
        if (kind_ == "cue") numbers_ = make<cue::numbers>();
        if (kind_ == "cue_image") image_ = make<cue::image>();
        frame_.assign(static_cast<std::size_t>(height_ * width_ * 3), '\x20');
        ++joined;
        began_ = false;
        return specs();
    }

    rpc::ActionObservationSpecs specs() const {
        rpc::ActionObservationSpecs s;
        auto& shown = *s.mutable_observations();
        auto& takes = *s.mutable_actions();
        const bool other = trouble_ == "specs" && joined > 13;  // one that asked, and twelve rows
        if (kind_ != "no_reward") add(shown, 7, "reward", rpc::DOUBLE);
        add(shown, 9, "discount", rpc::FLOAT);
        if (kind_ == "text") {
            add(shown, 1, "words", rpc::STRING);
        } else if (pixels()) {
            add(shown, 1, kind_ == "suite" ? "RGB_INTERLEAVED" : "frame", rpc::UINT8, {height_, width_ - other, 3});
            if (kind_ == "two_images") add(shown, 2, "other_frame", rpc::UINT8, {72, 96, 3});
        } else {
            add(shown, 3, "second", rpc::FLOAT, {2, 3 + other});
            add(shown, 2, "first", rpc::DOUBLE, {4});
            add(shown, 4, "words", rpc::STRING);
        }
        if (kind_ == "suite") {
            add(shown, 2, "AvatarPosition", rpc::DOUBLE, {3});
            add(shown, 3, "Score", rpc::DOUBLE);
            std::uint64_t uid = 1;
            // In an order of their own.
            for (const char* name : {"LOOK_DOWN_UP", "LOOK_LEFT_RIGHT", "MOVE_BACK_FORWARD", "STRAFE_LEFT_RIGHT"}) {
                auto& spec = add(takes, uid++, name, rpc::DOUBLE);
                spec.mutable_min()->mutable_doubles()->add_array(-1);
                spec.mutable_max()->mutable_doubles()->add_array(1);
            }
            return s;
        }
        if (kind_ == "continuous" || kind_ == "mixed") {
            auto& spec = add(takes, 2, "push", rpc::FLOAT, {2});
            spec.mutable_min()->mutable_floats()->add_array(-1);
            spec.mutable_max()->mutable_floats()->add_array(1);
            if (kind_ == "continuous") return s;
        }
        auto& spec = add(takes, 1, "do", rpc::INT32);
        if (kind_ == "old_bounds") {  // as before version 1.1.0: int32 = 4
            spec.mutable_min()->GetReflection()->MutableUnknownFields(spec.mutable_min())->AddVarint(4, 2);
            spec.mutable_max()->GetReflection()->MutableUnknownFields(spec.mutable_max())->AddVarint(4, 5);
        } else if (kind_ != "unbounded") {
            spec.mutable_min()->mutable_int32s()->add_array(first_action);
            spec.mutable_max()->mutable_int32s()->add_array(first_action + cue::actions - 1);
        }
        return s;
    }

    /// Nothing: no answer.
    bool step(const rpc::StepRequest& request, rpc::StepResponse& answer, std::string& raw) {
        const bool goes_wrong = ++steps_ == at_ && !trouble_.empty();
        if (goes_wrong) {
            if (trouble_ == "die") ::_exit(3);
            if (trouble_ == "stall") return false;
            if (trouble_ == "garbage") raw = "\xff\xff these are no bytes of a message";
            if (trouble_ == "huge") raw.assign(std::size_t{1} << 26, 'x');
        }
        engram::outcome got;
        answer.set_state(rpc::RUNNING);
        if (!began_) {
            began_ = true;
            score_ = 0;
            time_ = 0;
        } else {
            got = act(request);
            ++time_;
            if (goes_wrong && trouble_ == "interrupt") got.done = true;
            if (got.done) {
                answer.set_state(goes_wrong && trouble_ == "interrupt" ? rpc::INTERRUPTED : rpc::TERMINATED);
                began_ = false;
            }
        }
        for (const auto uid : request.requested_observations()) show(uid, got, (*answer.mutable_observations())[uid]);
        if (!goes_wrong) return true;
        if (trouble_ == "state") answer.set_state(static_cast<rpc::EnvironmentStateType>(17));
        auto& shown = *answer.mutable_observations();
        const std::uint64_t uid = pixels() ? 1 : 3;
        if (trouble_ == "missing") shown.erase(uid);
        if (trouble_ == "nan") {
            if (pixels())
                shown[7].mutable_doubles()->set_array(0, std::numeric_limits<double>::quiet_NaN());
            else
                shown[uid].mutable_floats()->set_array(5, std::numeric_limits<float>::infinity());
        }
        if (trouble_ == "type") {
            shown[uid].mutable_int32s()->add_array(1);
        }
        if (trouble_ == "shape") {
            shown[uid].set_shape(0, 6);
            shown[uid].set_shape(1, 1);
        }
        return true;
    }

    void leave() { numbers_.reset(), image_.reset(); }
    void reset() { began_ = false; }
    const std::string& trouble() const { return trouble_; }
    bool troubled_now() const { return steps_ == at_; }

private:
    static constexpr int first_action = -1;

    template <class Task>
    std::unique_ptr<engram::batch_environment> make() const {
        return std::make_unique<engram::batch_of<engram::plugged<Task>>>("train", 1, seed_, row_,
                                                                         engram::task_options{}, nullptr);
    }
    bool pixels() const { return kind_ == "cue_image" || kind_ == "free" || kind_ == "suite" || kind_ == "two_images"; }

    engram::outcome act(const rpc::StepRequest& request) {
        if (kind_ == "suite") {
            for (const auto& [uid, value] : request.actions()) sticky_[uid % 5] = value.doubles().array(0);
            // What was done can be told from what it earned.
            const float earned =
                static_cast<float>(sticky_[4] + 10 * sticky_[3] + 100 * sticky_[2] + 1000 * sticky_[1]);
            score_ += static_cast<double>(earned);
            return {earned, time_ + 1 == 42};
        }
        const auto found = request.actions().find(1);
        const int action = found == request.actions().end() ? 0 : found->second.int32s().array(0) - first_action;
        if (numbers_) return numbers_->step(0, action);
        if (image_) return image_->step(0, action);
        return {0, (time_ + 1) % 50 == 0};
    }

    void show(std::uint64_t uid, const engram::outcome& got, rpc::Tensor& to) {
        if (uid == 7) {
            to.mutable_doubles()->add_array(static_cast<double>(got.reward));
        } else if (uid == 9) {
            to.mutable_floats()->add_array(began_ ? 1 : 0);
        } else if (kind_ == "suite" && uid == 3) {
            to.mutable_doubles()->add_array(score_);
        } else if (uid == 1 && pixels()) {
            to.add_shape(height_), to.add_shape(width_), to.add_shape(3);
            if (image_) {
                std::vector<float> seen(frame_.size());
                image_->observe(0, seen.data());
                for (std::size_t i = 0; i < seen.size(); ++i)
                    frame_[i] = static_cast<char>(static_cast<int>(seen[i] * 255 + 0.5f));
            }
            to.mutable_uint8s()->set_array(frame_);
        } else {
            std::vector<float> seen(10, 0.5f);
            if (numbers_) numbers_->observe(0, seen.data());
            if (uid == 2) {
                to.add_shape(4);
                for (int i = 0; i < 4; ++i)
                    to.mutable_doubles()->add_array(static_cast<double>(seen[static_cast<std::size_t>(i)]));
            } else {
                to.add_shape(2), to.add_shape(-1);  // as many as there are
                for (std::size_t i = 4; i < 10; ++i) to.mutable_floats()->add_array(seen[i]);
            }
        }
    }

    std::string kind_ = "cue", trouble_;
    std::uint64_t seed_ = 1;
    std::uint32_t row_ = 0;
    int at_ = 1 << 30, steps_ = 0, time_ = 0, width_ = 96, height_ = 72;
    bool began_ = false;
    double score_ = 0;
    double sticky_[5] = {};
    std::string frame_;
    std::unique_ptr<engram::batch_environment> numbers_, image_;
};

/// A stream: one answer a request.
class stream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
public:
    stream() { StartRead(&came_); }
    void OnReadDone(bool ok) override {
        if (!ok) return Finish(grpc::Status::OK);
        rpc::EnvironmentRequest request;
        {
            const timer here(message_time);
            grpc::ProtoBufferReader reader(&came_);
            if (!request.ParseFromZeroCopyStream(&reader))
                return Finish({grpc::StatusCode::INVALID_ARGUMENT, "no message of dm_env_rpc"});
        }
        rpc::EnvironmentResponse answer;
        std::string raw;
        const auto error = [&](const char* text) {
            answer.mutable_error()->set_code(9);
            answer.mutable_error()->set_message(text);
        };
        switch (request.payload_case()) {
            case rpc::EnvironmentRequest::kCreateWorld:
                world_.create(request.create_world());
                answer.mutable_create_world()->set_world_name("the one");
                break;
            case rpc::EnvironmentRequest::kJoinWorld:
                *answer.mutable_join_world()->mutable_specs() = world_.join(request.join_world());
                break;
            case rpc::EnvironmentRequest::kStep:
                if (const timer here(environment_time); !world_.step(request.step(), *answer.mutable_step(), raw))
                    return;
                if (world_.troubled_now() && world_.trouble() == "error") error("it broke\nin two");
                if (world_.troubled_now() && (world_.trouble() == "close" || world_.trouble() == "specs"))
                    return Finish({grpc::StatusCode::ABORTED, "no more"});
                if (world_.troubled_now() && world_.trouble() == "wrong") answer.mutable_create_world();
                break;
            case rpc::EnvironmentRequest::kReset:
                world_.reset();
                *answer.mutable_reset()->mutable_specs() = world_.specs();
                break;
            case rpc::EnvironmentRequest::kLeaveWorld:
                world_.leave();
                answer.mutable_leave_world();
                break;
            case rpc::EnvironmentRequest::kDestroyWorld:
                answer.mutable_destroy_world();
                break;
            default:
                error("what is that?");
        }
        {
            const timer here(message_time);
            const grpc::Slice slice(raw.empty() ? answer.SerializeAsString() : raw);
            answer_ = grpc::ByteBuffer(&slice, 1);
        }
        StartWrite(&answer_);
    }
    void OnWriteDone(bool ok) override {
        if (!ok) return Finish(grpc::Status::OK);
        StartRead(&came_);
    }
    void OnDone() override { delete this; }

private:
    world world_;
    grpc::ByteBuffer came_, answer_;
};

class service final : public rpc::Environment::WithRawCallbackMethod_Process<rpc::Environment::Service> {
    grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Process(grpc::CallbackServerContext*) override {
        return new stream;
    }
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return std::fputs("usage: world_server ADDRESS\n", stderr), 2;
    const std::string address = argv[1];
    if (address.starts_with("unix:")) ::unlink(address.c_str() + 5);
    service environments;
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.SetMaxSendMessageSize(-1);
    builder.RegisterService(&environments);
    sigset_t told;
    sigemptyset(&told);
    sigaddset(&told, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &told, nullptr);  // of all threads that come
    const auto server = builder.BuildAndStart();
    if (!server) return std::fprintf(stderr, "%s: nobody can listen there\n", argv[1]), 1;
    std::printf("ready %d\n", port);
    std::fflush(stdout);
    int number = 0;
    sigwait(&told, &number);
    server->Shutdown(std::chrono::system_clock::now());
    std::printf("environment %lld messages %lld\n", static_cast<long long>(environment_time),
                static_cast<long long>(message_time));
}
