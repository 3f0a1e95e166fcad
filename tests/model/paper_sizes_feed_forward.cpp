// The ablations of the catalogue with a feed-forward controller take a finite update at the paper's sizes (as
// paper_sizes_lstm.cpp).

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

constexpr std::int64_t with_memory = 512 * 512 + 2 * ((256 + 512) * 128 + 128);

}  // namespace

TEST_CASE("ff, ff_mem, ff_mem_cpc, ff_mem_rec") {
    const auto ff = updated<catalogue::ff>(), ff_mem = updated<catalogue::ff_mem>();
    CHECK(ff_mem == ff + with_memory);  // wider inputs of the controller, queries and keys
    CHECK(updated<catalogue::ff_mem_cpc>() == ff_mem + 512 * 256 * 10);
    CHECK(updated<catalogue::ff_mem_rec>() > ff_mem);
}
