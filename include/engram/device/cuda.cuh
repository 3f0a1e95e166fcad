#pragma once
// SPDX-License-Identifier: MIT

// The CUDA executor: one stream, one cuBLAS handle, and the replay of a sweep as one graph.
//
// Every launch, copy and product of a program is put on its stream; nothing inside a sweep waits for the device. The
// first run of a sweep is a plain one (libraries set themselves up), the second is captured, later ones launch the
// graph. What the host gives and takes passes through pinned windows: inputs are sent at the start of a sweep, states
// and outputs are fetched when they are asked for, which waits.

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <thread>

#include <engram/device/executor.hpp>
#include <engram/device/host_windows.hpp>
#include <engram/device/memory.cuh>
#include <engram/device/operations.hpp>
#include <engram/device/skinny_products.cuh>

namespace engram {

/// How cuBLAS multiplies floats: as they are (full), or on tensor cores from operands that those round.
enum class tensor_core_rounding { full, tf32, bf16 };

/// A block of a CUDA launch: a lane is a thread, the end of a phase a barrier.
template <class Real, int Lanes>
struct cuda_block {
    using real = Real;
    static constexpr int lanes = Lanes;
    Real* scratch;

    template <class Phase>
    ENGRAM_HD void each(Phase phase) {
#if defined(__CUDA_ARCH__)
        phase(static_cast<int>(threadIdx.x));
        __syncthreads();
#else
        static_cast<void>(phase);
#endif
    }
};

inline constexpr int grid_threads = 256;  // of a block of a grid

template <class Functor>
__global__ void __launch_bounds__(grid_threads) run_grid(Functor functor, std::ptrdiff_t count) {
    const std::ptrdiff_t i = std::ptrdiff_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < count) functor(i);
}

// The bound keeps registers for as many threads as there are lanes: without it a block of many could not be started.
template <class Real, class Functor>
__global__ void __launch_bounds__(lanes_of<Functor>) run_blocks(Functor functor) {
    extern __shared__ double cuda_scratch[];
    cuda_block<Real, lanes_of<Functor>> block{reinterpret_cast<Real*>(cuda_scratch)};
    functor(block, static_cast<int>(blockIdx.x));
}

template <class Real>
class executor<cuda<Real>> {
public:
    using real = Real;
    template <class T>
    using array = device_array<T>;
    using buffer = array<Real>;
    class fence {
    public:
        fence() { check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), who(), "cudaEventCreate"); }
        fence(const fence&) = delete;
        fence& operator=(const fence&) = delete;
        ~fence() { cudaEventDestroy(event_); }
        void record(executor& on) { check_cuda(cudaEventRecord(event_, on.stream_), who(), "cudaEventRecord"); }
        void await(executor& on) {
            check_cuda(cudaStreamWaitEvent(on.stream_, event_, 0), who(), "cudaStreamWaitEvent");
        }

    private:
        cudaEvent_t event_ = nullptr;
    };

    executor() : scalars_(places), alarms_(places), counter_(1), workspace_(workspace_bytes) {
        check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), who(), "cudaStreamCreate");
        check_cuda(cudaEventCreateWithFlags(&sent_, cudaEventDisableTiming), who(), "cudaEventCreate");
        check_cublas(cublasCreate(&blas_), who(), "cublasCreate");
        check_cublas(cublasSetStream(blas_, stream_), who(), "cublasSetStream");
        // In a captured graph cuBLAS may not allocate.
        check_cublas(cublasSetWorkspace(blas_, workspace_.data(), workspace_bytes), who(), "cublasSetWorkspace");
    }
    executor(const executor&) = delete;
    executor& operator=(const executor&) = delete;
    ~executor() {
        cudaStreamSynchronize(stream_);
        forget();
        cublasDestroy(blas_);
        cudaEventDestroy(sent_);
        cudaStreamDestroy(stream_);
    }

    tensor_core_rounding precision = tensor_core_rounding::full;
    cudaStream_t stream() const { return stream_; }

    // --- memory ---
    void clear(Real* at, std::ptrdiff_t count) {
        check_cuda(cudaMemsetAsync(at, 0, bytes(count), stream_), who(), "cudaMemsetAsync");
    }
    void copy(const Real* from, Real* to, std::ptrdiff_t count) {
        check_cuda(cudaMemcpyAsync(to, from, bytes(count), cudaMemcpyDeviceToDevice, stream_), who(),
                   "cudaMemcpyAsync");
    }
    void upload(const Real* host, Real* device, std::ptrdiff_t count) {
        check_cuda(cudaMemcpyAsync(device, host, bytes(count), cudaMemcpyHostToDevice, stream_), who(),
                   "cudaMemcpyAsync");
    }
    void download(const Real* device, Real* host, std::ptrdiff_t count) {
        look_until_idle();
        check_cuda(cudaMemcpyAsync(host, device, bytes(count), cudaMemcpyDeviceToHost, stream_), who(),
                   "cudaMemcpyAsync");
        check_cuda(cudaStreamSynchronize(stream_), who(), "cudaStreamSynchronize");
    }

    void upload_bytes(const void* host, void* device, std::size_t count) { move(device, host, count); }
    void download_bytes(const void* device, void* host, std::size_t count) { move(host, device, count); }

    // --- windows of the host (host_windows.hpp) ---
    /// Asking waits until the last sweep has taken what was there.
    std::span<Real> input(Real* device, std::ptrdiff_t count) {
        check_cuda(cudaEventSynchronize(sent_), who(), "cudaEventSynchronize");
        return windows_.input(device, count);
    }
    std::span<Real> fetched(Real* device, std::ptrdiff_t count, bool writes) {
        return windows_.fetched(*this, device, count, writes);
    }
    void send_written() { windows_.send(*this, false); }
    /// Sends what the host has filled, and the number of this replay.
    void send(std::uint64_t replays) {
        windows_.send(*this);
        check_cuda(cudaMemcpyAsync(counter_.data(), &replays, sizeof replays, cudaMemcpyHostToDevice, stream_), who(),
                   "cudaMemcpyAsync");
        check_cuda(cudaEventRecord(sent_, stream_), who(), "cudaEventRecord");
    }
    const std::uint64_t* counter() const { return counter_.data(); }
    /// Goes on to the number of the next replay.
    void count_replay() { launch("device", 1, count_up{counter_.data()}); }

    // --- numbers and alarms of kernels ---
    double* scalar() {
        require(used_scalars_ < places, who(), ": more than ", places, " losses");
        return scalars_.data() + used_scalars_++;
    }
    void clear_scalars() {
        check_cuda(cudaMemsetAsync(scalars_.data(), 0, places * sizeof(double), stream_), who(), "cudaMemsetAsync");
    }
    double fetch(const double* scalar) {
        double value = 0;
        look_until_idle();
        check_cuda(cudaMemcpyAsync(&value, scalar, sizeof value, cudaMemcpyDeviceToHost, stream_), who(),
                   "cudaMemcpyAsync");
        wait();
        return value;
    }
    int* alarm(const std::string& what) {
        require(sentences_.size() < places, who(), ": more than ", places, " operations that check their numbers");
        sentences_.push_back(what);
        return alarms_.data() + sentences_.size() - 1;
    }
    /// Nothing is known until wait().
    void check() {}
    /// Waits for the device and says what its kernels found wrong.
    void wait() {
        look_until_idle();
        std::vector<int> raised(sentences_.size());
        if (!raised.empty())
            check_cuda(cudaMemcpyAsync(raised.data(), alarms_.data(), raised.size() * sizeof(int),
                                       cudaMemcpyDeviceToHost, stream_),
                       who(), "cudaMemcpyAsync");
        check_cuda(cudaStreamSynchronize(stream_), who(), "cudaStreamSynchronize");
        for (std::size_t i = 0; i < raised.size(); ++i)
            if (raised[i]) {
                cudaMemsetAsync(alarms_.data(), 0, places * sizeof(int), stream_);
                fail(sentences_[i]);
            }
    }

    // --- kernels and products ---
    template <class Functor>
    void launch(const std::string& op, std::ptrdiff_t count, const Functor& functor) {
        static_assert(std::is_trivially_copyable_v<Functor>, "launch: a device kernel is copied as bytes");
        if (count == 0) return;
        const std::ptrdiff_t blocks = (count + grid_threads - 1) / grid_threads;
        run_grid<<<static_cast<unsigned>(blocks), grid_threads, 0, stream_>>>(functor, count);
        check_cuda(cudaGetLastError(), op, "the launch of a kernel");
    }
    template <class Functor>
    void launch_blocks(const std::string& op, std::ptrdiff_t count, int scratch, const Functor& functor) {
        static_assert(std::is_trivially_copyable_v<Functor>, "launch: a device kernel is copied as bytes");
        if (count == 0) return;
        const std::size_t shared = static_cast<std::size_t>(scratch) * sizeof(Real);
        constexpr std::size_t usual = 48 * 1024;
        if (shared > usual)
            check_cuda(cudaFuncSetAttribute(run_blocks<Real, Functor>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(shared)),
                       op, "cudaFuncSetAttribute");
        run_blocks<Real, Functor><<<static_cast<unsigned>(count), lanes_of<Functor>, shared, stream_>>>(functor);
        check_cuda(cudaGetLastError(), op, "the launch of a kernel");
    }

    void product(const std::string& op, matrix_operand<Real> a, matrix_operand<Real> b, bool accumulate, Real* y,
                 std::ptrdiff_t y_stride, int m, int n, int k) {
        if (!a.transposed && b.transposed && internal::is_skinny(m, n, k)) {
            internal::launch_skinny<Real>({a.data, b.data, y, a.stride, b.stride, y_stride, m, n, k, accumulate},
                                          stream_);
            return check_cuda(cudaGetLastError(), op, "the launch of a kernel");
        }
        products(op, 1, a, 0, b, 0, accumulate, y, y_stride, 0, m, n, k);
    }
    void products(const std::string& op, int count, matrix_operand<Real> a, std::ptrdiff_t a_apart,
                  matrix_operand<Real> b, std::ptrdiff_t b_apart, bool accumulate, Real* y, std::ptrdiff_t y_stride,
                  std::ptrdiff_t y_apart, int m, int n, int k) {
        // cuBLAS counts by columns: a row-major y = a b is y^T = b^T a^T to it.
        const Real one = 1, zero = 0;
        constexpr auto type = sizeof(Real) == 4 ? CUDA_R_32F : CUDA_R_64F;
        const auto turned = [](bool t) { return t ? CUBLAS_OP_T : CUBLAS_OP_N; };
        check_cublas(
            cublasGemmStridedBatchedEx(blas_, turned(b.transposed), turned(a.transposed), n, m, k, &one, b.data, type,
                                       static_cast<int>(b.stride), b_apart, a.data, type, static_cast<int>(a.stride),
                                       a_apart, accumulate ? &one : &zero, y, type, static_cast<int>(y_stride), y_apart,
                                       count, computed_in(), CUBLAS_GEMM_DEFAULT),
            op, "cublasGemmStridedBatchedEx");
    }

    // --- what others do on the stream, or have to be asked for ---
    /// call(stream): what a library puts on the stream.
    template <class Call>
    void call(const Call& call) {
        call(stream_);
    }
    /// Is called again and again, the first time with true, while the host waits for the device.
    void watch(std::function<void(bool)> look) { look_ = std::move(look); }

    // --- replays ---
    /// Runs `body`, from the second time on as a graph, as long as it touches the same `resources`.
    template <class Resources, class Body>
    void replay(int sweep, const Resources& resources, Body body) {
        recorded& r = replays_[sweep];
        if (!same_resources(r.resources, resources)) {
            if (r.graph) cudaGraphExecDestroy(r.graph);
            r.graph = nullptr;
            r.runs = 0;
        }
        if (r.runs++ == 0) return body();
        if (!r.graph) {
            cudaGraph_t graph = nullptr;
            check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), who(),
                       "cudaStreamBeginCapture");
            try {
                body();
            } catch (...) {
                cudaStreamEndCapture(stream_, &graph);
                cudaGraphDestroy(graph);
                throw;
            }
            check_cuda(cudaStreamEndCapture(stream_, &graph), who(), "cudaStreamEndCapture");
            const cudaError_t made = cudaGraphInstantiate(&r.graph, graph, 0ull);
            cudaGraphDestroy(graph);
            check_cuda(made, who(), "cudaGraphInstantiate");
        }
        check_cuda(cudaGraphLaunch(r.graph, stream_), who(), "cudaGraphLaunch");
    }

    /// What sweeps do has changed: they are run again before they are replayed.
    void forget() {
        for (auto& r : replays_) {
            if (r.graph) cudaGraphExecDestroy(r.graph);
            r = {};
        }
    }

private:
    static constexpr int looks_at_once = 2000;
    static constexpr std::size_t places = 256, workspace_bytes = std::size_t{32} << 20;
    static constexpr int sweeps = 5;  // forward, backward, update, a caller's own, what shards add up

    struct recorded {
        cudaGraphExec_t graph = nullptr;
        int runs = 0;
        std::vector<const void*> resources;
    };

    static const char* who() { return "device"; }
    void move(void* to, const void* from, std::size_t count) {
        look_until_idle();
        check_cuda(cudaMemcpyAsync(to, from, count, cudaMemcpyDefault, stream_), who(), "cudaMemcpyAsync");
        check_cuda(cudaStreamSynchronize(stream_), who(), "cudaStreamSynchronize");
    }
    /// Where somebody wants to look while the host waits, it waits here: a copy to memory that is not pinned would
    /// block.
    void look_until_idle() {
        if (!look_) return;
        for (int tries = 0;; ++tries) {
            const cudaError_t state = cudaStreamQuery(stream_);
            if (state != cudaErrorNotReady) return check_cuda(state, who(), "cudaStreamQuery");
            if (tries < looks_at_once) continue;
            look_(tries == looks_at_once);
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }
    static std::size_t bytes(std::ptrdiff_t count) { return static_cast<std::size_t>(count) * sizeof(Real); }
    cublasComputeType_t computed_in() const {
        if constexpr (sizeof(Real) == 8) return CUBLAS_COMPUTE_64F;
        switch (precision) {
            case tensor_core_rounding::tf32:
                return CUBLAS_COMPUTE_32F_FAST_TF32;
            case tensor_core_rounding::bf16:
                return CUBLAS_COMPUTE_32F_FAST_16BF;
            default:
                return CUBLAS_COMPUTE_32F;
        }
    }

    cudaStream_t stream_ = nullptr;
    cudaEvent_t sent_ = nullptr;
    cublasHandle_t blas_ = nullptr;
    device_array<double> scalars_;
    device_array<int> alarms_;
    device_array<std::uint64_t> counter_;
    device_array<char> workspace_;
    std::function<void(bool)> look_;
    std::size_t used_scalars_ = 0;
    std::vector<std::string> sentences_;
    host_windows<Real, pinned_vector<Real>> windows_;
    recorded replays_[sweeps];
};

template <class Real>
struct knn_rings_of<cuda<Real>> {
    using type = knn_rings<Real, managed_vector>;
};

template <class Real>
struct link_matrices_of<cuda<Real>> {
    using type = link_matrices<Real, managed_vector>;
};

template <class Real>
struct running_statistics_of<cuda<Real>> {
    using type = running_statistics<Real, managed_vector>;
};

/// Whether a device can be used here; otherwise `why` tells in a sentence.
inline bool cuda_is_usable(std::string& why) {
    int count = 0;
    const cudaError_t result = cudaGetDeviceCount(&count);
    cudaGetLastError();
    if (result == cudaSuccess && count > 0) return true;
    why = message("device 'cuda': this machine has no usable GPU (", cudaGetErrorString(result), ")");
    return false;
}

/// Name, compute capability and memory of the device that is used: the first one that CUDA shows.
inline std::string describe_cuda() {
    cudaDeviceProp about;
    check_cuda(cudaGetDeviceProperties(&about, 0), "device", "cudaGetDeviceProperties");
    std::size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "device", "cudaMemGetInfo");
    return message(about.name, ", compute capability ", about.major, ".", about.minor, ", ", free >> 20, " of ",
                   total >> 20, " MiB free");
}

}  // namespace engram
