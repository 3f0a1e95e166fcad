// SPDX-License-Identifier: MIT

#include "engram/evaluate/retrieval.hpp"

#include <doctest/doctest.h>

#include "../io/temporary.hpp"
#include "fake_run.hpp"
#include "report/retrieval_view.hpp"

using namespace engram;

TEST_CASE("reads of one trial add up, are shares of all that was read, and come heaviest first") {
    const auto episode = parse_retrieval(fake_retrieval(), "r.json");
    REQUIRE(episode.trials.size() == 5);
    const auto& third = episode.trials[2].read;
    REQUIRE(third.size() == 2);
    CHECK(third[0].position == 0);
    CHECK(third[0].weight == 0.75);  // (1 + 0.5) / 2
    CHECK(third[1].weight == 0.25);
    const auto& last = episode.trials[4].read;  // a quarter came from before the episode
    REQUIRE(last.size() == 2);
    CHECK(last[0].weight + last[1].weight == 0.75);
    CHECK(episode.trials[0].width == 1);
}

TEST_CASE("figures by hand") {
    const auto f = retrieval_summary(parse_retrieval(fake_retrieval(), "r.json"));
    CHECK(f.first == 2);
    CHECK(f.first_correct == 1);
    CHECK(f.repeats == 3);
    CHECK(f.repeats_correct == 2);
    // trial 2: 0.75 on A; trial 3: 0.25 on B; trial 4: 0.75 on A
    CHECK(*f.share == doctest::Approx((0.75 + 0.25 + 0.75) / 3).epsilon(1e-12));
    // earlier showings / earlier trials: 1/2, 1/3, 2/4
    CHECK(f.uniform == doctest::Approx((1.0 / 2 + 1.0 / 3 + 2.0 / 4) / 3).epsilon(1e-12));
}

TEST_CASE("what a trial reads of itself lies on no earlier showing") {
    json content = fake_retrieval();
    content["trials"][2]["read"] = {{{"when", 2}, {"weight", 0.9}}, {{"when", 0}, {"weight", 0.1}}};
    content["trials"][3]["read"] = json::array();
    content["trials"][4]["read"] = json::array();
    const auto f = retrieval_summary(parse_retrieval(content, "r.json"));
    CHECK(*f.share == doctest::Approx(0.1).epsilon(1e-12));
    CHECK(f.uniform == doctest::Approx(0.5).epsilon(1e-12));
}

TEST_CASE("bad episodes are one sentence") {
    const auto broken = [](auto change) {
        json content = fake_retrieval();
        change(content["trials"][1]);
        return sentence([&] { parse_retrieval(content, "r.json"); });
    };
    CHECK(has(broken([](json& t) { t["image"] = "x'><script>"; }), "is not a PNG file in base64"));
    CHECK(has(broken([](json& t) { t["image"] = fake_png + ")</style>"; }), "is not a PNG file in base64"));
    CHECK(has(broken([](json& t) { t["trial"] = 0; }), "the trial 0 occurs twice"));
    CHECK(has(broken([](json& t) { t["read"][0]["weight"] = -1; }), "a read weight of -1"));
    CHECK(has(broken([](json& t) { t["read"] = 3; }), "'read' must be an array"));
    CHECK(has(sentence([] { parse_retrieval(json::object(), "r.json"); }), "'trials' must be an array"));
}

TEST_CASE("the view shows each trial, writes each picture once and outlines right and wrong recalls") {
    const auto episode = parse_retrieval(fake_retrieval(), "r.json");
    const std::string view = retrieval_view(episode, "p0");
    const auto count = [&](const std::string& part) {
        int n = 0;
        for (auto at = view.find(part); at != view.npos; at = view.find(part, at + 1)) ++n;
        return n;
    };
    CHECK(count("data:image/png;base64,") == 5);
    CHECK(count("<li class='right") + count("<li class='wrong") == 5);
    CHECK(count("recalls trial 0 (the same image) with weight 0.75") == 2);  // as title and as label
    CHECK(count("class='weight right'") == 4);                               // 2<-0, 3<-1, 4<-2, 4<-0
    CHECK(count("class='weight wrong'") == 3);                               // 1<-0, 2<-1, 3<-0
    CHECK(has(view, "<b>58\u00a0%</b>"));
}
