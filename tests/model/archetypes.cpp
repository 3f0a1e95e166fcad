// What the concepts ask for is all that an agent needs.

#include <doctest/doctest.h>

#include <engram/graph/program.hpp>

#include "archetypes.hpp"

using namespace engram;

static_assert(encoder_policy<archetype::encoder> && !can_decode<archetype::encoder>);
static_assert(controller_policy<archetype::controller>);
static_assert(memory_policy<archetype::memory>);
static_assert(auxiliary_policy<archetype::auxiliary> && can_assist<archetype::auxiliary, archetype::encoder>);
static_assert(learner_policy<archetype::learner>);
static_assert(archetype::whole::complete);

// Each near miss lacks one part and says which.
struct no_begin : archetype::memory_forgets, archetype::memory_reads, archetype::memory_writes {
    using role = memory_role;
    using settings = archetype::no_settings;
    using weights = archetype::no_weights;
    template <class Var>
    using state = archetype::memory_begins::state<Var>;
};
struct no_forget : archetype::memory_begins, archetype::memory_reads, archetype::memory_writes {};
struct no_read : archetype::memory_begins, archetype::memory_forgets, archetype::memory_writes {};
struct no_write : archetype::memory_begins, archetype::memory_forgets, archetype::memory_reads {};
struct unreflected : archetype::memory {
    struct settings {
        int slots = 1;
    };
};
struct misclaimed : archetype::memory {
    using role = encoder_role;
};
static_assert(!can_begin<no_begin> && can_forget<no_begin> && can_read<no_begin> && can_write<no_begin>);
static_assert(can_begin<no_forget> && !can_forget<no_forget> && can_read<no_forget> && can_write<no_forget>);
static_assert(can_begin<no_read> && can_forget<no_read> && !can_read<no_read> && can_write<no_read>);
static_assert(can_begin<no_write> && can_forget<no_write> && can_read<no_write> && !can_write<no_write>);
static_assert(!has_settings<unreflected> && !memory_policy<unreflected>);
static_assert(!memory_policy<misclaimed> && !encoder_policy<misclaimed>);

struct no_step : archetype::controller {
    static void step() = delete;
};
struct no_encode : archetype::encoder {
    static void encode() = delete;
};
static_assert(!controller_policy<no_step> && !encoder_policy<no_encode>);

TEST_CASE("an agent of archetypes runs forward and backward, in any order of its slots") {
    using other =
        agent<archetype::learner, archetype::memory, archetype::auxiliary, archetype::encoder, archetype::controller>;
    auto check = [](auto a) {
        CHECK(a.store->entries().size() == 2);
        program<cpu<double>> p(*a.g, a.store, {.steps = 3, .batch = 2, .gradients = true}, {a.h, a.value});
        for (auto& v : p.input("observation")) v = 0.5;
        p.forward();
        p.backward();
        CHECK(p.output(a.h).at(2)[3] == 0.5);
        // d loss / d weight of column 0 is h summed over 6 rows.
        CHECK(p.gradient()[0] == doctest::Approx(3));
        CHECK(p.gradient()[1] == 0);
    };
    check(archetype::whole::trace<cpu<double>>({}, {{1, 2, 1}, 3}, 1));
    check(other::trace<cpu<double>>({}, {{1, 2, 1}, 3}, 1));
}
