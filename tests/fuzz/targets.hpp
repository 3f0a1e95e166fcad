#pragma once
// SPDX-License-Identifier: MIT

// What is fed with any bytes whatever: every reader of files, the command line, what clients send and what worlds
// answer. A target returns or throws engram::error; anything else, a crash, another exception, a broken promise or more
// memory than the input justifies, is a defect.

#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include <engram/io/event_file.hpp>
#include <engram/io/idx.hpp>
#include <engram/io/npy.hpp>
#include <engram/io/omniglot.hpp>
#include <engram/io/png.hpp>
#include <engram/io/safetensors.hpp>
#include <engram/program/arguments.hpp>

#include "allocation.hpp"
#include "settings.hpp"

#ifdef ENGRAM_RPC
#include <google/protobuf/stubs/logging.h>

#include <dm_env_rpc/v1/dm_env_rpc.pb.h>

#include "../../programs/tasks/served/worlds.hpp"
#include "../../programs/world_messages.hpp"
#endif

namespace fuzz {

using input = std::span<const std::uint8_t>;

/// A file that lives in memory, with a path that readers open.
class memory_file {
public:
    memory_file() : file_(::memfd_create("fuzz", 0)), path_("/proc/self/fd/" + std::to_string(file_)) {}
    const std::string& holding(input content) {
        if (::ftruncate(file_, 0) != 0 ||
            ::pwrite(file_, content.data(), content.size(), 0) != static_cast<ssize_t>(content.size()))
            std::abort();
        return path_;
    }

private:
    int file_;
    std::string path_;
};

inline const std::string& file_of(input content) {
    static memory_file file;
    return file.holding(content);
}

inline void promise(bool kept) {
    if (!kept) std::abort();
}

inline void read_idx(input data) {
    const std::string& path = file_of(data);
    if (data.size() > 3 && data[3] == 1) {
        engram::read_idx_labels(path);
        return;
    }
    const auto images = engram::read_idx_images(path);
    if (images.count > 0) promise(images.image(images.count - 1).size() == images.pixels.size() / images.count);
}

/// The same bytes with checksums that fit, so that what stands behind them is reached.
inline engram::bytes with_checksums(input data) {
    engram::bytes png(data.begin(), data.end());
    const auto big32 = [&](std::size_t at) {
        std::uint32_t x = 0;
        for (std::size_t i = 0; i < 4; ++i) x = x << 8 | png[at + i];
        return x;
    };
    for (std::size_t at = 8; at + 12 <= png.size();) {
        const std::uint32_t size = big32(at);
        if (size > png.size() - at - 12) break;
        const auto sum = static_cast<std::uint32_t>(::crc32(0, png.data() + at + 4, size + 4));
        for (std::size_t i = 0; i < 4; ++i) png[at + 8 + size + i] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
        at += std::size_t{12} + size;
    }
    return png;
}

/// What follows IHDR's sizes and types is raw rows: a whole PNG around them.
inline engram::bytes with_rows(input data) {
    engram::bytes png(engram::png_signature.begin(), engram::png_signature.end());
    const auto chunk = [&](const char* type, input content) {
        for (const int shift : {24, 16, 8, 0}) png.push_back(static_cast<std::uint8_t>(content.size() >> shift));
        png.insert(png.end(), type, type + 4);
        png.insert(png.end(), content.begin(), content.end());
        png.insert(png.end(), 4, 0);
    };
    const std::uint8_t header[13]{0, 0, 0, data[0], 0, 0, 0, data[1], data[2], data[3], 0, 0, 0};
    engram::bytes packed(::compressBound(data.size()));
    uLongf size = packed.size();
    promise(::compress(packed.data(), &size, data.data() + 4, data.size() - 4) == Z_OK);
    chunk("IHDR", header);
    chunk("IDAT", input(packed).first(size));
    chunk("IEND", {});
    return with_checksums(png);
}

inline void read_png(input data) {
    // A signature begins with 0x89; anything else is taken for rows.
    const bool rows = data.size() >= 4 && data[0] < 0x80;
    const engram::bytes file = rows ? with_rows(data) : with_checksums(data);
    const auto image = engram::decode_png(file, "input");
    promise(image.pixels.size() == static_cast<std::size_t>(image.height) * static_cast<std::size_t>(image.width) *
                                       static_cast<std::size_t>(image.channels));
}

inline void read_omniglot(input data) {
    const engram::omniglot_archive archive(file_of(data));
    for (int i = 0; i < static_cast<int>(archive.drawings().size()); ++i) archive.image(i);
}

template <class Number>
void read_array(const std::string& path) {
    const auto array = engram::read_npy<Number>(path);
    std::size_t count = 1;
    for (const int extent : array.shape) count *= static_cast<std::size_t>(extent);
    promise(count == array.values.size());
}

inline void read_npy(input data) {
    const std::string& path = file_of(data);
    // The type that the header names, if it names one.
    const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
    if (text.find("<i4") != text.npos) return read_array<std::int32_t>(path);
    if (text.find("|u1") != text.npos) return read_array<std::uint8_t>(path);
    read_array<float>(path);
}

inline void read_safetensors(input data) {
    const auto file = engram::safetensors::read(file_of(data));
    std::size_t total = 0;
    for (const auto& [name, tensor] : file.tensors) total += tensor.data.size();
    promise(total <= data.size());
}

inline void read_events(input data) {
    engram::event_reader in(data);
    std::size_t last = 0;
    while (in.next()) {
        promise(in.end() >= last + 16 && in.end() <= data.size());
        in.step();
        last = in.end();
    }
}

inline void read_configuration(input data) {
    settings_only model;
    engram::configuration config(model);
    const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
    config.from_json(engram::parse_json(text, "input"), "input");
    promise(config.checkpoint_every >= 1 && config.steps >= 1 && config.threads >= 1);
    // What was understood is written, read and written alike.
    settings_only other;
    engram::configuration again(other);
    const std::string once = engram::json_text(config.to_json());
    again.from_json(engram::parse_json(once, "output"), "output");
    promise(engram::json_text(again.to_json()) == once);
}

/// What the words mean to a parser that has read others before, and, for one number of words in eight, that a new one
/// understands the same: to build one takes longer than all the rest.
inline std::optional<engram::arguments> parsed(int argc, char** argv) {
    static std::optional<engram::argument_parser> parser;
    static int read = 0;
    if (read++ % 256 == 0) parser.emplace("fuzz");  // it remembers a pointer a word
    auto a = parser->parse(argc, argv);
    if (argc % 8 == 0) promise(engram::parse_arguments("fuzz", argc, argv) == a);
    return a;
}

/// A word a line.
inline void read_command_line(input data) {
    std::vector<std::string> words{"engram-fuzz"};
    words.emplace_back();
    for (const std::uint8_t c : data) {
        if (c == '\n')
            words.emplace_back();
        else if (c != 0)
            words.back() += static_cast<char>(c);
    }
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const auto a = parsed(static_cast<int>(words.size()), argv.data());
    if (!a) return;
    settings_only model;
    engram::configuration config(model);
    config.task = a->task.value_or("t_maze");
    config.apply_preset(a->preset.value_or("small"), engram::parse_assignments(a->set));
    config.to_json();
}

#ifdef ENGRAM_RPC
/// Requests to a server of tasks, each behind a byte with its length and the stream that it comes by.
inline void read_requests(input data) {
    google::protobuf::SetLogHandler(nullptr);
    engram::served_tasks offered;
    offered.task = "t_maze";
    offered.options.stimulus_count = 1;
    offered.worlds = 4;
    engram::served_worlds worlds(offered);
    engram::served_stream first(worlds), second(worlds);
    dm_env_rpc::v1::EnvironmentRequest request;
    dm_env_rpc::v1::EnvironmentResponse response;
    while (!data.empty()) {
        const std::size_t size = data[0] & 0x7f;
        auto& stream = data[0] & 0x80 ? second : first;
        data = data.subspan(1);
        engram::require(size <= data.size(), "a request that is cut");
        engram::require(request.ParseFromArray(data.data(), static_cast<int>(size)), "no request");
        data = data.subspan(size);
        stream.answer(request, response);
        const auto asked = static_cast<int>(request.payload_case()), said = static_cast<int>(response.payload_case());
        promise(response.has_error() ? response.error().code() > 0 && !response.error().message().empty()
                                     : said == asked);
        promise(dm_env_rpc::v1::EnvironmentResponse().ParseFromString(response.SerializeAsString()));
    }
}

/// What a world says of itself and answers to steps, each behind two bytes with its length.
inline void read_answers(input data) {
    google::protobuf::SetLogHandler(nullptr);
    const auto next = [&](auto& to) {
        engram::require(data.size() >= 2, "an answer that is cut");
        const std::size_t size = data[0] | data[1] << 8;
        data = data.subspan(2);
        engram::require(size <= data.size(), "an answer that is cut");
        engram::require(to.ParseFromArray(data.data(), static_cast<int>(size)), "no answer");
        data = data.subspan(size);
    };
    dm_env_rpc::v1::ActionObservationSpecs specs;
    next(specs);
    const auto world = engram::world_messages::read_specs(specs, {}, "w");
    promise(!world.actions.rows.empty() && world.actions.rows.size() <= engram::world_messages::actions_at_most);
    for (const auto& action : world.actions.rows) engram::world_messages::step_request(world, &action, true);
    const auto size = static_cast<std::size_t>(world.shape.size());
    constexpr float untouched = -7;
    std::vector<float> seen(size + 1, untouched);
    dm_env_rpc::v1::StepResponse step;
    while (!data.empty()) {
        next(step);
        engram::world_messages::see(step, world, seen.data(), "w");
        promise(std::all_of(seen.begin(), seen.end(), [](float x) { return std::isfinite(x); }));
        promise(seen[size] == untouched);
        for (const auto* number : {&world.reward, &world.discount, &world.score})
            if (*number) promise(std::isfinite(engram::world_messages::number_of(step, **number, "w")));
    }
}
#endif

struct target {
    std::function<void(input)> read;
    /// Bytes that may be allocated at once: this many a byte of the input, and `fixed`.
    std::size_t each, fixed;
};

// Deflate expands up to 1032 times and has a state of its own, and a vector that grows holds three times its content
// for a moment. A value of JSON, whose text may be two bytes, is a node of a tree.
// A world is as large as its task; what it shows is at most as many floats as an agent takes.
inline const std::map<std::string, target>& targets() {
    static const std::map<std::string, target> all{
#ifdef ENGRAM_RPC
        {"answers", {read_answers, 4000, 4 * engram::world_messages::numbers_at_most + (1 << 20)}},
#endif
        {"command_line", {read_command_line, 4000, 2 << 20}},
        {"configuration", {read_configuration, 4000, 1 << 20}},
        {"events", {read_events, 1, 1 << 12}},
        {"idx", {read_idx, 5 * 1032, 1 << 17}},
        {"npy", {read_npy, 8, 1 << 14}},
        {"omniglot", {read_omniglot, 14 * 1032, 1 << 17}},
        {"png", {read_png, 14 * 1032, 1 << 19}},
#ifdef ENGRAM_RPC
        {"requests", {read_requests, 4000, 8 << 20}},
#endif
        {"safetensors", {read_safetensors, 40, 1 << 14}}};
    return all;
}

/// Runs a target on an input; aborts where it breaks its promises.
inline void run(const target& t, input data) {
    file_of(data);  // its own memory does not count
    const auto allowed = t.each * data.size() + t.fixed;
    const allocation::watch watch;
    try {
        t.read(data);
    } catch (const engram::error&) {
    }
    if (watch.most() > allowed) {
        std::fprintf(stderr, "%zu bytes of input made %zu bytes of memory, expected at most %zu\n", data.size(),
                     watch.most(), allowed);
        std::abort();
    }
}

}  // namespace fuzz
