// The parameter store: names, first values, packed copies that follow every edit.

#include <doctest/doctest.h>

#include <engram/graph/parameters.hpp>

using namespace engram;

TEST_CASE("first values depend on the seed and the name, not on the order of declaration") {
    parameters<float> a(5), b(5), other(6);
    const auto x = a.declare("x", 3, 4, initial::fan_in<float>());
    a.declare("y", 2, 2, initial::fan_in<float>());
    b.declare("y", 2, 2, initial::fan_in<float>());
    const auto x_late = b.declare("x", 3, 4, initial::fan_in<float>());
    const auto x_other = other.declare("x", 3, 4, initial::fan_in<float>());
    CHECK(std::equal(a.values(x), a.values(x) + 12, b.values(x_late)));
    CHECK_FALSE(std::equal(a.values(x), a.values(x) + 12, other.values(x_other)));
    CHECK(a.total() == 16);
}

TEST_CASE("tied starts copy, and rows without weight are zero") {
    parameters<double> store(1);
    const auto key = store.declare("key", 5, 2, initial::fan_in_rows<double>(3));
    const auto query = store.declare("query", 5, 2, initial::copy_of(store, key));
    CHECK(std::equal(store.values(key), store.values(key) + 10, store.values(query)));
    for (int i = 0; i < 10; ++i) CHECK((store.values(key)[i] == 0) == (i >= 6));
}

TEST_CASE("an edit packs again and bumps the version; a copy keeps values of its own") {
    parameters<float> store(1);
    const auto w = store.declare("w", 2, 3, initial::constant<float>(1));
    const auto* packed = store.packed_forward(w);
    const auto* transposed = store.packed_transposed(w, 0, 2);
    parameters<float> copy(store);
    CHECK(store.packed_forward(w) == packed);
    const auto before = store.version();
    store.edit().values(w)[1] = 7;
    CHECK(store.version() == before + 1);
    CHECK(packed->panel_row(0, 0)[1] == 7);
    CHECK(transposed->panel_row(0, 1)[0] == 7);
    CHECK(copy.values(w)[1] == 1);
}

TEST_CASE("products in bfloat16 are chosen before anything is packed, follow every edit, and copies have them too") {
    parameters<float> store(1);
    const auto w = store.declare("w", 3, 2, initial::constant<float>(1));
    CHECK(store.products() == product_precision::full);
    store.set_products(product_precision::bfloat16);
    CHECK(parameters<float>(store).products() == product_precision::bfloat16);
    const auto* pairs = store.paired_forward(w, 1, 2);
    const auto* odd = store.paired_forward(w, 0, 3);
    const auto* transposed = store.paired_transposed(w, 1, 2);
    CHECK(store.paired_forward(w, 1, 2) == pairs);
    {
        auto edit = store.edit();
        for (int i = 0; i < 6; ++i) edit.values(w)[i] = static_cast<float>(i);
    }
    const auto word = [](float low, float high) { return bfloat16_pairs::word(low, high); };
    CHECK(pairs->panel_row(0, 0)[1] == word(3, 5));
    CHECK(odd->panel_row(0, 1)[0] == word(4, 0));
    CHECK(transposed->panel_row(0, 0)[1] == word(4, 5));
    CHECK_NOTHROW(store.set_products(product_precision::bfloat16));
    CHECK_THROWS_WITH_AS(store.set_products(product_precision::full),
                         "parameters: products were chosen after a model was planned; expected before", error);
    parameters<double> doubles(1);
    CHECK_THROWS_WITH_AS(doubles.set_products(product_precision::bfloat16),
                         "parameters: products in bfloat16 are of floats, and these are doubles", error);
}

TEST_CASE("unknown, doubled and empty parameters are told") {
    parameters<float> store(1);
    store.declare("memory.key.weight", 1, 1, initial::zero<float>());
    CHECK_THROWS_WITH_AS((void)store.find("memory.key.wait"),
                         "unknown parameter 'memory.key.wait'; did you mean 'memory.key.weight'?", error);
    CHECK_THROWS_WITH_AS(store.declare("memory.key.weight", 1, 1, initial::zero<float>()),
                         "parameter 'memory.key.weight' is declared twice", error);
    CHECK_THROWS_AS(store.declare("empty", 0, 3, initial::zero<float>()), error);
}
