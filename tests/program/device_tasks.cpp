// Every task of the library in the memory of a device, here an emulated one, as a program finds it by its name: the
// host's episodes, frames and states, to the bit.

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <set>

#include <engram/device/operations.hpp>
#include <engram/program/compiled_tasks.hpp>
#include <engram/program/resident_tasks.hpp>

using namespace engram;
using device = emulated<float>;

namespace {

template <class T>
operand<float> rows_of(T& numbers, int width) {
    operand<float> o;
    o.data = numbers.data();
    o.stride = width;
    o.width = width;
    return o;
}

}  // namespace

TEST_CASE("a program finds every task in the memory of a device, and it plays the host's episodes") {
    constexpr int B = 3, first = 2, steps = 60;
    constexpr std::uint64_t seed = 7;
    for (const auto& name : task_names()) {
        CAPTURE(name);
        const task_options options;
        const auto stimuli = task_stimuli(name, options);
        const task_info info = describe_task(name, options);
        const std::string level = info.levels.front();
        const auto make = find_resident<device>(name, level, seed, options, stimuli);
        REQUIRE(make);
        executor<device> on;
        const auto there = make(on, B, first);
        const auto here = make_environment(name, level, B, seed, first, options, stimuli);
        REQUIRE(there->size() == B);

        const auto width = static_cast<std::size_t>(info.observation.size());
        std::vector<float> seen(B * width), shown(B * width), value(B, 0.5f);
        std::vector<float> policy(B * static_cast<std::size_t>(info.actions),
                                  -std::log(static_cast<float>(info.actions)));
        std::vector<philox> random;
        for (int b = 0; b < B; ++b) random.emplace_back(5, static_cast<std::uint64_t>(b));
        std::vector<device_step<float>> did(B);
        std::vector<double> ended(B);
        int alarm = 0, wrong = 0;
        std::set<float> actions;
        device_acting<float> acting{
            random.data(), did.data(), {rows_of(policy, info.actions), 0}, {rows_of(value, 1), 0}, {}, {}, &alarm};
        acting.record.ended = ended.data();
        for (int t = 0; t < steps; ++t) {
            there->observe({rows_of(seen, info.observation.size()), 0});
            for (int b = 0; b < B; ++b) here->observe(b, shown.data() + static_cast<std::size_t>(b) * width);
            wrong += std::memcmp(seen.data(), shown.data(), seen.size() * sizeof(float)) != 0;
            there->act(acting);
            for (int b = 0; b < B; ++b) {
                const auto& s = did[static_cast<std::size_t>(b)];
                const outcome out = here->step(b, static_cast<int>(s.action));
                actions.insert(s.action);
                wrong += out.reward != s.reward || out.done != s.done;
                wrong += std::isnan(ended[static_cast<std::size_t>(b)]) == out.done;
            }
        }
        CHECK(wrong == 0);
        CHECK(alarm == 0);
        CHECK(actions.size() > 1);
        for (int b = 0; b < B; ++b) {
            const auto a = here->state(b), d = there->state(b);
            REQUIRE(a.size() == d.size());
            CHECK(std::memcmp(a.data(), d.data(), a.size()) == 0);
        }
    }
}

TEST_CASE("a task that was added stays on the host") {
    CHECK_FALSE(find_resident<device>("a_task_of_mine", "train", 1, {}, nullptr));
}
