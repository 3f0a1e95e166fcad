#pragma once
// An agent of policies that are chosen while the test runs, out of all that the library has: its settings, and as what
// presets and programs know it. tests/program/traced.hpp makes a model of it.

#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <engram/auxiliary/cpc.hpp>
#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/auxiliary/reconstruction.hpp>
#include <engram/controller/fast_and_forgetful.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/controller/gated_delta_net.hpp>
#include <engram/controller/gru.hpp>
#include <engram/controller/gtrxl.hpp>
#include <engram/controller/linear_recurrent_unit.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/controller/min_gru.hpp>
#include <engram/controller/mlstm.hpp>
#include <engram/controller/s5.hpp>
#include <engram/controller/srnn.hpp>
#include <engram/controller/stable_hadamard.hpp>
#include <engram/controller/stacked_lstm.hpp>
#include <engram/controller/transformer.hpp>
#include <engram/encoder/gtmm_vision.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/encoder/impala_resnet.hpp>
#include <engram/encoder/inception.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/encoder/numbers_or_image.hpp>
#include <engram/encoder/small_conv.hpp>
#include <engram/encoder/token_embedding.hpp>
#include <engram/encoder/two_pathway.hpp>
#include <engram/learner/memup.hpp>
#include <engram/learner/memup_ppo.hpp>
#include <engram/learner/ppo.hpp>
#include <engram/learner/quantile_regression.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/learner/variational.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/dnc.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/memory/hybrid.hpp>
#include <engram/memory/introspection.hpp>
#include <engram/memory/lru_access.hpp>
#include <engram/memory/memory_traces.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/memory/ntm.hpp>
#include <engram/program/ablation.hpp>

namespace composed {

using namespace engram;

/// One of several policies with settings, chosen by its name.
template <class... P>
struct choice {
    int chosen = 0;
    std::tuple<typename P::settings...> values;

    static std::vector<std::string> names() { return {policy_name<P>()...}; }
    std::string name() const { return names()[static_cast<std::size_t>(chosen)]; }
    void choose(std::string_view wanted) {
        const auto all = names();
        const auto at = std::find(all.begin(), all.end(), wanted);
        require(at != all.end(), "there is no policy '", std::string(wanted), "'");
        chosen = static_cast<int>(at - all.begin());
    }
    /// body.operator()<Policy>(its settings) of the chosen one.
    template <class Body>
    decltype(auto) visit(Body&& body) const {
        return visit_from<0>(body);
    }
    template <class Body>
    void change(Body&& body) {
        int at = 0;
        std::apply([&](auto&... s) { ((at++ == chosen ? body(s) : void()), ...); }, values);
    }

private:
    template <std::size_t I, class Body>
    decltype(auto) visit_from(Body& body) const {
        using policy = std::tuple_element_t<I, std::tuple<P...>>;
        if constexpr (I + 1 == sizeof...(P)) {
            return body.template operator()<policy>(std::get<I>(values));
        } else {
            if (chosen == static_cast<int>(I)) return body.template operator()<policy>(std::get<I>(values));
            return visit_from<I + 1>(body);
        }
    }
};

using encoders = choice<gtmm_vision, identity, impala_resnet, inception, mlp, numbers_or_image, small_conv,
                        token_embedding, two_pathway>;
using controllers = choice<feed_forward, lstm, srnn, stacked_lstm, transformer, fast_and_forgetful, gated_delta_net,
                           gru, gtrxl, linear_recurrent_unit, min_gru, mlstm, s5, stable_hadamard>;
using memories =
    choice<dnc, fifo_knn, fifo_knn_no_jumpy, introspection, lru_access, no_memory, ntm, memory_traces, hybrid>;
using auxiliaries = choice<cpc, no_auxiliary, reconstruction>;
using learners =
    choice<memup, memup_ppo, ppo, quantile_regression, supervised, truncated_supervised, variational, vtrace>;

template <class Learner>
using wiring_settings = typename internal::wiring_of<Learner>::type::settings;

/// Five names.
struct composition {
    std::string encoder, controller, memory, auxiliary, learner;
    std::string text() const { return encoder + ", " + controller + ", " + memory + ", " + auxiliary + ", " + learner; }
};

/// The settings of a composition, as a program sees an agent.
class agent_of : public ablation {
public:
    explicit agent_of(const composition& c) {
        encoder.choose(c.encoder), controller.choose(c.controller), memory.choose(c.memory);
        auxiliary.choose(c.auxiliary), learner.choose(c.learner);
    }

    encoders encoder;
    controllers controller;
    memories memory;
    auxiliaries auxiliary;
    learners learner;
    reads_controls_writes::settings acts;
    controls_reads_infers_writes::settings generates;
    acts_on_memory::settings remembers;

    std::string name() const override { return "composed"; }
    std::vector<std::pair<std::string, std::string>> policies() const override {
        return {{"encoder", encoder.name()},
                {"controller", controller.name()},
                {"memory", memory.name()},
                {"auxiliary", auxiliary.name()},
                {"learner", learner.name()}};
    }
    std::vector<setting> settings() const override {
        std::vector<setting> all;
        const auto add = [&](const std::string& slot, const auto& of) {
            for (auto& s : list_settings(of)) all.push_back({slot + "." + s.name, s.value, s.kind});
        };
        const auto add_chosen = [&](const std::string& slot, const auto& of) {
            of.visit([&]<class P>(const typename P::settings& s) { add(slot, s); });
        };
        add_chosen("encoder", encoder), add_chosen("controller", controller), add_chosen("memory", memory);
        add_chosen("auxiliary", auxiliary), add_chosen("learner", learner);
        with_wiring(*this, [&](const auto& s) { add("wiring", s); });
        return all;
    }
    void set(const std::vector<std::pair<std::string, std::string>>& pairs) override {
        agent_of changed = *this;
        const auto of_slot = [&](const std::string& slot) {
            std::vector<std::pair<std::string, std::string>> some;
            for (const auto& [name, value] : pairs)
                if (name.starts_with(slot + ".")) some.emplace_back(name.substr(slot.size() + 1), value);
            return some;
        };
        const auto change = [&](const std::string& slot, auto& of) {
            of.change([&](auto& s) { engram::set(s, of_slot(slot)); });
        };
        change("encoder", changed.encoder), change("controller", changed.controller);
        change("memory", changed.memory), change("auxiliary", changed.auxiliary), change("learner", changed.learner);
        with_wiring(changed, [&](auto& s) { engram::set(s, of_slot("wiring")); });
        *this = changed;
    }
    learning_kind learns() const override {
        return learner.visit([]<class L>(const typename L::settings&) { return learning_kind_of<L>(); });
    }
    traced_agent<cpu<float>> trace(const task_shape&, std::uint64_t, purpose) const override {
        fail("composed: these are settings alone");
    }

private:
    template <class Agent, class Body>
    static void with_wiring(Agent& a, Body body) {
        const auto kind = a.learner.visit([]<class L>(const typename L::settings&) {
            using settings = wiring_settings<L>;
            return std::is_same_v<settings, acts_on_memory::settings>                 ? 2
                   : std::is_same_v<settings, controls_reads_infers_writes::settings> ? 1
                                                                                      : 0;
        });
        if (kind == 2)
            body(a.remembers);
        else if (kind == 1)
            body(a.generates);
        else
            body(a.acts);
    }
};

}  // namespace composed
