#pragma once
// What train/nccl_links.cuh asks of NCCL, between threads in place of processes and in the host's memory: everything of
// a sum between devices but NCCL itself is then tested where no GPU is. Names are NCCL's.

#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

using cudaStream_t = void*;

enum ncclResult_t { ncclSuccess = 0, ncclSystemError = 2, ncclInvalidUsage = 5, ncclInProgress = 7 };
enum ncclDataType_t { ncclUint8 = 1 };
struct ncclUniqueId {
    char internal[128];
};

namespace fake_nccl {

/// All communicators of one identity.
struct world {
    std::mutex mutex;
    std::condition_variable changed;
    int joined = 0;
    std::map<std::pair<int, int>, std::deque<std::vector<char>>> sent;  // by sender and receiver
};
struct communicator {
    std::shared_ptr<world> all;
    int rank, count;
};

// What a test looks at and sets.
inline std::mutex mutex;
inline std::map<int, std::shared_ptr<world>> worlds;
inline int identities = 0, groups = 0, broadcasts = 0, destroyed = 0, aborted = 0;
inline ncclResult_t next = ncclSuccess;  // what the next group ends with

inline void send(communicator& by, int to, const void* what, std::size_t bytes) {
    const std::lock_guard lock(by.all->mutex);
    const char* const from = static_cast<const char*>(what);
    by.all->sent[{by.rank, to}].emplace_back(from, from + bytes);
    by.all->changed.notify_all();
}
inline ncclResult_t receive(communicator& by, int from, void* into, std::size_t bytes) {
    std::unique_lock lock(by.all->mutex);
    auto& box = by.all->sent[{from, by.rank}];
    by.all->changed.wait(lock, [&] { return !box.empty(); });
    const auto what = std::move(box.front());
    box.pop_front();
    if (what.size() != bytes) return ncclInvalidUsage;
    std::memcpy(into, what.data(), bytes);
    return ncclSuccess;
}

/// Calls of a group that is open in this thread.
struct half {
    communicator* by;
    int partner;
    const void* out;
    void* in;
    std::size_t bytes;
};
inline thread_local std::vector<half> open;
inline thread_local bool opened = false;

}  // namespace fake_nccl

using ncclComm_t = fake_nccl::communicator*;

inline ncclResult_t ncclGetVersion(int* version) {
    *version = 0;
    return ncclSuccess;
}
inline const char* ncclGetErrorString(ncclResult_t) {
    return "an error that a test has asked for";
}
inline const char* ncclGetLastError(ncclComm_t) {
    return "nothing else";
}
inline ncclResult_t ncclGetUniqueId(ncclUniqueId* identity) {
    const std::lock_guard lock(fake_nccl::mutex);
    const int number = ++fake_nccl::identities;
    std::memcpy(identity->internal, &number, sizeof number);
    fake_nccl::worlds[number] = std::make_shared<fake_nccl::world>();
    return ncclSuccess;
}
inline ncclResult_t ncclCommInitRank(ncclComm_t* made, int count, ncclUniqueId identity, int rank) {
    int number = 0;
    std::memcpy(&number, identity.internal, sizeof number);
    std::shared_ptr<fake_nccl::world> all;
    {
        const std::lock_guard lock(fake_nccl::mutex);
        all = fake_nccl::worlds.at(number);
    }
    std::unique_lock lock(all->mutex);
    ++all->joined;
    all->changed.notify_all();
    all->changed.wait(lock, [&] { return all->joined == count; });
    *made = new fake_nccl::communicator{all, rank, count};
    return ncclSuccess;
}
inline ncclResult_t ncclCommDestroy(ncclComm_t all) {
    const std::lock_guard lock(fake_nccl::mutex);
    ++fake_nccl::destroyed;
    delete all;
    return ncclSuccess;
}
inline ncclResult_t ncclCommAbort(ncclComm_t all) {
    const std::lock_guard lock(fake_nccl::mutex);
    ++fake_nccl::aborted;
    delete all;
    return ncclSuccess;
}
inline ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* state) {
    *state = ncclSuccess;
    return ncclSuccess;
}
inline ncclResult_t ncclGroupStart() {
    fake_nccl::opened = true;
    return ncclSuccess;
}
inline ncclResult_t ncclSend(const void* out, std::size_t bytes, ncclDataType_t, int to, ncclComm_t by, cudaStream_t) {
    if (!fake_nccl::opened) return ncclInvalidUsage;
    fake_nccl::open.push_back({by, to, out, nullptr, bytes});
    return ncclSuccess;
}
inline ncclResult_t ncclRecv(void* in, std::size_t bytes, ncclDataType_t, int from, ncclComm_t by, cudaStream_t) {
    if (!fake_nccl::opened) return ncclInvalidUsage;
    fake_nccl::open.push_back({by, from, nullptr, in, bytes});
    return ncclSuccess;
}
inline ncclResult_t ncclGroupEnd() {
    fake_nccl::opened = false;
    const auto all = std::exchange(fake_nccl::open, {});
    {
        const std::lock_guard lock(fake_nccl::mutex);
        ++fake_nccl::groups;
        if (const auto said = std::exchange(fake_nccl::next, ncclSuccess); said != ncclSuccess) return said;
    }
    for (const auto& h : all)
        if (h.out) fake_nccl::send(*h.by, h.partner, h.out, h.bytes);
    for (const auto& h : all)
        if (h.in)
            if (const auto got = fake_nccl::receive(*h.by, h.partner, h.in, h.bytes); got != ncclSuccess) return got;
    return ncclSuccess;
}
inline ncclResult_t ncclBroadcast(const void* out, void* in, std::size_t bytes, ncclDataType_t, int root, ncclComm_t by,
                                  cudaStream_t) {
    {
        const std::lock_guard lock(fake_nccl::mutex);
        ++fake_nccl::broadcasts;
    }
    if (by->rank != root) return fake_nccl::receive(*by, root, in, bytes);
    for (int to = 0; to < by->count; ++to)
        if (to != root) fake_nccl::send(*by, to, out, bytes);
    return ncclSuccess;
}
