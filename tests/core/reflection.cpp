#include <doctest/doctest.h>

#include <engram/core/reflection.hpp>

using namespace engram;

namespace sample {

struct memory_settings {
    int slots = 1024;
    double temperature = 0.5;
};

struct settings {
    float rate = 1e-3f;
    memory_settings memory;
    std::string name = "mra";
};

struct empty {};

struct wide {
    int a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9;
    int c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, d0, d1, d2, d3, d4, d5, d6, d7, d8, d9;
};

template <class Var>
struct cell_state {
    BOOST_HANA_DEFINE_STRUCT(cell_state, (Var, hidden), (Var, cell));
};

template <class Var>
struct state {
    BOOST_HANA_DEFINE_STRUCT(state, (std::vector<cell_state<Var>>, layers), (std::array<Var, 2>, heads),
                             (std::tuple<Var, cell_state<Var>>, pair), (Var, usage));
};

template <class Var>
struct no_state {
    BOOST_HANA_DEFINE_STRUCT(no_state);
};

struct opaque {
    int x = 0;
};

/// A leaf that is neither arithmetic nor default constructible.
struct handle {
    explicit handle(int i) : id(i) {}
    int id;
};

state<int> example() {
    return {{{1, 2}, {3, 4}}, {5, 6}, {7, {8, 9}}, 10};
}

}  // namespace sample

BOOST_HANA_ADAPT_STRUCT(sample::memory_settings, slots, temperature);
ENGRAM_REFLECT(sample::settings, rate, memory, name);
ENGRAM_REFLECT(sample::empty);
ENGRAM_REFLECT(sample::wide, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, c0, c1, c2,
               c3, c4, c5, c6, c7, c8, c9, d0, d1, d2, d3, d4, d5, d6, d7, d8, d9);

static_assert(reflected<sample::settings> && reflected<const sample::settings&> && reflected<sample::empty>);
static_assert(reflected<sample::state<double>> && reflected<sample::no_state<int>>);
static_assert(!reflected<sample::opaque> && !reflected<int> && !reflected<std::vector<int>>);
static_assert(std::is_aggregate_v<sample::settings> && std::is_aggregate_v<sample::state<int>>);

TEST_CASE("a struct of forty members is taken apart in their order") {
    sample::wide object{};
    int next = 0;
    for_each_member(object, [&](std::string_view, int& member) { member = next++; });
    CHECK(object.a0 == 0);
    CHECK(object.b0 == 10);
    CHECK(object.d9 == 39);
    CHECK(member_names<sample::wide>().size() == 40);
    CHECK(member_names<sample::wide>()[39] == "d9");
}

TEST_CASE("members are visited by name, in order, and can be changed") {
    sample::settings s;
    std::string seen;
    for_each_member(s, [&](std::string_view name, auto& member) {
        seen += std::string(name) + ";";
        if constexpr (std::is_same_v<decltype(member), float&>) member = 2.0f;
    });
    CHECK(seen == "rate;memory;name;");
    CHECK(s.rate == 2.0f);
    CHECK(member_names<sample::settings>() == std::vector<std::string>{"rate", "memory", "name"});
}

TEST_CASE("members of a const object are const") {
    const sample::memory_settings s;
    int members = 0;
    for_each_member(s, [&](std::string_view, auto& member) {
        static_assert(std::is_const_v<std::remove_reference_t<decltype(member)>>);
        ++members;
    });
    CHECK(members == 2);
}

TEST_CASE("a struct without members has none") {
    int members = 0;
    for_each_member(sample::empty{}, [&](std::string_view, auto&) { ++members; });
    for_each_member(sample::no_state<float>{}, [&](std::string_view, auto&) { ++members; });
    CHECK(members == 0);
    CHECK(leaf_count(sample::empty{}) == 0);
    CHECK(member_names<sample::empty>().empty());
    CHECK(flatten<float>(sample::no_state<float>{}).empty());
}

TEST_CASE("leaves are reached through structs, vectors, arrays and tuples") {
    const auto s = sample::example();
    const std::vector<std::string> expected{
        "m.layers.0.hidden", "m.layers.0.cell", "m.layers.1.hidden", "m.layers.1.cell", "m.heads.0",
        "m.heads.1",         "m.pair.0",        "m.pair.1.hidden",   "m.pair.1.cell",   "m.usage"};
    CHECK(leaf_paths(s, "m") == expected);
    CHECK(leaf_paths(s)[0] == "layers.0.hidden");
    CHECK(leaf_count(s) == 10);
    CHECK(flatten<int>(s) == std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
}

TEST_CASE("a path names the last element of a list on it") {
    CHECK(engram::element_of("layers.1.h") == "layers.1");
    CHECK(engram::element_of("layers.10") == "layers.10");
    CHECK(engram::element_of("0.layers.2.attend.window") == "0.layers.2");
    CHECK(engram::element_of("controller.h2") == "");
    CHECK(engram::element_of("h2.cell") == "");
    CHECK(engram::element_of("") == "");
}

TEST_CASE("what cannot be taken apart is its own leaf") {
    sample::opaque object{3};
    for_each_leaf(object, "here", [](const std::string& path, sample::opaque& leaf) {
        CHECK(path == "here");
        leaf.x = 4;
    });
    CHECK(object.x == 4);
    CHECK(leaf_count(std::vector<bool>(5)) == 1);
}

TEST_CASE("map_leaves keeps the structure, and unflatten inverts flatten") {
    const auto s = sample::example();
    const auto doubled = map_leaves(s, [](int x) { return 2 * x; });
    CHECK(flatten<int>(doubled) == std::vector<int>{2, 4, 6, 8, 10, 12, 14, 16, 18, 20});
    CHECK(doubled.layers.size() == 2);
    CHECK(s.usage == 10);
    CHECK(flatten<int>(unflatten(s, flatten<int>(doubled))) == flatten<int>(doubled));
    CHECK_THROWS_WITH_AS(unflatten(s, std::vector<int>{1}), "unflatten: got 1 leaves, expected 10", error);
}

TEST_CASE("leaves need no default constructor") {
    const sample::cell_state<sample::handle> s{sample::handle(1), sample::handle(2)};
    const auto next = map_leaves(s, [](const sample::handle& h) { return sample::handle(h.id + 10); });
    CHECK(next.hidden.id == 11);
    CHECK(flatten<sample::handle>(next)[1].id == 12);
}
