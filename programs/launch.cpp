// SPDX-License-Identifier: MIT

#include <cstdlib>
#include <exception>
#include <limits>
#include <list>

#include <engram/program/launch.hpp>

#if defined(ENGRAM_MPI)
#include <mpi.h>
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

#if defined(ENGRAM_MPI)

namespace {

class mpi_processes final : public processes {
public:
    mpi_processes() {
        int provided = 0;
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &count_);
    }
    ~mpi_processes() override {
        forget_sent(true);
        MPI_Finalize();
    }

    int rank() const override { return rank_; }
    int count() const override { return count_; }

    void exchange(int partner, std::span<const std::byte> out, std::span<std::byte> in) override {
        while (!out.empty() || !in.empty()) {
            const int sent = piece(out.size()), got = piece(in.size());
            if (got == 0)
                MPI_Send(out.data(), sent, MPI_BYTE, partner, 0, MPI_COMM_WORLD);
            else if (sent == 0)
                MPI_Recv(in.data(), got, MPI_BYTE, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            else
                MPI_Sendrecv(out.data(), sent, MPI_BYTE, partner, 0, in.data(), got, MPI_BYTE, partner, 0,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            out = out.subspan(static_cast<std::size_t>(sent));
            in = in.subspan(static_cast<std::size_t>(got));
        }
    }
    void broadcast(std::span<std::byte> what, int root) override {
        while (!what.empty()) {
            const int part = piece(what.size());
            MPI_Bcast(what.data(), part, MPI_BYTE, root, MPI_COMM_WORLD);
            what = what.subspan(static_cast<std::size_t>(part));
        }
    }
    std::vector<std::vector<std::byte>> gather(std::span<const std::byte> what) override {
        const auto n = static_cast<std::size_t>(count_);
        const long long own = static_cast<long long>(what.size());
        std::vector<long long> sizes(n);
        MPI_Allgather(&own, 1, MPI_LONG_LONG, sizes.data(), 1, MPI_LONG_LONG, MPI_COMM_WORLD);
        std::vector<std::vector<std::byte>> all(n);
        long long total = 0;
        for (const long long size : sizes) total += size;
        if (total <= most) {
            std::vector<int> counts(sizes.begin(), sizes.end()), begins(n);
            for (std::size_t i = 1; i < n; ++i) begins[i] = begins[i - 1] + counts[i - 1];
            std::vector<std::byte> flat(static_cast<std::size_t>(total));
            MPI_Allgatherv(what.data(), static_cast<int>(own), MPI_BYTE, flat.data(), counts.data(), begins.data(),
                           MPI_BYTE, MPI_COMM_WORLD);
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
        forget_sent(false);
        int found = 0, size = 0;
        MPI_Message came;
        MPI_Status status;
        MPI_Improbe(MPI_ANY_SOURCE, letters, MPI_COMM_WORLD, &found, &came, &status);
        if (!found) return {};
        MPI_Get_count(&status, MPI_BYTE, &size);
        letter own{status.MPI_SOURCE, std::vector<std::byte>(static_cast<std::size_t>(size))};
        MPI_Mrecv(own.content.data(), size, MPI_BYTE, &came, MPI_STATUS_IGNORE);
        return own;
    }

private:
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

    int rank_ = 0, count_ = 1;
    std::list<sent_letter> sent_;
};

}  // namespace

std::unique_ptr<processes> connect_processes() {
    if (how_launched().count <= 1) return nullptr;
    auto all = std::make_unique<mpi_processes>();
    if (all->count() > 1) return all;
    fail("started as ", how_launched().count,
         " processes, but MPI knows of one: the launcher is of another MPI than this "
         "program was compiled with");
}

void end_all_processes(int code) {
    int begun = 0;
    MPI_Initialized(&begun);
    if (begun) MPI_Abort(MPI_COMM_WORLD, code);
    std::exit(code);
}

#else

std::unique_ptr<processes> connect_processes() {
    const int count = how_launched().count;
    require(count <= 1, "started as ", count,
            " processes, but this program was compiled without MPI; install Open MPI or "
            "MPICH and configure with -DENGRAM_MPI=ON");
    return nullptr;
}

void end_all_processes(int code) {
    std::exit(code);
}

#endif

}  // namespace engram
