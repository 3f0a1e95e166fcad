// error: the learner adds no heads or no losses: see can_learn
#include "../model/archetypes.hpp"

// A learner that has heads and says nothing of what is minimised.
struct idle_learner {
    using role = engram::learner_role;
    struct settings {
        BOOST_HANA_DEFINE_STRUCT(settings);
    };
    template <class Var>
    using heads = archetype::learner::heads<Var>;
    template <class Backend>
    static heads<engram::var<Backend>> add_heads(engram::graph<Backend>& g, const settings&,
                                                 const engram::var<Backend>& h, const engram::task_shape& task) {
        return archetype::learner::add_heads(g, {}, h, task);
    }
#ifdef ENGRAM_TWIN
    template <class Backend>
    static void add_losses(engram::graph<Backend>&, const settings&, const heads<engram::var<Backend>>&) {}
#endif
};

using model = archetype::whole::with<idle_learner>;

int main() {
    return model::trace<engram::cpu<float>>({}, {{1, 2, 1}, 3}, 1).task.actions;
}
