#pragma once
// SPDX-License-Identifier: MIT

// Where a program runs: what training, evaluating and sampling need of one device.
//
// The commands are compiled once and see this face alone. What stands behind it is a template over the backend, of
// which engram_program holds cpu<float> and emulated<float>, and engram_program_cuda holds cuda<float>: a program that
// was built without CUDA never names it.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <engram/core/pack.hpp>
#include <engram/model/traced_agent.hpp>

namespace engram {

struct ablation;
struct arguments;
struct prepared_run;
struct prepared_sequences;
struct run_paths;
class configuration;

struct device_runs {
    virtual ~device_runs() = default;
    /// As --device says it: cpu, cuda, emulated.
    virtual std::string name() const = 0;
    /// What it is, in a line.
    virtual std::string about() const = 0;
    /// Why it cannot be used here, in a sentence; empty if it can.
    virtual std::string refusal() const = 0;
    /// Trains, writes the run folder, evaluates; returns the exit code.
    virtual int train(const configuration& config, const run_paths& paths, const arguments& a) const = 0;
    /// A configuration's agent on the device.
    virtual std::unique_ptr<prepared_run> prepare(const configuration& config) const = 0;
    /// The same of a model that learns from sequences.
    virtual std::unique_ptr<prepared_sequences> prepare_sequences(const configuration& config) const = 0;
};

/// The runs on one backend; defined for those that a library of the program was compiled for.
template <class Backend>
const device_runs& runs_on();

/// The devices of a program: the host and what its ablation was compiled for.
std::vector<const device_runs*> devices_of(const ablation& model);
/// The one that --device names; throws, saying how to get it, if the program has none or it cannot be used here.
const device_runs& find_device(const ablation& model, const std::string& name);

/// An agent traced for a backend. For CUDA a program declares it extern: it is instantiated by a source of its own, the
/// one that nvcc compiles. PackBytes keeps sources from linking whose flags mean packs of another width.
template <class Agent, class Backend, int PackBytes = pack_bytes>
traced_agent<Backend> trace_agent(const typename Agent::settings& settings, const task_shape& task, std::uint64_t seed,
                                  purpose why) {
    return Agent::template trace<Backend>(settings, task, seed, why);
}

/// A model that can be traced for a backend besides the host's.
template <class Backend>
struct traceable {
    virtual ~traceable() = default;
    virtual traced_agent<Backend> trace_for(Backend backend, const task_shape& task, std::uint64_t seed,
                                            purpose why) const = 0;
};

}  // namespace engram
