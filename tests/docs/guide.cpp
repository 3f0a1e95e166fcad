// What the pages show of the library, compiled and run: the regions between two markers are copied into them.

#include <doctest/doctest.h>

#include <type_traits>

#include <engram/catalogue.hpp>
#include <engram/core/settings.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/graph/check_gradients.hpp>
#include <engram/model/laws.hpp>

#include "../../examples/own_memory.hpp"

namespace choices {

// [five_choices]
using namespace engram;

using mra = agent<impala_resnet,  // encoder: what is seen
                  lstm,           // controller: what is held in mind
                  fifo_knn,       // memory: what is stored and recalled
                  cpc,            // auxiliary loss: what else is learnt
                  vtrace>;        // learner: how it is learnt

using lstm_only = mra::with<no_memory>::with<no_auxiliary>;  // an ablation is a type
// [five_choices]

// [other_memories]
using with_ntm = mra::with<ntm>;
using with_dnc = mra::with<dnc>;
using with_own = mra::with<own::attention_memory>;  // examples/own_memory.hpp
using taught = with_dnc::with<no_auxiliary>::with<supervised>;
// [other_memories]

static_assert(std::is_same_v<mra, catalogue::mra>);
static_assert(std::is_same_v<lstm_only, catalogue::lstm>);
static_assert(with_ntm::complete && with_dnc::complete && with_own::complete && taught::complete);
// The order of the five is free.
static_assert(agent<vtrace, cpc, fifo_knn, lstm, impala_resnet>::complete);

}  // namespace choices

using namespace engram;

TEST_CASE("a model is traced, planned and run") {
    // [trace]
    using small = agent<mlp, lstm, fifo_knn, no_auxiliary, vtrace>;

    small::settings settings;  // the defaults of the five policies
    settings.encoder.layers = {64};
    settings.controller.hidden = 32;
    assign(settings, "memory.slots=64");  // by name, as --set does

    const task_shape task{{16, 16, 3}, 4};  // observations of 16 x 16 x 3 numbers, four actions
    const auto model = small::trace<cpu<float>>(settings, task, 1);  // first weights by seed 1
    // [trace]

    // [run]
    program<cpu<float>> acting(*model.g, model.store, {.steps = 1, .batch = 8}, {model.logits, model.value});
    program<cpu<float>> learning(*model.g, model.store, {.steps = 20, .batch = 8, .gradients = true, .replay = true});

    acting.input("observation")[0] = 0.5f;
    acting.forward();
    acting.carry();                                   // what this step leaves is what the next one enters with
    const auto logits = acting.output(model.logits);  // [T, B, A] = [1, 8, 4]

    fill_randomly(learning, model, 1);  // a trajectory; train/acting_update.hpp brings real ones
    learning.forward();
    learning.backward();
    const double loss = learning.loss();
    // [run]
    CHECK(logits.width == 4);
    CHECK(std::isfinite(logits.at(0)[0]));
    CHECK(std::isfinite(loss));
    CHECK(loss == learning.loss());
    double slope = 0;
    for (const float g : learning.gradient()) slope = std::max(slope, std::abs(static_cast<double>(g)));
    CHECK(slope > 0);
}

TEST_CASE("a mistake is a sentence with the nearest name") {
    agent<mlp, lstm, fifo_knn, no_auxiliary, vtrace>::settings settings;
    CHECK_THROWS_WITH_AS(assign(settings, "memory.slot=64"), doctest::Contains("did you mean 'memory.slots'?"), error);
    CHECK_THROWS_WITH_AS(assign(settings, "memory.slots=0"), "memory.slots: expected at least one slot, got 0", error);
    CHECK(settings.memory.slots == 1024);
}

TEST_CASE("a policy is put through the laws and through central differences") {
    // [laws]
    own::model::settings settings;
    settings.encoder.layers = {6};
    settings.controller.hidden = 4;
    settings.memory = {.length = 3, .address = 3, .sharpness = 2};
    const auto model = own::model::trace<cpu<double>>(settings, {{4, 4, 1}, 3}, 1);

    for (const std::string& sentence : broken_laws(model)) FAIL_CHECK(sentence);

    const auto report = check_gradients(model);
    CHECK_MESSAGE(report.worst < 1e-6, report.where);
    // [laws]
    CHECK(report.compared > 80);
}
