#pragma once
// SPDX-License-Identifier: MIT

// Numbers between GPUs by NCCL (docs/decisions/0023), captured into the graph of an update with the rest of it.
//
// NCCL carries and adds nothing: ncclSend and ncclRecv in one group an exchange, so that neither its algorithms nor its
// version change a bit. One process a GPU; it refuses two. What can block the host, connecting and the first numbers to
// a partner, is done by a thread of its own, so that the process goes on showing the others that it lives and ends when
// one of them does not.
//
// The communicator must outlive the graphs that it is captured in: `processes` hold it, and are there before any model.

#include <nccl.h>

#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <set>
#include <span>
#include <string>

#include <engram/train/device_links.hpp>

namespace engram {

inline std::string nccl_version() {
    int version = 0;
    ncclGetVersion(&version);
    return std::to_string(version);
}

template <class Backend>
class nccl_links final : public device_links<Backend> {
public:
    using real = typename Backend::real;

    /// Every process makes one at the same time; `others` carry the identity, and are watched.
    explicit nccl_links(processes& others) : others_(&others) {
        ncclUniqueId identity{};
        if (others.rank() == 0) check(ncclGetUniqueId(&identity), "ncclGetUniqueId");
        others.broadcast(std::as_writable_bytes(std::span(&identity, 1)), 0);
        watched(
            [&] { check(ncclCommInitRank(&all_, others_->count(), identity, others_->rank()), "ncclCommInitRank"); });
    }
    ~nccl_links() override {
        // After an error nobody knows what the others still send.
        if (failed_) {
            ncclCommAbort(all_);
            return;
        }
        try {
            watched([&] { ncclCommDestroy(all_); });
        } catch (const std::exception&) {
        }
    }

    void exchange(executor<Backend>& on, int partner, const real* out, std::ptrdiff_t n, real* in,
                  std::ptrdiff_t m) override {
        on.call([=, this](cudaStream_t stream) {
            with(partner, [=, this] {
                check(ncclGroupStart(), "ncclGroupStart");
                if (n > 0) check(ncclSend(out, bytes(n), ncclUint8, partner, all_, stream), "ncclSend");
                if (m > 0) check(ncclRecv(in, bytes(m), ncclUint8, partner, all_, stream), "ncclRecv");
                check(ncclGroupEnd(), "ncclGroupEnd");
            });
        });
    }
    void broadcast(executor<Backend>& on, real* what, std::ptrdiff_t n, int root) override {
        on.call([=, this](cudaStream_t stream) {
            with(everybody, [=, this] {
                check(ncclBroadcast(what, what, bytes(n), ncclUint8, root, all_, stream), "ncclBroadcast");
            });
        });
    }
    void look(bool begins) override {
        ncclResult_t state = ncclSuccess;
        check(ncclCommGetAsyncError(all_, &state), "ncclCommGetAsyncError");
        check(state, "an exchange between devices");
        others_->keep_watch(begins);
    }

private:
    static constexpr int everybody = -1;

    static std::size_t bytes(std::ptrdiff_t count) { return static_cast<std::size_t>(count) * sizeof(real); }
    void check(ncclResult_t result, const char* what) {
        if (result == ncclSuccess || result == ncclInProgress) return;
        failed_ = true;
        const char* const more = ncclGetLastError(all_);
        fail("devices of ", others_->count(), " processes: ", what, " failed: ", ncclGetErrorString(result),
             more && *more ? std::string("; NCCL says: ") + more : "", " (NCCL_DEBUG=INFO tells more)");
    }
    /// The first numbers to a partner connect the two.
    void with(int partner, const std::function<void()>& call) {
        if (met_.insert(partner).second)
            watched(call);
        else
            call();
    }
    void watched(const std::function<void()>& call) {
        auto done = std::async(std::launch::async, call);
        for (bool begins = true; done.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready;
             begins = false)
            others_->keep_watch(begins);
        done.get();
    }

    processes* others_;
    ncclComm_t all_ = nullptr;
    std::set<int> met_;
    bool failed_ = false;
};

}  // namespace engram
