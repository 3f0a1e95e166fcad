// The introspection network's memory in plain loops (facts 4.3; errata G2, G3, G4, G16, G28): 1000 and more random
// steps over random settings and states, with episodes that begin inside the unroll; its gradients through five steps.

#include "memory_alone.hpp"

#include <deque>

#include <engram/memory/introspection.hpp>

using namespace engram;
using oracle::numbers;
using oracle::operator+;
using alone = oracle::memory_alone<introspection>;

namespace {

/// One row of a batch: what was written, newest first.
struct loops {
    const parameters<double>& store;
    introspection::settings s;
    std::deque<numbers> written;
    numbers weights;

    loops(const alone& of) : store(*of.store), s(of.settings) {}

    /// What logit i is about, or nothing.
    const numbers* slot(int i) const {
        const int count = static_cast<int>(written.size());
        if (s.order == "age") return i < count && i < s.slots ? &written[static_cast<std::size_t>(i)] : nullptr;
        return place(i);
    }
    /// The last write whose number leaves the remainder i.
    const numbers* place(int i) const {
        const int count = static_cast<int>(written.size());
        for (int number = count - 1; number >= 0; --number)
            if (number % s.slots == i) return &written[static_cast<std::size_t>(count - 1 - number)];
        return nullptr;
    }

    numbers read(const numbers& h, int width) {
        const numbers u = s.hidden > 0 ? oracle::relu(oracle::affine(store, "memory.hidden", h)) : h;
        const numbers logits = oracle::affine(store, "memory.logits", u),
                      gate = oracle::affine(store, "memory.gate", h);
        numbers recalled;
        weights.clear();
        for (int r = 0; r < s.heads; ++r) {
            numbers scores, phi(static_cast<std::size_t>(width), 0.0);
            double sum = 0;
            for (int i = 0; i < s.slots; ++i) {
                const double x = logits[static_cast<std::size_t>(r * s.slots + i)];
                const bool counts = !s.masked || slot(i);
                scores.push_back(!counts ? 0 : s.attention == "softmax" ? std::exp(x) : std::log1p(std::exp(x)));
                sum += scores.back();
            }
            for (int i = 0; i < s.slots; ++i) {
                const double w = sum > 0 ? scores[static_cast<std::size_t>(i)] / sum : 0;
                weights.push_back(w);
                for (std::size_t j = 0; slot(i) && j < phi.size(); ++j) phi[j] += w * (*slot(i))[j];
            }
            for (std::size_t j = 0; j < phi.size(); ++j)
                recalled.push_back(phi[j] * oracle::sigmoid(gate[static_cast<std::size_t>(r) * phi.size() + j]));
        }
        return recalled;
    }
    /// What stands in the ring, where something was written in this episode, and else `otherwise`.
    numbers ring(const numbers& otherwise) const {
        numbers all = otherwise;
        const std::size_t width = otherwise.size() / static_cast<std::size_t>(s.slots);
        for (int i = 0; i < s.slots; ++i)
            if (const auto* word = place(i))
                std::copy(word->begin(), word->end(), all.begin() + static_cast<std::ptrdiff_t>(width) * i);
        return all;
    }
};

introspection::settings drawn_settings(philox& random) {
    introspection::settings s;
    s.slots = 1 + static_cast<int>(random.below(11));
    s.heads = 1 + static_cast<int>(random.below(4));
    s.hidden = static_cast<int>(random.below(3)) * 3;
    if (random.below(2))
        s.order = "age";
    else
        s.order = "position";
    s.masked = random.below(2);
    if (random.below(2))
        s.attention = "softplus";
    else
        s.attention = "softmax";
    return s;
}

}  // namespace

TEST_CASE("loops agree over random settings, states, steps and episodes") {
    constexpr int T = 7, B = 2;
    oracle::worst_difference context, weight, left;
    int steps = 0, wrapped = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        philox random(seed, 1);
        const auto s = drawn_settings(random);
        const memory_sizes z{1 + static_cast<int>(random.below(9)), 1 + static_cast<int>(random.below(6))};
        const alone m(s, z, seed, seed % 3 == 0 ? 2 : 0.3);
        const auto p = m.plan(T, B);
        std::vector<loops> rows(B, loops(m));
        // Half of them start from a memory that some episode has left.
        for (int b = 0; random.below(2) && b < B; ++b) {
            auto& r = rows[static_cast<std::size_t>(b)];
            for (int count = static_cast<int>(random.below(30)); count > 0; --count) {
                r.written.emplace_front();
                for (int j = 0; j < z.observed; ++j) r.written[0].push_back(static_cast<double>(random.normal()));
            }
            // What no episode wrote may be anything.
            const numbers all = r.ring(numbers(static_cast<std::size_t>(s.slots * z.observed), std::nan("")));
            std::copy(all.begin(), all.end(), p->state("memory.ring").begin() + b * s.slots * z.observed);
            const int count = static_cast<int>(r.written.size()), L = s.slots;
            p->state("memory.written")[static_cast<std::size_t>(b)] = count < L ? count : L + count % L;
        }
        for (int unroll = 0; unroll < 3; ++unroll) {
            m.fill(*p, 100 * seed + static_cast<std::uint64_t>(unroll), seed % 2 ? 5 : 30);
            p->forward();
            for (int t = 0; t < T; ++t)
                for (int b = 0; b < B; ++b) {
                    auto& r = rows[static_cast<std::size_t>(b)];
                    if (p->input("reset")[static_cast<std::size_t>(t * B + b)] > 0.5) r.written.clear();
                    const numbers read = r.read(oracle::row(p->input("cue_held"), z.held, B, t, b), z.observed);
                    r.written.push_front(oracle::row(p->input("content_observed"), z.observed, B, t, b));
                    const auto place = message("settings ", seed, ", unroll ", unroll, ", step ", t, ", row ", b);
                    context.compare(oracle::row(p->output(m.context), t, b), read, place);
                    weight.compare(oracle::row(p->output(m.weight), t, b), r.weights, place);
                    ++steps;
                    wrapped += static_cast<int>(r.written.size()) > 2 * s.slots;
                }
            for (int b = 0; b < B; ++b) {
                auto found = oracle::row(p->next_state("memory.ring"), s.slots * z.observed, B, 0, b);
                auto expected = rows[static_cast<std::size_t>(b)].ring(found);
                for (auto* all : {&found, &expected})
                    for (double& x : *all)
                        if (std::isnan(x)) x = 0;
                left.compare(found, expected, "settings ", seed, ", unroll ", unroll, ", row ", b);
            }
            p->carry();
        }
    }
    MESSAGE(steps, " steps (", wrapped, " beyond two turns of the slots); context differs by ", context.value, " (",
            context.where, "), weights by ", weight.value, " (", weight.where, "), state by ", left.value, " (",
            left.where, ")");
    CHECK(steps >= 1000);
    CHECK(wrapped >= 100);
    CHECK(context.value <= 1e-9);
    CHECK(weight.value <= 1e-9);
    CHECK(left.value == 0);
}

TEST_CASE("gradients through five steps, episodes beginning among them") {
    oracle::gradient_cases cases;
    for (const char* order : {"age", "position"})
        for (const bool masked : {true, false})
            for (const char* attention : {"softplus", "softmax"})
                for (const int slots : {2, 3}) {
                    introspection::settings s;
                    s.slots = slots;
                    s.heads = 2;
                    s.hidden = slots == 2 ? 0 : 6;
                    s.order = {"order", order};
                    s.masked = masked;
                    s.attention = {"attention", attention};
                    // Attention sees the held part of the cue alone, and only what was observed is stored (G16).
                    const alone m(s, {3, 4}, 12, 0.3, {false, true, true, false});
                    cases.check(m, 50, [&](auto& p) {
                        m.fill(p, 3);
                        p.input("reset")[3] = 1;
                    });
                }
    cases.tell();
}
