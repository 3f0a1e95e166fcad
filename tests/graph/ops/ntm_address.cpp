// NTM addressing as an operation: the kernel's numbers, gradients alone, shared and through steps, wrong widths.

#include <doctest/doctest.h>

#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/ntm_address.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;
using backend = cpu<double>;

namespace {

constexpr int N = 5, R = 2;

struct uneven {
    auto operator()(auto x) const { return square(x + 0.3); }
};
template <class Var>
struct heads_state {
    BOOST_HANA_DEFINE_STRUCT(heads_state, (Var, weight));
};

void draw(program<backend>& p, const std::string& name, std::uint64_t stream) {
    philox random(2, stream);
    const auto to = p.input(name);
    for (double& v : to)
        v = name == "previous" ? 0.2 + 0.1 * static_cast<double>(random.uniform())
                               : static_cast<double>(random.normal());
}

gradient_report report_of(const graph<backend>& g, std::shared_ptr<parameters<double>> store, plan_options o,
                          const std::vector<std::string>& inputs) {
    const auto report = check_gradients<backend>(g, store, o, [&](auto& p) {
        for (std::size_t i = 0; i < inputs.size(); ++i) draw(p, inputs[i], i);
    });
    INFO(report.where);
    CHECK(report.worst < 1e-6);
    CHECK(report.same_bits_twice);
    return report;
}

const std::vector<std::string> names{"cosine", "raw", "previous"};
constexpr int widths[] = {R * N, R * 6, R* N};

}  // namespace

TEST_CASE("every row of a plan is what the kernel gives, with and without gradients") {
    auto store = std::make_shared<parameters<double>>();
    graph<backend> g(store);
    std::vector<var<backend>> v;
    for (std::size_t i = 0; i < 3; ++i) v.push_back(g.input(names[i], widths[i], extent::sequence, true));
    const auto w = ntm_address("address", v[0], v[1], v[2]);
    add_loss("loss", sum_columns("sum", map("uneven", uneven{}, w)));
    for (const bool gradients : {false, true}) {
        program<backend> p(g, store, {.steps = 3, .batch = 2, .gradients = gradients}, {w});
        for (std::size_t i = 0; i < 3; ++i) draw(p, names[i], i);
        p.forward();
        for (std::ptrdiff_t row = 0; row < 6; ++row) {
            std::vector<double> weight(R * N), content(R * N), shifted(R * N), scratch(ntm_address_scratch(N));
            std::vector<ntm_head<double>> heads(R);
            ntm_address(p.input("cosine").data() + row * R * N, p.input("raw").data() + row * R * 6,
                        p.input("previous").data() + row * R * N, N, R, weight.data(), content.data(), shifted.data(),
                        heads.data(), scratch.data());
            CHECK(std::equal(weight.begin(), weight.end(), p.output(w).data + row * R * N));
        }
    }
}

TEST_CASE("gradients outside a scan: each input alone, all, one shared by two roles, sequences and batches") {
    for (const extent rows : {extent::sequence, extent::batch})
        for (int only = -1; only < 3; ++only) {
            CAPTURE(only);
            auto store = std::make_shared<parameters<double>>();
            graph<backend> g(store);
            std::vector<var<backend>> v;
            for (int i = 0; i < 3; ++i)
                v.push_back(g.input(names[static_cast<std::size_t>(i)], widths[i], i == 1 ? extent::sequence : rows,
                                    only < 0 || only == i));
            const auto loss = [&](const std::string& name, const var<backend>& w) {
                add_loss(name, sum_columns("sum." + name, map("uneven." + name, uneven{}, w)));
            };
            loss("once", ntm_address("once", v[0], v[1], v[2]));
            if (only < 0) loss("shared", ntm_address("shared", v[2], v[1], v[2]));
            CHECK(report_of(g, store, {.steps = 2, .batch = 2}, names).compared >= 10);
        }
}

TEST_CASE("gradients through weights that are carried over five steps, hoisted or not") {
    auto store = std::make_shared<parameters<double>>(5);
    graph<backend> g(store);
    const auto x = g.input("x", 3, extent::sequence, true), first = g.input("previous", R * N, extent::batch, true);
    const auto scores = g.declare_linear("scores", 3 + R * N, R * N), raw = g.declare_linear("raw", 3, R * 6);
    const auto w = scan(g, heads_state<var<backend>>{first}, [&](auto& s) {
        s.weight =
            ntm_address("address", affine<backend>("scores", {x, s.weight}, scores), affine("raw", x, raw), s.weight);
        return s.weight;
    });
    add_loss("loss", sum_columns("sum", map("uneven", uneven{}, w)));
    for (const bool hoist : {true, false})
        CHECK(report_of(g, store, {.steps = 5, .batch = 2, .hoist = hoist}, {"x", "previous"}).compared > 60);
}

TEST_CASE("wrong widths are told when traced") {
    graph<backend> g(std::make_shared<parameters<double>>());
    const auto c = g.input("c", 10), z = g.input("z", 12), odd = g.input("odd", 13), more = g.input("more", 18);
    const auto scope = g.scope("memory");
    CHECK_THROWS_WITH_AS(ntm_address("address", c, odd, c),
                         "memory.address: a head is steered by 6 numbers, which do not divide 13 columns", error);
    CHECK_THROWS_WITH_AS(ntm_address("address", c, more, c), "memory.address: 10 cosines do not divide among 3 heads",
                         error);
    CHECK_THROWS_WITH_AS(ntm_address("address", c, z, z), "memory.address: 10 cosines meet 12 previous weights", error);
}
