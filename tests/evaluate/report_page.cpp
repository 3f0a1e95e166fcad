// SPDX-License-Identifier: MIT

#include "report/report_page.hpp"

#include <doctest/doctest.h>

#include "../io/temporary.hpp"
#include "fake_run.hpp"
#include "markup.hpp"

using namespace engram;

namespace {

int count(const std::string& text, const std::string& part) {
    return count_of(text, part);
}

struct page_of_twelve {
    temporary_folder folder;
    std::vector<run_record> runs;
    page_of_twelve() {
        double share = 0.4;
        for (const std::string name : {"ff", "lstm", "ff_mem", "lstm_mem"}) {
            for (int seed = 1; seed <= 3; ++seed) {
                const std::string at = folder / (name + "-" + std::to_string(seed));
                fake_run(at, name, seed,
                         {{"train", 50 * share + 0.5 * seed, 0.1, 50}, {"holdout_interpolate", 40 * share, 0.1, 40}});
                if (name == "lstm_mem") write_json(at + "/retrieval.json", fake_retrieval());
                runs.push_back(read_run(at));
            }
            share += 0.19;
        }
    }
};

}  // namespace

TEST_CASE(
    "the page holds the headline, the curves, the numbers, the episode and the runs, and nothing from elsewhere") {
    const page_of_twelve data;
    const std::string html = report_page(data.runs, "").html();
    CHECK(has(html,
              "<h1>LSTM+MEM reaches 97\u00a0% on images it never saw; without memory, LSTM stays at 59\u00a0%</h1>"));
    CHECK(unbalanced(html) == "");
    // Train of LSTM+MEM: 48.5 + 0.5 {1, 2, 3} = mean 49.5 = 99 %, stderr 1 / sqrt(3) % = 0.6 %
    CHECK(has(html,
              "<td class='best'><span class='big'>99.0</span> <span class='se'>\u00b1\u00a00.6</span><small>49.5 of "
              "50</small></td>"));
    CHECK(has(html, "maximum 50"));
    CHECK(has(html, "acting at random 12.5"));
    CHECK(count(html, "class='line c0'") >= 2);     // wide and narrow
    CHECK(count(html, "<ol class='strip'>") == 1);  // one episode per ablation
    CHECK(count(html, "<tr><th scope='row'>LSTM+MEM</th>") == 3);
    CHECK(has(html, "<span>memory.slots</span><b>128</b>"));
    CHECK(count(html, "http") == 1);  // the name space of SVG in the script
    CHECK(!has(html, "nan"));
}

TEST_CASE("medians where they are asked for, and steps to the goal where runs have them") {
    const page_of_twelve data;
    const std::string plain = report_page(data.runs, "").html();
    CHECK(has(plain, "lines are means over seeds"));
    CHECK(!has(plain, "Steps to the goal"));
    CHECK(has(report_page(data.runs, "", curve_middle::median).html(), "lines are medians over seeds"));

    const std::string at = data.folder / "ff-1";
    json summary = read_json(at + "/summary.json");
    for (auto& level : summary["levels"]) level["steps_to_goal"] = {40, 12.5}, level["reached_goal"] = {100, 60};
    write_json(at + "/summary.json", summary);
    const std::string html = report_page({read_run(at), data.runs[1]}, "").html();
    CHECK(has(html, "Steps to the goal within an episode"));
    CHECK(unbalanced(html) == "");
}

TEST_CASE("what stands in files is shown, not run") {
    page_of_twelve data;
    data.runs[0].ablation = "<script>alert('x')</script>";
    data.runs[1].task = "<img src=x>";
    const std::string html = report_page(data.runs, "<b>&\"").html();
    CHECK(!has(html, "<script>alert"));
    CHECK(!has(html, "<img"));
    CHECK(!has(html, "a<b &"));
    CHECK(has(html, "<b>a&lt;b &amp; &quot;c&quot;</b>"));
    CHECK(has(html, "<h1>&lt;b&gt;&amp;&quot;</h1>"));
    CHECK(unbalanced(html) == "");
}

TEST_CASE("tasks of which one is not in the suite have a map in % of the maximum") {
    page_of_twelve data;
    CHECK(!has(report_page(data.runs, "").html(), "<table class='heat'>"));
    for (std::size_t i = 0; i < data.runs.size(); i += 3) data.runs[i].task = "t_maze";
    data.runs[0].levels.clear();  // ff on that task
    const std::string html = report_page(data.runs, "").html();
    CHECK(has(html, "<table class='heat'>"));
    CHECK(!has(html, "class='heatmap'"));  // of the suite there is one task only
    CHECK(has(html, "LSTM+MEM is the best on every task"));
    CHECK(count(html, "<td class='none'>") == 1);
    CHECK(has(html, "style='--v:0.970'>97.0</td>"));
    CHECK(unbalanced(html) == "");
}

TEST_CASE("tasks of the suite have maps of normalised scores, beside those of the paper") {
    page_of_twelve data;
    CHECK(!has(report_page(data.runs, "").html(), "class='heatmap'"));
    for (std::size_t i = 0; i < data.runs.size(); i += 3) data.runs[i].task = "continuous_recognition";
    for (auto& run : data.runs) run.metrics = {};
    data.runs[0].levels.clear();  // ff on that task
    const std::string html = report_page(data.runs, "").html();
    CHECK(!has(html, "<table class='heat'>"));
    CHECK(has(html, "2 tasks of the Memory Tasks Suite, small fidelity"));
    // train and one holdout level; on the other, and of the gap, nothing: four agents and the mean of them
    CHECK(count(html, "continuous recognition: not measured") == 2 * 1 + 2 * 5);
    CHECK(has(html, "LSTM+MEM on arbitrary visuomotor mapping: "));
    CHECK(count(html, "http") == 1);
    CHECK(!has(html, "nan"));
    CHECK(unbalanced(html) == "");
}

TEST_CASE("unfinished runs make a page too") {
    page_of_twelve data;
    for (auto& run : data.runs)
        run.levels.clear(), run.metrics = {}, run.steps.reset(), run.seed.reset(), run.retrieval.reset();
    const std::string html = report_page(data.runs, "").html();
    CHECK(has(html, "12 runs on arbitrary visuomotor mapping, not evaluated yet"));
    CHECK(has(html, "no training curve"));
    CHECK(unbalanced(html) == "");
}

TEST_CASE("labels are moved apart within their bounds") {
    std::vector<double> y{10, 11, 12, 100};
    spread_labels(y, 10, 5, 100);
    CHECK(y[0] >= 5 - 1e-9);
    for (int i = 1; i < 4; ++i) CHECK(y[i] - y[i - 1] >= 10 - 1e-6);
    CHECK(y[3] <= 100 + 1e-9);
}

TEST_CASE("numbers in words") {
    CHECK(short_count(950) == "950");
    CHECK(short_count(12345) == "12.3\u00a0k");
    CHECK(short_count(999990) == "1\u00a0M");
    CHECK(short_count(2e6) == "2\u00a0M");
    CHECK(duration(4.25) == "4.2 s");
    CHECK(duration(3599.6) == "1 h 0 min");
    CHECK(duration(75) == "1 min 15 s");
    CHECK(significant(0.00012345) == "0.000123");
    CHECK(significant(-0.0) == "0");
    CHECK(fixed(-0.04, 1) == "0.0");
    CHECK(level_title("holdout_interpolate") == "Holdout, interpolate");
    CHECK(level_title("train") == "Train");
    CHECK(shortened("abcdefghijklmnopqrstuvwxyz\u00e9\u00e9") == "abcdefghijklmnopqrstuvwxyz\u2026");
}

namespace {

/// Two seeds of each of two models on one task; the strips of the second seed of one.
struct page_of_sequences {
    temporary_folder folder;
    std::vector<run_record> runs;
    page_of_sequences() {
        for (const auto& [name, recall] : {std::pair{std::string("vrnn"), 7.0}, {"introspective_gtmm", 0.5}})
            for (int seed = 1; seed <= 2; ++seed) {
                const std::string at = folder / (name + std::to_string(seed));
                fake_generative_run(at, name, seed, recall + 0.5 * (seed - 1));
                runs.push_back(read_run(at));
            }
        runs.back().strips = fake_png;
    }
};

}  // namespace

TEST_CASE("the page of a sequence task: headline, two learning curves, KL a step, the table, the strips") {
    page_of_sequences data;
    const std::string html = report_page(data.runs, "").html();
    CHECK(unbalanced(html) == "");
    CHECK(has(html,
              "<h1>Introspective GTMM needs 0.75 nats for a frame it has seen before; without memory, VRNN needs "
              "7.25</h1>"));
    CHECK(has(html, "2 models, 2 seeds, on perfect recall, 3\u00a0k frames each."));
    CHECK(count(html, "aria-label='KL of the last step, nats over frames'") == 1);
    CHECK(count(html, "aria-label='\u2212ELBO, nats a sequence over frames'") == 1);
    CHECK(count(html, "aria-label='KL, nats over time step'") == 2);  // wide and narrow
    CHECK(count(html, "r='3.2'") == 2 * 2 * 3);                       // two models, three steps
    CHECK(!has(html, ">recall</text>"));                              // where it begins is not known
    // Held out: KL 2 before the recall, 0.5 and 1 at it, ratios 0.25 and 0.5, stderr half the difference.
    CHECK(has(html,
              "<td><span class='big'>2.00</span> <span class='se'>\u00b1\u00a00.00</span></td><td class='best'><span "
              "class='big'>0.75</span> <span class='se'>\u00b1\u00a00.25</span></td><td class='best'><span "
              "class='big'>0.38</span> <span class='se'>\u00b1\u00a00.12</span></td></tr>"));
    CHECK(count(html, "class='best'") == 4);  // two levels, the recall, the ratio
    CHECK(count(html, "src='data:image/png;base64," + fake_png + "'") == 1);
    CHECK(has(html, "Introspective GTMM<small>seed 2</small>"));
    for (const char* of_agents : {"episode reward", "environment steps", "acting at random", "% of the maximum",
                                  "<th>Agent</th>", "nan", "class='heat'", "<svg class='bars'"})
        CHECK_MESSAGE(!has(html, of_agents), of_agents);

    for (auto& run : data.runs)
        for (auto& level : run.levels) level.recall_step = 2;
    CHECK(count(report_page(data.runs, "").html(), ">recall</text>") == 2);
    for (auto& run : data.runs)
        for (auto& level : run.levels) level.recall_step = 3;  // beyond the last step
    CHECK(!has(report_page(data.runs, "").html(), ">recall</text>"));
}

TEST_CASE("agents and sequence models on one page have a section of their kind each") {
    page_of_sequences sequences;
    page_of_twelve agents;
    auto runs = sequences.runs;
    runs.insert(runs.end(), agents.runs.begin(), agents.runs.end());
    const std::string one = report_page(runs, "").html();
    CHECK(unbalanced(one) == "");
    CHECK(has(one, "<h1>6 models on 2 tasks</h1>"));
    CHECK(!has(one, "<table class='heat'>"));  // one task of agents needs no map
    CHECK(has(one, "aria-label='KL, nats over time step'"));
    CHECK(has(one, "aria-label='episode reward over environment steps'"));
    for (std::size_t i = 4; i < runs.size(); i += 3) runs[i].task = "t_maze";
    const std::string two = report_page(runs, "").html();
    const std::string heat = two.substr(two.find("<table class='heat'>"), two.find("</table>") - two.find("<table"));
    CHECK(has(heat, "T maze"));
    CHECK(!has(heat, "Perfect recall"));
    CHECK(!has(heat, "VRNN"));
}

TEST_CASE("what sequence models lack is left out") {
    page_of_sequences data;
    auto& runs = data.runs;
    runs[0].levels.clear(), runs[1].levels.clear();  // one model not evaluated
    runs[2].metrics = {}, runs[3].metrics = {};      // the other without curves
    runs[3].levels[1].divergence[1] = std::numeric_limits<double>::quiet_NaN();
    runs[2].levels[1].divergence.clear();
    const std::string html = report_page(runs, "").html();
    CHECK(unbalanced(html) == "");
    CHECK(has(html, "<small>not evaluated</small>"));
    CHECK(!has(html, "nan"));
    CHECK(count(html, "r='3.2'") == 2 * 2);
    for (auto& run : runs) run.levels.clear();
    CHECK(has(report_page(runs, "").html(), "None of the runs has been evaluated yet"));
    for (auto& run : runs) run.strips.clear(), run.steps.reset(), run.seed.reset();
    CHECK(unbalanced(report_page(runs, "").html()) == "");
    for (auto& run : runs) run.metrics = {};
    CHECK(has(report_page(runs, "").html(), "no training curve"));
}

TEST_CASE("what stands in files of sequence models is shown, not run") {
    page_of_sequences data;
    for (auto& run : data.runs) run.ablation = run.ablation == "vrnn" ? "'><script>alert(1)</script>" : "a\"b\\</svg>";
    data.runs[0].task = data.runs[2].task = "<img src=x>";
    for (auto& run : data.runs)
        for (auto& level : run.levels) level.level = "<b>" + level.level;
    const std::string html = report_page(data.runs, "").html();
    CHECK(!has(html, "<script>alert"));
    CHECK(!has(html, "<img src"));
    CHECK(!has(html, "<b>holdout"));
    CHECK(has(html, "\"n\":&quot;a\\&quot;b\\\\&lt;/svg&gt;&quot;"));  // JSON, then HTML
    CHECK(unbalanced(html) == "");
}

TEST_CASE("models that give bits back have a curve over the lengths, and a table without them") {
    const temporary_folder folder;
    std::vector<run_record> runs;
    for (const auto& [name, wrong] : {std::pair{"dnc_gtmm", 0.1}, {"bptt_lstm", 3.0}}) {
        fake_supervised_run(folder / name, name, 1, wrong);
        runs.push_back(read_run(folder / name));
    }
    const std::string html = report_page(runs, "").html();
    CHECK(unbalanced(html) == "");
    CHECK(
        has(html,
            "<h1>DNC GTMM gets 1.05 bits of a sequence of bit copy wrong; without memory, LSTM, BPTT gets 31.5</h1>"));
    CHECK(count(html, "aria-label='wrong bits a sequence over length'") == 2);
    CHECK(count(html, "r='3.2'") == 2 * 2 * 20);
    CHECK(has(html, "<th>Model</th><th>Train</th><th>Length 20</th></tr>"));
    CHECK(!has(html, "Length 19"));
    CHECK(count(html, "aria-label='loss over frames'") >= 2);
    CHECK(!has(html, "environment steps"));
}
