#pragma once
// A memory policy without an agent around it: what it is asked, what it stores and when episodes begin are inputs.

#include "loops.hpp"

#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/softmax.hpp>

namespace oracle {

using namespace engram;

template <class Memory, class Backend = cpu<double>>
struct memory_alone {
    using real = typename Backend::real;
    using variable = var<Backend>;

    static constexpr const char* inputs[] = {"cue_observed", "cue_held", "content_observed", "content_held"};

    typename Memory::settings settings;
    memory_sizes sizes;
    std::shared_ptr<parameters<real>> store;
    std::unique_ptr<graph<Backend>> g;
    variable context, weight;

    /// `traced` says to which of the inputs gradients are wanted; all must reach a loss then.
    memory_alone(const typename Memory::settings& s, memory_sizes z, std::uint64_t seed, double spread = 0.3,
                 std::array<bool, 4> traced = {true, true, true, true})
        : settings(s),
          sizes(z),
          store(std::make_shared<parameters<real>>(seed)),
          g(std::make_unique<graph<Backend>>(store)) {
        settings.check();
        const auto reset = g->input("reset", 1);
        std::vector<variable> given;
        for (std::size_t i = 0; i < 4; ++i)
            given.push_back(g->input(inputs[i], i % 2 ? z.held : z.observed, extent::sequence, traced[i]));
        const auto scope = g->scope("memory");
        const auto weights = Memory::declare(*g, s, z);
        const auto read = scan(*g, Memory::begin(*g, s, z), [&](auto& now) {
            reset_rows(now, reset);
            Memory::forget(weights, reset, now);
            const auto r = Memory::read(s, weights, std::vector<variable>{given[0], given[1]}, now);
            Memory::write(s, weights, std::vector<variable>{given[2], given[3]}, now);
            return r;
        });
        REQUIRE(read.context.size() == 1);
        REQUIRE(read.weight.size() == 1);
        CHECK(read.when.empty());
        context = read.context[0];
        weight = read.weight[0];
        CHECK(context.width == Memory::context_width(s, z));
        // Every number that a step gives enters the loss with a slope of its own.
        add_loss("context", sum_columns("sum.context", map("of_context", uneven{}, context)));
        add_loss("weight", sum_columns("sum.weight", map("of_weight", uneven{}, weight)));
        unsettle(spread);
    }

    /// Moves every weight: biases that start at zero would leave their gradients untold apart.
    void unsettle(double by) {
        philox random(7, 7);
        auto edit = store->edit();
        for (auto& w : edit.flat()) w += static_cast<real>(by * static_cast<double>(random.normal()));
    }
    std::unique_ptr<program<Backend>> plan(int steps, int batch, bool gradients = false) const {
        return std::make_unique<program<Backend>>(*g, store,
                                                  plan_options{.steps = steps, .batch = batch, .gradients = gradients},
                                                  std::vector<variable>{context, weight});
    }
    /// Normal numbers in the inputs; an episode begins at about one step in `episode`, or never.
    void fill(program<Backend>& p, std::uint64_t seed, int episode = 0, double size = 1) const {
        philox random(seed, 3);
        for (const char* name : inputs)
            if (p.has_input(name))
                for (auto& x : p.input(name)) x = static_cast<real>(size * static_cast<double>(random.normal()));
        for (auto& x : p.input("reset")) x = episode > 0 && random.below(static_cast<std::uint32_t>(episode)) == 0;
    }

    /// What row b is shown at step t: cue, content and whether an episode begins.
    std::tuple<numbers, numbers, bool> shown(program<Backend>& p, int B, int t, int b) const {
        const auto in = [&](int i) {
            return p.has_input(inputs[i]) ? row(p.input(inputs[i]), i % 2 ? sizes.held : sizes.observed, B, t, b)
                                          : numbers{};
        };
        const bool all = settings.input == "all";
        return {all ? in(0) + in(1) : in(1), all ? in(2) + in(3) : in(3), p.input("reset")[at(t * B + b)] > 0.5};
    }

private:
    struct uneven {
        auto operator()(auto x) const { return square(x + 0.3); }
    };
};

/// Keeps the largest difference of two rows, relative to the largest number in them, and where it was.
struct worst_difference {
    double value = 0;
    std::string where = "nowhere";
    int compared = 0;

    template <class... Where>
    void compare(const numbers& a, const numbers& b, const Where&... at) {
        REQUIRE(a.size() == b.size());
        double size = 1e-300, apart = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
            size = std::max({size, std::abs(a[i]), std::abs(b[i])});
            apart = std::max(apart, std::isnan(a[i] - b[i]) ? INFINITY : std::abs(a[i] - b[i]));
        }
        ++compared;
        if (apart / size > value) {
            value = apart / size;
            where = message(at...);
        }
    }
};

/// Row b of a state, where an unroll of B rows begins.
template <class Backend>
const double* state_row(program<Backend>& p, const char* name, int B, int b) {
    const auto state = p.state(name);
    return state.data() + state.size() / at(B) * at(b);
}
/// Row b of a state as the unroll leaves it.
template <class Backend>
numbers next_state_row(program<Backend>& p, const char* name, int B, int b) {
    const auto all = p.next_state(name);
    return row(all, static_cast<int>(all.size()) / B, B, 0, b);
}

/// How far a program is from the loops, over all steps that both have walked.
struct agreement {
    worst_difference context, weight, left;
    int steps = 0;

    /// One step of one row: what was read, and the read weights.
    template <class Alone, class Backend>
    void compare_step(const Alone& m, program<Backend>& p, int t, int b, const numbers& read, const matrix& weights,
                      const std::string& place) {
        const auto where = message(place, ", step ", t, ", row ", b);
        context.compare(row(p.output(m.context), t, b), read, where);
        weight.compare(row(p.output(m.weight), t, b), flat(weights), where);
        ++steps;
    }
    /// The limit is 1e-9 of the largest number, after a thousand steps or more.
    void check() const {
        MESSAGE(steps, " steps; context differs by ", context.value, " (", context.where, "), read weights by ",
                weight.value, " (", weight.where, "), state by ", left.value, " (", left.where, ")");
        CHECK(steps >= 1000);
        for (const auto* d : {&context, &weight, &left}) CHECK(d->value <= 1e-9);
    }
};

/// Gradients of several models through five steps of two rows against central differences, to 1e-6.
class gradient_cases {
public:
    /// `prepare` fills inputs and states; at least `least` numbers must have been compared.
    template <class Memory, class Prepare>
    void check(const memory_alone<Memory>& m, int least, Prepare prepare) {
        const auto report =
            check_gradients<cpu<double>>(*m.g, m.store, {.steps = 5, .batch = 2}, [&](auto& p) { prepare(p); });
        INFO(report.where);
        CHECK(report.worst <= 1e-6);
        CHECK(report.same_bits_twice);
        CHECK(report.compared > least);
        if (report.worst > worst_) {
            worst_ = report.worst;
            where_ = report.where;
        }
    }
    void tell() const { MESSAGE("worst relative error ", worst_, " at ", where_); }

private:
    double worst_ = 0;
    std::string where_ = "nowhere";
};

}  // namespace oracle
