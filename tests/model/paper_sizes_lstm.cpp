// The ablations of the catalogue with an LSTM take a finite update at the paper's sizes: frames of 72 x 96 in colour,
// ResNet of 16, 32 and 32 channels to 256, LSTM 512, 1024 slots with keys of 128, ten neighbours, CPC over ten steps.

#include <engram/catalogue.hpp>

#include "product.hpp"

using namespace engram;

namespace {

template <class Agent>
std::int64_t updated() {
    const task_shape frames{{72, 96, 3}, 8};
    typename Agent::settings s;  // the defaults are the paper's
    prepared::takes_an_update<Agent>(s, frames, 3, 1);
    return Agent::template trace<cpu<float>>(s, frames, 1).store->total();
}

// Facts 1.2: three sections, and 9 * 12 * 32 = 3456 numbers to 256.
constexpr std::int64_t section(std::int64_t from, std::int64_t to) {
    return 9 * from * to + to + 4 * (9 * to * to + to);
}
constexpr std::int64_t resnet = section(3, 16) + section(16, 32) + section(32, 32) + 3456 * 256 + 256;
constexpr std::int64_t heads = 512 * 8 + 8 + 512 + 1;
constexpr std::int64_t control(bool memory) {
    return (256 + (memory ? 512 : 0) + 8 + 1 + 512) * 2048 + 2048;
}
constexpr std::int64_t addressing = 2 * ((256 + 512) * 128 + 128);

}  // namespace

TEST_CASE("lstm") {
    CHECK(updated<catalogue::lstm>() == resnet + heads + control(false));
}
TEST_CASE("lstm_cpc") {
    CHECK(updated<catalogue::lstm_cpc>() == resnet + heads + control(false) + 512 * 256 * 10);
}
TEST_CASE("lstm_mem") {
    CHECK(updated<catalogue::lstm_mem>() == resnet + heads + control(true) + addressing);
}
TEST_CASE("lstm_mem_rec") {
    CHECK(updated<catalogue::lstm_mem_rec>() > resnet + heads + control(true) + addressing);
}
TEST_CASE("mra") {
    CHECK(updated<catalogue::mra>() == resnet + heads + control(true) + addressing + 512 * 256 * 10);
}
TEST_CASE("mra_no_jumpy") {
    CHECK(updated<catalogue::mra_no_jumpy>() == updated<catalogue::mra>());
}
