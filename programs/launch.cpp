// SPDX-License-Identifier: MIT

#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <exception>
#include <limits>
#include <list>

#include <engram/core/pack.hpp>
#include <engram/io/file.hpp>
#include <engram/program/launch.hpp>
#include <engram/version.hpp>

#if defined(ENGRAM_MPI)
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <thread>
#endif

namespace engram {

launched how_launched() {
    const auto number = [](const char* name) {
        const char* text = std::getenv(name);
        return text ? std::atoi(text) : -1;
    };
    // Open MPI; MPICH and what speaks its protocol; srun.
    for (const auto& [rank, count] :
         {std::pair{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, std::pair{"PMI_RANK", "PMI_SIZE"},
          std::pair{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}})
        if (number(rank) >= 0 && number(count) > 1) return {number(rank), number(count)};
    return {};
}

std::string own_gpu(const char* shown, int there, int number_on_host) {
    std::vector<std::string> all;
    if (shown)
        for (const char* at = shown; *at != 0; at += *at != 0) {
            std::string one;
            for (; *at != 0 && *at != ','; ++at) one += *at;
            all.push_back(one);
        }
    else
        for (int i = 0; i < there; ++i) all.push_back(std::to_string(i));
    if (number_on_host < 0 || all.size() < 2) return "";
    return all[static_cast<std::size_t>(number_on_host) % all.size()];
}

namespace {

/// Before anything asks CUDA for its devices. All threads of a process use the first one that it is shown.
[[maybe_unused]] void take_own_gpu() {
    int number = -1, there = 0;
    for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"})
        if (const char* text = std::getenv(name); text && number < 0) number = std::atoi(text);
    for (int k = 0; k < 64; ++k) there += ::access(("/dev/nvidia" + std::to_string(k)).c_str(), F_OK) == 0;
    const std::string own = own_gpu(std::getenv("CUDA_VISIBLE_DEVICES"), there, number);
    if (!own.empty()) ::setenv("CUDA_VISIBLE_DEVICES", own.c_str(), 1);
}

/// The instructions that this was compiled for, as far as they decide how numbers are rounded.
std::string instruction_set() {
    std::string names;
    const auto add = [&](bool has, const char* name) {
        if (has) names += std::string(names.empty() ? "" : " ") + name;
    };
#if defined(__x86_64__)
    add(true, "x86-64");
#elif defined(__aarch64__)
    add(true, "AArch64");
#endif
#if defined(__AVX512F__)
    add(true, "AVX-512");
#elif defined(__AVX2__)
    add(true, "AVX2");
#elif defined(__AVX__)
    add(true, "AVX");
#endif
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    add(true, "FMA");
#endif
#if defined(__AVX512BF16__)
    add(true, "BF16");
#endif
    add(true, ("packs of " + std::to_string(pack_bytes) + " bytes").c_str());
    return names;
}

/// A checksum of the program's file; the system may have none to read.
std::string program_file() {
    try {
        const bytes content = read_file("/proc/self/exe");
        return message("checksum ", ::crc32_z(0, content.data(), content.size()), " of ", content.size(), " bytes");
    } catch (const error&) {
        return "unknown";
    }
}

}  // namespace

void require_same_program(processes* all, const std::string& name, int argc, const char* const* argv) {
    if (!all) return;
    std::string words;
    for (int i = 1; i < argc; ++i) words += std::string(i > 1 ? " " : "") + argv[i];
    require_alike(all, {{"program", "engram-" + name},
                        {"version", library_version()},
                        {"compiler", __VERSION__},
                        {"instruction set", instruction_set()},
                        {"command line", words},
                        {"build", program_file()}});
}

#if defined(ENGRAM_MPI)

namespace {

/// Ends this process with a sentence when MPI neither connects nor parts the processes in time: it blocks meanwhile,
/// and nobody can say yet who is missing.
class time_limit {
public:
    explicit time_limit(double seconds) {
        std::signal(SIGALRM, [](int) {
            constexpr char said[] = "engram: MPI neither connects nor parts all processes in time (--patience)\n";
            [[maybe_unused]] const auto put = ::write(2, said, sizeof said - 1);
            ::_exit(1);
        });
        // One after the other: the launcher ends the others when the first one says so.
        ::alarm(static_cast<unsigned>(std::min(1e9, std::ceil(seconds))) + 2 * std::min(how_launched().rank, 9));
    }
    ~time_limit() { ::alarm(0); }
    time_limit(const time_limit&) = delete;
    time_limit& operator=(const time_limit&) = delete;
};

// Every call begins and is then asked for its end, so that this process never sleeps inside MPI: while it waits it
// shows the others that it lives, and looks who does not.
class mpi_processes final : public processes {
public:
    explicit mpi_processes(double patience) : patience_(patience) {
        const time_limit limit(patience);
        int provided = 0;
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &count_);
        MPI_Comm_dup(MPI_COMM_WORLD, &signs_);
        const auto n = static_cast<std::size_t>(count_);
        heard_.assign(n, 0);
        shown_.assign(n, 0);
        taken_.assign(n, 0);
        content_.assign(n, 0);
        requests_.assign(n, MPI_REQUEST_NULL);
        hosts_.resize(n);
        std::string host(MPI_MAX_PROCESSOR_NAME, '\0');
        int length = 0;
        MPI_Get_processor_name(host.data(), &length);
        host.resize(static_cast<std::size_t>(length));
        const auto names = gather(std::as_bytes(std::span(host)));
        for (std::size_t i = 0; i < n; ++i)
            hosts_[i].assign(reinterpret_cast<const char*>(names[i].data()), names[i].size());
        connected() = this;
    }
    /// Once all have come here nobody shows a sign of life any more, and those under way are taken.
    ~mpi_processes() override {
        devices.reset();
        connected() = nullptr;
        (void)gather({});
        const time_limit limit(patience_);
        forget_sent(true);
        std::vector<int> to_take(shown_.size());
        MPI_Alltoall(shown_.data(), 1, MPI_INT, to_take.data(), 1, MPI_INT, MPI_COMM_WORLD);
        for (int from = 0; from < count_; ++from)
            for (const auto i = static_cast<std::size_t>(from); taken_[i] < to_take[i]; ++taken_[i]) {
                char works = 0;
                MPI_Recv(&works, 1, MPI_CHAR, from, 0, signs_, MPI_STATUS_IGNORE);
            }
        MPI_Waitall(count_, requests_.data(), MPI_STATUSES_IGNORE);
        MPI_Comm_free(&signs_);
        MPI_Finalize();
    }

    int rank() const override { return rank_; }
    int count() const override { return count_; }

    void exchange(int partner, std::span<const std::byte> out, std::span<std::byte> in) override {
        while (!out.empty() || !in.empty()) {
            const int sent = piece(out.size()), got = piece(in.size());
            std::array<MPI_Request, 2> both{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
            if (got > 0) MPI_Irecv(in.data(), got, MPI_BYTE, partner, 0, MPI_COMM_WORLD, &both[0]);
            if (sent > 0) MPI_Isend(out.data(), sent, MPI_BYTE, partner, 0, MPI_COMM_WORLD, &both[1]);
            wait(both);
            out = out.subspan(static_cast<std::size_t>(sent));
            in = in.subspan(static_cast<std::size_t>(got));
        }
    }
    void broadcast(std::span<std::byte> what, int root) override {
        while (!what.empty()) {
            const int part = piece(what.size());
            MPI_Request all = MPI_REQUEST_NULL;
            MPI_Ibcast(what.data(), part, MPI_BYTE, root, MPI_COMM_WORLD, &all);
            wait({&all, 1});
            what = what.subspan(static_cast<std::size_t>(part));
        }
    }
    std::vector<std::vector<std::byte>> gather(std::span<const std::byte> what) override {
        const auto n = static_cast<std::size_t>(count_);
        const long long own = static_cast<long long>(what.size());
        std::vector<long long> sizes(n);
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Iallgather(&own, 1, MPI_LONG_LONG, sizes.data(), 1, MPI_LONG_LONG, MPI_COMM_WORLD, &request);
        wait({&request, 1});
        std::vector<std::vector<std::byte>> all(n);
        long long total = 0;
        for (const long long size : sizes) total += size;
        if (total == 0) return all;
        if (total <= most) {
            std::vector<int> counts(sizes.begin(), sizes.end()), begins(n);
            for (std::size_t i = 1; i < n; ++i) begins[i] = begins[i - 1] + counts[i - 1];
            std::vector<std::byte> flat(static_cast<std::size_t>(total));
            MPI_Iallgatherv(what.data(), static_cast<int>(own), MPI_BYTE, flat.data(), counts.data(), begins.data(),
                            MPI_BYTE, MPI_COMM_WORLD, &request);
            wait({&request, 1});
            for (std::size_t i = 0; i < n; ++i)
                all[i].assign(flat.begin() + begins[i], flat.begin() + begins[i] + counts[i]);
            return all;
        }
        for (std::size_t i = 0; i < n; ++i) {
            all[i].resize(static_cast<std::size_t>(sizes[i]));
            if (static_cast<int>(i) == rank_) std::copy(what.begin(), what.end(), all[i].begin());
            broadcast(all[i], static_cast<int>(i));
        }
        return all;
    }

    void post(int to, std::shared_ptr<const std::vector<std::byte>> what) override {
        require(static_cast<long long>(what->size()) <= most, "a letter of ", what->size(), " bytes, expected at most ",
                most);
        forget_sent(false);
        auto& own = sent_.emplace_back(sent_letter{std::move(what), MPI_REQUEST_NULL});
        MPI_Isend(own.content->data(), static_cast<int>(own.content->size()), MPI_BYTE, to, letters, MPI_COMM_WORLD,
                  &own.request);
    }
    std::optional<letter> take() override {
        watch(1);
        forget_sent(false);
        int found = 0, size = 0;
        MPI_Message came;
        MPI_Status status;
        MPI_Improbe(MPI_ANY_SOURCE, letters, MPI_COMM_WORLD, &found, &came, &status);
        if (!found) return {};
        MPI_Get_count(&status, MPI_BYTE, &size);
        letter own{status.MPI_SOURCE, std::vector<std::byte>(static_cast<std::size_t>(size))};
        MPI_Request whole = MPI_REQUEST_NULL;  // of a long letter only the beginning is there
        MPI_Imrecv(own.content.data(), size, MPI_BYTE, &came, &whole);
        wait({&whole, 1});
        return own;
    }

    void keep_watch(bool begins) override {
        if (std::this_thread::get_id() != thread_) return;
        watch(0);
        if (begins) watched_since_ = awake();
        nothing_came_since(std::max(watched_since_, worked_), awake());
    }

    /// The processes of this program; null before they are connected.
    static mpi_processes*& connected() {
        static mpi_processes* all = nullptr;
        return all;
    }
    void work() {
        if (clock::now() < next_sign_ || std::this_thread::get_id() != thread_) return;
        show_sign(1);
        take_signs(awake());
    }

private:
    using clock = std::chrono::steady_clock;

    static constexpr int letters = 1;  // a tag of their own
    struct sent_letter {
        std::shared_ptr<const std::vector<std::byte>> content;
        MPI_Request request;
    };
    /// Lets go of the letters that have gone; or waits until all have.
    void forget_sent(bool all) {
        for (auto at = sent_.begin(); at != sent_.end();) {
            int gone = 1;
            if (all)
                MPI_Wait(&at->request, MPI_STATUS_IGNORE);
            else
                MPI_Test(&at->request, &gone, MPI_STATUS_IGNORE);
            at = gone ? sent_.erase(at) : std::next(at);
        }
    }

    static constexpr long long most = std::numeric_limits<int>::max() / 2;  // bytes of one message: MPI counts in int
    static int piece(std::size_t size) {
        return static_cast<int>(std::min<long long>(static_cast<long long>(size), most));
    }

    void wait(std::span<MPI_Request> requests) {
        until_all_are_done(requests);
        met_ = awake();
    }
    void until_all_are_done(std::span<MPI_Request> requests) {
        int done = 0;
        const auto ask = [&] {
            MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
            return done != 0;
        };
        for (int tries = 0; tries < 1000; ++tries)
            if (ask()) return;
        const double begun = awake();
        double now = begun;
        for (int tries = 0; !ask(); ++tries) {
            // Whoever has waited for long leaves the processor to others.
            if (now - begun > 0.5)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            else
                ::sched_yield();
            if (tries % 32 != 0) continue;
            now = awake();
            if (now - begun < std::min(0.1, patience_ / 10)) continue;
            if (clock::now() >= next_sign_) show_sign(0);
            take_signs(now);
            judge_the_silent(begun, now);
            nothing_came_since(std::max(begun, worked_), now);
        }
    }
    /// All live and wait: what was sent does not arrive.
    void nothing_came_since(double begun, double now) const {
        if (now - begun > patience_ + 6 + 3 * (rank_ > 0))
            give_up(rank_, "has received nothing from processes that live");
    }
    /// Of a process that waits for what comes on other ways: it lives, and may yet wait for ever.
    void watch(char works) {
        const double now = awake();
        if (clock::now() < next_sign_) return;
        show_sign(works);
        take_signs(now);
        judge_the_silent(met_, now);
    }

    /// Seconds, but none of those in which this process itself was stopped, as a job is that others suspend.
    double awake() {
        const auto now = clock::now();
        awake_ += std::min(1.0, std::chrono::duration<double>(now - looked_).count());
        looked_ = now;
        return awake_;
    }
    void show_sign(char works) {
        next_sign_ = in_a_while();
        for (int to = 0; to < count_; ++to) {
            const auto i = static_cast<std::size_t>(to);
            int done = 0;
            MPI_Test(&requests_[i], &done, MPI_STATUS_IGNORE);
            if (to == rank_ || !done) continue;
            content_[i] = works;
            MPI_Isend(&content_[i], 1, MPI_CHAR, to, 0, signs_, &requests_[i]);
            ++shown_[i];
        }
    }
    clock::time_point in_a_while() const {
        return clock::now() +
               std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(patience_ / 10));
    }
    void take_signs(double now) {
        for (;;) {
            int there = 0;
            MPI_Status from;
            MPI_Iprobe(MPI_ANY_SOURCE, 0, signs_, &there, &from);
            if (!there) return;
            char works = 0;
            MPI_Recv(&works, 1, MPI_CHAR, from.MPI_SOURCE, 0, signs_, MPI_STATUS_IGNORE);
            const auto i = static_cast<std::size_t>(from.MPI_SOURCE);
            heard_[i] = now;
            ++taken_[i];
            if (works) worked_ = now;
        }
    }

    /// Ends the job when a process has been silent for too long. The first one of those that are not says so; the
    /// others give it three seconds.
    void judge_the_silent(double begun, double now) const {
        int silent = -1, speaker = -1;
        for (int r = 0; r < count_; ++r) {
            const double last = std::max(begun, heard_[static_cast<std::size_t>(r)]);
            if (r == rank_ || now - last <= patience_) {
                if (speaker < 0) speaker = r;
            } else if (silent < 0) {
                silent = r;
            }
        }
        const double late = speaker == rank_ ? 0 : 3;
        if (silent >= 0 && now - std::max(begun, heard_[static_cast<std::size_t>(silent)]) > patience_ + late)
            give_up(silent, "has given no sign of life");
    }
    [[noreturn]] void give_up(int rank, const char* what) const {
        const auto& host = hosts_[static_cast<std::size_t>(rank)];
        std::fprintf(
            stderr,
            "engram: process %d%s%s %s for %g seconds (--patience); the job ends, and --resume goes on from its "
            "last checkpoint\n",
            rank, host.empty() ? "" : " on ", host.c_str(), what, patience_);
        end_all_processes(1);
    }

    double patience_;
    int rank_ = 0, count_ = 1;
    std::list<sent_letter> sent_;
    std::vector<std::string> hosts_;
    MPI_Comm signs_ = MPI_COMM_NULL;
    std::vector<MPI_Request> requests_;  // of signs that are under way
    std::vector<char> content_;          // theirs: 1 from a process that works, 0 from one that waits
    std::vector<int> shown_, taken_;     // signs, to and from each
    std::vector<double> heard_;          // when each was last heard of
    double worked_ = 0;                  // and any one that works
    double awake_ = 0, met_ = 0;         // this one; when it last had what it had waited for
    double watched_since_ = 0;
    clock::time_point looked_ = clock::now(), next_sign_ = in_a_while();
    std::thread::id thread_ = std::this_thread::get_id();
};

}  // namespace

std::unique_ptr<processes> connect_processes(double patience) {
    if (how_launched().count <= 1) return nullptr;
    take_own_gpu();
    auto all = std::make_unique<mpi_processes>(patience);
    if (all->count() > 1) return all;
    fail("started as ", how_launched().count,
         " processes, but MPI knows of one: the launcher is of another MPI than this "
         "program was compiled with");
}

void still_working() {
    if (auto* all = mpi_processes::connected()) all->work();
}

void end_all_processes(int code) {
    int begun = 0;
    MPI_Initialized(&begun);
    std::signal(SIGALRM, SIG_DFL);
    ::alarm(10);  // where MPI cannot even end
    if (begun) MPI_Abort(MPI_COMM_WORLD, code);
    std::exit(code);
}

#else

std::unique_ptr<processes> connect_processes(double) {
    const int count = how_launched().count;
    require(count <= 1, "started as ", count,
            " processes, but this program was compiled without MPI; install Open MPI or "
            "MPICH and configure with -DENGRAM_MPI=ON");
    return nullptr;
}

void still_working() {}

void end_all_processes(int code) {
    std::exit(code);
}

#endif

}  // namespace engram
