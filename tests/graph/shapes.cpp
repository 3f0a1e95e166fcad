// SPDX-License-Identifier: MIT
// Shapes that do not fit: the sentence of every operation of docs/reference/operations.md.

#include <doctest/doctest.h>

#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <engram/engram.hpp>

using namespace engram;

namespace {

using backend = cpu<double>;
using variable = var<backend>;

struct added {
    constexpr auto operator()(auto a, auto b) const { return a + b; }
};

/// A graph within a scope "m", and inputs of any width.
struct traced {
    std::shared_ptr<parameters<double>> store = std::make_shared<parameters<double>>(1);
    graph<backend> g{store};
    graph<backend>::scope_guard scope = g.scope("m");
    int inputs = 0;

    variable in(int width, extent rows = extent::sequence) { return g.input(message("in", inputs++), width, rows); }
    knn_read_settings reading(int columns) {
        knn_read_settings s;
        s.memory = add_knn_memory(g, "ring", 4, 3, 2), s.value_width = columns;
        return s;
    }
    linear weights(int from, int to) { return g.declare_linear("w", from, to); }
};

struct wrong_shape {
    std::string operation;
    std::function<void(traced&)> call;
    std::string sentence;
};

const std::vector<wrong_shape>& wrong_shapes() {
    static const std::vector<wrong_shape> all{
        {"input", [](traced& t) { t.in(0); }, "in0: a value needs at least one column, not 0"},
        {"state", [](traced& t) { t.g.state("s", 0); }, "m.s: a value needs at least one column, not 0"},
        {"declare", [](traced& t) { t.g.declare("p", 0, 3, initial::zero<double>()); },
         "m.p: a parameter of [0,3] has no entries"},
        {"declare_linear", [](traced& t) { t.g.declare_linear("p", 3, 0); },
         "m.p.weight: a parameter of [3,0] has no entries"},
        {"split_columns", [](traced& t) { split_columns<3>(t.in(4)); },
         "split_columns: 4 columns do not divide into 3 equal parts"},
        {"affine", [](traced& t) { affine("op", t.in(3), t.weights(4, 2)); },
         "m.op: inputs have 3 columns, the weight 'm.w.weight' is [4,2]"},
        {"affine",
         [](traced& t) {
             affine("op", {t.in(3), t.in(2)}, t.weights(4, 2));
         },
         "m.op: inputs have 5 columns, the weight 'm.w.weight' is [4,2]"},
        {"affine", [](traced& t) { affine("op", std::vector<variable>{}, t.weights(4, 2)); },
         "op: an affine map needs an input"},
        {"attention", [](traced& t) { attention("op", t.in(4), t.in(4), t.in(3), t.in(1), {.heads = 2}); },
         "m.op: queries, keys and values have 4, 4 and 3 columns; expected equal widths"},
        {"attention", [](traced& t) { attention("op", t.in(4), t.in(4), t.in(4), t.in(1), {.heads = 3}); },
         "m.op: 4 columns do not divide into 3 heads"},
        {"attention", [](traced& t) { attention("op", t.in(4), t.in(4), t.in(4), t.in(2), {.heads = 2}); },
         "m.op: reset is one column, not 2"},
        {"episode_step", [](traced& t) { episode_step("op", t.in(2), 5); }, "m.op: reset is one column, not 2"},
        {"batch_norm", [](traced& t) { batch_norm("op", t.in(7), declare_batch_norm(t.g, "n", 2)); },
         "m.op: 7 columns do not divide into images of 2 channels, those of 'm.n.scale'"},
        {"concatenate_channels",
         [](traced& t) {
             concatenate_channels("op", {t.in(9), t.in(7)}, {3, 3, 1});
         },
         "m.op: 7 columns are not an image of height 3 and width 3"},
        {"split_channels",
         [](traced& t) {
             split_channels("op", t.in(17), {3, 3, 2}, {1, 1});
         },
         "m.op: the input has 17 columns, an image of [3,3,2] has 18"},
        {"split_channels",
         [](traced& t) {
             split_channels("op", t.in(18), {3, 3, 2}, {1, 2});
         },
         "m.op: parts of 3 channels do not make up an image of [3,3,2]"},
        {"subtract_mean_colour",
         [](traced& t) {
             subtract_mean_colour("op", t.in(17), {3, 3, 2});
         },
         "m.op: the input has 17 columns, an image of [3,3,2] has 18"},
        {"clear_rows", [](traced& t) { clear_rows("op", t.in(2), std::vector{t.in(3)}); },
         "m.op: reset is one column, not 2"},
        {"concatenate", [](traced&) { concatenate<backend>("op", {}); }, "op: nothing to concatenate"},
        {"record", [](traced&) { record<backend>("op", {}); }, "op: nothing to record"},
        {"content_weights", [](traced& t) { content_weights("op", t.in(7), t.in(2)); },
         "m.op: cosines of 7 columns do not divide among 2 strengths"},
        {"convolve",
         [](traced& t) {
             convolve("op", t.in(17), {3, 3, 2}, 4, 3, 1, t.weights(18, 4));
         },
         "m.op: the input has 17 columns, an image of [3,3,2] has 18"},
        {"convolve",
         [](traced& t) {
             convolve("op", t.in(18), {3, 3, 2}, 4, 3, 1, t.weights(17, 4));
         },
         "m.op: the weight 'm.w.weight' is [17,4], a kernel 3 from [3,3,2] to [3,3,4] needs [18,4]"},
        {"convolve",
         [](traced& t) {
             convolve("op", t.in(18), {3, 3, 2}, 4, 3, 0, t.weights(18, 4));
         },
         "m.op: kernel 3 and stride 0; a kernel has 1 to 16 rows, a stride is at least 1"},
        {"deconvolve",
         [](traced& t) {
             deconvolve("op", t.in(17), {3, 3, 2}, 4, 3, 1, t.weights(36, 2));
         },
         "m.op: the input has 17 columns, an image of [3,3,2] has 18"},
        {"deconvolve",
         [](traced& t) {
             deconvolve("op", t.in(18), {3, 3, 2}, 4, 3, 1, t.weights(35, 2));
         },
         "m.op: the weight 'm.w.weight' is [35,2], a kernel 3 from [3,3,2] to [3,3,4] needs [36,2]"},
        {"max_pool",
         [](traced& t) {
             max_pool("op", t.in(17), {3, 3, 2});
         },
         "m.op: the input has 17 columns, an image of [3,3,2] has 18"},
        {"upsample",
         [](traced& t) {
             upsample("op", t.in(17), {3, 3, 2});
         },
         "m.op: the input has 17 columns, an image of [3,3,2] has 18"},
        {"cpc_loss", [](traced& t) { cpc_loss("op", t.in(3), t.in(7), t.in(1)); },
         "m.op: predictions have 7 columns, which is no multiple of the 3 that are predicted"},
        {"cpc_loss", [](traced& t) { cpc_loss("op", t.in(3), t.in(6), t.in(2)); }, "m.op: reset is one column, not 2"},
        {"add_dnc_link", [](traced& t) { add_dnc_link(t.g, "op", 0); }, "m.op: a link between 0 slots holds nothing"},
        {"link_forget", [](traced& t) { link_forget(add_dnc_link(t.g, "link", 4), t.in(2)); },
         "m.forget: reset is one column, not 2"},
        {"temporal_link",
         [](traced& t) { temporal_link("op", add_dnc_link(t.g, "link", 4), t.in(3), t.in(4), t.in(4)); },
         "m.op: write weights and precedence have 3 and 4 columns, the link has 4 slots"},
        {"temporal_link",
         [](traced& t) { temporal_link("op", add_dnc_link(t.g, "link", 4), t.in(4), t.in(4), t.in(6)); },
         "m.op: read weights of 6 columns do not divide among 4 slots"},
        {"dropout", [](traced& t) { dropout("op", t.in(3), 1.0); },
         "m.op: the rate of dropout is 1, expected one in [0, 1)"},
        {"mixture",
         [](traced& t) {
             mixture("op", t.in(4), std::vector{t.in(6), t.in(4)}, 3);
         },
         "m.op: values of 6 and 4 columns, expected the same for every value, a multiple of the 3 columns of a head"},
        {"mixture",
         [](traced& t) {
             mixture("op", t.in(3), std::vector{t.in(6), t.in(6)}, 3);
         },
         "m.op: 2 heads of 2 values need 4 shares, not 3"},
        {"mixture", [](traced& t) { mixture("op", t.in(3), std::vector<variable>{}, 3); }, "op: nothing to mix"},
        {"fold_heads", [](traced& t) { fold_heads("op", added{}, 2, t.in(3), t.in(5)); },
         "m.op: 5 columns for 2 heads; expected one a head, or 3 a head as there are in what they change"},
        {"fold_heads", [](traced& t) { fold_heads("op", added{}, 0, t.in(3), t.in(6)); },
         "m.op: 0 heads; at least one is needed"},
        {"add_knn_memory", [](traced& t) { add_knn_memory(t.g, "op", 0, 3, 2); },
         "m.op: a memory of 0 slots, content 3 and keys of 2 holds nothing"},
        {"knn_forget", [](traced& t) { knn_forget(add_knn_memory(t.g, "ring", 4, 3, 2), t.in(2)); },
         "m.forget: reset is one column, not 2"},
        {"knn_read", [](traced& t) { knn_read(t.in(3), t.weights(3, 2), t.reading(3)); },
         "m.read: the query has 3 columns, keys have 2"},
        {"knn_read", [](traced& t) { knn_read(t.in(2), t.weights(2, 2), t.reading(3)); },
         "m.read: the key weight 'm.w.weight' is [2,2], contents and keys want [3,2]"},
        {"knn_read", [](traced& t) { knn_read(t.in(2), t.weights(3, 2), t.reading(4)); },
         "m.read: value columns 0..4 lie outside contents of 3"},
        {"knn_write", [](traced& t) { knn_write(add_knn_memory(t.g, "ring", 4, 3, 2), t.in(2), t.in(2)); },
         "m.write: content and key have 2 and 2 columns, the memory holds 3 and 2"},
        {"declare_layer_norm", [](traced& t) { declare_layer_norm(t.g, "op", 0); },
         "m.op.gain: a parameter of [1,0] has no entries"},
        {"layer_norm", [](traced& t) { layer_norm("op", t.in(4), declare_layer_norm(t.g, "n", 3)); },
         "m.op: 4 columns, but gain and bias have 3 and 3"},
        {"declare_batch_norm", [](traced& t) { declare_batch_norm(t.g, "op", 0); },
         "m.op.scale: a parameter of [1,0] has no entries"},
        {"normalise", [](traced& t) { normalise("op", t.in(7), 3); }, "m.op: 7 columns do not divide into groups of 3"},
        {"normalise", [](traced& t) { normalise("op", t.in(6), 3, true, 0); },
         "m.op: expected a positive epsilon and size, got 0 and 1"},
        {"standardise", [](traced& t) { standardise("op", t.in(2)); },
         "m.op: 'in0' is no column of its own over all steps, [T,B,1]"},
        {"standardise", [](traced& t) { standardise("op", t.in(2).columns(1, 1)); },
         "m.op: 'in0' is no column of its own over all steps, [T,B,1]"},
        {"standardise", [](traced& t) { standardise("op", t.in(1, extent::batch)); },
         "m.op: 'in0' is no column of its own over all steps, [T,B,1]"},
        {"standardise", [](traced& t) { standardise("op", t.in(1), 0); }, "m.op: expected a positive epsilon, got 0"},
        {"standardise",
         [](traced& t) {
             struct carried {
                 BOOST_HANA_DEFINE_STRUCT(carried, (variable, h));
             };
             scan(t.g, carried{t.g.state("h", 1)}, [&](carried& now) { return now.h = standardise("op", t.in(1)); });
         },
         "m.op: all steps are needed at once, and a scan has one at a time"},
        {"outer", [](traced& t) { outer("op", t.in(6), t.in(7), 3); }, "m.op: 7 columns do not divide into 3 heads"},
        {"recall_matrices",
         [](traced& t) { recall_matrices("op", 2, true, t.in(14), t.in(6), t.in(6), t.in(4), t.in(2), t.in(2)); },
         "m.op: 2 matrices of 3 x 2 are not 14 columns"},
        {"recall_matrices",
         [](traced& t) { recall_matrices("op", 2, true, t.in(12), t.in(4), t.in(6), t.in(4), t.in(2), t.in(2)); },
         "m.op: a query of 4 columns does not fit a key of 6"},
        {"convolve_steps",
         [](traced& t) {
             const auto tap = t.g.declare("tap", 1, 4, initial::zero<double>());
             convolve_steps("op", t.in(8), t.in(4), {tap, tap, tap, tap}, tap);
         },
         "m.op: three steps of 4 columns are not 8"},
        {"attend_window",
         [](traced& t) {
             attend_window("op", 2, 3, t.in(50), {t.in(4), t.in(4)}, {t.in(4), t.in(4)}, t.in(8), t.in(1));
         },
         "m.op: 2 rings of 3 keys and values of 4 columns are not 50 columns"},
        {"attend_window",
         [](traced& t) {
             attend_window("op", 2, 3, t.in(48), {t.in(4), t.in(3)}, {t.in(4), t.in(4)}, t.in(8), t.in(1));
         },
         "m.op: halves of 3 columns do not fit values of 8 for 2 heads"},
        {"attend_window",
         [](traced& t) {
             attend_window("op", 2, 3, t.in(48), {t.in(4), t.in(4)}, {t.in(4), t.in(4)}, t.in(8), t.in(2));
         },
         "m.op: the step is one column, not 2"},
        {"read_matrices", [](traced& t) { read_matrices("op", t.in(24), t.in(10), 2); },
         "m.op: a head's matrix of 12 numbers has no 5 rows of equal length, one for each column of the query"},
        {"learnt_row", [](traced& t) { learnt_row("op", t.in(3), t.weights(5, 2).weight); },
         "m.op: the parameter 'm.w.weight' is [5,2], expected one row"},
        {"joint_cosine_scores", [](traced& t) { joint_cosine_scores("op", t.in(12), t.in(4), 5); },
         "m.op: a memory of 12 columns does not divide into words of 5"},
        {"joint_cosine_scores", [](traced& t) { joint_cosine_scores("op", t.in(12), t.in(4), 3); },
         "m.op: keys of 4 columns do not divide into words of 3, those of the memory [4,3]"},
        {"least_used", [](traced& t) { least_used("op", t.in(5), 6); },
         "m.op: 6 heads need as many slots, there are 5"},
        {"clear_and_add", [](traced& t) { clear_and_add("op", t.in(12), t.in(4), t.in(6), t.in(3), 3); },
         "m.op: weights of 6 columns do not divide among the slots of the memory [4,3]"},
        {"clear_and_add", [](traced& t) { clear_and_add("op", t.in(12), t.in(4), t.in(4), t.in(4), 3); },
         "m.op: 1 heads need 3 columns to add and 4 marks, not 4 and 4"},
        {"add_loss", [](traced& t) { add_loss("op", t.in(2)); }, "m.op: a loss is one column, not 2"},
        {"map", [](traced& t) { map("op", added{}, t.in(3), t.in(2)); },
         "m.op: inputs of 3 and 2 columns do not go together; widths must be equal or 1"},
        {"cosine_scores", [](traced& t) { cosine_scores("op", t.in(12), t.in(4), 5); },
         "m.op: a memory of 12 columns does not divide into words of 5"},
        {"cosine_scores", [](traced& t) { cosine_scores("op", t.in(12), t.in(4), 3); },
         "m.op: keys of 4 columns do not divide into words of 3, those of the memory [4,3]"},
        {"cosine_scores", [](traced& t) { cosine_scores("op", t.in(12), t.in(3), 3, {t.in(2)}); },
         "m.op: the count of writes must be one column, not 2"},
        {"weighted_read", [](traced& t) { weighted_read("op", t.in(5), t.in(12), 3); },
         "m.op: weights of 5 columns do not divide among the slots of the memory [4,3]"},
        {"erase_add", [](traced& t) { erase_add("op", t.in(12), t.in(5), t.in(3), t.in(3), 3); },
         "m.op: weights of 5 columns do not divide among the slots of the memory [4,3]"},
        {"erase_add", [](traced& t) { erase_add("op", t.in(12), t.in(4), t.in(3), t.in(4), 3); },
         "m.op: 1 heads need 3 columns to erase and to add, not 3 and 4"},
        {"normal_noise", [](traced& t) { normal_noise(t.g, "op", 0); },
         "m.op: a value needs at least one column, not 0"},
        {"uniform_noise", [](traced& t) { uniform_noise(t.g, "op", 0); },
         "m.op: a value needs at least one column, not 0"},
        {"ntm_address", [](traced& t) { ntm_address("op", t.in(8), t.in(7), t.in(8)); },
         "m.op: a head is steered by 6 numbers, which do not divide 7 columns"},
        {"ntm_address", [](traced& t) { ntm_address("op", t.in(8), t.in(2 * ntm_address_columns), t.in(9)); },
         "m.op: 8 cosines meet 9 previous weights"},
        {"ntm_address", [](traced& t) { ntm_address("op", t.in(9), t.in(2 * ntm_address_columns), t.in(9)); },
         "m.op: 9 cosines do not divide among 2 heads"},
        {"pick", [](traced& t) { pick("op", t.in(4), t.in(2)); }, "m.op: the index must be one column, not 2"},
        {"one_hot", [](traced& t) { one_hot("op", t.in(2), 4); }, "m.op: the index must be one column, not 2"},
        {"one_hot", [](traced& t) { one_hot("op", t.in(1), 0); }, "m.op: a value needs at least one column, not 0"},
        {"embed", [](traced& t) { embed("op", t.in(2), t.g.declare("table", 5, 3, initial::zero<double>())); },
         "m.op: the index must be one column, not 2"},
        {"quantile_huber_loss", [](traced& t) { quantile_huber_loss("op", t.in(4), t.in(5)); },
         "m.op: 4 atoms and 5 target atoms; expected as many of both"},
        {"atoms_of", [](traced& t) { atoms_of("op", t.in(7), t.in(1), 2); },
         "m.op: 7 columns are not a number of actions times 2 atoms"},
        {"atoms_of", [](traced& t) { atoms_of("op", t.in(8), t.in(2), 2); },
         "m.op: the action must be one column, not 2"},
        {"mean_of_atoms", [](traced& t) { mean_of_atoms("op", t.in(7), 2); },
         "m.op: 7 columns do not divide into the atoms of 2 actions"},
        {"vtrace_targets",
         [](traced& t) { vtrace_targets("op", t.in(1), t.in(2), t.in(1), t.in(1), t.in(1, extent::batch)); },
         "m.op: inputs are columns of their own, not 2 of 2"},
        {"vtrace_targets",
         [](traced& t) {
             const auto steps = t.in(1);
             vtrace_targets("op", steps, steps, steps, steps, steps);
         },
         "m.op: 'in0' is the bootstrap and has steps; [B,1] is expected"},
        {"vtrace_targets",
         [](traced& t) {
             const auto once = t.in(1, extent::batch);
             const auto steps = t.in(1);
             vtrace_targets("op", steps, steps, once, steps, once);
         },
         "m.op: 'in0' has no steps; [T,B,1] is expected of all but the bootstrap"},
        {"generalised_advantage",
         [](traced& t) { generalised_advantage("op", t.in(2), t.in(1), t.in(1), t.in(1, extent::batch), 0.9); },
         "m.op: inputs are columns of their own, not 2 of 2"},
        {"generalised_advantage",
         [](traced& t) { generalised_advantage("op", t.in(1), t.in(1), t.in(1), t.in(1, extent::batch), 1.5); },
         "m.op: lambda is 1.5, expected 0 to 1"},
        {"slot_attention", [](traced& t) { slot_attention("op", t.in(7), 3, slot_attention_kind::softmax); },
         "m.op: 7 logits do not divide among 3 slots"},
        {"slot_attention", [](traced& t) { slot_attention("op", t.in(6), 3, slot_attention_kind::softmax, {t.in(2)}); },
         "m.op: the count of writes must be one column, not 2"},
        {"read_slots", [](traced& t) { read_slots("op", t.in(6), t.in(12), t.in(1), 5, true); },
         "m.op: a memory of 12 columns does not divide into words of 5"},
        {"read_slots", [](traced& t) { read_slots("op", t.in(6), t.in(12), t.in(1), 3, true); },
         "m.op: weights of 6 columns do not divide among the slots of the memory [4,3]"},
        {"read_slots", [](traced& t) { read_slots("op", t.in(8), t.in(12), t.in(2), 3, true); },
         "m.op: the count of writes must be one column, not 2"},
        {"write_slot", [](traced& t) { write_slot("op", t.in(12), t.in(5), t.in(1)); },
         "m.op: a memory of 12 columns does not divide into words of 5"},
        {"write_slot", [](traced& t) { write_slot("op", t.in(12), t.in(3), t.in(2)); },
         "m.op: the count of writes must be one column, not 2"},
        {"softmax", [](traced& t) { softmax("op", t.in(7), 3); }, "m.op: 7 columns do not divide into groups of 3"},
        {"sum_columns", [](traced& t) { sum_columns("op", t.in(7), 3); },
         "m.op: 7 columns do not divide into groups of 3"},
        {"previous", [](traced& t) { previous("op", t.in(3, extent::batch)); },
         "m.op: 'in0' is [B,3] and has no steps; a [T,B,F] variable is needed"},
        {"declare_convolution", [](traced& t) { declare_convolution(t.g, "op", 2, 0, 3); },
         "m.op.weight: a parameter of [18,0] has no entries"},
        {"declare_deconvolution", [](traced& t) { declare_deconvolution(t.g, "op", 0, 4, 3, 1); },
         "m.op.weight: a parameter of [36,0] has no entries"},
        {"dnc_allocate", [](traced& t) { dnc_allocate("op", t.in(3).spread(2)); },
         "m.op: spread columns are for maps alone"},
        {"log_softmax", [](traced& t) { log_softmax("op", t.in(3).spread(2)); },
         "m.op: spread columns are for maps alone"},
        {"largest", [](traced& t) { largest("op", t.in(3).spread(2)); }, "m.op: spread columns are for maps alone"},
        {"copy", [](traced& t) { copy(t.in(3).spread(2)); }, "m.copy: spread columns are for maps alone"},
        {"receive_gradient", [](traced& t) { receive_gradient("op", t.in(3).spread(2)); },
         "m.op: spread columns are for maps alone"},
        {"entropy_of_atoms", [](traced& t) { entropy_of_atoms("op", t.in(3).spread(2)); },
         "m.op: spread columns are for maps alone"},
        {"scan",
         [](traced& t) {
             struct carried {
                 BOOST_HANA_DEFINE_STRUCT(carried, (variable, h));
             };
             scan(t.g, carried{t.g.state("h", 3)}, [&](carried& now) {
                 now.h = t.in(4);
                 return now.h;
             });
         },
         "scan: state 'm.h' enters as [B,3] and leaves as [B,4]"},
    };
    return all;
}

}  // namespace

TEST_CASE("an operation names itself, what came and what was expected") {
    for (const auto& wrong : wrong_shapes()) {
        CAPTURE(wrong.operation);
        traced t;
        CHECK_THROWS_WITH_AS(wrong.call(t), wrong.sentence.c_str(), error);
    }
}

TEST_CASE("every operation of the reference is asked") {
    std::set<std::string> asked;
    for (const auto& wrong : wrong_shapes()) asked.insert(wrong.operation);
    // A name, a mark and the same numbers: they have no shape to be wrong.
    const std::set<std::string> any_shape{"scope", "hold", "stop_gradient", "columns_of", "relu_layer"};
    std::ifstream page(ENGRAM_SOURCE_DIR "/docs/reference/operations.md");
    std::size_t operations = 0;
    for (std::string line; std::getline(page, line);) {
        if (!line.starts_with("| `")) continue;
        std::string name = line.substr(3, line.find('(') - 3);
        if (name.starts_with("g.")) name.erase(0, 2);
        CAPTURE(name);
        CHECK(asked.contains(name) != any_shape.contains(name));
        ++operations;
    }
    CHECK(operations >= wrong_shapes().size() / 2);
}
