// Products of embeddings as rows of the product of their table: the same bits as without, gradients within rounding,
// and only where nothing else needs the embedding.

#include <doctest/doctest.h>

#include <cmath>

#include <engram/controller/srnn.hpp>
#include <engram/controller/stacked_lstm.hpp>
#include <engram/controller/transformer.hpp>
#include <engram/encoder/token_embedding.hpp>
#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/pick.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;

namespace {

constexpr int tokens = 5, columns = 7;

struct weighted {
    auto operator()(auto x, auto weight) const { return x * weight; }
};

/// Embedded tokens and, where there are some, other numbers through a controller; a weighted sum of its h as the loss.
template <class Controller, class Real>
struct fixture {
    using backend = cpu<Real>;
    std::shared_ptr<parameters<Real>> store = std::make_shared<parameters<Real>>(3);
    graph<backend> g{store};
    var<backend> x, h;

    explicit fixture(int others, const typename Controller::settings& s, image_shape size = {1, 1, 1, tokens}) {
        std::vector<var<backend>> inputs;
        const auto w = token_embedding::declare(g, {columns, 1}, size);
        x = token_embedding::encode({columns, 1}, w, g.input("token", 1), size);
        inputs.push_back(x);
        if (others > 0) inputs.push_back(g.input("other", others, extent::sequence, true));
        const auto reset = g.input("reset", 1);
        const auto weights = Controller::declare(g, s, columns + others);
        if constexpr (requires { Controller::sequence(s, weights, inputs, reset); }) {
            h = Controller::sequence(s, weights, inputs, reset);
        } else {
            h = scan(g, Controller::begin(g, s), [&](auto& now) {
                reset_rows(now, reset);
                return Controller::step(s, weights, inputs, now);
            });
        }
        const auto weight = g.input("weight", h.width);
        add_loss("loss", sum_columns("sum", map("weighted", weighted{}, h, weight)));
    }
    void fill(program<backend>& p, int first_step = 0) const {
        const int B = p.options().batch, T = p.options().steps;
        for (const char* name : {"token", "other", "reset", "weight"}) {
            if (!p.has_input(name)) continue;
            const auto to = p.input(name);
            const std::size_t width = to.size() / static_cast<std::size_t>(T * B);
            for (std::size_t i = 0; i < to.size(); ++i) {
                const std::size_t row = i / width;
                philox random(7, stream_id(name, static_cast<std::uint32_t>(i % width)));
                random.drawn = 4 * (static_cast<std::uint64_t>(first_step) * static_cast<std::uint64_t>(B) + row);
                random.refill();
                to[i] = *name == 't'   ? static_cast<Real>(random.below(tokens))
                        : *name == 'r' ? static_cast<Real>(random.below(9) == 0)
                                       : static_cast<Real>(random.normal());
            }
        }
    }
};

/// Forward bits and gradients of a controller with the table's product and without it.
template <class Controller>
void compare(int others, const typename Controller::settings& s, std::size_t lookups = 1,
             product_precision products = product_precision::full, double tolerance = 1e-6) {
    CAPTURE(others);
    fixture<Controller, float> f(others, s);
    f.store->set_products(products);
    plan_options options{.steps = 6, .batch = 5, .gradients = true};
    program<cpu<float>> with(f.g, f.store, options, {f.h});
    options.look_up = false;
    program<cpu<float>> without(f.g, f.store, options, {f.h});
    const auto looked_up = [&](const program<cpu<float>>& p) {
        return p.planned().looked_up[static_cast<std::size_t>(f.x.value)] >= 0;
    };
    CHECK(looked_up(with) == (lookups > 0));
    CHECK_FALSE(looked_up(without));
    // Twice, with other weights: the product follows them.
    for (int turn = 0; turn < 2; ++turn) {
        for (auto* p : {&with, &without}) {
            f.fill(*p);
            p->forward();
            p->backward();
        }
        const std::size_t n = 30 * static_cast<std::size_t>(f.h.width);
        CHECK(std::equal(with.output(f.h).data, with.output(f.h).data + n, without.output(f.h).data));
        double largest = 0, apart = 0;
        for (std::size_t i = 0; i < with.gradient().size(); ++i) {
            largest = std::max(largest, std::abs(static_cast<double>(without.gradient()[i])));
            apart = std::max(apart, std::abs(static_cast<double>(with.gradient()[i] - without.gradient()[i])));
        }
        CHECK(largest > 0.1);
        CHECK(apart < tolerance * largest);  // measured: at most 2e-7 in float
        auto edit = f.store->edit();
        for (float& v : edit.flat()) v *= 1.25f;
    }
    // An actor, one step at a time with states carried on, and a shard: the learner's bits.
    f.fill(with);
    with.forward();
    program<cpu<float>> shard(f.g, f.store,
                              {.steps = 6, .batch = 4, .gradients = true, .total_batch = 5, .first_row = 1}, {f.h});
    CHECK(looked_up(shard) == (lookups > 0));
    for (const char* name : {"token", "other", "reset"}) {
        if (!shard.has_input(name)) continue;
        const std::size_t width = shard.input(name).size() / 24;
        for (std::size_t t = 0; t < 6; ++t)
            std::copy_n(with.input(name).data() + (t * 5 + 1) * width, 4 * width,
                        shard.input(name).data() + t * 4 * width);
    }
    shard.forward();
    for (int t = 0; t < 6; ++t)
        CHECK(std::equal(shard.output(f.h).at(t), shard.output(f.h).at(t) + 4 * f.h.width,
                         with.output(f.h).at(t) + f.h.width));
    if constexpr (can_control<Controller>) {
        // A plan of one step looks up as well once its batch is large enough.
        program<cpu<float>> learner(f.g, f.store, {.steps = 3, .batch = 4 * tokens, .gradients = true}, {f.h});
        program<cpu<float>> actor(f.g, f.store, {.steps = 1, .batch = 4 * tokens}, {f.h});
        CHECK(looked_up(actor) == (lookups > 0));
        f.fill(learner);
        learner.forward();
        for (int t = 0; t < 3; ++t) {
            f.fill(actor, t);
            actor.forward();
            CHECK(std::equal(actor.output(f.h).data, actor.output(f.h).data + 4 * tokens * f.h.width,
                             learner.output(f.h).at(t)));
            actor.carry();
        }
    }
}

template <class Controller>
void differentiate(int others, const typename Controller::settings& s) {
    CAPTURE(others);
    fixture<Controller, double> f(others, s);
    const plan_options options{.steps = 6, .batch = 4, .gradients = true};
    program<cpu<double>> p(f.g, f.store, options);
    REQUIRE(p.planned().looked_up[static_cast<std::size_t>(f.x.value)] >= 0);
    const auto report = check_gradients<cpu<double>>(f.g, f.store, options, [&](auto& q) { f.fill(q); });
    INFO(report.where);
    CHECK(report.worst < 1e-6);
    CHECK(report.compared > 100);
    CHECK(report.same_bits_twice);
}

}  // namespace

TEST_CASE("the same bits forward, gradients within rounding, in a time loop and outside of one") {
    for (const int others : {0, 3}) {
        compare<stacked_lstm>(others, {.hidden = 9, .layers = 2});
        compare<srnn>(others, {.hidden = 9, .hyper = 6});
        compare<transformer>(others, {.hidden = 8, .layers = 1, .heads = 2, .inner = 10});
    }
}

TEST_CASE("the same bits forward in bfloat16, where gradients of a token are summed before they are rounded") {
    compare<stacked_lstm>(3, {.hidden = 9, .layers = 2}, 1, product_precision::bfloat16, 0x1p-7);
}

TEST_CASE("gradients agree with central differences") {
    differentiate<stacked_lstm>(2, {.hidden = 4, .layers = 2});
    differentiate<srnn>(0, {.hidden = 6, .hyper = 5});
}

TEST_CASE("only embeddings of few tokens that nothing else reads, first in an affine map, are looked up") {
    using backend = cpu<double>;
    const auto store = std::make_shared<parameters<double>>(3);
    graph<backend> g(store);
    const auto index = g.input("index", 1), number = g.input("number", 4), held = g.input("held", 1, extent::batch);
    const auto table = g.declare("table", tokens, 4, initial::fan_in<double>()),
               still = g.declare("still", tokens, 4, initial::fan_in<double>());
    int embeddings = 0, products = 0;
    const auto next = [&](parameter from) { return embed(message("e", embeddings++), index, from); };
    const auto times = [&](const std::vector<var<backend>>& inputs) {
        int rows = 0;
        for (const auto& v : inputs) rows += v.width;
        const std::string name = message("w", products++);
        return affine(name, inputs, g.declare_linear(name, rows, 3));
    };
    const auto first = next(table), twice = next(table), detached = next(still), part = next(table),
               second = next(table), added = next(table), timeless = next(table);
    const std::vector<var<backend>> out{times({first, number}),
                                        times({twice}),
                                        times({twice, number}),
                                        times({stop_gradient(detached)}),
                                        times({part.columns(0, 3)}),
                                        times({number, second}),
                                        times({added}),
                                        map("sum", weighted{}, added, number),
                                        times({timeless, held})};
    for (std::size_t i = 0; i < out.size(); ++i)
        add_loss(message("loss", i), sum_columns(message("columns", i), out[i]));
    const auto looked_up = [&](const plan_options& options, const std::vector<var<backend>>& outputs = {}) {
        program<backend> p(g, store, options, outputs);
        std::string names;
        for (const auto& v : {first, twice, detached, part, second, added, timeless})
            names += p.planned().looked_up[static_cast<std::size_t>(v.value)] >= 0 ? '1' : '0';
        return names;
    };
    CHECK(looked_up({.steps = 5, .batch = 4, .gradients = true}) == "1110000");
    CHECK(looked_up({.steps = 19, .batch = 1, .gradients = true}) == "0000000");
    CHECK(looked_up({.steps = 5, .batch = 4, .gradients = true, .look_up = false}) == "0000000");
    CHECK(looked_up({.steps = 5, .batch = 4, .gradients = true}, {first}) == "0110000");
    const auto fill = [](program<backend>& p) {
        philox random(1, 1);
        for (const char* name : {"number", "held"})
            for (double& v : p.input(name)) v = random.normal();
        for (double& v : p.input("index")) v = random.below(tokens);
    };
    // Differences do not stop where a gradient is stopped.
    const auto report = check_gradients<backend>(g, store, {.steps = 5, .batch = 4}, fill, 24, 1e-4,
                                                 [](const std::string& name) { return name != "still"; });
    INFO(report.where);
    CHECK(report.worst < 1e-6);
    program<backend> p(g, store, {.steps = 5, .batch = 4, .gradients = true});
    CHECK_THROWS_WITH_AS(p.output(first), "output: 'e0' is not computed by this plan; name it among the outputs",
                         error);
    CHECK_THROWS_WITH_AS(p.gradient_of(first),
                         "gradient_of: 'e0' is not written out by this plan; name it among the outputs", error);
    fill(p);
    p.forward();
    p.backward();
    CHECK(p.first_non_finite().empty());
    const auto slopes = p.gradient().subspan(static_cast<std::size_t>((*store)[still].offset), 4 * tokens);
    CHECK(std::all_of(slopes.begin(), slopes.end(), [](double v) { return v == 0; }));
    p.input("index")[7] = tokens;
    CHECK_THROWS_WITH_AS(p.forward(), "e0: index 5 is outside 0..4", error);
}

TEST_CASE("numbers that pass an MLP are no lookup") {
    fixture<stacked_lstm, double> f(0, {.hidden = 3}, {1, 1, 1});
    program<cpu<double>> p(f.g, f.store, {.steps = 5, .batch = 4, .gradients = true});
    CHECK(std::all_of(p.planned().looked_up.begin(), p.planned().looked_up.end(), [](int v) { return v < 0; }));
}
