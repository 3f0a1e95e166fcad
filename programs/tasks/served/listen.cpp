// SPDX-License-Identifier: MIT

#include "listen.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>

#include <dm_env_rpc/v1/dm_env_rpc.grpc.pb.h>

namespace engram {

namespace {

namespace rpc = dm_env_rpc::v1;

using reactor = grpc::ServerBidiReactor<rpc::EnvironmentRequest, rpc::EnvironmentResponse>;

/// A thread for requests that take long: making a world draws its images. Threads that answer steps do not wait for it.
class slow_lane {
public:
    void take(std::function<void()> work) {
        {
            const std::lock_guard hold(lock_);
            waiting_.push_back(std::move(work));
        }
        wake_.notify_one();
    }

private:
    std::mutex lock_;
    std::condition_variable_any wake_;
    std::deque<std::function<void()>> waiting_;  // one of a stream at most
    std::jthread thread_{[this](const std::stop_token& ended) {
        std::unique_lock hold(lock_);
        while (wake_.wait(hold, ended, [this] { return !waiting_.empty(); })) {
            const auto work = std::move(waiting_.front());
            waiting_.pop_front();
            hold.unlock();
            work();
            hold.lock();
        }
    }};
};

/// One client: its requests are answered one after the other, as they came. No thread waits for it.
class conversation final : public reactor {
public:
    conversation(served_worlds& worlds, std::atomic<int>& streams, slow_lane& slow)
        : streams_(streams), slow_(slow), client_(worlds) {
        StartRead(&request_);
    }
    void OnReadDone(bool ok) override {
        if (!ok) return Finish(grpc::Status::OK);
        const auto answer = [this] {
            client_.answer(request_, response_);
            StartWrite(&response_);
        };
        const bool makes = request_.has_create_world() || request_.reset().settings_size() > 0 ||
                           request_.reset_world().settings_size() > 0;
        if (makes)
            slow_.take(answer);
        else
            answer();
    }
    void OnWriteDone(bool ok) override {
        if (!ok) return Finish(grpc::Status::OK);
        StartRead(&request_);
    }
    void OnDone() override {
        auto& streams = streams_;
        delete this;  // which leaves the world, before there is room for another client
        --streams;
    }

private:
    std::atomic<int>& streams_;
    slow_lane& slow_;
    served_stream client_;
    rpc::EnvironmentRequest request_;
    rpc::EnvironmentResponse response_;
};

/// A client that is one too many.
class farewell final : public reactor {
public:
    farewell(std::atomic<int>& streams, int most) : streams_(streams) {
        Finish({grpc::StatusCode::RESOURCE_EXHAUSTED,
                fmt::format("this server has {} clients, as many as it takes", most)});
    }
    void OnDone() override {
        --streams_;
        delete this;
    }

private:
    std::atomic<int>& streams_;
};

class service final : public rpc::Environment::CallbackService {
public:
    service(served_worlds& worlds, int clients) : worlds_(worlds), most_(clients) {}

    reactor* Process(grpc::CallbackServerContext*) override {
        if (++streams_ > most_) return new farewell(streams_, most_);
        return new conversation(worlds_, streams_, slow_);
    }

private:
    served_worlds& worlds_;
    const int most_;
    std::atomic<int> streams_ = 0;
    slow_lane slow_;
};

sigset_t ending_signals() {
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGINT);
    sigaddset(&both, SIGTERM);
    return both;
}

}  // namespace

void signals_for_serving() {
    const sigset_t both = ending_signals();
    ::pthread_sigmask(SIG_BLOCK, &both, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
}

void serve_until_signalled(served_worlds& worlds, const listening& at,
                           const std::function<void(const std::string& address)>& begun) {
    const bool path = at.host.starts_with("unix:");
    const std::string host =
        at.host.find(':') != at.host.npos && !path && at.host[0] != '[' ? "[" + at.host + "]" : at.host;
    const auto address = [&](int port) { return path ? host : fmt::format("{}:{}", host, port); };

    // What a client does wrong is told to the client; a log is for whoever asks for one.
    google::protobuf::SetLogHandler(nullptr);
    if (!std::getenv("GRPC_VERBOSITY")) gpr_set_log_function([](gpr_log_func_args*) {});

    service offered(worlds, at.clients);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address(at.port), grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&offered);
    builder.SetMaxReceiveMessageSize(at.message_bytes);
    // Without it a second server would listen at the same port and take half of the clients.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    // A client whose machine is gone says so no more.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    require(server != nullptr && (path || port > 0), "serve: cannot listen at ", address(at.port),
            "; the port is taken, or the address is none of this machine");
    begun(address(port));

    const sigset_t both = ending_signals();
    int signal = 0;
    ::sigwait(&both, &signal);
    server->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
    server->Wait();
}

}  // namespace engram
