// Products of bytes against sums of single ones, by every instruction there is.
#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "engram/core/byte_products.hpp"

namespace {

using engram::byte_instruction;

template <byte_instruction By>
void exact_modulo_two_to_the_32() {
    using products = engram::byte_products<By>;
    constexpr int lanes = engram::pack<float>::width, terms = 300;
    std::mt19937 rng(1);
    for (int c = 0; c < 200; ++c) {
        // Extremes, of one sign too, whose sums pass 2^31 many times; and all between.
        std::vector<std::uint32_t> bytes(lanes * terms);
        std::vector<int> numbers(4 * terms);
        for (auto& b : bytes) b = c % 2 ? std::uint32_t(rng()) : 0xffffffffu;
        for (int& n : numbers)
            n = c % 3 == 0 ? products::most : c % 3 == 1 ? -products::most : int(rng() % 65279u) - products::most;
        std::vector<std::uint32_t> expected(lanes, 0);
        products sum;
        for (int i = 0; i < terms; ++i) {
            std::uint32_t words[2];
            products::split(numbers.data() + 4 * i, words);
            sum.add(bytes.data() + i * lanes, words);
            for (int lane = 0; lane < lanes; ++lane)
                for (int j = 0; j < 4; ++j)
                    expected[std::size_t(lane)] += (bytes[std::size_t(i * lanes + lane)] >> (8 * j) & 255u) *
                                                   std::uint32_t(numbers[std::size_t(4 * i + j)]);
        }
        for (int lane = 0; lane < lanes; ++lane) REQUIRE(sum.total()[lane] == expected[std::size_t(lane)]);
    }
}

}  // namespace

TEST_CASE("sums of products are exact modulo 2^32") {
    exact_modulo_two_to_the_32<byte_instruction::one>();
    if constexpr (engram::best_byte_instruction >= byte_instruction::two)
        exact_modulo_two_to_the_32<byte_instruction::two>();
    if constexpr (engram::best_byte_instruction >= byte_instruction::four)
        exact_modulo_two_to_the_32<byte_instruction::four>();
}
