#pragma once
// SPDX-License-Identifier: MIT

// The recall tasks of the generative temporal models with memory (facts 4.9; steps count from 0): l random glyphs, no
// two alike, then k steps that memory can predict. T = l + k, the recall begins at step l.
//
//   perfect_recall          items 0 to k - 1 again                                       l 10, k 5
//   parity_recall           for each of items 0 to k - 1 a new image of class label mod 2
//                           (even: a 0, odd: a 1 [G7])                                   l 10, k 5
//   one_shot_recall         perfect recall of characters, others held out                l 20, k 5
//   dynamic_dependency      k times: the item at the position that the label of the last
//                           step names [G9]                                              l 20, k 5
//   similarity_cued_recall  items r to r + k - 1, r uniform on {0, ..., l - k} [G10]     l 20, k 5
//
// Parity recall has a level `wrong_parity` for whoever asks for it: the sequences of holdout_interpolate, but the last
// image is of the other parity (ours). A model that has stored the parity is surprised by it, one that has not is not.
//
// The settings `items` and `recalled` are l and k. A task is a rule: its facts, and how it goes on after l items.

#include <algorithm>
#include <array>
#include <concepts>
#include <memory>
#include <string>
#include <utility>

#include "engram/core/error.hpp"
#include "engram/task/environment.hpp"
#include "engram/task/glyph_data.hpp"
#include "engram/task/glyph_sequence.hpp"
#include "engram/task/sequence.hpp"
#include "engram/task/sequence_stream.hpp"

namespace engram {

struct recall_facts {
    const char* name;
    int items, recalled;  // l and k of the task's own
    glyph_use shows = glyph_use::any;
    int fewest_items = 1;
    bool recalled_within_items = true;  // k <= l
    int answer_classes = 0;             // the recall shows new images of the classes below this
};

template <class Rule>
concept recall_rule = requires(glyph_sequence& sequence, int l, int k) {
    { Rule::facts } -> std::convertible_to<recall_facts>;
    { Rule::recall(sequence, l, k) } -> std::same_as<void>;
};

struct perfect_recall {
    static constexpr recall_facts facts{.name = "perfect_recall", .items = 10, .recalled = 5};
    static void recall(glyph_sequence& sequence, int, int k) {
        for (int j = 0; j < k; ++j) sequence.repeat(j);
    }
};

struct parity_recall {
    static constexpr recall_facts facts{
        .name = "parity_recall", .items = 10, .recalled = 5, .shows = glyph_use::digits, .answer_classes = 2};
    static void recall(glyph_sequence& sequence, int, int k) {
        for (int j = 0; j < k; ++j) sequence.fresh(sequence.label(j) % 2);
    }
    static constexpr const char* mistaken_level = "wrong_parity";
    static void mistake(glyph_sequence& sequence, int, int k) {
        for (int j = 0; j < k; ++j) sequence.fresh((sequence.label(j) + (j == k - 1)) % 2);
    }
};

struct one_shot_recall {
    static constexpr recall_facts facts{
        .name = "one_shot_recall", .items = 20, .recalled = 5, .shows = glyph_use::characters};
    static void recall(glyph_sequence& sequence, int l, int k) { perfect_recall::recall(sequence, l, k); }
};

struct dynamic_dependency {
    static constexpr recall_facts facts{.name = "dynamic_dependency",
                                        .items = 20,
                                        .recalled = 5,
                                        .shows = glyph_use::digits,
                                        .fewest_items = 10,  // every digit is a position
                                        .recalled_within_items = false};
    static void recall(glyph_sequence& sequence, int, int k) {
        for (int j = 0; j < k; ++j) sequence.repeat(sequence.label(sequence.size() - 1));
    }
};

struct similarity_cued_recall {
    static constexpr recall_facts facts{.name = "similarity_cued_recall", .items = 20, .recalled = 5};
    static void recall(glyph_sequence& sequence, int l, int k) {
        const int r = sequence.below(l - k + 1);
        for (int j = 0; j < k; ++j) sequence.repeat(r + j);
    }
};

template <recall_rule Rule>
class recall_task final : public sequence_source {
public:
    static constexpr std::array reads{"items", "recalled", "glyph_side", "fidelity", "data", "stimuli"};
    static sequence_info describe(const task_options& options) {
        constexpr recall_facts facts = Rule::facts;
        const int l = items(options), k = recalled(options), side = glyph_side(options);
        require(l >= facts.fewest_items && l <= longest, facts.name, ": ", l, " items were asked for; expected ",
                facts.fewest_items, " to ", longest);
        require(k >= 1 && k <= longest, facts.name, ": ", k, " recalled items were asked for; expected 1 to ", longest);
        require(!facts.recalled_within_items || k <= l, facts.name, ": ", k, " items cannot be recalled of ", l);
        sequence_info info;
        info.name = facts.name;
        info.steps = l + k;
        info.observation = {side, side, 1};
        info.recall = l;
        if constexpr (has_mistakes) info.asked_levels = {Rule::mistaken_level};
        return info;
    }

    explicit recall_task(const task_options& options)
        : info_(describe(options)), glyphs_(load_glyphs(info_.name, Rule::facts.shows, options)) {
        check();
    }
    /// With glyphs that are already there.
    recall_task(const task_options& options, std::shared_ptr<const glyph_set> glyphs)
        : info_(describe(options)), glyphs_(std::move(glyphs)) {
        check();
    }

    const sequence_info& info() const override { return info_; }

    void draw(const std::string& level, std::uint64_t seed, std::uint64_t index,
              const sequence_place& to) const override {
        const bool mistaken = std::find(info_.levels.begin(), info_.levels.end(), level) == info_.levels.end();
        const std::string& like = mistaken ? info_.levels.back() : level;
        glyph_sequence sequence(*glyphs_, split_of(info_, level), sequence_stream(info_.name, like, seed, index));
        const int l = info_.recall, k = info_.steps - l;
        for (int i = 0; i < l; ++i) sequence.fresh();
        if constexpr (has_mistakes)
            (mistaken ? Rule::mistake : Rule::recall)(sequence, l, k);
        else
            Rule::recall(sequence, l, k);
        sequence.write(to);
    }

private:
    static constexpr bool has_mistakes = requires { Rule::mistaken_level; };
    static constexpr int longest = 100000;
    static int items(const task_options& options) { return options.items == 0 ? Rule::facts.items : options.items; }
    static int recalled(const task_options& options) {
        return options.recalled == 0 ? Rule::facts.recalled : options.recalled;
    }

    void check() const {
        constexpr recall_facts facts = Rule::facts;
        require_glyphs(*glyphs_, info_, info_.recall);
        if (facts.shows == glyph_use::digits)
            require(glyphs_->classes() == 10, info_.name, ": the ", glyphs_->source(), " set has ", glyphs_->classes(),
                    " classes, expected the 10 digits");
        for (const split s : {split::train, split::holdout})
            for (int c = 0; c < facts.answer_classes; ++c)
                require(static_cast<int>(glyphs_->of(s, c).size()) >= info_.steps, info_.name,
                        ": a sequence shows up to ", info_.steps, " images of the digit ", c, ", but the ",
                        glyphs_->source(), " set has ", glyphs_->of(s, c).size(), " to ",
                        s == split::train ? "train on" : "hold out");
    }

    sequence_info info_;
    std::shared_ptr<const glyph_set> glyphs_;
};

}  // namespace engram
