// Least-recently-used access in plain loops (facts 4.5): more than 1000 random steps over random settings and states,
// with episodes that begin inside the unroll; its gradients through five steps.

#include "memory_alone.hpp"

#include <numeric>

#include <engram/memory/lru_access.hpp>

using namespace engram;
using oracle::at;
using oracle::flat;
using oracle::matrix;
using oracle::numbers;
using oracle::spread;
using oracle::zeros;
using oracle::operator+;
using alone = oracle::memory_alone<lru_access>;

namespace {

/// One row of a batch.
struct loops {
    const parameters<double>& store;
    lru_access::settings s;
    int N, W, R;
    matrix memory, read_weight, write_weight;  // [N][W], [R][N], [R][N]
    numbers usage;

    explicit loops(const alone& of)
        : store(*of.store),
          s(of.settings),
          N(s.slots),
          W(s.word),
          R(s.heads),
          memory(zeros(N, W)),
          read_weight(zeros(R, N)),
          write_weight(zeros(R, N)),
          usage(at(N)) {}

    void begin_episode() {
        for (auto& row : memory) std::fill(row.begin(), row.end(), 1e-6);
        read_weight = write_weight = zeros(R, N);
        for (auto& row : read_weight) row[0] = 1;
        usage = numbers(at(N));
        usage[0] = 1;
    }
    matrix heads_of(const std::string& name, const numbers& in) const {
        matrix rows = zeros(R, W);
        numbers z = oracle::affine(store, name, in);
        for (double& x : z) x = std::tanh(x);
        spread(z.data(), rows);
        return rows;
    }

    void store_content(const numbers& in, const matrix& last_read) {
        std::vector<int> order(at(N));
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return usage[at(a)] < usage[at(b)]; });
        const numbers alpha = s.gate == "linear" ? oracle::affine(store, "memory.gate", in) : numbers{};
        const matrix add = heads_of(s.content == "own" ? "memory.content" : "memory.key", in);
        for (int r = 0; r < R; ++r) {
            const double gate =
                oracle::sigmoid(s.gate == "linear" ? alpha[at(r)] : oracle::weight(store, "memory.gate", 0, r));
            for (int n = 0; n < N; ++n)
                write_weight[at(r)][at(n)] = gate * last_read[at(r)][at(n)] + (n == order[at(r)] ? 1 - gate : 0);
        }
        for (int r = 0; r < R; ++r) std::fill(memory[at(order[at(r)])].begin(), memory[at(order[at(r)])].end(), 0.0);
        for (int n = 0; n < N; ++n)
            for (int i = 0; i < W; ++i)
                for (int r = 0; r < R; ++r) memory[at(n)][at(i)] += write_weight[at(r)][at(n)] * add[at(r)][at(i)];
    }

    numbers step(const numbers& cue, const numbers& stored, bool reset) {
        if (reset) begin_episode();
        const matrix last_read = read_weight;
        if (!s.read_before_write) store_content(cue, last_read);
        const matrix key = heads_of("memory.key", cue);
        numbers recalled(at(R * W));
        for (int r = 0; r < R; ++r) {
            double sum = 0;
            for (int n = 0; n < N; ++n) {
                double kk = 0, mm = 0, km = 0;
                for (int i = 0; i < W; ++i) {
                    kk += key[at(r)][at(i)] * key[at(r)][at(i)];
                    mm += memory[at(n)][at(i)] * memory[at(n)][at(i)];
                    km += key[at(r)][at(i)] * memory[at(n)][at(i)];
                }
                sum += read_weight[at(r)][at(n)] = std::exp(km / std::sqrt(kk * mm + 1e-6));
            }
            for (double& x : read_weight[at(r)]) x /= sum;
            for (int n = 0; n < N; ++n)
                for (int i = 0; i < W; ++i) recalled[at(r * W + i)] += read_weight[at(r)][at(n)] * memory[at(n)][at(i)];
        }
        if (s.read_before_write) store_content(stored, last_read);
        for (int n = 0; n < N; ++n) {
            usage[at(n)] *= s.decay;
            for (int r = 0; r < R; ++r) usage[at(n)] += read_weight[at(r)][at(n)] + write_weight[at(r)][at(n)];
        }
        return recalled;
    }
};

lru_access::settings drawn_settings(philox& random) {
    const auto upto = [&](std::uint32_t most) { return 1 + static_cast<int>(random.below(most)); };
    lru_access::settings s;
    s.slots = upto(19);
    s.word = upto(9);
    s.heads = upto(static_cast<std::uint32_t>(std::min(s.slots, 4)));
    s.decay = random.below(2) ? 0.95 : static_cast<double>(random.uniform());
    if (random.below(2))
        s.input = "all";
    else
        s.input = "held";
    s.read_before_write = random.below(2);
    if (random.below(2))
        s.gate = "linear";
    else
        s.gate = "parameter";
    if (random.below(2))
        s.content = "own";
    else
        s.content = "key";
    return s;
}

/// Every state of every row: memories of any numbers, read weights that sum to less than one, usages far apart.
template <class Backend>
void draw_states(program<Backend>& p, const lru_access::settings& s, philox& random) {
    for (auto& x : p.state("memory.memory")) x = random.normal();
    for (auto& x : p.state("memory.usage")) x = 3 * random.uniform();
    for (auto& x : p.state("memory.read_weight")) x = random.uniform() / static_cast<float>(s.slots);
}

}  // namespace

TEST_CASE("loops agree over random settings, states, steps and episodes") {
    constexpr int T = 6, B = 2;
    oracle::agreement all;
    int unset = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        philox random(seed, 1);
        const auto s = drawn_settings(random);
        const alone m(s, {1 + static_cast<int>(random.below(6)), 1 + static_cast<int>(random.below(6))}, seed,
                      seed % 3 == 0 ? 2 : 0.3);
        const auto p = m.plan(T, B, seed % 2 == 0);
        // Otherwise all is zero, as for whoever never says that an episode begins.
        if (random.below(3) > 0) draw_states(*p, s, random);
        std::vector<loops> rows(B, loops(m));
        for (int b = 0; b < B; ++b) {
            const auto from = [&](const char* name) { return oracle::state_row(*p, name, B, b); };
            spread(from("memory.memory"), rows[at(b)].memory);
            spread(from("memory.read_weight"), rows[at(b)].read_weight);
            std::copy_n(from("memory.usage"), s.slots, rows[at(b)].usage.begin());
        }
        const bool resets = random.below(4) > 0;
        unset += !resets;
        for (int unroll = 0; unroll < 2; ++unroll) {
            m.fill(*p, 100 * seed + static_cast<std::uint64_t>(unroll), resets ? 5 : 0);
            p->forward();
            for (int t = 0; t < T; ++t)
                for (int b = 0; b < B; ++b) {
                    auto& r = rows[at(b)];
                    const auto [cue, content, reset] = m.shown(*p, B, t, b);
                    const numbers read = r.step(cue, content, reset);
                    all.compare_step(m, *p, t, b, read, r.read_weight, message("settings ", seed, ", unroll ", unroll));
                }
            for (int b = 0; b < B; ++b) {
                const auto next = [&](const char* name) { return oracle::next_state_row(*p, name, B, b); };
                const auto& r = rows[at(b)];
                const auto place = message("settings ", seed, ", unroll ", unroll, ", row ", b);
                all.left.compare(next("memory.memory"), flat(r.memory), "memory, ", place);
                all.left.compare(next("memory.usage"), r.usage, "usage, ", place);
                all.left.compare(next("memory.read_weight"), flat(r.read_weight), "read weights, ", place);
            }
            p->carry();
        }
    }
    all.check();
    CHECK(unset > 10);
}

TEST_CASE("gradients through five steps, an episode beginning among them") {
    oracle::gradient_cases cases;
    for (const bool before : {true, false})
        for (const bool all : {true, false})
            for (const bool linear_gate : {true, false})
                for (const bool own : {true, false}) {
                    lru_access::settings s;
                    s.slots = 6;
                    s.word = 3;
                    s.heads = 2;
                    s.read_before_write = before;
                    s.input = all ? decltype(s.input)("all") : "held";
                    s.gate = linear_gate ? decltype(s.gate)("linear") : "parameter";
                    s.content = own ? decltype(s.content)("own") : "key";
                    const alone m(s, {3, 4}, 11, 0.3, {all, true, all && before, before});
                    cases.check(m, 70, [&](auto& p) {
                        philox random(5, 1);
                        m.fill(p, 3);
                        draw_states(p, s, random);
                        p.input("reset")[5] = 1;
                    });
                }
    cases.tell();
}
