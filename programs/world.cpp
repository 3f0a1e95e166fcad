// SPDX-License-Identifier: MIT

// Worlds of other processes as tasks: what is asked for, the module that reaches them, the registry.

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include <engram/core/settings.hpp>
#include <engram/io/file.hpp>
#include <engram/program/compiled_tasks.hpp>
#include <engram/program/world.hpp>

#include "world_module.hpp"

namespace engram {

namespace {

constexpr const char* expected_address = "expected rpc://host:port, or rpc+unix:/path for a socket of this machine";

/// The Memory Tasks Suite's eight actions (facts 2.1) for its four numbers, all of which are said every step.
action_table dm_memorytasks_actions() {
    return {{"STRAFE_LEFT_RIGHT", "MOVE_BACK_FORWARD", "LOOK_LEFT_RIGHT", "LOOK_DOWN_UP"},
            {{0, 1, 0, 0},    // forward
             {0, -1, 0, 0},   // backward
             {-1, 0, 0, 0},   // strafe left
             {1, 0, 0, 0},    // strafe right
             {0, 0, -1, 0},   // look left
             {0, 0, 1, 0},    // look right
             {0, 1, -1, 0},   // look left and go forward
             {0, 1, 1, 0}}};  // look right and go forward
}

#ifdef ENGRAM_WORLD_MODULE
/// The module of this build: beside the program, where it was built, or where the system keeps libraries.
void* load_module() {
    std::vector<std::string> places;
    std::error_code none;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", none);
    const std::string name = std::filesystem::path(ENGRAM_WORLD_MODULE).filename();
    if (!self.empty()) {
        places.push_back(self.parent_path() / name);
        places.push_back(self.parent_path() / "../lib/engram" / name);
    }
    places.push_back(ENGRAM_WORLD_MODULE);
    for (const auto& place : places) {
        if (!std::filesystem::exists(place)) continue;
        void* module = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
        require(module != nullptr, "--world: ", place, " cannot be loaded: ", ::dlerror());
        return module;
    }
    fail("--world: the module ", name, " is missing beside the program; it is built with it where gRPC is");
}

template <class Function>
Function* find_in(void* module, const char* name) {
    auto* found = reinterpret_cast<Function*>(::dlsym(module, name));
    require(found != nullptr, "--world: the module beside the program is of another version of engram");
    return found;
}
#endif

}  // namespace

bool worlds_are_known() {
#ifdef ENGRAM_WORLD_MODULE
    return true;
#else
    return false;
#endif
}

std::shared_ptr<world> join_world([[maybe_unused]] const world_settings& settings) {
#ifdef ENGRAM_WORLD_MODULE
    static void* const module = load_module();
    const std::string version = find_in<const char*()>(module, "engram_world_version")();
    require(version == world_module_version(), "--world: the module beside the program is of another build (", version,
            ", expected ", world_module_version(), ")");
    return std::shared_ptr<world>(find_in<world*(const world_settings*)>(module, "engram_join_world")(&settings));
#else
    fail("--world: this program was built without gRPC (ENGRAM_RPC), so it cannot reach a world elsewhere");
#endif
}

void register_world(std::shared_ptr<world> joined) {
    const std::string name = joined->info().name;
    std::erase_if(added_tasks(), [&](const registered_task& task) { return task.describe({}).name == name; });
    add_task({std::vector<std::string>{}, [joined](const task_options&) { return joined->info(); },
              [](const task_options&) { return std::shared_ptr<const stimulus_set>(); },
              [joined](const std::string& level, int count, std::uint64_t seed, std::uint32_t first,
                       const task_options&, std::shared_ptr<const stimulus_set>) {
                  require_known(joined->info().name + " level", level, joined->info().levels);
                  return joined->make(count, seed, first);
              }});
}

action_table read_actions(const std::string& named) {
    if (named == "dm_memorytasks") return dm_memorytasks_actions();
    require(std::filesystem::is_regular_file(named), "--actions ", named,
            ": there is no such file; expected one, or dm_memorytasks");
    const bytes content = read_file(named);
    require(content.size() <= 1 << 20, "--actions ", named, ": a file of ", content.size(), " bytes, expected a table");
    action_table table;
    std::size_t at = 0, line = 0, width = 0;
    while (at < content.size()) {
        std::vector<std::string> words;
        std::string word;
        ++line;
        bool remark = false;
        for (; at < content.size() && content[at] != '\n'; ++at) {
            const char c = static_cast<char>(content[at]);
            remark |= c == '#';
            if (remark) continue;
            if (c == ',' || std::isspace(static_cast<unsigned char>(c))) {
                if (!word.empty()) words.push_back(std::exchange(word, {}));
            } else {
                word += c;
            }
        }
        ++at;
        if (!word.empty()) words.push_back(word);
        if (words.empty()) continue;
        const std::string place = message("--actions ", named, ", line ", line);
        if (width == 0) width = words.size();
        require(words.size() == width, place, ": ", words.size(), " columns, the lines before have ", width);
        const bool names = table.rows.empty() && table.columns.empty() &&
                           std::isalpha(static_cast<unsigned char>(words[0][0])) && words[0] != "nan" &&
                           words[0] != "inf";
        if (names) {
            table.columns = words;
            continue;
        }
        table.rows.emplace_back();
        for (const auto& text : words) {
            table.rows.back().push_back(parse<double>(place.c_str(), text));
            require(std::isfinite(table.rows.back().back()), place, ": '", text, "' is not finite");
        }
    }
    require(!table.rows.empty(), "--actions ", named, ": no line says an action");
    return table;
}

void check_world_address(const std::string& address) {
    const auto wrong = [&](const std::string& what) { fail("--world ", address, ": ", what, "; ", expected_address); };
    for (const char c : address)
        if (std::iscntrl(static_cast<unsigned char>(c)) || c == ' ') wrong("an address has no blanks");
    if (address.starts_with("rpc+unix:") || address.starts_with("rpc://unix:")) {
        if (address.substr(address.starts_with("rpc://") ? 11 : 9).empty()) wrong("the path of the socket is missing");
        return;
    }
    if (!address.starts_with("rpc://")) wrong("this is no address of a world");
    const auto colon = address.rfind(':');
    if (colon <= 6) wrong(colon < 6 ? "the port is missing" : "the host is missing");
    const std::string port = address.substr(colon + 1);
    if (address.find('/', 6) != address.npos) wrong("nothing comes behind the port");
    if (port.empty() || port.size() > 5 ||
        !std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; }) || std::stoi(port) < 1 ||
        std::stoi(port) > 65535)
        wrong("'" + port + "' is no port");
}

std::string world_task_name(const std::string& address) {
    std::string name = "world_";
    for (const char c : address.substr(address.find(':') + 1))
        if (std::isalnum(static_cast<unsigned char>(c)))
            name += c;
        else if (name.back() != '_')
            name += '_';
    while (name.back() == '_') name.pop_back();
    return name;
}

}  // namespace engram
