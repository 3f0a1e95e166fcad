// SPDX-License-Identifier: MIT

// --products: recorded with a run, kept when it is resumed, evaluated or acts asynchronously, and refused where it
// means nothing.

#include <doctest/doctest.h>

#include <algorithm>

#include <engram/core/bfloat16.hpp>
#include <engram/io/json.hpp>
#include <engram/io/safetensors.hpp>

#include "child.hpp"

namespace {

finished trained(const std::string& folder, std::vector<std::string> more) {
    more.insert(more.end(), {"--seed", "3"});
    const finished f = run(short_training(folder, more));
    INFO(f.err);
    CHECK(f.code == 0);
    return f;
}

void refused(const finished& f, const std::string& part) {
    CHECK(f.code == 2);
    CHECK(f.out.empty());
    CHECK(std::count(f.err.begin(), f.err.end(), '\n') == 1);
    INFO(f.err);
    CHECK(has(f.err, part));
}

// Where they are slower than float the program says so, in one sentence, when it starts; what it refuses it only
// refuses.
void noted(const finished& f) {
    INFO(f.err);
    CHECK(f.code == 0);
    CHECK(std::count(f.err.begin(), f.err.end(), '\n') == (engram::bfloat16_products ? 0 : 1));
    CHECK(has(f.err, "without AVX-512 BF16") == !engram::bfloat16_products);
}

std::string products_of(const std::string& file) {
    return engram::read_json(file).at("products").get<std::string>();
}

double scored(const std::string& folder, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"evaluate", "--from", folder, "--episodes", "100", "--level", "train", "--quiet"});
    REQUIRE(run(more).code == 0);
    return engram::read_json(folder + "/summary.json").at("levels").at("train").at("mean").get<double>();
}

}  // namespace

TEST_CASE("a run in bfloat16 is another one than in float, is recorded, and goes on as what it is") {
    const temporary_folder folder;
    trained(folder / "float", {"--steps", "2400"});
    trained(folder / "said", {"--steps", "2400", "--products", "float"});
    trained(folder / "whole", {"--steps", "2400", "--products", "bfloat16"});
    const finished begun = trained(folder / "parts", {"--steps", "1200", "--products", "bfloat16"});
    noted(begun);
    CHECK(checkpoint_of(folder / "said") == checkpoint_of(folder / "float"));
    CHECK(checkpoint_of(folder / "whole") != checkpoint_of(folder / "float"));
    CHECK(products_of(folder / "float/config.json") == "float");
    for (const char* file : {"whole/config.json", "whole/summary.json"})
        CHECK(products_of(folder / file) == "bfloat16");

    const auto before = checkpoint_of(folder / "parts"), config = engram::read_file(folder / "parts/config.json");
    refused(run({"train", "--resume", "--out", folder / "parts", "--steps", "2400", "--products", "float"}),
            "was written with products bfloat16, expected float; nothing was changed");
    refused(run({"train", "--resume", "--out", folder / "float", "--products", "bfloat16", "--steps", "4800"}),
            "was written with products float, expected bfloat16; nothing was changed");
    CHECK(checkpoint_of(folder / "parts") == before);
    CHECK(engram::read_file(folder / "parts/config.json") == config);
    REQUIRE(run({"train", "--resume", "--out", folder / "parts", "--steps", "2400", "--quiet"}).code == 0);
    CHECK(checkpoint_of(folder / "parts") == checkpoint_of(folder / "whole"));

    // Evaluated as it was trained; in float if asked.
    const double rounded = scored(folder / "whole");
    CHECK(scored(folder / "whole", {"--products", "bfloat16"}) == rounded);
    CHECK(scored(folder / "whole", {"--products", "float"}) == doctest::Approx(rounded).epsilon(0.2));
    CHECK(products_of(folder / "whole/config.json") == "bfloat16");
    noted(run({"sample", "--from", folder / "whole", "--level", "train"}));
    noted(run({"evaluate", "--from", folder / "whole", "--episodes", "10", "--level", "train"}));
}

TEST_CASE("runs from before there was a choice are float ones") {
    const temporary_folder folder;
    const std::string out = folder / "run", checkpoint = out + "/checkpoint/latest.safetensors";
    trained(out, {"--steps", "1200"});
    auto config = engram::read_json(out + "/config.json");
    config.erase("products");
    engram::write_json(out + "/config.json", config);
    auto file = engram::safetensors::read(checkpoint);
    CHECK(file.metadata.erase("products") == 1);
    file.write(checkpoint);
    refused(run({"train", "--resume", "--out", out, "--steps", "2400", "--products", "bfloat16"}),
            "was written with products float, expected bfloat16");
    REQUIRE(run({"train", "--resume", "--out", out, "--steps", "2400", "--quiet"}).code == 0);
    CHECK(products_of(out + "/config.json") == "float");
}

TEST_CASE("asynchronous actors have the learner's products") {
    const temporary_folder folder;
    const std::string out = folder / "run";
    trained(out, {"--steps", "1200", "--products", "bfloat16", "--mode", "asynchronous"});
    CHECK(products_of(out + "/summary.json") == "bfloat16");
    REQUIRE(run({"train", "--resume", "--out", out, "--steps", "2400", "--quiet"}).code == 0);
}

TEST_CASE("unknown products, and products that a device has not, are one sentence") {
    const temporary_folder folder;
    refused(run(short_training(folder / "run", {"--products", "bfloat61"})), "did you mean 'bfloat16'?");
    refused(run(short_training(folder / "run", {"--products", "half"})),
            "unknown products 'half'; expected one of float, bfloat16");
    CHECK(folder.files() == 0);
    trained(folder / "run", {"--steps", "600", "--products", "bfloat16"});
    auto config = engram::read_json(folder / "run/config.json");
    config["products"] = "half";
    engram::write_json(folder / "run/config.json", config);
    refused(run({"evaluate", "--from", folder / "run"}), "unknown products 'half'");
}
