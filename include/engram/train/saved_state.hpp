#pragma once
// SPDX-License-Identifier: MIT

// What training keeps in a checkpoint, by name:
//
//   <parameter>, optimiser.first.<parameter>, optimiser.second.<parameter>     [rows, columns]
//   <actor>.state.<name>, <actor>.resource.<r>.<part>, <actor>.environment.<b>, ...   bytes
//
// Loading checks everything before anything changes.

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <engram/io/safetensors.hpp>
#include <engram/train/actor.hpp>
#include <engram/train/optimiser.hpp>
#include <engram/train/processes.hpp>

namespace engram {

/// Bytes as a tensor of their own.
inline void save_bytes(safetensors& file, const std::string& name, std::span<const std::byte> part) {
    file.add<std::uint8_t>(name, {static_cast<std::int64_t>(part.size())},
                           {reinterpret_cast<const std::uint8_t*>(part.data()), part.size()});
}
/// Throws unless the file has a tensor of this name and size.
inline void check_bytes(const safetensors& file, const std::string& name, std::span<const std::byte> part) {
    (void)file.values<std::uint8_t>(name, {static_cast<std::int64_t>(part.size())});
}
/// The bytes of a tensor.
inline void load_bytes(const safetensors& file, const std::string& name, std::span<std::byte> part) {
    const auto values = file.values<std::uint8_t>(name, {static_cast<std::int64_t>(part.size())});
    if (!part.empty()) std::memcpy(part.data(), values.data(), part.size());
}

// --- weights and moments ---

/// Calls body(name, shape, offset, size) for every parameter.
template <class Real, class Body>
void each_parameter(const parameters<Real>& store, Body body) {
    for (const auto& e : store.entries())
        body(e.name, std::vector<std::int64_t>{e.rows, e.columns}, e.offset, static_cast<std::size_t>(e.size()));
}

/// Weights alone, such as moving averages or a target network: <prefix><parameter>.
template <class Real>
void save_values(safetensors& file, const std::string& prefix, const parameters<Real>& store) {
    each_parameter(store, [&](const std::string& name, const auto& shape, std::ptrdiff_t at, std::size_t n) {
        file.add<Real>(prefix + name, shape, std::span<const Real>(store.flat().data() + at, n));
    });
}
/// Throws unless the file has every parameter in its shape.
template <class Real>
void check_values(const safetensors& file, const std::string& prefix, const parameters<Real>& store) {
    each_parameter(store, [&](const std::string& name, const auto& shape, std::ptrdiff_t, std::size_t) {
        (void)file.values<Real>(prefix + name, shape);
    });
}
/// Takes the values of every parameter from the file.
template <class Real>
void load_values(const safetensors& file, const std::string& prefix, parameters<Real>& store) {
    check_values(file, prefix, store);
    auto edit = store.edit();
    each_parameter(store, [&](const std::string& name, const auto&, std::ptrdiff_t at, std::size_t) {
        const auto values = file.values<Real>(prefix + name);
        std::copy(values.begin(), values.end(), edit.flat().data() + at);
    });
}

/// Weights and the optimiser's moments, which may have to be fetched from a device.
template <class Real, class Optimiser>
void save_weights(safetensors& file, const parameters<Real>& store, Optimiser& moments) {
    const std::span<Real> first = moments.first_moment(), second = moments.second_moment();
    each_parameter(store, [&](const std::string& name, const auto& shape, std::ptrdiff_t at, std::size_t n) {
        file.add<Real>(name, shape, std::span<const Real>(store.flat().data() + at, n));
        file.add<Real>("optimiser.first." + name, shape, std::span<const Real>(first.data() + at, n));
        file.add<Real>("optimiser.second." + name, shape, std::span<const Real>(second.data() + at, n));
    });
}

/// Throws unless the file has these parameters, in these shapes, and no other.
template <class Real>
void check_weights(const safetensors& file, const parameters<Real>& store) {
    std::size_t known = 0, found = 0;
    each_parameter(store, [&](const std::string& name, const auto& shape, std::ptrdiff_t, std::size_t) {
        for (const char* kind : {"", "optimiser.first.", "optimiser.second."})
            (void)file.values<Real>(kind + name, shape);
        ++known;
    });
    const std::string kind = "optimiser.first.";
    for (const auto& [name, _] : file.tensors) {
        if (!name.starts_with(kind)) continue;
        ++found;
        bool expected = false;
        for (const auto& e : store.entries()) expected |= name.compare(kind.size(), std::string::npos, e.name) == 0;
        require(expected, file.source(), ": has a parameter '", name.substr(kind.size()),
                "' that this model does not have; expected ", known, " parameters");
    }
}

/// The weights of a checkpoint alone, for what acts or answers and learns no more. The store must hold nothing that the
/// file lacks, in its shape; otherwise it throws and nothing changes.
template <class Real>
void load_weights(const safetensors& file, parameters<Real>& store) {
    load_values(file, "", store);
}

/// Weights and moments, for what goes on learning; check_weights() first.
template <class Real, class Optimiser>
void load_weights(const safetensors& file, parameters<Real>& store, Optimiser& moments) {
    const std::span<Real> first = moments.first_moment(), second = moments.second_moment();
    auto edit = store.edit();
    each_parameter(store, [&](const std::string& name, const auto&, std::ptrdiff_t at, std::size_t) {
        const auto put = [&](const std::string& from, Real* to) {
            const auto values = file.values<Real>(from);
            std::copy(values.begin(), values.end(), to);
        };
        put(name, edit.flat().data() + at);
        put("optimiser.first." + name, first.data() + at);
        put("optimiser.second." + name, second.data() + at);
    });
}

// --- programs ---

/// What a program's resources hold, part by part: <prefix>.resource.<r>.<part>.
template <class Backend, class Body>
void each_resource(program<Backend>& p, const std::string& prefix, Body body) {
    for (std::size_t r = 0; r < p.resource_count(); ++r) {
        std::size_t k = 0;
        for (auto part : p.bound_resource(r)->bytes()) body(message(prefix, ".resource.", r, ".", k++), part);
    }
}

/// The states that a program carries, and its resources.
template <class Backend, class Body>
void each_state(program<Backend>& p, const std::string& prefix, Body body) {
    for (const auto& name : p.state_names()) body(prefix + ".state." + name, std::as_writable_bytes(p.state(name)));
    each_resource(p, prefix, body);
}

// --- actors ---

/// Every block of plain bytes of an actor but its environments.
template <class Backend, class Real, class Body>
void each_actor_part(program<Backend>& p, const std::string& prefix, std::span<Real> last_action,
                     std::span<Real> last_reward, std::span<Real> reset, std::span<double> episode_reward,
                     std::span<philox> random, Body body) {
    const auto raw = [](auto span) { return std::as_writable_bytes(span); };
    each_state(p, prefix, body);
    body(prefix + ".last_action", raw(last_action));
    body(prefix + ".last_reward", raw(last_reward));
    body(prefix + ".reset", raw(reset));
    body(prefix + ".episode_reward", raw(episode_reward));
    body(prefix + ".random", raw(random));
    body(prefix + ".replays", raw(std::span(&p.replay_count(), 1)));
}
/// The same of an actor on the host.
template <class Backend, class Body>
void each_part(actor<Backend>& a, const std::string& prefix, Body body) {
    each_actor_part(a.program(), prefix, a.last_action(), a.last_reward(), a.reset(), a.episode_reward(),
                    std::span(a.random()), body);
}

/// The states of environments.
inline void save_environments(safetensors& file, const environment_rows& rows, const std::string& prefix) {
    for (int b = 0; b < rows.size(); ++b) save_bytes(file, message(prefix, ".environment.", b), rows.state(b));
}

/// Environments refuse states of another task or level, so they are restored first, and put back if one refuses.
inline void load_environments(const safetensors& file,
                              const std::vector<std::pair<environment_rows*, std::string>>& all) {
    std::vector<std::vector<std::byte>> before;
    for (const auto& [rows, prefix] : all)
        for (int b = 0; b < rows->size(); ++b) {
            const auto state = rows->state(b);
            before.emplace_back(state.begin(), state.end());
        }
    try {
        for (const auto& [rows, prefix] : all)
            for (int b = 0; b < rows->size(); ++b)
                rows->restore(b, std::as_bytes(file.values<std::uint8_t>(message(prefix, ".environment.", b))));
    } catch (...) {
        std::size_t i = 0;
        for (const auto& [rows, prefix] : all)
            for (int b = 0; b < rows->size(); ++b) rows->restore(b, before[i++]);
        throw;
    }
}

/// Adds this process's part of a checkpoint and those of the others; what several have is added once.
inline void add_parts(safetensors& file, processes* others, safetensors&& mine) {
    const bytes own = others ? mine.to_bytes() : bytes{};
    file.tensors.merge(mine.tensors);
    if (!others) return;
    for (const auto& part : others->gather(std::as_bytes(std::span(own))))
        file.tensors.merge(
            safetensors::from_bytes({reinterpret_cast<const std::uint8_t*>(part.data()), part.size()}, "a process")
                .tensors);
}

/// Counters of a loop, and the mode that wrote them.
inline void save_counters(safetensors& file, const std::string& mode, const std::vector<std::int64_t>& counters) {
    file.metadata["training_mode"] = mode;
    file.add("trainer.counters", {static_cast<std::int64_t>(counters.size())}, counters);
}
/// A loop's counters; throws for a checkpoint of another mode of training.
inline std::span<const std::int64_t> load_counters(const safetensors& file, const std::string& mode,
                                                   std::int64_t count) {
    const auto& found = file.text_at("training_mode");
    require(found == mode, file.source(), ": is a checkpoint of ", found, " training; this run is ", mode);
    return file.values<std::int64_t>("trainer.counters", {count});
}

}  // namespace engram
