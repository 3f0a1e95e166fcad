// Settings of policies: defaults are the paper's (facts 1.2, 1.8), and every bad value is refused in a sentence that
// names it.

#include <doctest/doctest.h>

#include <engram/catalogue.hpp>
#include <engram/core/settings.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/encoder/small_conv.hpp>

using namespace engram;

namespace {

template <class Policy>
void refuses(const std::string& flag, const char* sentence) {
    typename Policy::settings s;
    CHECK_NOTHROW(s.check());
    CHECK_THROWS_WITH_AS(set(s, {{flag.substr(0, flag.find('=')), flag.substr(flag.find('=') + 1)}}),
                         doctest::Contains(sentence), engram::error);
}

}  // namespace

TEST_CASE("bad values") {
    refuses<impala_resnet>("channels=16,0", "encoder.channels: expected positive numbers, got 0");
    refuses<impala_resnet>("strided=8,0", "encoder.strided: expected positive numbers, got 0");
    refuses<impala_resnet>("strided_by=2,-1", "encoder.strided_by: expected positive numbers, got -1");
    refuses<impala_resnet>("strided=8,8,8",
                           "encoder: strided_sides and strided_by need a number for each of the 3 convolutions");
    refuses<impala_resnet>("hidden=-1", "encoder.hidden: expected positive widths, got -1");
    refuses<impala_resnet>("blocks=-1", "encoder.blocks: expected zero or more, got -1");
    refuses<impala_resnet>("output=0", "encoder.output: expected at least one column, got 0");
    refuses<mlp>("layers=", "encoder.layers: expected at least one width");
    refuses<mlp>("layers=3,0", "encoder.layers: expected positive widths, got 0");
    refuses<small_conv>("strides=4", "channels, kernels and strides need one number a layer each, got 2, 2 and 1");
    refuses<lstm>("hidden=0", "controller.hidden: expected a positive number of units, got 0");
    refuses<feed_forward>("hidden=0", "controller.hidden: expected a positive number of units, got 0");
    refuses<fifo_knn>("slots=0", "memory.slots: expected at least one slot, got 0");
    refuses<fifo_knn>("neighbours=0", "memory.neighbours: expected at least one neighbour, got 0");
    refuses<fifo_knn>("key=0", "memory.key: expected at least one column, got 0");
    refuses<fifo_knn>("epsilon=0", "memory.epsilon: expected a positive number, got 0");
    refuses<cpc>("steps=0", "auxiliary.steps: expected at least one step to predict, got 0");
    refuses<cpc>("weight=-1", "auxiliary.weight: expected a weight of zero or more, got -1");
    refuses<reconstruction>("image=-1", "auxiliary.image: expected zero or more, got -1");
    refuses<reconstruction>("weight=-2", "auxiliary.weight: expected zero or more, got -2");
    refuses<vtrace>("discount=1.5", "learner.discount: expected a number in 0..1, got 1.5");
    refuses<vtrace>("rho_bar=0", "learner.rho_bar: expected a positive number, got 0");
    refuses<vtrace>("c_bar=-1", "learner.c_bar: expected a positive number, got -1");
    refuses<vtrace>("clip=1", "learner.clip: expected a number from 0 to below 1, got 1");
    refuses<vtrace>("entropy_cost=-1", "learner.entropy_cost: expected zero or more, got -1");
    refuses<ppo>("value_cost=-1", "learner.value_cost: expected zero or more, got -1");
    refuses<ppo>("divergence_cost=-0.1", "learner.divergence_cost: expected zero or more, got -0.1");
    refuses<ppo>("divergence_target=0", "learner.divergence_target: expected a positive number, got 0");
}

TEST_CASE("the defaults are the paper's") {
    const catalogue::mra::settings s;
    CHECK(s.encoder.channels == std::vector<int>{16, 32, 32});
    CHECK(s.encoder.blocks == 2);
    CHECK(s.encoder.hidden.empty());
    CHECK(s.encoder.output == 256);
    CHECK(s.controller.hidden == 512);
    CHECK(s.memory.slots == 1024);
    CHECK(s.memory.neighbours == 10);
    CHECK(s.memory.key == 128);
    CHECK(s.auxiliary.steps == 10);
    CHECK(s.auxiliary.weight == 10);
    CHECK(s.learner.discount == 0.98);
    CHECK(s.learner.baseline_cost == 0.5);
    CHECK(s.learner.rho_bar == 1);
    CHECK(s.learner.c_bar == 1);
}

TEST_CASE("with<P> replaces the policy of P's slot and no other, in any order of the five") {
    using mra = catalogue::mra;
    using other = mra::with<feed_forward>;
    static_assert(std::is_same_v<other::controller, feed_forward> && std::is_same_v<other::memory, fifo_knn>);
    static_assert(std::is_same_v<other::encoder, impala_resnet> && std::is_same_v<other::auxiliary, cpc>);
    static_assert(std::is_same_v<other::learner, vtrace> && std::is_same_v<other::with<lstm>, mra>);
    using shuffled = agent<vtrace, cpc, fifo_knn, lstm, impala_resnet>;
    static_assert(std::is_same_v<shuffled::encoder, impala_resnet> && std::is_same_v<shuffled::controller, lstm>);
    static_assert(std::is_same_v<shuffled::settings, mra::settings>);
    CHECK(mra::complete);
}
