// The Memory Recall Agent, step by step (facts 1.1 and 1.3): encoder, query, selection by cached keys, recomputed keys,
// inverse-distance weights, LSTM, heads, write; with resets inside the unroll, a ring that wraps around, weights that
// change while keys stay cached, and contents replayed from a trajectory.

#include "loops.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>

#include "../model/prepare.hpp"

using namespace engram;
using oracle::numbers;
using backend = cpu<double>;
using oracle::operator+;

namespace {

constexpr int T = 7, B = 2, N = 4, K = 3, X = 4, H = 5, A = 3;
constexpr double epsilon = 0.05;

struct entry {
    numbers p, v, key;
};

struct loops {
    const parameters<double>& store;
    bool jumpy;
    std::string values;
    explicit loops(const parameters<double>& s, bool j, std::string v) : store(s), jumpy(j), values(std::move(v)) {}

    numbers h = numbers(H), cell = numbers(H);
    std::vector<entry> slots;
    int written = 0;
    // Of the last step:
    numbers weights, when, logits;

    void step(const numbers& pixels, double last_action, double last_reward, bool reset, const numbers* replayed) {
        if (reset) {
            h.assign(H, 0);
            cell.assign(H, 0);
            slots.clear();
            written = 0;
        }
        numbers centred;
        for (const double v : pixels) centred.push_back(2 * v - 1);
        const numbers x = oracle::relu(oracle::affine(
            store, "encoder.layers.1", oracle::relu(oracle::affine(store, "encoder.layers.0", centred))));
        const numbers m = read(oracle::affine(store, "memory.query", x + h));
        numbers action(A, 0);
        if (last_action >= 0) action[static_cast<std::size_t>(last_action)] = 1;
        h = oracle::lstm(store, x + m + action + numbers{std::clamp(last_reward, -1.0, 1.0)}, h, cell);
        logits = oracle::affine(store, "learner.policy", h);

        entry fresh{x, h, {}};
        if (replayed) {
            fresh.p.assign(replayed->begin(), replayed->begin() + static_cast<std::ptrdiff_t>(x.size()));
            fresh.v.assign(replayed->begin() + static_cast<std::ptrdiff_t>(x.size()), replayed->end());
        }
        fresh.key = oracle::affine(store, "memory.key", fresh.p + fresh.v);
        if (static_cast<int>(slots.size()) < N)
            slots.push_back(fresh);
        else
            slots[static_cast<std::size_t>(written % N)] = fresh;
        ++written;
    }

    numbers read(const numbers& q) {
        const auto distance = [&](const numbers& key) {
            double d = 0;
            for (std::size_t i = 0; i < q.size(); ++i) d += (q[i] - key[i]) * (q[i] - key[i]);
            return d;
        };
        std::vector<std::pair<double, int>> order;
        for (std::size_t i = 0; i < slots.size(); ++i) order.emplace_back(distance(slots[i].key), static_cast<int>(i));
        std::sort(order.begin(), order.end());
        order.resize(std::min<std::size_t>(order.size(), K));
        weights.assign(K, 0);
        when.assign(K, -1);
        double sum = 0;
        for (std::size_t j = 0; j < order.size(); ++j) {
            const entry& e = slots[static_cast<std::size_t>(order[j].second)];
            weights[j] = 1 / (epsilon + distance(jumpy ? oracle::affine(store, "memory.key", e.p + e.v) : e.key));
            sum += weights[j];
        }
        numbers m(values == "held" ? H : values == "observed" ? X : X + H, 0);
        for (std::size_t j = 0; j < order.size(); ++j) {
            const int slot = order[j].second;
            const entry& e = slots[static_cast<std::size_t>(slot)];
            const numbers value = values == "held" ? e.v : values == "observed" ? e.p : e.p + e.v;
            weights[j] /= sum;
            for (std::size_t i = 0; i < m.size(); ++i) m[i] += weights[j] * value[i];
            // The last write that went to this slot.
            for (int w = 0; w < written; ++w)
                if (w % N == slot) when[j] = w;
        }
        return m;
    }
};

template <class Agent>
void compare(bool jumpy, bool replay, memory_values values = "held") {
    auto s = prepared::tiny<Agent>();
    s.memory.values = values;
    s.memory.epsilon = epsilon;
    const auto a = prepared::traced<Agent, backend>(s);
    program<backend> p(*a.g, a.store, {.steps = T, .batch = B, .gradients = true, .replay = replay},
                       {a.x, a.h, a.logits, a.value, *a.read_weight, *a.read_when});
    std::vector<loops> rows;
    for (int b = 0; b < B; ++b) rows.emplace_back(*a.store, jumpy, std::string(values.word()));
    for (int unroll = 0; unroll < 3; ++unroll) {
        fill_randomly(p, a, static_cast<std::uint64_t>(unroll + 1));
        p.input("last_action")[0] = -1;
        if (unroll == 1) p.input("reset")[3 * B] = p.input("reset")[6 * B + 1] = 1;
        p.forward();
        const auto input = [&](const char* name, int width, int t, int b) {
            return oracle::row(p.input(name), width, B, t, b);
        };
        for (int t = 0; t < T; ++t)
            for (int b = 0; b < B; ++b) {
                CAPTURE(unroll);
                CAPTURE(t);
                CAPTURE(b);
                auto& r = rows[static_cast<std::size_t>(b)];
                numbers stored;
                if (replay) stored = input("memory.stored", X + H, t, b);
                r.step(input("observation", 16, t, b), input("last_action", 1, t, b)[0],
                       input("last_reward", 1, t, b)[0], input("reset", 1, t, b)[0] > 0.5, replay ? &stored : nullptr);
                oracle::check_near(oracle::row(p.output(a.h), t, b), r.h);
                oracle::check_near(oracle::row(p.output(a.logits), t, b), r.logits);
                oracle::check_near(oracle::row(p.output(a.value), t, b),
                                   oracle::affine(*a.store, "learner.value", r.h));
                oracle::check_near(oracle::row(p.output(*a.read_weight), t, b), r.weights);
                CHECK(oracle::row(p.output(*a.read_when), t, b) == r.when);
            }
        CHECK(rows[0].written == (unroll == 0 ? T : unroll == 1 ? 4 : 4 + T));
        p.carry();
        // The next unroll meets keys that were cached under other weights.
        prepared::unsettle(a, 0.05);
    }
}

using jumping = agent<mlp, engram::lstm, fifo_knn, no_auxiliary, vtrace>;

}  // namespace

TEST_CASE("acting") {
    compare<jumping>(true, false);
}
TEST_CASE("replaying what was stored") {
    compare<jumping>(true, true);
}
TEST_CASE("what is read of a write: what was seen, or all of it") {
    compare<jumping>(true, true, "observed");
    compare<jumping>(true, false, "all");
}
TEST_CASE("without jumpy backpropagation cached keys weigh as they are") {
    compare<jumping::with<fifo_knn_no_jumpy>>(false, false);
    compare<jumping::with<fifo_knn_no_jumpy>>(false, true);
}
