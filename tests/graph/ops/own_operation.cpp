// An operation of one's own, as docs/guide/own-operation.md shows it: one body, checked on the host in double, in a
// scan, and against itself as the kernels of a device.

#include <doctest/doctest.h>

#include <cmath>

#include <engram/device/operations.hpp>
#include <engram/graph/check_gradients.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/row_operation.hpp>
#include <engram/operations/softmax.hpp>

// [body]
// Root mean square normalisation: z = x / sqrt(mean(x^2) + 1e-6), y = gain z
//   dx = (g - z mean(g z)) / sqrt(mean(x^2) + 1e-6),  g = gain dy;   d gain = sum over rows of dy z
struct scaled_rows {
    using settings = engram::no_settings;
    template <class Real>
    struct operands {  // in the order of inputs, parameters, outputs
        engram::input_row<Real> x;
        engram::weight_row<Real> gain;
        engram::kept_row<Real, 1> scale;
        engram::output_row<Real> y;
    };
    static ENGRAM_HD void forward(auto row, const auto& o, settings) {
        const auto power = row.mean(o.x.width, [&](auto i) { return o.x[i] * o.x[i]; });
        const auto scale = 1 / engram::sqrt(power + decltype(power)(1e-6));
        row.each(o.x.width, [&](auto i) { o.y.put(i, o.gain[i] * o.x[i] * scale); });
        row.once([&] { o.scale.put(0, scale); });
    }
    static ENGRAM_HD void backward(auto row, const auto& o, settings) {
        const auto scale = o.scale[0];
        const auto g = [&](auto i) { return o.gain[i] * o.y.d[i]; };
        const auto tilt = row.mean(o.x.width, [&](auto i) { return g(i) * o.x[i] * scale; });
        row.each(o.x.width, [&](auto i) { o.x.d.put(i, (g(i) - o.x[i] * scale * tilt) * scale); });
    }
    static ENGRAM_HD void slopes(const auto& o, auto i, auto add) { add(o.gain, o.y.d[i] * o.x[i] * o.scale[0]); }
};
// [body]

// [call]
/// [T, B, F]: the rows of x [T, B, F] with mean square 1, times gain [1, F].
template <class Backend>
engram::var<Backend> scale_rows(const std::string& name, const engram::var<Backend>& x, engram::parameter gain) {
    engram::graph<Backend>& g = *x.owner;
    engram::require(g.store()[gain].columns == x.width, g.full_name(name), ": ", x.width, " columns, but the gain has ",
                    g.store()[gain].columns);
    return engram::add_rows<scaled_rows>(g, name, {x}, {}, {x.width}, {gain})[0];
}
// [call]

using namespace engram;

namespace {

struct product_of {
    auto operator()(auto a, auto b) const { return a * b; }
};

template <class Backend>
struct traced {
    using real = typename Backend::real;
    std::shared_ptr<parameters<real>> store = std::make_shared<parameters<real>>(5);
    graph<Backend> g{store};
    var<Backend> y;

    explicit traced(int width) {
        const auto x = g.input("x", width, extent::sequence, true), weight = g.input("weight", width);
        y = scale_rows("y", x, g.declare("gain", 1, width, initial::constant<real>(1)));
        philox random(4, 4);
        for (auto& v : store->edit().flat()) v += real(0.3 * static_cast<double>(random.normal()));
        add_loss("loss", sum_columns("sum", map("weighted", product_of{}, y, weight)));
    }
    static void fill(program<Backend>& p) {
        philox random(1, 1);
        for (const char* name : {"x", "weight"})
            if (p.has_input(name))
                for (auto& v : p.input(name)) v = static_cast<real>(2 * static_cast<double>(random.normal()));
    }
};

}  // namespace

TEST_CASE("an operation of one's own: values by hand, gradients against central differences") {
    for (const int width : {1, 7, 40}) {
        CAPTURE(width);
        // [check]
        traced<cpu<double>> t(width);
        const auto report = check_gradients<cpu<double>>(t.g, t.store, {.steps = 3, .batch = 2}, t.fill);
        CHECK(report.worst < 1e-6);
        // [check]
        program<cpu<double>> p(t.g, t.store, {.steps = 3, .batch = 2}, {t.y});
        t.fill(p);
        p.forward();
        const auto out = p.output(t.y);
        const double *x = p.input("x").data(), *gain = t.store->flat().data();
        for (int row = 0; row < 6; ++row) {
            double power = 0;
            for (int f = 0; f < width; ++f) power += x[row * width + f] * x[row * width + f] / width;
            for (int f = 0; f < width; ++f)
                CHECK(out.data[row * width + f] ==
                      doctest::Approx(gain[f] * x[row * width + f] / std::sqrt(power + 1e-6)).epsilon(1e-12));
        }
    }
    traced<cpu<double>> t(3);
    CHECK_THROWS_WITH(scale_rows("z", t.y, t.g.declare("short", 1, 2, initial::zero<double>())),
                      "z: 3 columns, but the gain has 2");
}

TEST_CASE("an operation of one's own runs as the kernels of a device, in any order of threads") {
    const int width = 40;
    traced<cpu<double>> host(width);
    program<cpu<double>> on_host(host.g, host.store, {.steps = 3, .batch = 2, .gradients = true}, {host.y});
    host.fill(on_host);
    on_host.forward();
    on_host.backward();
    traced<emulated<double>> device(width);
    std::vector<std::vector<double>> gradients;
    for (const auto order : {thread_order::ascending, thread_order::descending, thread_order::scrambled}) {
        program<emulated<double>> p(device.g, device.store, {.steps = 3, .batch = 2, .gradients = true}, {device.y});
        p.executor().order = order;
        device.fill(p);
        p.forward();
        p.backward();
        CHECK(p.loss() == doctest::Approx(on_host.loss()).epsilon(1e-12));
        const auto found = p.gradient();
        gradients.emplace_back(found.begin(), found.end());
        CHECK(gradients.back() == gradients.front());
        for (std::size_t i = 0; i < found.size(); ++i)
            CHECK(found[i] == doctest::Approx(on_host.gradient()[i]).epsilon(1e-11));
    }
}
