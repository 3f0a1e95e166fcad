#pragma once
// SPDX-License-Identifier: MIT

// A program for one agent type: `int main(int argc, char** argv) { return run_ablation<my_agent>("my_agent", argc,
// argv); }` trains, evaluates, describes and samples it on the host. run_ablation<my_agent, cuda<float>> does so on a
// GPU as well, if a source that nvcc compiles instantiates trace_agent (cmake/ablation.cu.in).
//
// An agent is seen by the rest of the program as an `ablation`: its settings as text, and a way to trace it. A traced
// model does not depend on the policies any more, so everything behind this face is compiled once, in engram_program.

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <engram/core/pack.hpp>
#include <engram/core/settings.hpp>
#include <engram/model/agent.hpp>
#include <engram/model/remembering.hpp>
#include <engram/program/compiled_operations.hpp>
#include <engram/program/device_runs.hpp>

namespace engram {

enum class setting_kind { boolean, integer, number, text, list };

/// One setting as text.
struct setting {
    std::string name, value;
    setting_kind kind;
};

/// Every setting of a reflected group as text, in order.
template <reflected S>
std::vector<setting> list_settings(const S& settings) {
    std::vector<setting> all;
    for_each_setting(settings, [&](const std::string& name, const auto& value) {
        using type = std::remove_cvref_t<decltype(value)>;
        const setting_kind kind = std::is_same_v<type, bool>          ? setting_kind::boolean
                                  : std::is_integral_v<type>          ? setting_kind::integer
                                  : std::is_floating_point_v<type>    ? setting_kind::number
                                  : std::is_same_v<type, std::string> ? setting_kind::text
                                  : is_choice<type>                   ? setting_kind::text
                                                                      : setting_kind::list;
        all.push_back({name, to_text(value), kind});
    });
    return all;
}

/// How a model is trained: by acting, on whole sequences, on unrolls with carried states, by predictions of far steps,
/// or by acting on a memory that was trained by such before.
enum class learning_kind { acting, sequences, unrolls, predictions, phases };

/// Of a learner.
template <class Learner>
constexpr learning_kind learning_kind_of() {
    using wiring = typename internal::wiring_of<Learner>::type;
    if (std::is_same_v<wiring, predicts_targets>) return learning_kind::predictions;
    if (std::is_same_v<wiring, carries_states>) return learning_kind::unrolls;
    if (std::is_same_v<wiring, acts_on_memory>) return learning_kind::phases;
    const bool sequences = requires {
        requires Learner::learns_sequences;
    };
    return sequences ? learning_kind::sequences : learning_kind::acting;
}

/// What a program knows of its agent.
struct ablation {
    virtual ~ablation() = default;
    virtual std::string name() const = 0;
    /// Slot and policy, five times.
    virtual std::vector<std::pair<std::string, std::string>> policies() const = 0;
    /// The same as presets see it: no name for a policy that is not the library's.
    virtual std::vector<std::pair<std::string, std::string>> library_policies() const { return policies(); }
    virtual std::vector<setting> settings() const = 0;
    /// All or none of the pairs of name and value.
    virtual void set(const std::vector<std::pair<std::string, std::string>>& pairs) = 0;
    virtual learning_kind learns() const = 0;
    bool learns_sequences() const { return learns() != learning_kind::acting && learns() != learning_kind::phases; }
    virtual traced_agent<cpu<float>> trace(const task_shape& task, std::uint64_t seed,
                                           purpose why = purpose::learning) const = 0;
    /// Where it can run besides the host.
    virtual std::vector<const device_runs*> devices() const { return {}; }
};

/// The model traced for a backend that its program was compiled for.
template <class Backend>
traced_agent<Backend> trace_on(const ablation& model, const task_shape& task, std::uint64_t seed,
                               purpose why = purpose::learning) {
    if constexpr (!device_backend<Backend>)
        return model.trace(task, seed, why);
    else
        return dynamic_cast<const traceable<Backend>&>(model).trace_for(Backend{}, task, seed, why);
}

/// Name of a policy: its member `name`, or that of its type without namespaces.
template <class P>
std::string policy_name() {
    if constexpr (requires { std::string(P::name); }) {
        return P::name;
    } else {
        std::string_view text = __PRETTY_FUNCTION__;
        text.remove_prefix(text.find("P = ") + 4);
        text = text.substr(0, text.find_first_of(";]"));
        const auto arguments = text.find('<');
        const auto colon = text.substr(0, arguments).rfind("::");
        return std::string(colon == text.npos ? text : text.substr(colon + 2));
    }
}

/// The same for a policy of the library; nothing for one of somebody else's, whatever it is called.
template <class P>
std::string library_policy_name() {
    // How g++ and clang mangle what lies in the namespace engram; g++ leaves the namespace out of __PRETTY_FUNCTION__.
    return std::string_view(typeid(P).name()).starts_with("N6engram") ? policy_name<P>() : "";
}

/// Lets Model, which has a member trace_as<Backend>(), be traced for a device.
template <class Model, class Backend>
struct traces_for : traceable<Backend> {
    traced_agent<Backend> trace_for(Backend, const task_shape& task, std::uint64_t seed, purpose why) const override {
        return static_cast<const Model&>(*this).template trace_as<Backend>(task, seed, why);
    }
};

/// Devices: backends besides the host's.
template <class Agent, class... Devices>
class ablation_of final : public ablation, public traces_for<ablation_of<Agent, Devices...>, Devices>... {
public:
    explicit ablation_of(std::string name) : name_(std::move(name)) {}

    std::string name() const override { return name_; }
    std::vector<std::pair<std::string, std::string>> policies() const override {
        return {{"encoder", policy_name<typename Agent::encoder>()},
                {"controller", policy_name<typename Agent::controller>()},
                {"memory", policy_name<typename Agent::memory>()},
                {"auxiliary", policy_name<typename Agent::auxiliary>()},
                {"learner", policy_name<typename Agent::learner>()}};
    }
    std::vector<std::pair<std::string, std::string>> library_policies() const override {
        return {{"encoder", library_policy_name<typename Agent::encoder>()},
                {"controller", library_policy_name<typename Agent::controller>()},
                {"memory", library_policy_name<typename Agent::memory>()},
                {"auxiliary", library_policy_name<typename Agent::auxiliary>()},
                {"learner", library_policy_name<typename Agent::learner>()}};
    }
    std::vector<setting> settings() const override { return list_settings(settings_); }
    void set(const std::vector<std::pair<std::string, std::string>>& pairs) override { engram::set(settings_, pairs); }
    learning_kind learns() const override { return learning_kind_of<typename Agent::learner>(); }
    traced_agent<cpu<float>> trace(const task_shape& task, std::uint64_t seed, purpose why) const override {
        return trace_as<cpu<float>>(task, seed, why);
    }
    template <class Backend>
    traced_agent<Backend> trace_as(const task_shape& task, std::uint64_t seed, purpose why) const {
        return trace_agent<Agent, Backend>(settings_, task, seed, why);
    }
    std::vector<const device_runs*> devices() const override { return {&runs_on<Devices>()...}; }

private:
    std::string name_;
    typename Agent::settings settings_;
};

/// The program itself; returns its exit code: 0, 1 (it failed while running), 2 (bad input), 130 (interrupted).
///
/// Defined for the packs that engram_program was compiled for: an agent compiled with flags that mean another width
/// would share instances of templates with it whose layouts differ, so it must not link.
template <int PackBytes>
int run_program(ablation& model, int argc, char** argv);

/// A whole program of one agent type; call it from main(). Devices: where --device lets it run besides the host.
template <class Agent, class... Devices>
int run_ablation(const char* name, int argc, char** argv) {
    ablation_of<Agent, Devices...> model(name);
    return run_program<pack_bytes>(model, argc, argv);
}

}  // namespace engram
