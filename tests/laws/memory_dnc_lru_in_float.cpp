// The same memories in float, the number type of training: their laws, unrolls against single steps, and the known
// causes of NaN (that of usage outside [0, 1] is in memory_dnc_lru.cpp).

#include "small_dnc_lru.hpp"

using namespace prepared;

namespace {

/// Step `t` of one program's inputs into those of another, which has one step.
template <class Backend>
void copy_steps(program<Backend>& from, program<Backend>& to, const graph<Backend>& g, int t) {
    for (const auto& v : g.values()) {
        if (!from.has_input(v.name) || !to.has_input(v.name) || v.rows == extent::batch) continue;
        const auto one = to.input(v.name);
        std::copy_n(from.input(v.name).begin() + t * static_cast<std::ptrdiff_t>(one.size()), one.size(), one.begin());
    }
}

template <class Backend>
bool all_finite(program<Backend>& p, const std::vector<std::string>& states) {
    bool finite = p.first_non_finite().empty() && std::isfinite(p.loss());
    for (const auto& name : states)
        for (const auto x : p.next_state(name)) finite &= std::isfinite(x);
    for (const auto x : p.gradient()) finite &= std::isfinite(x);
    for (std::size_t r = 0; r < p.resource_count(); ++r)
        for (const auto part : p.bound_resource(r)->bytes())
            for (std::size_t i = 0; i < part.size() / sizeof(typename Backend::real); ++i)
                finite &= std::isfinite(reinterpret_cast<const typename Backend::real*>(part.data())[i]);
    return finite;
}

/// Runs unrolls forward and backward; CHECKs that every number stays finite.
template <class Agent, class Prepare>
void stays_finite(const typename Agent::settings& s, double weights, int unrolls, Prepare prepare) {
    using backend = cpu<float>;
    const auto a = traced<Agent, backend>(s);
    enlarge_memory_weights(a, weights);
    program<backend> p(*a.g, a.store, {.steps = 6, .batch = 3, .gradients = true, .replay = true}, {a.h});
    for (int unroll = 0; unroll < unrolls; ++unroll) {
        fill_randomly(p, a, static_cast<std::uint64_t>(unroll + 1));
        prepare(p, unroll);
        p.forward();
        p.backward();
        CAPTURE(unroll);
        CAPTURE(p.first_non_finite());
        CHECK(all_finite(p, p.state_names()));
        p.carry();
    }
}

const auto as_it_is = [](auto&, int) {};
const auto begins_at_once = [](auto& p, int unroll) {
    if (unroll == 0)
        for (std::size_t b = 0; b < 3; ++b) p.input("reset")[b] = 1;
};

}  // namespace

TEST_CASE("laws, at widths that leave a rest of a register") {
    auto s = computer(true, 2, "all");
    s.memory.slots = 37;
    s.memory.word = 19;
    keeps_the_laws<differentiable, cpu<float>>(s);
    auto l = access(true, "linear", "own", "all");
    l.memory.slots = 37;
    l.memory.word = 19;
    keeps_the_laws<least_recent, cpu<float>>(l);
}

// A learner replays what an actor did: all that is carried is the same, links included.
TEST_CASE("an unroll with gradients leaves what single steps leave, and a look leaves all as it was") {
    using backend = cpu<float>;
    const auto compare = []<class Agent>(const typename Agent::settings& s) {
        constexpr int T = 6, B = 3;
        const auto a = traced<Agent, backend>(s);
        program<backend> learner(*a.g, a.store, {.steps = T, .batch = B, .gradients = true, .replay = true}, {a.h});
        program<backend> actor(*a.g, a.store, {.steps = 1, .batch = B}, {a.h});
        program<backend> look(*a.g, a.store, {.steps = 1, .batch = B, .side_effects = false}, {a.h});
        for (std::size_t r = 0; r < look.resource_count(); ++r) look.bound_resource(r) = actor.bound_resource(r);
        const auto bits = [](program<backend>& p) {
            std::vector<std::byte> all;
            for (std::size_t r = 0; r < p.resource_count(); ++r)
                for (const auto part : p.bound_resource(r)->bytes()) all.insert(all.end(), part.begin(), part.end());
            return all;
        };
        for (int unroll = 0; unroll < 2; ++unroll) {
            fill_randomly(learner, a, static_cast<std::uint64_t>(unroll + 1));
            learner.input("reset")[7] = 1;
            learner.forward();
            learner.backward();
            for (int t = 0; t < T; ++t) {
                for (auto* p : {&actor, &look}) copy_steps(learner, *p, *a.g, t);
                for (const auto& name : actor.state_names())
                    std::copy(actor.state(name).begin(), actor.state(name).end(), look.state(name).begin());
                const auto before = bits(actor);
                look.forward();
                CHECK(bits(actor) == before);
                actor.forward();
                const auto h = learner.output(a.h), one = actor.output(a.h), seen = look.output(a.h);
                CHECK(std::memcmp(h.at(t), one.data, sizeof(float) * B * 5) == 0);
                if (t != 2) CHECK(std::memcmp(seen.data, one.data, sizeof(float) * B * 5) == 0);
                if (t + 1 < T) actor.carry();
            }
            CHECK(bits(learner) == bits(actor));
            for (const auto& name : learner.state_names()) {
                const auto x = learner.next_state(name), y = actor.next_state(name);
                CHECK(std::equal(x.begin(), x.end(), y.begin()));
            }
            learner.carry();
            actor.carry();
        }
    };
    for (const bool before : {true, false}) {
        compare.operator()<differentiable>(computer(before, 2, "all"));
        compare.operator()<least_recent>(access(before, "linear", "own", "all"));
    }
}

// --- the causes of NaN, each its own ---

TEST_CASE("cosines of zero rows and zero keys") {
    // No episode begins, so that all states are zero, and neither map sees anything.
    for (const bool before : {true, false}) {
        const auto nothing = [](auto& p, int) {
            std::fill(p.input("observation").begin(), p.input("observation").end(), 0.5f);
        };
        stays_finite<differentiable>(computer(before, 2, "all"), 0, 3, nothing);
        stays_finite<least_recent>(access(before, "linear", "own", "all"), 0, 3, nothing);
        auto s = computer(before, 1, "all");
        const auto a = differentiable::trace<cpu<float>>(s, task(), 5);
        {
            auto edit = a.store->edit();
            for (float& w : edit.flat()) w = 0;
        }
        program<cpu<float>> p(*a.g, a.store, {.steps = 4, .batch = 2, .gradients = true, .replay = true});
        fill_randomly(p, a, 1);
        p.forward();
        p.backward();
        CHECK(all_finite(p, p.state_names()));
    }
}

TEST_CASE("huge strengths") {
    for (const double offset : {1e4, 1e8, -1e8}) {
        auto s = computer(true, 2, "all");
        s.memory.strength_offset = offset;
        stays_finite<differentiable>(s, 0.4, 4, begins_at_once);
        stays_finite<differentiable>(s, 100, 4, begins_at_once);
    }
}

TEST_CASE("weights so large that everything saturates") {
    stays_finite<differentiable>(computer(false, 3, "all"), 1e3, 4, begins_at_once);
    stays_finite<least_recent>(access(true, "linear", "own", "all"), 1e3, 4, begins_at_once);
    stays_finite<least_recent>(access(false, "parameter", "key", "held"), 1e3, 4, begins_at_once);
}

TEST_CASE("nobody ever says that an episode begins") {
    stays_finite<differentiable>(computer(true, 1, "all"), 0.4, 10, as_it_is);
    stays_finite<least_recent>(access(true, "linear", "own", "all"), 0.4, 10, as_it_is);
}

TEST_CASE("a NaN in old states and links ends with its episode") {
    const auto spoilt = [](auto& p, int unroll) {
        if (unroll != 1) return;
        for (const auto& name : p.state_names()) std::fill(p.state(name).begin(), p.state(name).end(), NAN);
        for (std::size_t r = 0; r < p.resource_count(); ++r)
            for (const auto part : p.bound_resource(r)->bytes()) {
                auto* links = reinterpret_cast<float*>(part.data());
                std::fill_n(links, part.size() / sizeof(float), NAN);
            }
        for (std::size_t b = 0; b < 3; ++b) p.input("reset")[b] = 1;
    };
    for (const bool before : {true, false}) {
        stays_finite<differentiable>(computer(before, 2, "all"), 0.4, 3, spoilt);
        stays_finite<least_recent>(access(before, "linear", "own", "all"), 0.4, 3, spoilt);
    }
}

TEST_CASE("ties: from equal slots twice the same finite numbers and slopes, lower slots first") {
    const auto twice = []<class Agent>(const typename Agent::settings& s, const char* lower) {
        std::vector<float> first;
        for (int run = 0; run < 2; ++run) {
            const auto a = traced<Agent, cpu<float>>(s);
            program<cpu<float>> p(*a.g, a.store, {.steps = 5, .batch = 2, .gradients = true, .replay = true},
                                  {a.h, *a.slot_write_weight});
            fill_randomly(p, a, 3);
            p.input("reset")[0] = 1;
            p.forward();
            p.backward();
            CHECK(all_finite(p, p.state_names()));
            const auto w = p.output(*a.slot_write_weight);
            INFO(lower);
            // All usages are equal: what the first write gives to free slots goes to the first of them.
            const int free = std::string(lower) == "lru" ? 1 : 0;
            for (int n = free + 1; n < s.memory.slots; ++n) CHECK(w.data[free] > w.data[n]);
            std::vector<float> now(p.gradient().begin(), p.gradient().end());
            now.insert(now.end(), w.data, w.data + 5 * 2 * w.width);
            if (run == 0)
                first = now;
            else
                CHECK(std::memcmp(first.data(), now.data(), now.size() * sizeof(float)) == 0);
        }
    };
    twice.operator()<differentiable>(computer(true, 1, "all"), "dnc");
    twice.operator()<least_recent>(access(true, "linear", "own", "all"), "lru");
}
