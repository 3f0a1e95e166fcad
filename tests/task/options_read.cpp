// A task reads the options that it says it reads, and no other.

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include <engram/task/registry.hpp>
#include <engram/task/sequence_registry.hpp>

using namespace engram;

namespace {

struct variant {
    const char* option;
    task_options options;
};

/// Every option at a value that is not its default.
std::vector<variant> variants() {
    std::vector<variant> all;
    const auto add = [&](const char* option, auto change) {
        variant v{option, {}};
        change(v.options);
        all.push_back(v);
    };
    add("data", [](auto& o) { o.data = "/no/such/folder"; });
    add("stimuli", [](auto& o) { o.stimuli = "mnist"; });
    add("stimulus_count", [](auto& o) { o.stimulus_count = 7; });
    add("fidelity", [](auto& o) { o.fidelity = "paper"; });
    add("scheme", [](auto& o) { o.scheme = "staircase"; });
    add("length", [](auto& o) { o.length = 7; });
    add("length_spread", [](auto& o) { o.length_spread = 3; });
    add("backward", [](auto& o) { o.backward = false; });
    add("items", [](auto& o) { o.items = 3; });
    add("recalled", [](auto& o) { o.recalled = 2; });
    add("steps", [](auto& o) { o.steps = 900; });
    add("glyph_side", [](auto& o) { o.glyph_side = 28; });
    add("difficulty", [](auto& o) { o.difficulty = "hard"; });
    add("rules", [](auto& o) { o.rules = "paper"; });
    add("trials", [](auto& o) { o.trials = 9; });
    add("decks", [](auto& o) { o.decks = 7; });
    add("markers", [](auto& o) { o.markers = "distinct"; });
    return all;
}

/// What a task is under the options: its sizes and the numbers of two hundred steps, or that it refuses them.
std::string play(const registered_task& task, const task_options& options) {
    std::ostringstream out;
    try {
        const task_info info = task.describe(options);
        out << info.observation.size() << " " << info.actions << " " << info.level_details[0].longest_episode;
        const auto batch = task.make(info.levels.front(), 1, 5, 0, options, task.stimuli(options));
        std::vector<float> seen(static_cast<std::size_t>(info.observation.size()));
        philox random(3, 3);
        for (int step = 0; step < 200; ++step) {
            batch->observe(0, seen.data());
            double sum = 0;
            for (std::size_t i = 0; i < seen.size(); ++i) sum += seen[i] * static_cast<double>(i % 97 + 1);
            const outcome got = batch->step(0, random.below(info.actions));
            out << " " << sum << "," << got.reward << "," << got.done;
        }
    } catch (const error& problem) {
        out << "refused";
    }
    return out.str();
}

std::string draw(const registered_sequence& task, const task_options& options) {
    std::ostringstream out;
    try {
        const auto source = task.make(options);
        const sequence_info& info = source->info();
        out << info.steps << " " << info.observation.size() << " " << info.tokens;
        std::vector<float> frames(static_cast<std::size_t>(info.steps * info.observation.size()));
        source->draw(info.levels.front(), 5, 1, {.observation = frames.data(), .rows = 1});
        double sum = 0;
        for (std::size_t i = 0; i < frames.size(); ++i) sum += frames[i] * static_cast<double>(i % 97 + 1);
        out << " " << sum;
    } catch (const error& problem) {
        out << "refused";
    }
    return out.str();
}

void check(const std::string& name, const std::optional<std::vector<std::string>>& reads, auto of) {
    REQUIRE_MESSAGE(reads, name, " does not say which options it reads");
    const std::string usual = of(task_options{});
    CHECK(usual != "refused");
    for (const auto& v : variants()) {
        CAPTURE(name);
        CAPTURE(std::string(v.option));
        CHECK((of(v.options) != usual) == (std::find(reads->begin(), reads->end(), v.option) != reads->end()));
    }
}

}  // namespace

TEST_CASE("an environment reads the options that it names, and no other") {
    for (const auto& task : registered_tasks())
        check(task.describe({}).name, task.reads, [&](const task_options& o) { return play(task, o); });
}

TEST_CASE("sequences read the options that they name, and no other") {
    for (const auto& task : registered_sequences())
        check(task.describe({}).name, task.reads, [&](const task_options& o) { return draw(task, o); });
}
