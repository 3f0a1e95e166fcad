// SPDX-License-Identifier: MIT

// The module that speaks gRPC: worlds of dm_env_rpc as batches of environments. A program loads it when it is told of a
// world (programs/world.cpp).
//
// A batch has one completion queue and one thread. Requests of a step are written to all streams; answers move each row
// on by itself: the next repeat of an action, the first observation behind the end of an episode, a new connection
// behind a lost one. Whoever wants a row's step waits until that row has one.

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <engram/core/philox.hpp>
#include <engram/version.hpp>

#include "world_messages.hpp"
#include "world_module.hpp"

namespace engram::world_messages {

namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) {
    return std::chrono::duration<double>(clock::now() - start).count();
}
clock::duration seconds(double n) {
    return std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(n));
}

/// rpc://host:port as gRPC calls it.
std::string target_of(const std::string& address) {
    if (address.starts_with("rpc+unix:")) return "unix:" + address.substr(9);
    return address.substr(6);
}

std::shared_ptr<grpc::Channel> channel_to(const std::string& address) {
    grpc::ChannelArguments options;
    options.SetMaxReceiveMessageSize(bytes_at_most);
    options.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // threads do not share a connection
    options.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    options.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    options.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
    options.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
    return grpc::CreateCustomChannel(target_of(address), grpc::InsecureChannelCredentials(), options);
}

grpc::ByteBuffer buffer_of(const rpc::EnvironmentRequest& request) {
    const grpc::Slice slice(request.SerializeAsString());
    return {&slice, 1};
}

std::string one_line(std::string text) {
    for (char& c : text)
        if (static_cast<unsigned char>(c) < ' ') c = ' ';
    return text.size() > 300 ? text.substr(0, 300) + " ..." : text;
}

/// What happened on a stream since it was last asked.
enum class event { none, answer, ended };

/// One stream. Its operations are known to a completion queue, so it lives until none is under way.
class stream {
public:
    struct operation {
        stream* of;
        enum { start, write, read, finish } what;
    };

    stream(const std::shared_ptr<grpc::Channel>& channel, grpc::CompletionQueue& queue, int number)
        : row(number), stub_(channel) {
        call_ = stub_.PrepareCall(&context_, "/dm_env_rpc.v1.Environment/Process", &queue);
        ++under_way_;
        call_->StartCall(&start_);
    }

    /// Sends a request, at once or when the stream is open, and waits for its answer.
    void send(const grpc::ByteBuffer& request) {
        next_ = request;
        if (open_ && !writing_) write();
    }
    void cancel() { context_.TryCancel(); }
    bool idle() const { return under_way_ == 0; }
    /// No event comes from it any more; it is kept for what is under way.
    bool abandoned = false;

    event happened(const operation& what, bool ok) {
        --under_way_;
        switch (what.what) {
            case operation::start:
                if (!ok) return finish(), event::none;
                open_ = true;
                ++under_way_;
                call_->Read(&answer, &read_);
                if (next_.Valid()) write();
                return event::none;
            case operation::write:
                writing_ = false;
                if (ok && next_.Valid()) write();
                return event::none;  // the read fails as well where this one did
            case operation::read:
                if (!ok) return finish(), event::none;
                return event::answer;
            case operation::finish:
                return event::ended;
        }
        return event::none;
    }
    /// Behind an answer that was taken.
    void listen() {
        ++under_way_;
        call_->Read(&answer, &read_);
    }

    const int row;
    grpc::ByteBuffer answer;
    grpc::Status status;

private:
    void write() {
        writing_ = true;
        ++under_way_;
        call_->Write(next_, &write_);
        next_.Clear();
    }
    void finish() {
        ++under_way_;
        call_->Finish(&status, &finish_);
    }

    grpc::GenericStub stub_;
    grpc::ClientContext context_;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
    grpc::ByteBuffer next_;
    operation start_{this, operation::start}, write_{this, operation::write}, read_{this, operation::read},
        finish_{this, operation::finish};
    int under_way_ = 0;
    bool open_ = false, writing_ = false;
};

/// What a world is known as, once it was joined.
struct known {
    world_settings settings;
    std::string specs;  // their text
    rpc::ActionObservationSpecs read;
    reading as;
    task_info info;
    std::vector<grpc::ByteBuffer> steps, repeats;  // an action each
    grpc::ByteBuffer first, leave;
};

struct shared_counts {
    std::atomic<std::int64_t> interrupted{0}, lost{0}, joined{0};
    std::atomic<double> sending{0}, waiting{0}, parsing{0}, unpacking{0};
};
void add(std::atomic<double>& sum, double seconds) {
    sum.store(sum.load(std::memory_order_relaxed) + seconds, std::memory_order_relaxed);
}

/// Rows of a world. With no specs known yet it joins one world and reads them.
class world_rows {
public:
    world_rows(std::shared_ptr<known> of, std::shared_ptr<shared_counts> counts, int count, std::uint64_t seed,
               std::uint32_t first_row)
        : known_(std::move(of)), counts_(std::move(counts)), first_(first_row), seed_(seed) {
        for (const auto& address : known_->settings.addresses)
            if (!channels_.contains(address)) channels_[address] = channel_to(address);
        rows_.resize(static_cast<std::size_t>(count));
        const auto now = clock::now();
        for (std::size_t b = 0; b < rows_.size(); ++b) {
            rows_[b].since = now;
            rows_[b].seen.resize(static_cast<std::size_t>(known_->as.seen.empty() ? 0 : known_->as.shape.size()));
            connect(b);
        }
        try {
            for (std::size_t b = 0; b < rows_.size(); ++b) wait_for(b);
        } catch (...) {
            close();
            throw;
        }
        began_ = true;
    }
    ~world_rows() { close(); }
    world_rows(const world_rows&) = delete;
    world_rows& operator=(const world_rows&) = delete;

    void send(std::size_t b, int action) {
        row& r = rows_[b];
        if (std::exchange(r.ended, false)) {  // no world is asked: the one that was looked at is gone
            r.got = {0, true, true};
            r.shows_last = false;
            r.acts = true;
            return;
        }
        if (r.state != at::ready) return;
        r.since = clock::now();
        r.action = action;
        r.repeats = known_->settings.repeat;
        r.got = {};
        r.shows_last = false;
        r.acts = true;
        step(b);
    }
    outcome take(std::size_t b, int action) {
        if (!rows_[b].acts) send(b, action);
        wait_for(b);
        rows_[b].acts = false;
        return rows_[b].got;
    }
    /// A new episode, where this one has begun.
    void reset(std::size_t b) {
        row& r = rows_[b];
        r.ended = false;
        if (!r.stepped) return;
        rpc::EnvironmentRequest request;
        request.mutable_reset();
        r.state = at::resetting;
        r.since = clock::now();
        ask(b, buffer_of(request), known_->settings.patience);
        wait_for(b);
    }
    const std::vector<float>& seen(std::size_t b) const { return rows_[b].seen; }
    const std::vector<float>* last(std::size_t b) const { return rows_[b].shows_last ? &rows_[b].last : nullptr; }

private:
    enum class at { waiting, creating, joining, resetting, first, stepping, ready };

    struct row {
        at state = at::waiting;
        std::unique_ptr<stream> link;
        std::string world;              // its name, once created
        std::vector<float> seen, last;  // now; at the end of an episode that was cut
        int action = 0, repeats = 0;
        outcome got;
        bool acts = false;     // a step is under way or waits to be taken
        bool stepped = false;  // in this episode
        bool shows_last = false;
        bool ended = false;  // its world was lost behind a step that was taken: the next one ends the episode
        clock::time_point asked, since, retry;  // the request under way; what is waited for; when to connect again
        double allowed = 0, back_off = 0.05;
        double waited = 0;    // before, for worlds that were joined and gave no step
        std::string trouble;  // of the last connection
    };

    std::string address_of(std::size_t b) const {
        const auto& all = known_->settings.addresses;
        return all[(first_ + b) % all.size()];
    }
    std::string place(std::size_t b) const { return "world " + address_of(b); }
    double patience() const { return began_ ? known_->settings.patience : known_->settings.start_patience; }

    void ask(std::size_t b, const grpc::ByteBuffer& request, double allowed) {
        row& r = rows_[b];
        r.asked = clock::now();
        r.allowed = allowed;
        r.link->send(request);
    }

    std::string setting_text(std::string text, std::size_t b) const {
        const auto global = first_ + static_cast<std::uint32_t>(b);
        const auto put = [&](const std::string& mark, const std::string& value) {
            for (auto i = text.find(mark); i != text.npos; i = text.find(mark, i + value.size()))
                text.replace(i, mark.size(), value);
        };
        put("{row}", std::to_string(global));
        if (text.find("{seed}") != text.npos) {
            philox random(seed_, stream_id("environment", global));
            put("{seed}", std::to_string(random.next() >> 1));
        }
        return text;
    }

    void connect(std::size_t b) {
        row& r = rows_[b];
        r.link = std::make_unique<stream>(channels_.at(address_of(b)), queue_, static_cast<int>(b));
        r.state = at::creating;
        r.stepped = false;
        r.world.clear();
        rpc::EnvironmentRequest request;
        auto& settings = *request.mutable_create_world()->mutable_settings();
        for (const auto& [name, text] : known_->settings.create) settings[name] = setting_tensor(setting_text(text, b));
        ask(b, buffer_of(request), known_->settings.patience);
    }

    void step(std::size_t b) {
        row& r = rows_[b];
        r.state = at::stepping;
        r.stepped = true;
        const auto start = clock::now();
        const auto i = static_cast<std::size_t>(r.action);
        --r.repeats;
        ask(b, r.repeats == 0 ? known_->steps[i] : known_->repeats[i], known_->settings.patience / 3);
        add(counts_->sending, seconds_since(start));
    }

    /// The world's next answer is the first of an episode.
    void begin(std::size_t b) {
        rows_[b].state = at::first;
        rows_[b].stepped = false;
        ask(b, known_->first, known_->settings.patience);
    }

    /// The row's connection is of no use any more.
    void lose(std::size_t b, const std::string& why, bool at_once = false) {
        row& r = rows_[b];
        r.trouble = one_line(why);
        if (r.link && !r.link->idle()) {
            r.link->cancel();
            r.link->abandoned = true;
            left_.push_back(std::move(r.link));
        }
        r.link.reset();
        if (r.state == at::stepping) {
            r.got.done = r.got.interrupted = true;
            ++counts_->lost;
        }
        if (r.state == at::ready && began_) {
            r.since = clock::now();
            if (!r.acts) {
                r.ended = true;
                ++counts_->lost;
            } else if (!r.got.done) {  // the step ends the episode, and what it showed is known
                r.got.done = r.got.interrupted = r.shows_last = true;
                r.last = r.seen;
                ++counts_->lost;
            }
        }
        r.stepped = false;
        r.state = at::waiting;
        check_patience(b);
        r.retry = clock::now() + (at_once ? clock::duration{} : seconds(r.back_off));
        r.back_off = std::min(2.0, 2 * r.back_off);
    }
    clock::time_point end_of_patience(const row& r) const { return r.since + seconds(patience() - r.waited); }
    void check_patience(std::size_t b) const {
        const row& r = rows_[b];
        if (clock::now() < end_of_patience(r)) return;
        const std::string last = r.trouble.empty() ? "" : " (" + r.trouble + ")";
        require(began_, place(b), ": nobody answers there within ", patience(), " seconds", last);
        fail(place(b), " has given row ", first_ + b, " no answer of use for ", patience(), " seconds", last);
    }

    void ended(std::size_t b) {
        const auto status = rows_[b].link->status;
        const std::string why = status.ok() ? "the stream was closed" : one_line(status.error_message());
        switch (status.error_code()) {
            case grpc::StatusCode::RESOURCE_EXHAUSTED:
            case grpc::StatusCode::UNIMPLEMENTED:
            case grpc::StatusCode::UNAUTHENTICATED:
            case grpc::StatusCode::PERMISSION_DENIED:
                fail(place(b),
                     status.error_code() == grpc::StatusCode::UNIMPLEMENTED ? " does not speak dm_env_rpc: "
                                                                            : " cannot be talked to: ",
                     why);
            default:
                break;
        }
        // Before it was ever joined, a world that is there and fails will fail again.
        if (!began_ && status.error_code() != grpc::StatusCode::UNAVAILABLE && !status.ok())
            fail(place(b), " ended its stream: ", why);
        lose(b, why);
    }

    void answered(std::size_t b) {
        row& r = rows_[b];
        auto start = clock::now();
        answer_.Clear();
        grpc::ProtoBufferReader reader(&r.link->answer);
        const bool parsed = reader.status().ok() && answer_.ParseFromZeroCopyStream(&reader);
        add(counts_->parsing, seconds_since(start));
        require(parsed, place(b), " answered with bytes that are no message of dm_env_rpc");
        using kind = rpc::EnvironmentResponse;
        const auto came = answer_.payload_case();
        if (came == kind::kError) {
            if (answer_.error().code() == static_cast<int>(grpc::StatusCode::UNAVAILABLE))
                return lose(b, answer_.error().message());
            fail(place(b), " answered with an error: ", one_line(answer_.error().message()));
        }
        const auto expect = [&](kind::PayloadCase wanted, const char* called) {
            require(came == wanted, place(b), " answered ", called, " with something else");
        };
        switch (r.state) {
            case at::creating: {
                expect(kind::kCreateWorld, "CreateWorld");
                r.world = answer_.create_world().world_name();
                rpc::EnvironmentRequest request;
                auto& join = *request.mutable_join_world();
                join.set_world_name(r.world);
                for (const auto& [name, text] : known_->settings.join)
                    (*join.mutable_settings())[name] = setting_tensor(setting_text(text, b));
                r.state = at::joining;
                ask(b, buffer_of(request), known_->settings.patience);
                break;
            }
            case at::joining:
                expect(kind::kJoinWorld, "JoinWorld");
                ++counts_->joined;
                if (known_->as.seen.empty()) {
                    known_->read = answer_.join_world().specs();
                    r.state = at::ready;
                } else {
                    same_specs(b, answer_.join_world().specs(), "it was joined anew");
                    begin(b);
                }
                break;
            case at::resetting:
                expect(kind::kReset, "Reset");
                if (answer_.reset().has_specs() &&
                    (answer_.reset().specs().observations_size() > 0 || answer_.reset().specs().actions_size() > 0))
                    same_specs(b, answer_.reset().specs(), "a reset");
                begin(b);
                break;
            case at::first:
                expect(kind::kStep, "Step");
                require(answer_.step().state() == rpc::RUNNING, place(b), " began an episode in state ",
                        static_cast<int>(answer_.step().state()), ", expected RUNNING");
                look(b);
                r.state = at::ready;
                if (!r.trouble.empty()) r.waited += seconds_since(r.since);
                break;
            case at::stepping:
                expect(kind::kStep, "Step");
                stepped(b, answer_.step());
                break;
            case at::waiting:
            case at::ready:
                fail(place(b), " answered more often than it was asked");
        }
        if (r.link) r.link->listen();
    }

    void stepped(std::size_t b, const rpc::StepResponse& step_answer) {
        row& r = rows_[b];
        const auto& as = known_->as;
        const std::string where = place(b);
        r.since = clock::now();
        r.back_off = 0.05;
        r.waited = 0;
        r.trouble.clear();
        if (as.reward) {
            r.got.reward += static_cast<float>(number_of(step_answer, *as.reward, where));
        } else {
            const double score = number_of(step_answer, *as.score, where);
            r.got.reward += static_cast<float>(score - score_of(b));
            scores_[b] = score;
        }
        switch (step_answer.state()) {
            case rpc::RUNNING:
                if (r.repeats > 0) return step(b);
                look(b);
                r.state = at::ready;
                return;
            case rpc::TERMINATED:
                r.got.interrupted = false;
                break;
            case rpc::INTERRUPTED:
                r.got.interrupted = true;
                break;
            default:
                fail(where, " answered a step with state ", static_cast<int>(step_answer.state()),
                     ", expected RUNNING, TERMINATED or INTERRUPTED");
        }
        r.got.done = true;
        if (as.discount && number_of(step_answer, *as.discount, where) > 0) r.got.interrupted = true;
        if (r.got.interrupted) {
            ++counts_->interrupted;
            const bool whole = std::all_of(as.seen.begin(), as.seen.end(),
                                           [&](const part& p) { return step_answer.observations().contains(p.uid); });
            if (whole && r.repeats == 0) {
                r.last.resize(r.seen.size());
                see(step_answer, as, r.last.data(), where);
                r.shows_last = true;
            }
        }
        begin(b);
    }
    double& score_of(std::size_t b) {
        scores_.resize(rows_.size(), 0.0);
        return scores_[b];
    }

    void look(std::size_t b) {
        const auto start = clock::now();
        see(answer_.step(), known_->as, rows_[b].seen.data(), place(b));
        if (known_->as.score && rows_[b].state == at::first)
            score_of(b) = number_of(answer_.step(), *known_->as.score, place(b));
        add(counts_->unpacking, seconds_since(start));
    }

    void same_specs(std::size_t b, const rpc::ActionObservationSpecs& specs, const char* when) const {
        require(text_of(specs) == known_->specs, place(b), " has other specs than before, since ", when,
                "; a run is of one world");
    }

    void wait_for(std::size_t b) {
        const auto start = clock::now();
        while (rows_[b].state != at::ready) turn();
        add(counts_->waiting, seconds_since(start));
    }

    /// Takes the next event of any row, or looks after those that wait for nothing any more.
    void turn() {
        const auto now = clock::now();
        auto until = now + std::chrono::seconds(1);
        for (std::size_t b = 0; b < rows_.size(); ++b) {
            row& r = rows_[b];
            if (r.state == at::ready) continue;
            if (r.state == at::waiting) {
                if (now >= r.retry) {
                    check_patience(b);
                    connect(b);
                } else {
                    until = std::min(until, r.retry);
                }
                continue;
            }
            const auto end =
                std::min(r.asked + seconds(r.allowed), began_ ? end_of_patience(r) : clock::time_point::max());
            if (now >= end)
                lose(b, message("no answer within ", std::round(seconds_since(r.asked)), " seconds"), true);
            else
                until = std::min(until, end);
        }
        void* tag = nullptr;
        bool ok = false;
        const auto wall = std::chrono::system_clock::now() + (until - now);
        if (queue_.AsyncNext(&tag, &ok, wall) == grpc::CompletionQueue::GOT_EVENT) handle(tag, ok);
    }

    void handle(void* tag, bool ok) {
        const auto& operation = *static_cast<stream::operation*>(tag);
        stream& from = *operation.of;
        const event what = from.happened(operation, ok);
        if (from.abandoned) {
            if (from.idle()) std::erase_if(left_, [&](const auto& kept) { return kept.get() == &from; });
            return;
        }
        const auto b = static_cast<std::size_t>(from.row);
        if (what == event::answer) answered(b);
        if (what == event::ended) ended(b);
    }

    /// Leaves the worlds that can be left, and destroys them; a second is enough for that.
    void close() {
        if (closed_) return;
        closed_ = true;
        const auto until = std::chrono::system_clock::now() + std::chrono::seconds(1);
        std::size_t leaving = 0;
        rpc::EnvironmentRequest leave;
        leave.mutable_leave_world();
        for (auto& r : rows_) {
            if (!r.link) continue;
            if (r.state != at::ready) {
                r.link->cancel();
                continue;
            }
            r.link->send(buffer_of(leave));
            ++leaving;
        }
        void* tag = nullptr;
        bool ok = false;
        while (leaving > 0 && queue_.AsyncNext(&tag, &ok, until) == grpc::CompletionQueue::GOT_EVENT) {
            const auto& operation = *static_cast<stream::operation*>(tag);
            stream& from = *operation.of;
            const event what = from.happened(operation, ok);
            if (from.abandoned) continue;
            row& r = rows_[static_cast<std::size_t>(from.row)];
            if (r.state != at::ready) continue;
            if (what == event::answer && !r.world.empty()) {
                rpc::EnvironmentRequest destroy;
                destroy.mutable_destroy_world()->set_world_name(std::exchange(r.world, {}));
                from.send(buffer_of(destroy));
                from.listen();
            } else if (what != event::none) {
                r.state = at::waiting;
                --leaving;
            }
        }
        for (auto& r : rows_)
            if (r.link) r.link->cancel();
        queue_.Shutdown();
        while (queue_.Next(&tag, &ok)) continue;
    }

    std::shared_ptr<known> known_;
    std::shared_ptr<shared_counts> counts_;
    std::uint32_t first_;
    std::uint64_t seed_;
    std::map<std::string, std::shared_ptr<grpc::Channel>> channels_;
    grpc::CompletionQueue queue_;
    std::vector<row> rows_;
    std::vector<std::unique_ptr<stream>> left_;
    std::vector<double> scores_;
    rpc::EnvironmentResponse answer_;
    bool began_ = false, closed_ = false;
};

class world_batch final : public batch_environment {
public:
    world_batch(std::shared_ptr<known> of, std::shared_ptr<shared_counts> counts, int count, std::uint64_t seed,
                std::uint32_t first)
        : known_(of), rows_(of, std::move(counts), count, seed, first), count_(count) {
        const std::uint64_t mark = stream_id(known_->specs, 0);
        std::memcpy(mark_.data(), &mark, sizeof mark);
    }

    int size() const override { return count_; }
    const task_info& info() const override { return known_->info; }
    void reset(int first, int count) override {
        require(first >= 0 && count >= 0 && first + count <= size(), info().name, ": rows ", first, " to ",
                first + count - 1, " were to be reset, but the batch has ", size());
        for (int b = first; b < first + count; ++b) rows_.reset(static_cast<std::size_t>(b));
    }
    void observe(int b, float* pixels) const override {
        const auto& seen = rows_.seen(static_cast<std::size_t>(b));
        std::copy(seen.begin(), seen.end(), pixels);
    }
    void announce(int b, int action) override {
        check(action);
        rows_.send(static_cast<std::size_t>(b), action);
    }
    outcome step(int b, int action) override {
        check(action);
        return rows_.take(static_cast<std::size_t>(b), action);
    }
    bool observe_last(int b, float* pixels) const override {
        const auto* last = rows_.last(static_cast<std::size_t>(b));
        if (last) std::copy(last->begin(), last->end(), pixels);
        return last != nullptr;
    }
    std::optional<trial_event> event(int) const override { return std::nullopt; }
    int oracle(int) const override { fail(info().name, ": nobody here knows how to play it"); }
    bool resumes() const override { return false; }
    std::span<const std::byte> state(int) const override { return mark_; }
    void restore(int, std::span<const std::byte> saved) override {
        require(saved.size() == mark_.size() && std::equal(saved.begin(), saved.end(), mark_.begin()), info().name,
                ": the saved run is of a world with other specs");
    }

private:
    void check(int action) const {
        require(action >= 0 && action < info().actions, info().name, ": action ", action,
                " is out of range; expected 0 to ", info().actions - 1);
    }

    std::shared_ptr<known> known_;
    world_rows rows_;
    int count_;
    std::array<std::byte, 8> mark_{};
};

class joined_world final : public world {
public:
    explicit joined_world(const world_settings& settings)
        : known_(std::make_shared<known>()), counts_(std::make_shared<shared_counts>()) {
        known_->settings = settings;
        { const world_rows one(known_, counts_, 1, 0, 0); }
        const std::string where = "world " + settings.addresses[0];
        known_->specs = text_of(known_->read);
        known_->as = read_specs(known_->read, settings.actions, where);
        const auto& as = known_->as;
        known_->info = {.name = settings.name,
                        .observation = as.shape,
                        .lowest = as.lowest,
                        .highest = as.highest,
                        .actions = static_cast<int>(as.actions.rows.size()),
                        .has_oracle = false};
        known_->info.add_level({settings.level, 0, std::numeric_limits<float>::quiet_NaN(), 0});
        for (const auto& action : as.actions.rows) {
            known_->steps.push_back(buffer_of(step_request(as, &action, true)));
            known_->repeats.push_back(buffer_of(step_request(as, &action, false)));
        }
        known_->first = buffer_of(step_request(as, nullptr, true));
    }

    const task_info& info() const override { return known_->info; }
    std::string about() const override {
        const auto& as = known_->as;
        std::string text;
        for (const auto& address : known_->settings.addresses) text += "  address     " + address + "\n";
        const auto list = [&](const char* what, const std::vector<part>& parts) {
            for (const auto& p : parts)
                text += message("  ", what, p.name, ", ", text_of_type(p.type), " ", text_of_shape(p.shape), bounds(p),
                                "\n");
        };
        list("shows       ", as.seen);
        list("rewards by  ", {as.reward ? *as.reward : *as.score});
        list("takes       ", as.takes);
        text += message("  seen as     ", as.shape.height, " x ", as.shape.width, " x ", as.shape.channels, " numbers",
                        as.image ? ", an image" : "", "\n  actions     ", as.actions.rows.size(), "\n");
        if (known_->settings.repeat > 1) text += message("  repeat      ", known_->settings.repeat, "\n");
        return text;
    }
    std::unique_ptr<batch_environment> make(int count, std::uint64_t seed, std::uint32_t first) const override {
        require(count > 0, info().name, ": a batch needs at least one environment, not ", count);
        return std::make_unique<world_batch>(known_, counts_, count, seed, first);
    }
    world_counts counts() const override { return {counts_->interrupted, counts_->lost, counts_->joined}; }
    world_times times() const override {
        return {counts_->sending, counts_->waiting, counts_->parsing, counts_->unpacking};
    }

private:
    static std::string bounds(const part& p) {
        if (p.lowest.empty() || p.highest.empty()) return "";
        return message(", ", p.lowest[0], " to ", p.highest[0]);
    }

    std::shared_ptr<known> known_;
    std::shared_ptr<shared_counts> counts_;
};

}  // namespace

}  // namespace engram::world_messages

extern "C" {

const char* engram_world_version() {
    static const std::string version = engram::world_module_version();
    return version.c_str();
}

engram::world* engram_join_world(const engram::world_settings* settings) {
    // What goes wrong is said once, in a sentence.
    gpr_set_log_function([](gpr_log_func_args*) {});
    google::protobuf::SetLogHandler(nullptr);
    return new engram::world_messages::joined_world(*settings);
}
}
