// SPDX-License-Identifier: MIT

// Tasks on MNIST and Omniglot themselves; skipped where they are not.

#include "../io/real_data.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "coded_glyphs.hpp"
#include "disjoint.hpp"
#include "engram/task/glyph_data.hpp"
#include "engram/task/registry.hpp"
#include "engram/task/sequence_registry.hpp"
#include "engram/task/stimulus_data.hpp"

using namespace engram;

TEST_CASE("glyphs: the split, the numbers of drawings and the mean of the real data") {
    for (const int side : {14, 28}) {
        const auto digits = mnist_digits(real_data("mnist"), side);
        CHECK(digits.count(split::train) == 60000);
        CHECK(digits.count(split::holdout) == 10000);
        CHECK(digits.of(split::train, 5).size() == 5421);
        CHECK(digits.of(split::holdout, 9).size() == 1009);
        double mean = 0;
        for (int id = 0; id < 60000; ++id)
            for (const auto pixel : digits.image(id)) mean += pixel / 255.0;
        CHECK(mean / 60000 / side / side == doctest::Approx(0.1307).epsilon(0.001));
        const auto characters = omniglot_characters(real_data("omniglot"), side);
        CHECK(characters.classes() == 1623);
        CHECK(characters.count(split::holdout) == 3000);  // 150 characters of 20 drawings
        MESSAGE("side " << side << ": " << 32460 - characters.size() << " drawings equal another one");
        CHECK(characters.size() >= 32450);
        int held = 0;
        for (int label = 0; label < 1623; ++label) {
            const bool first = !characters.of(split::train, label).empty();
            CHECK(first == characters.of(split::holdout, label).empty());
            held += !first;
        }
        CHECK(held == 150);
    }
}

TEST_CASE("stimuli: splits of the real data are disjoint and an episode runs on it") {
    for (const std::string source : {"mnist", "omniglot"}) {
        CAPTURE(source);
        task_options options;
        options.data = real_data();
        options.stimuli = source;
        const auto set = load_stimuli(options);
        CHECK(set->count(split::train) == 1200);
        CHECK(set->count(split::holdout) == 1200);
        check_disjoint(*set);
        auto batch = make_environment("arbitrary_visuomotor_mapping", "train", 1, 1, 0, options, set);
        float total = 0;
        for (int t = 0; t < 50; ++t) total += batch->step(0, batch->event(0)->answer).reward;
        CHECK(total == 50);
        double sum = 0;
        for (int i = 0; i < 100; ++i)
            for (int j = 0; j < i; ++j) {
                double square = 0;
                for (std::size_t k = 0; k < 432; ++k) {
                    const double d = set->image(i)[k] - set->image(j)[k];
                    square += d * d;
                }
                sum += std::sqrt(square / 432);
            }
        MESSAGE(source << ": mean distance of two images " << sum / 4950);
        CHECK(sum / 4950 > 0.2);
    }
}

TEST_CASE("every sequence task runs on the real data") {
    const std::string data = real_data();
    for (const auto& name : sequence_names()) {
        CAPTURE(name);
        const auto task = make_sequence(name, {.data = data});
        CHECK(is_pure(*task));
        for (const auto& level : {task->info().levels.front(), task->info().levels.back()})
            for (std::uint64_t index = 0; index < 50; ++index) {
                const drawn_sequence drawn(*task, level, 1, index);
                const int size = task->info().observation.size();
                for (int t = 0; t < task->info().steps; ++t) {
                    const int origin = drawn.origin[static_cast<std::size_t>(t)];
                    if (origin >= 0 && task->info().targets == 0)
                        CHECK(std::ranges::equal(drawn.frame(t, size), drawn.frame(origin, size)));
                }
            }
    }
    CHECK(make_sequence("perfect_recall", {.data = data, .stimuli = "omniglot"})->info().steps == 15);
}
