// Allocation and temporal links as operations: an unroll equals its steps, gradients through links, what links cost.

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/dnc.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/softmax.hpp>

namespace {

std::atomic<long> allocations{0}, allocated_bytes{0};

void* counted(std::size_t size, std::size_t alignment) {
    ++allocations;
    allocated_bytes += static_cast<long>(size);
    size = (size + alignment - 1) / alignment * alignment;
    if (void* p = std::aligned_alloc(alignment, size ? size : alignment)) return p;
    throw std::bad_alloc();
}

}  // namespace

// The other forms call these.
void* operator new(std::size_t size) {
    return counted(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, std::align_val_t a) {
    return counted(size, static_cast<std::size_t>(a));
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
    std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept {
    std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept {
    std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
    std::free(p);
}

using namespace engram;

namespace {

struct share {
    double of;
    auto operator()(auto x) const { return logistic(x) / of; }
};
struct uneven {
    auto operator()(auto x) const { return square(x + 0.3); }
};
struct follow {
    auto operator()(auto sum, auto before, auto written) const { return (1 - sum) * before + written; }
};
template <class Var>
struct link_state {
    BOOST_HANA_DEFINE_STRUCT(link_state, (Var, precedence), (Var, read));
};

/// Writes come from outside, reads go on along the link: only the link and its precedence remember writes.
template <class Backend>
struct traced {
    using real = typename Backend::real;
    static constexpr int R = 2;
    int N;
    std::shared_ptr<parameters<real>> store = std::make_shared<parameters<real>>(3);
    graph<Backend> g{store};
    var<Backend> forward, backward;

    explicit traced(int slots) : N(slots) {
        const auto reset = g.input("reset", 1), x = g.input("x", N, extent::sequence, true);
        const auto seek = g.input("seek", R * N, extent::sequence, true);
        const auto link = add_dnc_link(g, "link", N);
        const link_state<var<Backend>> start{g.state("precedence", N), g.state("read", R * N)};
        const double most = 0.5 * N;  // weights that sum to two at most
        std::tie(forward, backward) = scan(g, start, [&](auto& s) {
            reset_all(s, reset);
            link_forget(link, reset);
            const auto written = map("written", share{most}, x);
            const auto moved = temporal_link("link", link, written, s.precedence, s.read);
            s.precedence = map("follow", follow{}, sum_columns("sum", written), s.precedence, written);
            s.read = map("read", share{most}, seek);
            return std::tuple(moved.forward, moved.backward);
        });
        add_loss("forward", sum_columns("sum.forward", map("of_forward", uneven{}, forward)));
        add_loss("backward", sum_columns("sum.backward", map("of_backward", uneven{}, backward)), 0.7);
    }
    void fill(program<Backend>& p, int first, int steps, const std::vector<int>& resets = {}) const {
        const int B = p.options().batch;
        for (const char* name : {"x", "seek"}) {
            philox random(5, static_cast<std::uint64_t>(name[0]));
            for (int t = 0; t < first + steps; ++t) {
                const auto width = p.input(name).size() / static_cast<std::size_t>(p.options().steps);
                for (std::size_t i = 0; i < width; ++i) {
                    const real v = static_cast<real>(2 * random.normal());
                    if (t >= first) p.input(name)[static_cast<std::size_t>(t - first) * width + i] = v;
                }
            }
        }
        for (int i = 0; i < steps * B; ++i)
            p.input("reset")[static_cast<std::size_t>(i)] =
                std::find(resets.begin(), resets.end(), first * B + i) != resets.end();
    }

private:
    struct clear {
        auto operator()(auto reset, auto x) const { return select(reset > 0.5, 0, x); }
    };
    void reset_all(link_state<var<Backend>>& s, const var<Backend>& reset) {
        for_each_leaf(s, "", [&](const auto&, auto& leaf) { leaf = map("clear", clear{}, reset, leaf); });
    }
};

template <class Backend>
std::span<typename Backend::real> links_of(program<Backend>& p) {
    const auto bytes = p.bound_resource(0)->bytes();
    REQUIRE(bytes.size() == 1);
    return {reinterpret_cast<typename Backend::real*>(bytes[0].data()),
            bytes[0].size() / sizeof(typename Backend::real)};
}

template <class Backend>
void draw_links(program<Backend>& p, int N) {
    philox random(6, 6);
    const auto links = links_of(p);
    for (std::size_t i = 0; i < links.size(); ++i)
        links[i] = i % static_cast<std::size_t>(N * N) % static_cast<std::size_t>(N + 1) == 0
                       ? 0
                       : random.uniform() / static_cast<float>(N);
}

}  // namespace

TEST_CASE("an unroll with gradients, one without and single steps give the same bits, and a look changes nothing") {
    using backend = cpu<float>;
    constexpr int T = 7, B = 3, N = 19;
    const traced<backend> m(N);
    const std::vector<int> resets{4, 12, 15};
    program<backend> learner(m.g, m.store, {.steps = T, .batch = B, .gradients = true}, {m.forward, m.backward});
    program<backend> unroll(m.g, m.store, {.steps = T, .batch = B}, {m.forward, m.backward});
    program<backend> aside(m.g, m.store, {.steps = T, .batch = B, .side_effects = false}, {m.forward, m.backward});
    program<backend> one(m.g, m.store, {.steps = 1, .batch = B}, {m.forward, m.backward});
    program<backend> look(m.g, m.store, {.steps = 1, .batch = B, .side_effects = false}, {m.forward, m.backward});
    for (auto* p : {&learner, &unroll, &aside, &one}) draw_links(*p, N);
    look.bound_resource(0) = one.bound_resource(0);
    for (auto* p : {&learner, &unroll}) {
        m.fill(*p, 0, T, resets);
        p->forward();
    }
    int different = 0;
    const auto compare = [&](const program<backend>& p, int s, const program<backend>& q, int t) {
        for (const auto& v : {m.forward, m.backward})
            for (int i = 0; i < B * v.width; ++i) different += p.output(v).at(s)[i] != q.output(v).at(t)[i];
    };
    for (int t = 0; t < T; ++t) {
        m.fill(one, t, 1, resets);
        // A look does not forget, so it is compared where no episode begins.
        const bool begins = std::any_of(resets.begin(), resets.end(), [&](int r) { return r / B == t; });
        if (!begins) {
            m.fill(look, t, 1);
            for (const char* name : {"precedence", "read"})
                std::copy(one.state(name).begin(), one.state(name).end(), look.state(name).begin());
            const std::vector<float> before(links_of(one).begin(), links_of(one).end());
            look.forward();
            CHECK(std::equal(before.begin(), before.end(), links_of(one).begin()));
        }
        one.forward();
        if (!begins) compare(look, 0, one, 0);
        compare(one, 0, unroll, t);
        compare(one, 0, learner, t);
        one.carry();
    }
    CHECK(different == 0);
    for (auto* p : {&learner, &unroll})
        CHECK(std::equal(links_of(one).begin(), links_of(one).end(), links_of(*p).begin()));
    // Nothing is left of the sweep before.
    std::vector<float> slopes[2];
    for (auto& list : slopes) {
        learner.backward();
        for (const int v : m.g.wanted_gradients()) {
            var<backend> x;
            x.value = v;
            x.width = m.g.value(v).width;
            const auto d = learner.gradient_of(x);
            list.insert(list.end(), d.data, d.data + T * B * x.width);
        }
    }
    CHECK(slopes[0] == slopes[1]);
    // The learner goes on from where it stands.
    for (auto* p : {&learner, &unroll}) {
        p->carry();
        m.fill(*p, 0, T);
        p->forward();
    }
    for (int t = 0; t < T; ++t) compare(learner, t, unroll, t);
    CHECK(different == 0);
    // Who is lent a link in which an episode has begun does not begin it once more.
    for (const auto& begins : {std::vector<int>{0, 1, 2}, std::vector<int>{}}) {
        m.fill(one, 0, 1, begins);
        one.forward();
        one.carry();
    }
    learner.bound_resource(0) = one.bound_resource(0);
    std::copy(links_of(one).begin(), links_of(one).end(), links_of(unroll).begin());
    for (auto* p : {&learner, &unroll}) {
        m.fill(*p, 0, T);
        for (const char* name : {"precedence", "read"})
            std::copy(one.state(name).begin(), one.state(name).end(), p->state(name).begin());
        p->forward();
    }
    for (int t = 0; t < T; ++t) compare(learner, t, unroll, t);
    CHECK(different == 0);
    // Several steps without side effects go on from each other.
    draw_links(unroll, N);
    for (auto* p : {&unroll, &aside}) {
        m.fill(*p, 0, T);
        for (const char* name : {"precedence", "read"}) std::fill_n(p->state(name).begin(), B * N, 0.0f);
        std::fill(p->state("read").begin(), p->state("read").end(), 0.1f);
        p->forward();
    }
    for (int t = 0; t < T; ++t) compare(aside, t, unroll, t);
    CHECK(different == 0);
}

TEST_CASE("gradients through links, precedences and read weights, episodes beginning among them") {
    using backend = cpu<double>;
    double worst = 0;
    for (const bool resets : {false, true}) {
        const traced<backend> m(5);
        const auto report = check_gradients<backend>(
            m.g, m.store, {.steps = 5, .batch = 2},
            [&](auto& p) {
                m.fill(p, 0, 5, resets ? std::vector<int>{1, 4, 7} : std::vector<int>{});
                draw_links(p, 5);
                for (const char* name : {"precedence", "read"})
                    std::fill(p.state(name).begin(), p.state(name).end(), 0.1);
            },
            60);
        INFO(report.where);
        CHECK(report.worst <= 1e-6);
        CHECK(report.compared > 60);
        CHECK(report.same_bits_twice);
        worst = std::max(worst, report.worst);
    }
    MESSAGE("worst relative error ", worst);
}

TEST_CASE("an episode's start passes nothing back, and a link of NaN does not outlive its episode") {
    using backend = cpu<double>;
    constexpr int T = 6, B = 2, N = 4;
    const traced<backend> m(N);
    program<backend> p(m.g, m.store, {.steps = T, .batch = B, .gradients = true}, {m.forward, m.backward});
    m.fill(p, 0, T, {0, 1, 3 * B});
    for (double& x : links_of(p)) x = std::numeric_limits<double>::quiet_NaN();
    p.forward();
    p.backward();
    CHECK(p.first_non_finite() == "");
    var<backend> x;
    for (const int v : m.g.wanted_gradients())
        if (m.g.value(v).name == "x") x.value = v;
    x.width = N;
    const auto before = p.gradient_of(x);
    const std::vector<double> was(before.data, before.data + T * B * N);
    for (const double slope : was) CHECK(std::isfinite(slope));
    // What the second episode of row 0 is shown changes nothing of the first one's gradients, and all of row 1's own.
    for (int t = 3; t < T; ++t)
        for (int b = 0; b < B; ++b)
            for (int i = 0; i < N; ++i) p.input("x")[static_cast<std::size_t>((t * B + b) * N + i)] += 0.5;
    for (double& l : links_of(p)) l = std::numeric_limits<double>::quiet_NaN();
    p.forward();
    p.backward();
    const auto after = p.gradient_of(x);
    for (int t = 0; t < 3; ++t)
        for (int i = 0; i < N; ++i) CHECK(after.data[t * B * N + i] == was[static_cast<std::size_t>(t * B * N + i)]);
    bool moved = false;
    for (int i = 0; i < N; ++i)
        moved |= after.data[2 * B * N + N + i] != was[static_cast<std::size_t>(2 * B * N + N + i)];
    CHECK(moved);
}

TEST_CASE("T steps with gradients cost T links a row and two more, a plan without them none but its resource") {
    using backend = cpu<float>;
    constexpr int B = 2, N = 400;
    constexpr long link = B * N * N * long{sizeof(float)};
    const traced<backend> m(N);
    const auto cost = [&](plan_options options) {
        options.batch = B;
        const long before = allocated_bytes;
        const program<backend> p(m.g, m.store, options, {m.forward, m.backward});
        return static_cast<double>(allocated_bytes - before) / static_cast<double>(link);
    };
    const double ten = cost({.steps = 10, .gradients = true}), twenty = cost({.steps = 20, .gradients = true}),
                 acting = cost({.steps = 1}), looking = cost({.steps = 1, .side_effects = false});
    // Everything else is vectors of N: at most some 50 a step and head beside a link of N rows.
    const double others = 50.0 * traced<backend>::R / N;
    MESSAGE("links: ", ten, " for 10 steps, ", twenty, " for 20, ", acting, " acting, ", looking, " looking");
    CHECK(twenty - ten >= 10);
    CHECK(twenty - ten <= 10 * (1 + others));
    CHECK(ten >= 12);
    CHECK(ten <= 12.5 + 10 * others);  // 10 kept, the resource, one gradient, half of one (B = 2) to work in
    CHECK(acting <= 1 + others);
    CHECK(looking <= 2 + others);
}

TEST_CASE("a replay allocates nothing") {
    using backend = cpu<float>;
    const traced<backend> m(40);
    program<backend> p(m.g, m.store, {.steps = 4, .batch = 2, .gradients = true});
    const long before = allocations;
    for (int i = 0; i < 3; ++i) {
        p.forward();
        p.backward();
    }
    CHECK(allocations == before);

    graph<backend> g(m.store);
    add_loss("a", sum_columns("sum", map("square", uneven{},
                                         dnc_allocate("allocation", g.input("u", 100, extent::sequence, true)))));
    program<backend> q(g, m.store, {.steps = 4, .batch = 2, .gradients = true});
    const long middle = allocations;
    q.forward();
    q.backward();
    CHECK(allocations == middle);
}

TEST_CASE("gradients of allocation, outside a scan too") {
    using backend = cpu<double>;
    for (const extent rows : {extent::sequence, extent::batch}) {
        auto store = std::make_shared<parameters<double>>(3);
        graph<backend> g(store);
        const auto usage = map("usage", share{1}, g.input("u", 7, rows, true));
        const auto a = dnc_allocate("allocation", usage), again = dnc_allocate("again", usage);
        add_loss("a", sum_columns("sum", map("square", uneven{}, a)));
        add_loss("b", sum_columns("sum.b", map("square.b", uneven{}, again)), 0.5);
        const auto report = check_gradients<backend>(
            g, store, {.steps = 3, .batch = 2},
            [&](auto& p) {
                philox random(9, 9);
                for (auto& x : p.input("u")) x = 2 * random.normal();
            },
            100);
        INFO(report.where);
        CHECK(report.worst <= 1e-6);
        CHECK(report.compared == (rows == extent::batch ? 14 : 42));
    }
}

TEST_CASE("wrong widths are told when traced, with both sizes") {
    using backend = cpu<double>;
    graph<backend> g(std::make_shared<parameters<double>>());
    const auto scope = g.scope("memory");
    const auto link = add_dnc_link(g, "link", 4);
    const auto w = g.input("w", 4), x = g.input("x", 5), r = g.input("r", 8);
    CHECK_THROWS_WITH_AS(temporal_link("link", link, w, x, r),
                         "memory.link: write weights and precedence have 4 and 5 columns, the link has 4 slots", error);
    CHECK_THROWS_WITH_AS(temporal_link("link", link, w, w, x),
                         "memory.link: read weights of 5 columns do not divide among 4 slots", error);
    CHECK_THROWS_WITH_AS(temporal_link("link", link, w, w, r),
                         "memory.link: a link goes from step to step; trace it in the body of a scan", error);
    CHECK_THROWS_WITH_AS(link_forget(link, w), "memory.forget: reset is one column, not 4", error);
    CHECK_THROWS_WITH_AS(add_dnc_link(g, "link", 0), "memory.link: a link between 0 slots holds nothing", error);
}
