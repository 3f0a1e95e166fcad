// Known ways in which code of such memories goes NaN, one a case, through the policies as they are used, in both number
// types: what a step gives, what it leaves and every gradient stay finite, and what is meant still happens.

#include "memory_alone.hpp"

#include <engram/memory/introspection.hpp>
#include <engram/memory/ntm.hpp>

using namespace engram;

namespace {

constexpr int T = 5, B = 2, N = 6, W = 3;

template <class Real>
using machine = oracle::memory_alone<ntm, cpu<Real>>;
template <class Real>
using watcher = oracle::memory_alone<introspection, cpu<Real>>;

ntm::settings machine_settings() {
    ntm::settings s;
    s.slots = N;
    s.word = W;
    return s;
}

// Columns of the maps: read [key W, six], write [key W, erase W, add W, six].
enum six { strength, gate, left, stay, right, sharpening };
constexpr int read_six = W, write_six = 3 * W, erase = W, add = 2 * W;

template <class Memory>
void set(Memory& m, const std::string& name, int column, double value) {
    m.store->edit().values(m.store->find(name + ".bias"))[column] = static_cast<typename Memory::real>(value);
}
template <class Real>
void steer(machine<Real>& m, six which, double value) {
    set(m, "memory.read", read_six + which, value);
    set(m, "memory.write", write_six + which, value);
}

template <class Numbers>
bool all_finite(const Numbers& x) {
    return std::all_of(x.begin(), x.end(), [](auto v) { return std::isfinite(v); });
}

/// Runs `p` forward and backward and looks everywhere.
template <class Memory, class Program>
void check_finite(const Memory& m, Program& p) {
    p.forward();
    CHECK(p.first_non_finite() == "");
    CHECK(std::isfinite(p.loss()));
    for (const auto& name : p.state_names()) CHECK(all_finite(p.next_state(name)));
    p.backward();
    CHECK(all_finite(p.gradient()));
    for (const int v : m.g->wanted_gradients()) {
        typename Memory::variable x;
        x.value = v;
        x.width = m.g->value(v).width;
        if (const auto d = p.gradient_of(x))
            CHECK(all_finite(std::span(d.data, static_cast<std::size_t>(T * B * x.width))));
    }
}

/// The weights of the first head at step t of row b.
template <class Memory, class Program>
std::vector<double> weights_of(const Memory& m, const Program& p, int t, int b, int slots) {
    const auto w = p.output(m.weight);
    const auto* row = w.at(t) + b * w.stride;
    return {row, row + slots};
}
double sum_of(const std::vector<double>& x) {
    double sum = 0;
    for (const double v : x) sum += v;
    return sum;
}

}  // namespace

TEST_CASE_TEMPLATE("cosine of rows and keys that are all zero", Real, float, double) {
    // Nothing marks an episode's start, so the memory and all weights begin at zero; so do the keys.
    machine<Real> m(machine_settings(), {2, 3}, 1, 0);
    const auto p = m.plan(T, B, true);
    m.fill(*p, 1, 0, 0);
    check_finite(m, *p);
    for (int t = 0; t < T; ++t) CHECK(sum_of(weights_of(m, *p, t, 1, N)) == doctest::Approx(1).epsilon(1e-6));
    // The same among keys that are not zero.
    m.fill(*p, 2);
    check_finite(m, *p);
}

TEST_CASE_TEMPLATE("an erase gate at one leaves nothing of the old row, twice saturated or not", Real, float, double) {
    for (const double raw : {40.0, 1e3, 1e30}) {
        auto s = machine_settings();
        s.write_heads = 1;
        machine<Real> m(s, {2, 3}, 1);
        // The write weights stay on the slot where an episode begins.
        steer(m, gate, -1e3);
        steer(m, left, -1e3);
        steer(m, right, -1e3);
        for (int i = 0; i < W; ++i) set(m, "memory.write", erase + i, raw);
        const auto p = m.plan(T, B, true);
        m.fill(*p, 1, 0, 0);
        for (int b = 0; b < B; ++b) p->input("reset")[static_cast<std::size_t>(b)] = 1;
        check_finite(m, *p);
        const auto bias = m.store->values(m.store->find("memory.write.bias"));
        const auto memory = p->next_state("memory.memory");
        for (int i = 0; i < W; ++i) {
            // T writes of the same row; without erasing they would add up.
            CHECK(memory[static_cast<std::size_t>(i)] ==
                  doctest::Approx(static_cast<double>(bias[add + i])).epsilon(1e-6));
            CHECK(memory[static_cast<std::size_t>(W + i)] == doctest::Approx(1e-6).epsilon(1e-5).scale(0));
        }
    }
}

TEST_CASE_TEMPLATE("several heads that erase the same row entirely", Real, float, double) {
    auto s = machine_settings();
    s.write_heads = 2;
    machine<Real> m(s, {2, 3}, 1);
    for (int h = 0; h < 2; ++h) {
        for (int i = 0; i < W; ++i) set(m, "memory.write", 2 * W + h * W + i, 1e3);
        for (const six which : {gate, left, right}) set(m, "memory.write", 6 * W + 6 * h + which, -1e3);
    }
    const auto p = m.plan(T, B, true);
    m.fill(*p, 1);
    for (int b = 0; b < B; ++b) p->input("reset")[static_cast<std::size_t>(b)] = 1;
    check_finite(m, *p);
    CHECK(p->next_state("memory.write_weight")[0] == Real(1));
    CHECK(p->next_state("memory.write_weight")[N] == Real(1));
}

TEST_CASE_TEMPLATE("a strength of 1e4 and more", Real, float, double) {
    for (const double beta : {1e4, 1e10}) {
        machine<Real> m(machine_settings(), {2, 3}, 1);
        steer(m, strength, beta);
        steer(m, gate, 20);
        const auto p = m.plan(T, B, true);
        m.fill(*p, 1);
        philox random(1, 1);
        for (auto& x : p->state("memory.memory")) x = static_cast<Real>(random.normal());
        check_finite(m, *p);
        for (int t = 0; t < T; ++t) CHECK(sum_of(weights_of(m, *p, t, 0, N)) == doctest::Approx(1).epsilon(1e-6));
    }
}

TEST_CASE_TEMPLATE("unbounded sharpening: one weight or equal ones, never none", Real, float, double) {
    for (const double gamma : {1e2, 1e4, 1e20}) {
        machine<Real> m(machine_settings(), {2, 3}, 1);
        steer(m, sharpening, gamma);
        const auto p = m.plan(T, B, true);
        for (const bool equal : {false, true}) {
            // Equal rows: all cosines, and with a gate that is open all weights, are the same.
            steer(m, gate, equal ? 1e3 : 0);
            m.fill(*p, 1);
            philox random(1, 1);
            auto one = Real(1);
            for (auto& x : p->state("memory.memory")) x = equal ? one : static_cast<Real>(random.normal());
            check_finite(m, *p);
            for (int t = 0; t < T; ++t)
                for (int b = 0; b < B; ++b) {
                    const auto w = weights_of(m, *p, t, b, N);
                    CHECK(sum_of(w) == doctest::Approx(1).epsilon(1e-6));
                    if (equal && t == 0) CHECK(*std::max_element(w.begin(), w.end()) == doctest::Approx(1.0 / N));
                    if (!equal && gamma > 1e19) CHECK(*std::max_element(w.begin(), w.end()) > 0.15);
                }
        }
    }
}

TEST_CASE_TEMPLATE("softmax of shifts beyond the range of the exponential", Real, float, double) {
    for (const double by : {1e2, 1e4, 1e30}) {
        machine<Real> m(machine_settings(), {2, 3}, 1);
        steer(m, gate, -1e3);
        steer(m, left, -by);
        steer(m, stay, -by);
        steer(m, right, by);
        const auto p = m.plan(T, B, true);
        m.fill(*p, 1, 0, 0);
        for (int b = 0; b < B; ++b) p->input("reset")[static_cast<std::size_t>(b)] = 1;
        check_finite(m, *p);
        // One slot a step, from slot 0 on.
        for (int t = 0; t < T; ++t) CHECK(weights_of(m, *p, t, 1, N)[static_cast<std::size_t>((t + 1) % N)] == 1);
    }
}

TEST_CASE_TEMPLATE("attention over slots beyond the range of the exponential, and softplus that vanishes", Real, float,
                   double) {
    for (const char* attention : {"softplus", "softmax"})
        for (const bool masked : {false, true})
            for (const double by : {1e4, -1e4}) {
                introspection::settings s;
                s.slots = 3;
                s.heads = 2;
                s.hidden = 4;
                s.masked = masked;
                s.attention = {"attention", attention};
                watcher<Real> m(s, {2, 3}, 1);
                for (int i = 0; i < 6; ++i) set(m, "memory.logits", i, by);
                const auto p = m.plan(T, B, true);
                m.fill(*p, 1);
                check_finite(m, *p);
                for (int t = 0; t < T; ++t)
                    CHECK(sum_of(weights_of(m, *p, t, 1, 3)) ==
                          doctest::Approx(masked && t == 0 ? 0 : 1).epsilon(1e-6));
            }
}

TEST_CASE_TEMPLATE("an introspection network that has seen nothing recalls zero", Real, float, double) {
    for (const char* order : {"age", "position"})
        for (const bool masked : {false, true}) {
            introspection::settings s;
            s.slots = 3;
            s.order = {"order", order};
            s.masked = masked;
            watcher<Real> m(s, {2, 3}, 1);
            const auto p = m.plan(T, B, true);
            m.fill(*p, 1);
            p->input("reset")[2 * B + 1] = 1;
            check_finite(m, *p);
            const auto c = p->output(m.context);
            const auto zero = [&](int t, int b) {
                const auto* row = c.at(t) + b * c.stride;
                return std::all_of(row, row + c.width, [](Real v) { return v == 0; });
            };
            CHECK(zero(0, 0));
            CHECK(zero(0, 1));
            CHECK(zero(2, 1));
            CHECK_FALSE(zero(1, 1));
            CHECK_FALSE(zero(2, 0));
        }
}

TEST_CASE_TEMPLATE("NaN and infinity of a dead episode do not leak over its end", Real, float, double) {
    const auto over_the_end = [](const auto& m) {
        for (const double bad : {std::nan(""), HUGE_VAL}) {
            const auto dead = m.plan(T, B, true), fresh = m.plan(T, B, true);
            for (auto* p : {dead.get(), fresh.get()}) {
                m.fill(*p, 1);
                for (int b = 0; b < B; ++b) p->input("reset")[static_cast<std::size_t>(b)] = 1;
            }
            for (const auto& name : dead->state_names())
                for (auto& x : dead->state(name)) x = static_cast<Real>(bad);
            check_finite(m, *fresh);
            dead->forward();
            dead->backward();
            const auto x = dead->output(m.context), y = fresh->output(m.context);
            CHECK(std::equal(x.data, x.data + T * B * x.width, y.data));
            CHECK(std::equal(dead->gradient().begin(), dead->gradient().end(), fresh->gradient().begin()));
            for (const auto& name : dead->state_names()) {
                const auto left = dead->next_state(name), expected = fresh->next_state(name);
                CHECK(std::equal(left.begin(), left.end(), expected.begin()));
            }
        }
    };
    for (const bool learned : {false, true}) {
        auto s = machine_settings();
        s.start = learned ? decltype(s.start)("learned") : "constant";
        s.focus = learned ? decltype(s.focus)("none") : "first";
        s.read_before_write = learned;
        over_the_end(machine<Real>(s, {2, 3}, 1));
    }
    for (const char* order : {"age", "position"}) {
        introspection::settings s;
        s.slots = 4;
        s.order = {"order", order};
        s.masked = true;
        over_the_end(watcher<Real>(s, {2, 3}, 1));
    }
}
