// Row operations: values against plain arithmetic, gradients against central differences, indices checked.

#include <doctest/doctest.h>

#include <cmath>

#include <engram/graph/check_gradients.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/channels.hpp>
#include <engram/operations/concatenate.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/pick.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;

namespace {

struct product_of {
    auto operator()(auto a, auto b) const { return a * b; }
};

using backend = cpu<double>;

struct fixture {
    std::shared_ptr<parameters<double>> store = std::make_shared<parameters<double>>(3);
    graph<backend> g{store};
    var<backend> x = g.input("x", 4, extent::sequence, true), index = g.input("index", 1),
                 weight = g.input("weight", 4);
};

void fill(program<backend>& p) {
    philox random(1, 1);
    for (const char* name : {"x", "weight"})
        if (p.has_input(name))
            for (auto& v : p.input(name)) v = random.normal();
    if (p.has_input("index"))
        for (auto& v : p.input("index")) v = random.below(4);
}

}  // namespace

TEST_CASE("gradients of softmax, log-softmax, picks, concatenation and embedding agree with central differences") {
    fixture f;
    const auto table = f.g.declare("table", 4, 4, initial::fan_in<double>());
    const auto weighted = [&](const char* name, const var<backend>& y) {
        add_loss(name, sum_columns(message(name, ".sum"), map(message(name, ".weighted"), product_of{}, y, f.weight)));
    };
    weighted("soft", softmax("softmax", f.x));
    weighted("log", log_softmax("log_softmax", f.x));
    weighted("slices", concatenate("both", {f.x.columns(2, 2), f.x.columns(0, 2)}));
    weighted("embedded", embed("embed", f.index, table));
    add_loss("picked", pick("pick", log_softmax("again", f.x), f.index), -1, reduction::mean);
    const auto report = check_gradients<backend>(f.g, f.store, {.steps = 3, .batch = 2}, fill);
    INFO(report.where);
    CHECK(report.worst < 1e-6);
    CHECK(report.compared == 16 + 24);
    CHECK(report.same_bits_twice);
}

TEST_CASE("values: a row of softmax sums to one, its log is log_softmax, sums and one-hot codes are exact") {
    fixture f;
    const auto soft = softmax("softmax", f.x), logs = log_softmax("log_softmax", f.x);
    const auto sum = sum_columns("sum", soft), code = one_hot("code", f.index, 4);
    program<backend> p(f.g, f.store, {.steps = 2, .batch = 3}, {soft, logs, sum, code});
    fill(p);
    p.input("x")[0] = 1000;  // overflows without the shift
    p.input("index")[1] = -1;
    p.forward();
    for (int r = 0; r < 6; ++r) {
        CHECK(p.output(sum).data[r] == doctest::Approx(1).epsilon(1e-14));
        double ones = 0;
        for (int c = 0; c < 4; ++c) {
            const double s = p.output(soft).data[4 * r + c], l = p.output(logs).data[4 * r + c];
            CHECK(std::exp(l) == doctest::Approx(s).epsilon(1e-13));
            ones += p.output(code).data[4 * r + c];
        }
        CHECK(ones == (r == 1 ? 0 : 1));
    }
}

TEST_CASE("an index outside its range is told when it is met, with the range") {
    fixture f;
    const auto picked = pick("taken", f.x, f.index);
    program<backend> p(f.g, f.store, {.steps = 1, .batch = 1}, {picked});
    for (const double wrong : {4.0, -1.0}) {
        p.input("index")[0] = wrong;
        CHECK_THROWS_WITH_AS(p.forward(), doctest::Contains("is outside 0..3"), error);
    }
    CHECK_THROWS_WITH_AS(pick("wide", f.x, f.x), "wide: the index must be one column, not 4", error);
}

TEST_CASE("a mean loss counts the rows of the whole batch, so shards add up") {
    fixture f;
    add_loss("mean", sum_columns("sum", f.x), 1, reduction::mean);
    program<backend> whole(f.g, f.store, {.steps = 1, .batch = 2, .gradients = true});
    program<backend> part(f.g, f.store, {.steps = 1, .batch = 1, .gradients = true, .total_batch = 2});
    const double numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    std::copy_n(numbers, 8, whole.input("x").begin());
    whole.forward();
    double sum = 0;
    for (int b = 0; b < 2; ++b) {
        std::copy_n(numbers + 4 * b, 4, part.input("x").begin());
        part.forward();
        sum += part.loss();
    }
    CHECK(whole.loss() == doctest::Approx(18));
    CHECK(sum == doctest::Approx(whole.loss()));
}

TEST_CASE("inputs that are named where they are joined stand in braces, however many") {
    fixture f;
    const auto turned = concatenate("turned", {f.x.columns(3, 1), f.x.columns(1, 2), f.x.columns(0, 1)});
    const auto alone = concatenate("alone", {f.x}), noted = record("noted", {f.x.columns(1, 3), f.x.columns(0, 1)});
    const auto weights = f.g.declare_linear("map", 4, 2);
    const auto braces = affine("braces", {f.x.columns(0, 1), f.x.columns(1, 3)}, weights);
    const auto whole = affine("whole", f.x, weights);
    const image_shape pixels{2, 1, 1};
    const auto images = concatenate_channels("images", {f.x.columns(0, 2), f.x.columns(2, 2)}, pixels);
    program<backend> p(f.g, f.store, {.steps = 2, .batch = 1}, {turned, alone, noted, braces, whole, images});
    fill(p);
    p.forward();
    for (int t = 0; t < 2; ++t) {
        const double* x = p.input("x").data() + 4 * t;
        const int order[] = {3, 1, 2, 0}, shifted[] = {1, 2, 3, 0}, mixed[] = {0, 2, 1, 3};
        for (int c = 0; c < 4; ++c) {
            CHECK(p.output(turned).at(t)[c] == x[order[c]]);
            CHECK(p.output(alone).at(t)[c] == x[c]);
            CHECK(p.output(noted).at(t)[c] == x[shifted[c]]);
            CHECK(p.output(images).at(t)[c] == x[mixed[c]]);
        }
        for (int c = 0; c < 2; ++c)
            CHECK(p.output(braces).at(t)[c] == doctest::Approx(p.output(whole).at(t)[c]).epsilon(1e-12));
    }
}
