// The Neural Turing Machine's memory in plain loops (facts 4.4): 1000 and more random steps over random settings and
// states, with episodes that begin inside the unroll; its gradients through five steps.

#include "memory_alone.hpp"

#include <engram/memory/ntm.hpp>

using namespace engram;
using oracle::at;
using oracle::flat;
using oracle::matrix;
using oracle::numbers;
using oracle::spread;
using oracle::operator+;
using alone = oracle::memory_alone<ntm>;

namespace {

numbers part(const numbers& x, std::size_t first, int count) {
    return {x.begin() + static_cast<std::ptrdiff_t>(first), x.begin() + static_cast<std::ptrdiff_t>(first) + count};
}

/// One row of a batch.
struct loops {
    const parameters<double>& store;
    ntm::settings s;
    std::vector<numbers> memory, read_weight, write_weight;  // [N][W], [R][N], [H][N]

    loops(const alone& of)
        : store(*of.store),
          s(of.settings),
          memory(static_cast<std::size_t>(s.slots), numbers(static_cast<std::size_t>(s.word))),
          read_weight(static_cast<std::size_t>(s.read_heads), numbers(static_cast<std::size_t>(s.slots))),
          write_weight(static_cast<std::size_t>(s.write_heads), numbers(static_cast<std::size_t>(s.slots))) {}

    void begin_episode() {
        for (auto* weights : {&read_weight, &write_weight})
            for (auto& row : *weights) {
                std::fill(row.begin(), row.end(), 0.0);
                if (s.focus == "first") row[0] = 1;
            }
        for (int i = 0; i < s.slots; ++i)
            for (int j = 0; j < s.word; ++j)
                memory[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] =
                    s.start == "constant" ? 1e-6 : oracle::weight(store, "memory.start", 0, i * s.word + j);
    }

    numbers address(const numbers& key, const numbers& raw, const numbers& previous) const {
        const std::size_t N = memory.size();
        const double beta = oracle::softplus(raw[0]), gate = oracle::sigmoid(raw[1]),
                     gamma = 1 + oracle::softplus(raw[5]);
        numbers shift(3), content(N), gated(N), shifted(N, 0.0), w(N);
        double sum = 0;
        for (std::size_t o = 0; o < 3; ++o) sum += shift[o] = std::exp(raw[2 + o]);
        for (double& x : shift) x /= sum;
        sum = 0;
        for (std::size_t i = 0; i < N; ++i) {
            double product = 0, keys = 1e-6, row = 1e-6;
            for (std::size_t j = 0; j < key.size(); ++j) {
                product += key[j] * memory[i][j];
                keys += key[j] * key[j];
                row += memory[i][j] * memory[i][j];
            }
            sum += content[i] = std::exp(beta * product / (std::sqrt(keys) * std::sqrt(row) + 1e-6));
        }
        for (std::size_t i = 0; i < N; ++i) gated[i] = gate * content[i] / sum + (1 - gate) * previous[i];
        for (std::size_t i = 0; i < N; ++i)
            for (int offset = -1; offset <= 1; ++offset) {
                const std::size_t to = (i + N + static_cast<std::size_t>(offset + 1) - 1) % N;
                shifted[to] += gated[i] * shift[static_cast<std::size_t>(offset + 1)];
            }
        // Powers of long double have a sum where those of double would vanish.
        long double powers = 0;
        for (std::size_t i = 0; i < N; ++i) powers += std::pow(static_cast<long double>(shifted[i]), gamma);
        for (std::size_t i = 0; i < N; ++i)
            w[i] = static_cast<double>(std::pow(static_cast<long double>(shifted[i]), gamma) / powers);
        return w;
    }

    void store_content(const numbers& in) {
        const numbers z = oracle::affine(store, "memory.write", in);
        const std::size_t W = static_cast<std::size_t>(s.word), H = write_weight.size();
        std::vector<numbers> next;
        for (std::size_t h = 0; h < H; ++h)
            next.push_back(address(part(z, h * W, s.word), part(z, 3 * H * W + 6 * h, 6), write_weight[h]));
        write_weight = next;
        for (std::size_t i = 0; i < memory.size(); ++i)
            for (std::size_t j = 0; j < W; ++j) {
                double kept = memory[i][j], added = 0;
                for (std::size_t h = 0; h < H; ++h) {
                    kept *= 1 - next[h][i] * oracle::sigmoid(z[(H + h) * W + j]);
                    added += next[h][i] * z[(2 * H + h) * W + j];
                }
                memory[i][j] = kept + added;
            }
    }

    numbers step(const numbers& cue, const numbers& content, bool reset) {
        if (reset) begin_episode();
        if (!s.read_before_write) store_content(cue);
        const numbers z = oracle::affine(store, "memory.read", cue);
        const std::size_t W = static_cast<std::size_t>(s.word), R = read_weight.size();
        numbers recalled(R * W, 0.0);
        for (std::size_t r = 0; r < R; ++r) {
            read_weight[r] = address(part(z, r * W, s.word), part(z, R * W + 6 * r, 6), read_weight[r]);
            for (std::size_t i = 0; i < memory.size(); ++i)
                for (std::size_t j = 0; j < W; ++j) recalled[r * W + j] += read_weight[r][i] * memory[i][j];
        }
        if (s.read_before_write) store_content(content);
        return recalled;
    }
};

ntm::settings drawn_settings(philox& random) {
    const auto upto = [&](std::uint32_t most) { return 1 + static_cast<int>(random.below(most)); };
    ntm::settings s;
    s.slots = upto(19);
    s.word = upto(9);
    s.read_heads = upto(3);
    s.write_heads = upto(3);
    if (random.below(2))
        s.input = "all";
    else
        s.input = "held";
    s.read_before_write = random.below(2);
    if (random.below(2))
        s.start = "constant";
    else
        s.start = "learned";
    if (s.start == "constant" || random.below(2))
        s.focus = "first";
    else
        s.focus = "none";
    return s;
}

}  // namespace

TEST_CASE("loops agree over random settings, states, steps and episodes") {
    constexpr int T = 6, B = 2;
    oracle::agreement all;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        philox random(seed, 1);
        const auto s = drawn_settings(random);
        // Small weights leave heads diffuse; large ones saturate gates and sharpen.
        const alone m(s, {1 + static_cast<int>(random.below(6)), 1 + static_cast<int>(random.below(6))}, seed,
                      seed % 3 == 0 ? 2 : 0.3);
        const auto p = m.plan(T, B);
        const bool warm = random.below(2);
        if (warm)
            for (const char* name : {"memory.memory", "memory.read_weight", "memory.write_weight"}) {
                const auto state = p->state(name);
                for (double& x : state)
                    x = name == std::string("memory.memory") ? static_cast<double>(random.normal())
                                                             : 1e-3 + static_cast<double>(random.uniform());
                // Weights of a head are a distribution.
                if (name != std::string("memory.memory"))
                    for (std::size_t i = 0; i < state.size(); i += static_cast<std::size_t>(s.slots)) {
                        double sum = 0;
                        for (int n = 0; n < s.slots; ++n) sum += state[i + static_cast<std::size_t>(n)];
                        for (int n = 0; n < s.slots; ++n) state[i + static_cast<std::size_t>(n)] /= sum;
                    }
            }
        std::vector<loops> rows(B, loops(m));
        for (int b = 0; b < B; ++b) {
            auto& r = rows[at(b)];
            spread(oracle::state_row(*p, "memory.memory", B, b), r.memory);
            spread(oracle::state_row(*p, "memory.read_weight", B, b), r.read_weight);
            spread(oracle::state_row(*p, "memory.write_weight", B, b), r.write_weight);
        }
        for (int unroll = 0; unroll < 2; ++unroll) {
            m.fill(*p, 100 * seed + static_cast<std::uint64_t>(unroll), 5);
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
                const auto& r = rows[static_cast<std::size_t>(b)];
                const auto place = message("settings ", seed, ", unroll ", unroll, ", row ", b);
                all.left.compare(next("memory.memory"), flat(r.memory), "memory, ", place);
                all.left.compare(next("memory.read_weight"), flat(r.read_weight), "read weights, ", place);
                all.left.compare(next("memory.write_weight"), flat(r.write_weight), "write weights, ", place);
            }
            p->carry();
        }
    }
    all.check();
}

TEST_CASE("gradients through five steps, episodes beginning among them") {
    oracle::gradient_cases cases;
    for (const bool before : {true, false})
        for (const bool learned : {true, false})
            for (const bool all : {true, false}) {
                ntm::settings s;
                s.slots = 5;
                s.word = 3;
                s.read_heads = 2;
                s.write_heads = 2;
                s.read_before_write = before;
                s.start = learned ? decltype(s.start)("learned") : "constant";
                s.focus = learned ? decltype(s.focus)("none") : "first";
                s.input = all ? decltype(s.input)("all") : "held";
                const alone m(s, {3, 4}, 11, 0.3, {all, true, all && before, before});
                cases.check(m, 100, [&](auto& p) {
                    m.fill(p, 3);
                    for (const int at : {0, 1, 6}) p.input("reset")[static_cast<std::size_t>(at)] = 1;
                });
            }
    cases.tell();
}
