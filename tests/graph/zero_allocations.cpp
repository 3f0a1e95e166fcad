// A replay allocates nothing: every operator new is counted while forward() and backward() run again.

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include <engram/graph/scan.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/batch_norm.hpp>
#include <engram/operations/concatenate.hpp>
#include <engram/operations/convolution.hpp>
#include <engram/operations/cpc.hpp>
#include <engram/operations/knn.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/matrix_memory.hpp>
#include <engram/operations/noise.hpp>
#include <engram/operations/pick.hpp>
#include <engram/operations/previous.hpp>
#include <engram/operations/returns.hpp>
#include <engram/operations/softmax.hpp>

namespace {

std::atomic<long> allocations{0};

void* counted(std::size_t size, std::size_t alignment) {
    ++allocations;
    size = (size + alignment - 1) / alignment * alignment;
    if (void* p = std::aligned_alloc(alignment, size ? size : alignment)) return p;
    throw std::bad_alloc();
}

}  // namespace

// Not inlined: g++ 12 takes the halves of an inlined pair for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
    return counted(size, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new[](std::size_t size) {
    return counted(size, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t a) {
    return counted(size, static_cast<std::size_t>(a));
}
[[gnu::noinline]] void* operator new[](std::size_t size, std::align_val_t a) {
    return counted(size, static_cast<std::size_t>(a));
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return counted(size, alignof(std::max_align_t));
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
    std::free(p);
}
[[gnu::noinline]] void operator delete[](void* p) noexcept {
    std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept {
    std::free(p);
}
[[gnu::noinline]] void operator delete[](void* p, std::size_t) noexcept {
    std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept {
    std::free(p);
}
[[gnu::noinline]] void operator delete[](void* p, std::align_val_t) noexcept {
    std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
    std::free(p);
}
[[gnu::noinline]] void operator delete[](void* p, std::size_t, std::align_val_t) noexcept {
    std::free(p);
}

using namespace engram;
using backend = cpu<float>;

namespace {

struct sigma {
    auto operator()(auto x) const { return logistic(x); }
};
struct product_of {
    auto operator()(auto a, auto b) const { return a * b + square(a); }
};
template <class Var>
struct agent_state {
    BOOST_HANA_DEFINE_STRUCT(agent_state, (Var, memory), (Var, hidden));
};

// An encoder of images, a recurrent core with a matrix memory, heads and losses: every operation at least once.
struct traced {
    static constexpr int T = 5, B = 3, N = 4, W = 6, H = 10, A = 3;
    std::shared_ptr<parameters<float>> store = std::make_shared<parameters<float>>(2);
    graph<backend> g{store};
    var<backend> policy;

    traced() {
        const image_shape frame{6, 5, 3};
        const auto pixels = g.input("pixels", frame.size());
        const auto action = g.input("action", 1), reset = g.input("reset", 1);
        const auto conv = declare_convolution(g, "conv", 3, 4, 3);
        const auto deconv = declare_deconvolution(g, "deconv", 4, 2, 4, 2);
        const auto norm = declare_batch_norm(g, "norm", 4);
        const auto table = g.declare("table", A, 5, initial::fan_in<float>());
        const auto convolved = batch_norm("norm", convolve("conv", pixels, frame, 4, 3, 1, conv), norm);
        const auto small = max_pool("pool", convolved, {6, 5, 4});
        const image_shape pooled{3, 3, 4};
        const auto last = embed("embed", action, table);
        const auto core = g.declare_linear("core", small.width + 5 + A + W + H, 3 * W + H);
        const auto key = g.declare_linear("key", H, 4), predict = g.declare_linear("predict", H, 2 * W);
        const auto rings = add_knn_memory(g, "rings", 7, H, 4);
        const auto head = g.declare_linear("head", H + H + 2, A);
        agent_state<var<backend>> start{g.state("memory", N * W), g.state("hidden", W + H)};
        var<backend> hidden, read;
        const auto out = scan(g, start, [&](auto& s) {
            const auto z = affine<backend>("core", {small, last, one_hot("one_hot", action, A), s.hidden}, core);
            const auto weights = softmax("softmax", cosine_scores("cosine", s.memory, z.columns(0, W), W));
            s.memory =
                erase_add("write", s.memory, weights, map("erase", sigma{}, z.columns(W, W)), z.columns(2 * W, W), W);
            hidden = map("hidden", sigma{}, z.columns(3 * W, H));
            read = weighted_read("read", weights, s.memory, W);
            s.hidden = concatenate<backend>("join", {read, hidden});
            knn_forget(rings, reset);
            const knn_read_settings settings{
                .memory = rings, .weight = {}, .bias = {}, .neighbours = 3, .value_width = H};
            const auto recall = knn_read(affine<backend>("query", {hidden}, key), key, settings).value;
            knn_write(rings, hidden, affine<backend>("stored key", {hidden}, key));
            return affine<backend>("head", {hidden, recall, normal_noise(g, "noise", 2)}, head);
        });
        policy = log_softmax("policy", out);
        add_loss("policy", pick("pick", policy, action), -1);
        const auto value = map("value", sigma{}, g.input("reward", 1)), ratio = pick("ratio", policy, action);
        const auto targets =
            vtrace_targets("vtrace", ratio, value, value, value, g.input("bootstrap", 1, extent::batch));
        add_loss("targets", map("product4", product_of{}, pick("again", out, action), targets.advantage));
        add_loss("cpc", cpc_loss("cpc.rows", read, affine<backend>("predict", {hidden}, predict), reset));
        const auto image = deconvolve("deconv", small, pooled, 2, 4, 2, deconv);
        add_loss("image",
                 sum_columns("sum",
                             map("product", product_of{}, image,
                                 upsample("up", map("half", sigma{}, image.columns(0, 18)), {3, 3, 2}).columns(0, 72))),
                 0.1, reduction::mean);
        add_loss("change", sum_columns("sum2", map("product2", product_of{}, out, previous("previous", out))));
        add_loss("uniform", sum_columns("sum3", map("product3", product_of{}, out, uniform_noise(g, "uniform", 1))));
    }
};

void fill(program<backend>& p) {
    philox random(3, 1);
    for (auto& v : p.input("pixels")) v = random.normal();
    for (const char* name : {"reward", "bootstrap"})
        if (p.has_input(name))
            for (auto& v : p.input(name)) v = random.normal();
    p.input("reset")[1] = 1;
    for (auto& v : p.input("action")) v = static_cast<float>(random.below(traced::A));
}

}  // namespace

TEST_CASE("the counter counts") {
    const long before = allocations;
    // Called by name, since a compiler may leave out what a new-expression allocates.
    ::operator delete(::operator new(100));
    ::operator delete[](::operator new[](100));
    CHECK(allocations - before >= 2);
}

TEST_CASE("replays of a learner and of an actor allocate nothing after the first") {
    auto products = product_precision::full;
    SUBCASE("float products") {}
    SUBCASE("bfloat16 products") {
        products = product_precision::bfloat16;
    }
    traced m;
    m.store->set_products(products);
    program<backend> learner(m.g, m.store, {.steps = traced::T, .batch = traced::B, .gradients = true}, {m.policy});
    program<backend> actor(m.g, m.store, {.steps = 1, .batch = traced::B}, {m.policy});
    fill(learner);
    fill(actor);
    learner.forward();
    learner.backward();
    actor.forward();
    float slope = 0;
    for (const float v : learner.gradient()) slope = std::max(slope, std::abs(v));
    CHECK(slope > 0);
    CHECK(std::isfinite(slope));
    const long before = allocations;
    for (int i = 0; i < 3; ++i) {
        learner.forward();
        learner.backward();
        learner.carry();
        actor.forward();
        actor.carry();
    }
    const long during = allocations - before;
    CHECK(during == 0);
    // Publishing new weights packs them again in place.
    const long before_edit = allocations;
    {
        auto edit = m.store->edit();
        edit.flat()[0] += 1;
    }
    const long in_edit = allocations - before_edit;
    CHECK(in_edit == 0);
}

TEST_CASE("a large k-NN ring is written, restored and searched without an allocation") {
    constexpr int slots = 1024, D = 128;
    knn_rings<float> rings(1, slots, 1, D);
    std::vector<float> key(D), scratch(slots);
    std::vector<int> found(10);
    philox random(4, 1);
    const auto write = [&] {
        for (auto& v : key) v = random.normal();
        knn_write(rings.ring(0), key.data(), key.data());
    };
    for (int i = 0; i < slots; ++i) write();
    (void)rings.bytes();
    const long before = allocations;
    for (int i = 0; i < 20; ++i) {
        write();
        CHECK(knn_select(rings.ring(0), key.data(), 10, found.data(), scratch.data()) == 10);
    }
    const long during = allocations - before;
    CHECK(during == 0);
}
