// The hybrid memory in plain loops: the printed numbers of a step, 1000 and more random steps over random settings with
// episodes that begin inside the unroll, and introspection as a setting of it.

#include "memory_alone.hpp"

#include <deque>

#include <engram/memory/hybrid.hpp>

using namespace engram;
using oracle::at;
using oracle::numbers;
using oracle::operator+;

namespace {

/// As oracle::memory_alone, of a memory that may tell when it was written.
struct alone {
    using variable = var<cpu<double>>;
    hybrid::settings settings;
    memory_sizes sizes;
    std::shared_ptr<parameters<double>> store;
    std::unique_ptr<graph<cpu<double>>> g;
    recalled<variable> read;

    alone(const hybrid::settings& s, memory_sizes z, std::uint64_t seed)
        : settings(s),
          sizes(z),
          store(std::make_shared<parameters<double>>(seed)),
          g(std::make_unique<graph<cpu<double>>>(store)) {
        settings.check();
        const auto reset = g->input("reset", 1);
        std::vector<variable> given;
        for (int i = 0; i < 4; ++i) given.push_back(g->input(name(i), i % 2 ? z.held : z.observed));
        const auto scope = g->scope("memory");
        const auto weights = hybrid::declare(*g, s, z);
        read = scan(*g, hybrid::begin(*g, s, z), [&](auto& now) {
            reset_rows(now, reset);
            hybrid::forget(weights, reset, now);
            const auto r = hybrid::read(s, weights, std::vector<variable>{given[0], given[1]}, now);
            hybrid::write(s, weights, std::vector<variable>{given[2], given[3]}, now);
            return r;
        });
        CHECK(read.context[0].width == hybrid::context_width(s, z));
    }
    static const char* name(int i) { return oracle::memory_alone<introspection>::inputs[i]; }
    std::unique_ptr<program<cpu<double>>> plan(int steps, int batch) const {
        std::vector<variable> out{read.context[0], read.weight[0]};
        if (!read.when.empty()) out.push_back(read.when[0]);
        return std::make_unique<program<cpu<double>>>(*g, store, plan_options{.steps = steps, .batch = batch}, out);
    }
    void set(const std::string& parameter, const numbers& values) const {
        const auto p = store->find(parameter);
        REQUIRE((*store)[p].size() == static_cast<std::ptrdiff_t>(values.size()));
        auto edit = store->edit();
        std::copy(values.begin(), values.end(), edit.values(p));
    }
};

/// One row of a batch: what was written, newest first.
struct loops {
    const parameters<double>& store;
    hybrid::settings s;
    memory_sizes z;
    struct entry {
        numbers both;
        int number;
    };
    std::deque<entry> kept;
    int count = 0;
    std::vector<numbers> followed;  // of each head, by number of the write

    explicit loops(const alone& of) : store(*of.store), s(of.settings), z(of.sizes) {}

    void write(const numbers& both) {
        kept.push_front({both, count++});
        if (static_cast<int>(kept.size()) > s.slots) kept.pop_back();
    }
    numbers value(const entry& e) const {
        const auto middle = e.both.begin() + z.observed;
        return s.values == "all"    ? e.both
               : s.values == "held" ? numbers(middle, e.both.end())
                                    : numbers(e.both.begin(), middle);
    }
    const entry* slot(int i) const {
        for (const auto& e : kept)
            if ((s.order == "age" ? count - 1 - e.number : e.number % s.slots) == i) return &e;
        return nullptr;
    }
    numbers of(const std::string& name, const numbers& in) const { return oracle::affine(store, "memory." + name, in); }

    numbers age_weights(const numbers& e, int head) const {
        const auto logits = of("logits", s.hidden > 0 ? oracle::relu(of("hidden", e)) : e);
        numbers w;
        double sum = 0;
        for (int i = 0; i < s.slots; ++i) {
            const double x = logits[at(head * s.slots + i)];
            w.push_back(s.masked && !slot(i) ? 0 : s.attention == "softmax" ? std::exp(x) : oracle::softplus(x));
            sum += w.back();
        }
        for (double& x : w) x = sum > 0 ? x / sum : 0;
        return w;
    }
    numbers content_weights(const numbers& e, int head, int V) const {
        const auto all = of("content", e);
        numbers kappa(all.begin() + head * V, all.begin() + (head + 1) * V), w;
        const double beta = s.sharpness == "one" ? 1 : oracle::softplus(of("strength", e)[at(head)]);
        for (double& k : kappa) k = s.bounded ? std::tanh(k) : k;
        const auto dot = [](const numbers& a, const numbers& b) {
            double sum = 0;
            for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
            return sum;
        };
        double sum = 0;
        for (int i = 0; i < s.slots; ++i) {
            w.push_back(0);
            if (!slot(i)) continue;
            const auto v = value(*slot(i));
            const double kk = dot(kappa, kappa), vv = dot(v, v), e6 = 1e-6;
            const double cosine = dot(kappa, v) / (s.cosine == "joint" ? std::sqrt(kk * vv + e6)
                                                                       : std::sqrt(kk + e6) * std::sqrt(vv + e6) + e6);
            sum += w.back() = std::exp(beta * cosine);
        }
        for (double& x : w) x = sum > 0 ? x / sum : 0;
        return w;
    }
    numbers weighted(const numbers& w, int V) const {
        numbers r(at(V));
        for (int i = 0; i < s.slots; ++i)
            for (int j = 0; slot(i) && j < V; ++j) r[at(j)] += w[at(i)] * value(*slot(i))[at(j)];
        return r;
    }
    numbers nearest(const numbers& both, int head, int V) const {
        const auto q = of(head == 0 ? "query" : message("query.", head), both);
        std::vector<std::pair<double, const entry*>> found;
        for (const auto& e : kept) {
            const auto key = of("key", e.both);
            double d = 0;
            for (std::size_t i = 0; i < q.size(); ++i) d += (q[i] - key[i]) * (q[i] - key[i]);
            found.emplace_back(d, &e);
        }
        std::sort(found.begin(), found.end());
        if (static_cast<int>(found.size()) > s.neighbours) found.resize(at(s.neighbours));
        double sum = 0;
        for (const auto& [d, e] : found) sum += 1 / (s.epsilon + d);
        numbers r(at(V));
        for (const auto& [d, e] : found)
            for (int j = 0; j < V; ++j) r[at(j)] += value(*e)[at(j)] / (s.epsilon + d) / sum;
        return r;
    }
    numbers read(const numbers& x, const numbers& h) {
        const numbers e = s.input == "all" ? x + h : h;
        const int V = hybrid::context_width(s, z) / s.heads, M = static_cast<int>(s.chosen().size());
        numbers all;
        followed.resize(at(s.heads));
        for (int head = 0; head < s.heads; ++head) {
            numbers r(at(V)), pi(at(M), 1);
            // The slot behind each that was followed, found by its number.
            numbers behind(at(s.slots));
            for (int i = 0; i < s.slots; ++i)
                if (const auto* here = slot(i);
                    here && here->number > 0 && at(here->number) <= followed[at(head)].size())
                    behind[at(i)] = followed[at(head)][at(here->number - 1)];
            std::vector<numbers> dense;
            double sum = 0;
            for (int m = 0; M > 1 && m < M; ++m) sum += pi[at(m)] = std::exp(of("mixture", e)[at(head * M + m)]);
            for (int m = 0; m < M; ++m) {
                const std::string which = s.chosen()[at(m)];
                if (which != "nearest")
                    dense.push_back(which == "age"       ? age_weights(e, head)
                                    : which == "content" ? content_weights(e, head, V)
                                                         : behind);
                const auto part = which == "nearest" ? nearest(x + h, head, V) : weighted(dense.back(), V);
                for (int j = 0; j < V; ++j) r[at(j)] += pi[at(m)] / (M > 1 ? sum : 1) * part[at(j)];
            }
            all = all + r;
            if (!s.has("after")) continue;
            numbers rho(dense.size());
            sum = 0;
            for (std::size_t m = 0; m < rho.size(); ++m)
                sum += rho[m] = std::exp(of("follow", e)[at(head) * rho.size() + m]);
            auto& now = followed[at(head)];
            now.assign(at(count), 0);
            for (std::size_t m = 0; m < rho.size(); ++m)
                for (int i = 0; i < s.slots; ++i)
                    if (slot(i)) now[at(slot(i)->number)] += rho[m] / sum * dense[m][at(i)];
        }
        if (s.gate) {
            const auto gate = of("gate", e);
            for (std::size_t j = 0; j < all.size(); ++j) all[j] *= oracle::sigmoid(gate[j]);
        }
        return all;
    }
};

hybrid::settings drawn_settings(philox& random) {
    const char* reads[] = {"age",
                           "content",
                           "nearest",
                           "content,age",
                           "age,nearest",
                           "nearest,content",
                           "after,content",
                           "age,content,nearest",
                           "age,nearest,after,content"};
    const auto one_of = [&](auto a, auto b) { return random.below(2) ? a : b; };
    hybrid::settings s;
    s.reads = reads[random.below(9)];
    s.slots = 1 + static_cast<int>(random.below(6));
    s.heads = 1 + static_cast<int>(random.below(3));
    s.input = {"input", one_of("all", "held")};
    s.values = {"values", random.below(3) == 0 ? "all" : one_of("held", "observed")};
    s.store_gradient = random.below(2);
    s.gate = random.below(2);
    s.hidden = one_of(0, 3);
    s.order = {"order", one_of("age", "position")};
    s.masked = random.below(2);
    if (s.has("after")) s.order = {"order", "age"}, s.masked = true;
    s.attention = {"attention", one_of("softplus", "softmax")};
    s.bounded = random.below(2);
    s.cosine = {"cosine", one_of("each", "joint")};
    s.sharpness = {"sharpness", one_of("learnt", "one")};
    s.neighbours = 1 + static_cast<int>(random.below(4));
    s.key = 1 + static_cast<int>(random.below(5));
    s.epsilon = one_of(1e-3, 0.3);
    s.jumpy = random.below(2);
    s.tied_start = random.below(2);
    return s;
}

}  // namespace

// Ten thousand times the printed numbers, so that the guard of the cosine, which they are without, is below them.
TEST_CASE("the printed numbers") {
    constexpr double unit = 1e4;
    const numbers values[] = {{0.5, -1}, {1.5, 0.25}, {-0.75, 2}};
    const auto step = [&](const std::string& reads, bool gate, bool masked = true) {
        hybrid::settings s{.reads = reads, .slots = 4, .gate = gate, .hidden = 0, .masked = masked};
        s.neighbours = 2;
        s.key = 2;
        s.epsilon = 1e-3 * unit * unit;
        const alone m(s, {1, 2}, 3);
        {
            auto edit = m.store->edit();
            std::ranges::fill(edit.flat(), 0);
        }
        if (s.has("age")) m.set("memory.logits.bias", {0.5, -0.2, 1, 0.3});
        if (s.has("content")) {
            m.set("memory.content.bias", {unit, 0.5 * unit});
            m.set("memory.strength.bias", {std::log(std::exp(2.0) - 1)});
        }
        if (s.has("nearest")) {
            m.set("memory.key.weight", {0, 0, 1, 0, 0, 1});
            m.set("memory.query.bias", {unit, 0});
        }
        if (s.chosen().size() > 1) m.set("memory.mixture.bias", {0.2, -0.1, 0.4});
        if (gate) m.set("memory.gate.bias", {0.5, -0.5});
        const auto p = m.plan(4, 1);
        for (std::size_t t = 0; t < 3; ++t)
            for (std::size_t i = 0; i < 2; ++i)
                if (p->has_input("content_held")) p->input("content_held")[2 * t + i] = unit * values[t][i];
        p->forward();
        auto context = oracle::row(p->output(m.read.context[0]), 3, 0);
        for (double& x : context) x /= unit;
        return std::pair{context, oracle::row(p->output(m.read.weight[0]), 3, 0)};
    };
    const auto printed = [](const numbers& found, const numbers& expected) {
        REQUIRE(found.size() == expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
            CAPTURE(i);
            CHECK(std::abs(found[i] - expected[i]) <= 1e-11);
        }
    };
    const auto age = step("age", false);
    printed(age.first, {0.285318945643, 0.271853440902});
    printed(age.second, {0.337579125227, 0.207292852176, 0.455128022596, 0});
    const auto unmasked = step("age", false, false).second;
    printed({unmasked[0], unmasked[1], unmasked[2]}, {0.260460036594, 0.159937329736, 0.351155188701});
    const auto content = step("content", false);
    printed(content.first, {1.080501496457, 0.350880793432});
    printed(content.second, {0.137041955695, 0.751803941077, 0.111154103228, 0});
    const auto nearest = step("nearest", false);
    printed(nearest.first, {1.299616490892, -0.000479386385});
    printed(nearest.second, {0.799616490892, 0.200383509108});
    const auto mixed = step("age,content,nearest", false);
    printed(mixed.first, {0.902407121991, 0.179327202766});
    constexpr double share = 0.412326685580;
    printed(mixed.second, {share * 0.799616490892, share * 0.200383509108});
    printed(step("age,content,nearest", true).first, {0.561711733626, 0.067703312066});
}

TEST_CASE("loops agree over random settings, steps and episodes") {
    constexpr int T = 7, B = 2;
    oracle::worst_difference context;
    int steps = 0, full = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        philox random(seed, 1);
        const auto s = drawn_settings(random);
        const memory_sizes z{1 + static_cast<int>(random.below(5)), 1 + static_cast<int>(random.below(5))};
        const alone m(s, z, seed);
        {
            auto edit = m.store->edit();
            for (auto& w : edit.flat()) w += 0.3 * static_cast<double>(random.normal());
        }
        const auto p = m.plan(T, B);
        std::vector<loops> rows(B, loops(m));
        for (int unroll = 0; unroll < 3; ++unroll) {
            if (unroll > 0) p->carry();
            for (int i = 0; i < 4; ++i)
                if (p->has_input(alone::name(i)))
                    for (double& x : p->input(alone::name(i))) x = static_cast<double>(random.normal());
            for (double& x : p->input("reset")) x = random.below(seed % 2 ? 6 : 20) == 0;
            p->forward();
            for (int t = 0; t < T; ++t)
                for (int b = 0; b < B; ++b) {
                    auto& r = rows[at(b)];
                    // What nobody reads is no input, and any number here.
                    const auto in = [&](int i) {
                        const int width = i % 2 ? z.held : z.observed;
                        return p->has_input(alone::name(i)) ? oracle::row(p->input(alone::name(i)), width, B, t, b)
                                                            : numbers(at(width));
                    };
                    if (p->input("reset")[at(t * B + b)] > 0.5) r.kept.clear(), r.followed.clear(), r.count = 0;
                    context.compare(oracle::row(p->output(m.read.context[0]), t, b), r.read(in(0), in(1)), "settings ",
                                    seed, " (", s.reads, "), unroll ", unroll, ", step ", t, ", row ", b);
                    r.write(in(2) + in(3));
                    ++steps;
                    full += r.count > s.slots;
                }
        }
    }
    MESSAGE(steps, " steps (", full, " of a full memory); context differs by ", context.value, " (", context.where,
            ")");
    CHECK(steps >= 1000);
    CHECK(full >= 300);
    CHECK(context.value <= 1e-9);
}

TEST_CASE("age alone is introspection: its weights, numbers and gradients, bit for bit") {
    constexpr int T = 7, B = 2;
    for (const char* order : {"position", "age"})
        for (const bool masked : {false, true})
            for (const char* attention : {"softplus", "softmax"}) {
                const introspection::settings i{.slots = 3,
                                                .heads = 2,
                                                .hidden = 4,
                                                .order = {"order", order},
                                                .masked = masked,
                                                .attention = {"attention", attention}};
                hybrid::settings s{.reads = "age",
                                   .slots = 3,
                                   .heads = 2,
                                   .input = "held",
                                   .values = "observed",
                                   .store_gradient = true,
                                   .gate = true,
                                   .hidden = 4,
                                   .order = {"order", order},
                                   .masked = masked,
                                   .attention = {"attention", attention}};
                const std::array wanted{false, true, true, false};
                const oracle::memory_alone<introspection> a(i, {3, 4}, 12, 0.3, wanted);
                const oracle::memory_alone<hybrid> b(s, {3, 4}, 12, 0.3, wanted);
                REQUIRE(std::ranges::equal(a.store->flat(), b.store->flat()));
                const auto p = a.plan(T, B, true), q = b.plan(T, B, true);
                for (std::uint64_t unroll = 0; unroll < 2; ++unroll) {
                    if (unroll > 0) p->carry(), q->carry();
                    a.fill(*p, unroll + 5, 6), b.fill(*q, unroll + 5, 6);
                    p->forward(), q->forward();
                    p->backward(), q->backward();
                    for (int t = 0; t < T; ++t)
                        for (int row = 0; row < B; ++row) {
                            CHECK(oracle::row(p->output(a.context), t, row) ==
                                  oracle::row(q->output(b.context), t, row));
                            CHECK(oracle::row(p->output(a.weight), t, row) == oracle::row(q->output(b.weight), t, row));
                        }
                    CHECK(std::ranges::equal(p->gradient(), q->gradient()));
                }
            }
}
