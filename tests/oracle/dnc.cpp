// The DNC's memory in plain loops (facts 4.6): more than 1000 random steps over random settings and states, with
// episodes that begin inside the unroll; its gradients through five steps, with usage's writes a constant and not.

#include "memory_alone.hpp"

#include <numeric>

#include <engram/memory/dnc.hpp>

using namespace engram;
using oracle::at;
using oracle::flat;
using oracle::matrix;
using oracle::numbers;
using oracle::spread;
using oracle::zeros;
using oracle::operator+;
using alone = oracle::memory_alone<dnc>;

namespace {

/// One row of a batch.
struct loops {
    const parameters<double>& store;
    dnc::settings s;
    int N, W, R, H;
    matrix memory, read_weight, write_weight, precedence;  // [N][W], [R][N], [H][N], [H][N]
    numbers usage;
    std::vector<matrix> link;  // [H][N][N]
    // As they stood before the last write.
    matrix older_precedence;
    std::vector<matrix> older_link;
    // The write weights that usage counts: noted, and later given back, so that differences hold them constant.
    std::vector<matrix> counted;
    std::size_t next_counted = 0;
    bool holds = false;
    // Slots that were never told apart differ by rounding errors alone, which then say who is allocated first. So the
    // order can be that of the program's usages [H][N], as long as it is right within 1e-12 by these here.
    matrix order_by;
    bool order_agrees = true;

    explicit loops(const alone& of)
        : store(*of.store),
          s(of.settings),
          N(s.slots),
          W(s.word),
          R(s.read_heads),
          H(s.write_heads),
          memory(zeros(N, W)),
          read_weight(zeros(R, N)),
          write_weight(zeros(H, N)),
          precedence(zeros(H, N)),
          usage(at(N)),
          link(at(H), zeros(N, N)),
          older_precedence(precedence),
          older_link(link) {}

    void begin_episode() {
        for (matrix* m : {&memory, &read_weight, &write_weight, &precedence, &older_precedence})
            for (auto& row : *m) std::fill(row.begin(), row.end(), 0.0);
        std::fill(usage.begin(), usage.end(), 0.0);
        for (auto* links : {&link, &older_link})
            for (auto& l : *links) l = zeros(N, N);
    }

    numbers content(const numbers& key, double strength) const {
        numbers c(at(N));
        double kk = 1e-6, top = -INFINITY, sum = 0;
        for (const double k : key) kk += k * k;
        for (int n = 0; n < N; ++n) {
            double km = 0, mm = 1e-6;
            for (int i = 0; i < W; ++i) {
                km += key[at(i)] * memory[at(n)][at(i)];
                mm += memory[at(n)][at(i)] * memory[at(n)][at(i)];
            }
            c[at(n)] = oracle::softplus(strength + s.strength_offset) * km / (std::sqrt(kk) * std::sqrt(mm) + 1e-6);
            top = std::max(top, c[at(n)]);
        }
        for (double& x : c) sum += x = std::exp(x - top);
        for (double& x : c) x /= sum;
        return c;
    }

    /// L and p after a write at write_weight.
    void move_links() {
        older_link = link;
        older_precedence = precedence;
        for (int h = 0; h < H; ++h) {
            const numbers& w = write_weight[at(h)];
            numbers& p = precedence[at(h)];
            double total = 0;
            for (int i = 0; i < N; ++i) {
                for (int j = 0; j < N; ++j) {
                    double& l = link[at(h)][at(i)][at(j)];
                    l = i == j ? 0 : (1 - w[at(i)] - w[at(j)]) * l + w[at(i)] * p[at(j)];
                }
                total += w[at(i)];
            }
            for (int i = 0; i < N; ++i) p[at(i)] = (1 - total) * p[at(i)] + w[at(i)];
        }
    }

    void store_content(const numbers& in, const matrix& last_read) {
        const numbers z = oracle::affine(store, "memory.write", in);
        const auto key = [&](int h, int i) { return z[at(h * W + i)]; };
        const auto add = [&](int h, int i) { return z[at((H + h) * W + i)]; };
        const auto erase = [&](int h, int i) { return oracle::sigmoid(z[at((2 * H + h) * W + i)]); };
        const auto free = [&](int r) { return oracle::sigmoid(z[at(3 * H * W + r)]); };
        const auto allocates = [&](int h) { return oracle::sigmoid(z[at(3 * H * W + R + h)]); };
        const auto writes = [&](int h) { return oracle::sigmoid(z[at(3 * H * W + R + H + h)]); };
        const auto strength = [&](int h) { return z[at(3 * H * W + R + 2 * H + h)]; };

        if (!holds) counted.push_back(write_weight);
        const matrix& seen = s.usage_gradient ? write_weight : counted[next_counted];
        ++next_counted;
        for (int n = 0; n < N; ++n) {
            double untouched = 1, kept = 1;
            for (int h = 0; h < H; ++h) untouched *= 1 - seen[at(h)][at(n)];
            for (int r = 0; r < R; ++r) kept *= 1 - free(r) * last_read[at(r)][at(n)];
            usage[at(n)] = (usage[at(n)] + (1 - usage[at(n)]) * (1 - untouched)) * kept;
        }
        numbers u = usage;
        matrix fresh = zeros(H, N);
        for (int h = 0; h < H; ++h) {
            std::vector<int> order(at(N));
            std::iota(order.begin(), order.end(), 0);
            const auto scale = [](double x) { return 1e-6 + (1 - 1e-6) * x; };
            const auto scaled = [&](int n) { return scale(u[at(n)]); };
            const numbers& rank = order_by.empty() ? u : order_by[at(h)];
            std::stable_sort(order.begin(), order.end(),
                             [&](int a, int b) { return scale(rank[at(a)]) < scale(rank[at(b)]); });
            for (int j = 1; j < N; ++j) order_agrees &= scaled(order[at(j - 1)]) <= scaled(order[at(j)]) + 1e-12;
            numbers allocation(at(N));
            for (int j = 0; j < N; ++j) {
                allocation[at(order[at(j)])] = 1 - scaled(order[at(j)]);
                for (int i = 0; i < j; ++i) allocation[at(order[at(j)])] *= scaled(order[at(i)]);
            }
            numbers k(at(W));
            for (int i = 0; i < W; ++i) k[at(i)] = key(h, i);
            const numbers c = content(k, strength(h));
            for (int n = 0; n < N; ++n) {
                fresh[at(h)][at(n)] = writes(h) * (allocates(h) * allocation[at(n)] + (1 - allocates(h)) * c[at(n)]);
                u[at(n)] += (1 - u[at(n)]) * allocates(h) * writes(h) * allocation[at(n)];
            }
        }
        write_weight = fresh;
        for (int n = 0; n < N; ++n)
            for (int i = 0; i < W; ++i) {
                double keeps = 1, added = 0;
                for (int h = 0; h < H; ++h) {
                    keeps *= 1 - fresh[at(h)][at(n)] * erase(h, i);
                    added += fresh[at(h)][at(n)] * add(h, i);
                }
                memory[at(n)][at(i)] = memory[at(n)][at(i)] * keeps + added;
            }
        move_links();
    }

    numbers step(const numbers& cue, const numbers& stored, bool reset) {
        if (reset) begin_episode();
        const matrix last_read = read_weight;
        if (!s.read_before_write) store_content(cue, last_read);
        const numbers z = oracle::affine(store, "memory.read", cue);
        const int K = 1 + 2 * H;
        numbers recalled(at(R * W));
        for (int r = 0; r < R; ++r) {
            numbers mode(at(K)), k(at(W)), v(at(N));
            double sum = 0;
            for (int i = 0; i < K; ++i) sum += mode[at(i)] = std::exp(z[at(R * W + R + r * K + i)]);
            for (int i = 0; i < W; ++i) k[at(i)] = z[at(r * W + i)];
            const numbers c = content(k, z[at(R * W + r)]);
            for (int n = 0; n < N; ++n) {
                v[at(n)] = mode[at(2 * H)] / sum * c[at(n)];
                for (int h = 0; h < H; ++h)
                    for (int j = 0; j < N; ++j) {
                        const matrix& l = link[at(h)];
                        v[at(n)] += mode[at(h)] / sum * l[at(j)][at(n)] * last_read[at(r)][at(j)];
                        v[at(n)] += mode[at(H + h)] / sum * l[at(n)][at(j)] * last_read[at(r)][at(j)];
                    }
            }
            for (int n = 0; n < N; ++n)
                for (int i = 0; i < W; ++i) recalled[at(r * W + i)] += v[at(n)] * memory[at(n)][at(i)];
            read_weight[at(r)] = v;
        }
        if (s.read_before_write) store_content(stored, last_read);
        return recalled;
    }
};

dnc::settings drawn_settings(philox& random) {
    const auto upto = [&](std::uint32_t most) { return 1 + static_cast<int>(random.below(most)); };
    dnc::settings s;
    s.slots = upto(19);
    s.word = upto(9);
    s.read_heads = upto(4);
    s.write_heads = upto(3);
    if (random.below(2))
        s.input = "all";
    else
        s.input = "held";
    s.read_before_write = random.below(2);
    s.usage_gradient = random.below(2);  // nothing to a forward sweep
    s.strength_offset = random.below(2);
    return s;
}

/// Every state of every row: memories of any numbers, weights that sum to less than one, usages in [0, 1].
template <class Backend>
void draw_states(program<Backend>& p, const dnc::settings& s, philox& random) {
    for (const std::string name :
         {"memory.memory", "memory.usage", "memory.read_weight", "memory.write_weight", "memory.precedence"}) {
        const auto state = p.state(name);
        for (auto& x : state)
            x = name == "memory.memory"  ? random.normal()
                : name == "memory.usage" ? random.uniform()
                                         : random.uniform() / static_cast<float>(s.slots);
    }
    for (std::size_t r = 0; r < p.resource_count(); ++r) {
        const auto bytes = p.bound_resource(r)->bytes()[0];
        const auto count = bytes.size() / sizeof(double);
        auto* links = reinterpret_cast<double*>(bytes.data());
        for (std::size_t i = 0; i < count; ++i) {
            const bool diagonal = i % at(s.slots * s.slots) % at(s.slots + 1) == 0;
            links[i] = diagonal ? 0 : random.uniform() / static_cast<float>(s.slots);
        }
    }
}

/// The rows of a batch, standing where a program stands.
std::vector<loops> rows_of(const alone& m, program<cpu<double>>& p, int B) {
    std::vector<loops> rows(at(B), loops(m));
    for (int b = 0; b < B; ++b) {
        loops& r = rows[at(b)];
        const auto from = [&](const char* name) { return oracle::state_row(p, name, B, b); };
        spread(from("memory.memory"), r.memory);
        spread(from("memory.read_weight"), r.read_weight);
        spread(from("memory.write_weight"), r.write_weight);
        spread(from("memory.precedence"), r.precedence);
        std::copy_n(from("memory.usage"), r.N, r.usage.begin());
        for (int h = 0; h < r.H; ++h)
            spread(static_cast<link_matrices<double>&>(*p.bound_resource(at(h))).link(b), r.link[at(h)]);
        if (r.s.read_before_write) r.move_links();  // the state lacks the last write
    }
    return rows;
}

}  // namespace

TEST_CASE("loops agree over random settings, states, steps and episodes") {
    constexpr int T = 6, B = 2;
    oracle::agreement all;
    int heads = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        philox random(seed, 1);
        const auto s = drawn_settings(random);
        heads += s.write_heads > 1;
        // Small weights leave gates half open; large ones shut them and sharpen.
        const alone m(s, {1 + static_cast<int>(random.below(6)), 1 + static_cast<int>(random.below(6))}, seed,
                      seed % 3 == 0 ? 2 : 0.3);
        std::vector<var<cpu<double>>> seen{m.context, m.weight}, ranked;
        for (const auto& op : m.g->operations())
            if (op->name == "memory.allocation") {
                ranked.emplace_back();
                static_cast<view&>(ranked.back()) = op->inputs[0];
                seen.push_back(ranked.back());
            }
        const auto p = std::make_unique<program<cpu<double>>>(
            *m.g, m.store, plan_options{.steps = T, .batch = B, .gradients = seed % 2 == 0}, seen);
        if (random.below(2)) draw_states(*p, s, random);
        auto rows = rows_of(m, *p, B);
        for (int unroll = 0; unroll < 2; ++unroll) {
            m.fill(*p, 100 * seed + static_cast<std::uint64_t>(unroll), 5);
            p->forward();
            for (int t = 0; t < T; ++t)
                for (int b = 0; b < B; ++b) {
                    auto& r = rows[at(b)];
                    const auto [cue, content, reset] = m.shown(*p, B, t, b);
                    r.order_by.clear();
                    for (const auto& v : ranked) r.order_by.push_back(oracle::row(p->output(v), t, b));
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
                all.left.compare(next("memory.write_weight"), flat(r.write_weight), "write weights, ", place);
                all.left.compare(next("memory.precedence"),
                                 flat(s.read_before_write ? r.older_precedence : r.precedence), "precedence, ", place);
                for (int h = 0; h < s.write_heads; ++h) {
                    const double* link = static_cast<link_matrices<double>&>(*p->bound_resource(at(h))).link(b);
                    all.left.compare(numbers(link, link + s.slots * s.slots),
                                     flat((s.read_before_write ? r.older_link : r.link)[at(h)]), "link, ", place);
                }
            }
            p->carry();
        }
        for (const auto& r : rows) CHECK(r.order_agrees);
    }
    all.check();
    CHECK(heads > 10);
}

namespace {

dnc::settings small_settings(bool before, bool all, int write_heads) {
    dnc::settings s;
    s.slots = 5;
    s.word = 3;
    s.read_heads = 2;
    s.write_heads = write_heads;
    s.read_before_write = before;
    s.input = all ? decltype(s.input)("all") : "held";
    return s;
}

/// States and inputs of a gradient check: usages far from each other, an episode's start in the second row.
void prepare(const alone& m, program<cpu<double>>& p) {
    philox random(5, 1);
    m.fill(p, 3);
    draw_states(p, m.settings, random);
    p.input("reset")[5] = 1;
}

}  // namespace

TEST_CASE("gradients through five steps, when usage lets them through") {
    oracle::gradient_cases cases;
    for (const bool before : {true, false})
        for (const bool all : {true, false})
            for (const int heads : {1, 2}) {
                auto s = small_settings(before, all, heads);
                s.usage_gradient = true;
                const alone m(s, {3, 4}, 11, 0.3, {all, true, all && before, before});
                cases.check(m, 100, [&](auto& p) { prepare(m, p); });
            }
    cases.tell();
}

// Differences of the library's loss would see what usage counts. Those of the loops hold it as it was first.
TEST_CASE("gradients through five steps, with the writes that usage counts held constant") {
    constexpr int T = 5, B = 2;
    double worst = 0;
    int compared = 0;
    for (const bool before : {true, false})
        for (const int heads : {1, 2}) {
            const alone m(small_settings(before, true, heads), {3, 4}, 12, 0.3, {true, true, before, before});
            const auto p = m.plan(T, B, true);
            prepare(m, *p);
            const auto start = rows_of(m, *p, B);
            p->forward();
            const double of_program = p->loss();
            p->backward();
            const numbers slopes(p->gradient().begin(), p->gradient().end());
            std::vector<matrix> counted[B];
            const auto loss = [&](bool first) {
                auto rows = start;
                double sum = 0;
                for (int b = 0; b < B; ++b) {
                    if (!first) rows[at(b)].counted = counted[b];
                    rows[at(b)].holds = !first;
                    // The write of the step before came from outside: the state is not a parameter.
                    for (int t = 0; t < T; ++t) {
                        const auto [cue, content, reset] = m.shown(*p, B, t, b);
                        for (const double x : rows[at(b)].step(cue, content, reset)) sum += (x + 0.3) * (x + 0.3);
                        for (const double x : flat(rows[at(b)].read_weight)) sum += (x + 0.3) * (x + 0.3);
                    }
                    if (first) counted[b] = rows[at(b)].counted;
                }
                return sum;
            };
            CHECK(std::abs(loss(true) - of_program) <= 1e-12 * of_program);
            CHECK(loss(false) == loss(true));
            const auto compare = [&](const std::string& name, std::span<const double> slope, auto nudge) {
                double largest = 0;
                for (const double x : slope) largest = std::max(largest, std::abs(x));
                const std::size_t stride = slope.size() / 16 | 1;
                for (std::size_t i = 0; i < slope.size(); i += stride) {
                    double difference = 0;
                    for (const auto& [offset, by] : {std::pair{-2.0, 1.0}, {-1.0, -8.0}, {1.0, 8.0}, {2.0, -1.0}}) {
                        nudge(i, offset * 1e-4);
                        difference += by * loss(false) / (12 * 1e-4);
                        nudge(i, -offset * 1e-4);
                    }
                    const double size = std::max({std::abs(slope[i]), std::abs(difference), 1e-3 * largest, 1e-9});
                    const double wrong = std::abs(slope[i] - difference) / size;
                    CAPTURE(name);
                    CAPTURE(i);
                    CHECK(wrong <= 1e-6);
                    worst = std::max(worst, wrong);
                    ++compared;
                }
            };
            for (const auto& e : m.store->entries()) {
                const auto id = m.store->find(e.name);
                compare(e.name, std::span(slopes).subspan(static_cast<std::size_t>(e.offset), at(int(e.size()))),
                        [&](std::size_t i, double by) { m.store->edit().values(id)[i] += by; });
            }
            for (const int v : m.g->wanted_gradients()) {
                var<cpu<double>> x;
                x.value = v;
                x.width = m.g->value(v).width;
                const auto d = p->gradient_of(x);
                const auto input = p->input(m.g->value(v).name);
                compare(m.g->value(v).name, std::span(d.data, input.size()),
                        [&](std::size_t i, double by) { input[i] += by; });
            }
        }
    MESSAGE(compared, " slopes, worst relative error ", worst);
    CHECK(compared > 300);
}
