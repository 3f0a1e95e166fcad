// How the maps look: colours that can be told apart and read, and SVG in which everything is closed.

#include "report/heatmap_view.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "fake_run.hpp"
#include "markup.hpp"

using namespace engram;

TEST_CASE("darker is more, and every number can be read") {
    for (const bool gap : {false, true}) {
        double before = 2;
        for (int percent = 0; percent <= 100; ++percent) {
            const map_colour colour = heat_colour(percent, gap);
            CHECK(colour.luminance() < before);
            before = colour.luminance();
            const double contrast =
                colour.takes_black() ? (colour.luminance() + 0.05) / 0.05 : 1.05 / (colour.luminance() + 0.05);
            CHECK(contrast > 4.5);
        }
        CHECK(heat_colour(-30, gap).text() == heat_colour(0, gap).text());
        CHECK(heat_colour(270, gap).text() == heat_colour(100, gap).text());
    }
    CHECK(heat_colour(100).text() == "#081d58");
}

TEST_CASE("an SVG map has a cell per number, hatches what is doubted, and frames what is missing") {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < suite_tasks.size(); ++i) all.push_back(i);
    heat_map map = published_heat_map(1, all);
    std::string svg = heat_map_svg(map, "one");
    CHECK(unbalanced(svg) == "");
    CHECK(count_of(svg, "<g><title>") == 10 * 14);
    CHECK(count_of(svg, "fill='url(#one)'") == 2 + 1 + 3);  // cells, the row's mean, two columns' and the whole's
    CHECK(count_of(svg, "\u2020</text>") == 6);
    CHECK(count_of(svg, "class='unknown'") == 0);
    CHECK(count_of(svg, "class='axis'") == 4);  // families
    CHECK(count_of(svg, ", 3 seeds") == 9 * 13);
    CHECK(count_of(svg, "nan") == 0);
    map.rows[0].cells[3].reset();
    map.rows[1].cells[0]->score.standard_error = std::nan("");
    svg = heat_map_svg(map, "two");
    CHECK(count_of(svg, "class='unknown'") == 1);
    CHECK(count_of(svg, "nan") == 0);
    CHECK(unbalanced(svg) == "");
}

TEST_CASE("names from files are escaped") {
    heat_map map{.fidelity = "small", .tasks = {0}};
    map.rows.push_back({"<b>'x'&", {heat_cell{.score = {1, 1, 1}}}});
    const std::string svg = heat_map_svg(with_averages(map), "id");
    CHECK(count_of(svg, "<b>") == 0);
    CHECK(unbalanced(svg) == "");
}

TEST_CASE("a section needs two tasks of the suite") {
    const temporary_folder folder;
    std::vector<run_record> runs;
    for (const std::string task : {"arbitrary_visuomotor_mapping", "continuous_recognition"})
        for (int seed = 1; seed <= 2; ++seed) {
            const std::string at = folder / (task + std::to_string(seed));
            fake_run(at, "mra", seed,
                     {{"train", 45, 0.1, 50}, {"holdout_interpolate", 35, 0.1, 40}, {"holdout_extrapolate", 60, 1, 75}},
                     task);
            std::filesystem::remove(at + "/metrics.csv");
            runs.push_back(read_run(at));
        }
    const std::string html = html_heat_maps(runs);
    CHECK(unbalanced(html) == "");
    CHECK(count_of(html, "<figcaption>Measured</figcaption>") == 4);
    CHECK(count_of(html, "<figcaption>The paper</figcaption>") == 4);
    CHECK(count_of(html, "2 tasks of the Memory Tasks Suite, small fidelity") == 1);
    CHECK(count_of(html, "Hatched") == 4);  // continuous recognition
    CHECK(count_of(html, "evaluation after training") == 3);
    runs.resize(2);
    CHECK(html_heat_maps(runs).empty());
    CHECK(html_heat_maps({}).empty());
}
