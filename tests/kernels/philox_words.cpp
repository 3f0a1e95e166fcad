// Many Philox blocks at once: the bits of one after another.

#include <doctest/doctest.h>

#include <engram/kernels/philox_words.hpp>

using namespace engram;

TEST_CASE("words of many blocks are those of one block after another, also where the counter wraps") {
    philox random(5, 1);
    for (int turn = 0; turn < 50; ++turn) {
        philox_block counter{{random.next(), random.next(), random.next(), random.next()}};
        if (turn == 0) counter = {};
        if (turn == 1) counter.word[2] = 0xFFFFFFFFu;  // the second block's is 0 again
        const std::uint32_t key0 = random.next(), key1 = random.next();
        std::uint32_t words[4 * philox_lanes];
        philox_words(counter, key0, key1, words);
        for (int i = 0; i < philox_lanes; ++i, ++counter.word[2]) {
            const philox_block one = philox4x32(counter, key0, key1);
            for (int k = 0; k < 4; ++k) CHECK(words[4 * i + k] == one.word[k]);
        }
    }
}
