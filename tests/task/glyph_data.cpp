// SPDX-License-Identifier: MIT
#include "engram/task/glyph_data.hpp"

#include <doctest/doctest.h>

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "../io/temporary.hpp"
#include "../io/zip_writer.hpp"
#include "engram/task/stimulus_data.hpp"

using namespace engram;

namespace {

bytes header(std::initializer_list<std::uint32_t> numbers) {
    bytes out;
    for (const auto n : numbers)
        for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(n >> shift));
    return out;
}

bytes images(std::uint32_t count, std::uint32_t rows, std::uint32_t columns, std::uint32_t seed) {
    bytes out = header({2051, count, rows, columns});
    for (std::uint32_t i = 0; i < count; ++i) {
        philox random(seed, i);
        for (std::uint32_t p = 0; p < rows * columns; ++p) out.push_back(static_cast<std::uint8_t>(random.below(256)));
    }
    return out;
}

bytes labels(std::uint32_t count, std::uint8_t classes = 10) {
    bytes out = header({2049, count});
    for (std::uint32_t i = 0; i < count; ++i) out.push_back(static_cast<std::uint8_t>(i % classes));
    return out;
}

bytes gzip(const bytes& content) {
    z_stream stream{};
    deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
    bytes packed(content.size() + 200);
    stream.next_in = const_cast<Bytef*>(content.data());
    stream.avail_in = static_cast<uInt>(content.size());
    stream.next_out = packed.data();
    stream.avail_out = static_cast<uInt>(packed.size());
    deflate(&stream, Z_FINISH);
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    return packed;
}

/// A small MNIST: 40 images to train on, 30 to hold out.
void write_mnist(const std::string& folder) {
    std::filesystem::create_directories(folder);
    write_file(folder + "/train-images-idx3-ubyte", images(40, 28, 28, 1));
    write_file(folder + "/train-labels-idx1-ubyte.gz", gzip(labels(40)));
    write_file(folder + "/t10k-images-idx3-ubyte.gz", gzip(images(30, 28, 28, 2)));
    write_file(folder + "/t10k-labels-idx1-ubyte", labels(30));
}

/// A small Omniglot: alphabets of `characters` characters, two drawings of each.
void write_omniglot(const std::string& folder, int background = 30, int evaluation = 20, int characters = 4) {
    std::filesystem::create_directories(folder);
    int number = 0;
    for (const bool first : {true, false}) {
        zip_writer zip;
        const std::string set = first ? "images_background" : "images_evaluation";
        for (int a = 0; a < (first ? background : evaluation); ++a)
            for (int c = 1; c <= characters; ++c) {
                ++number;
                for (int d = 1; d <= 2; ++d) {
                    picture drawing{105, 105, 1,
                                    draw_strokes(invented_character(1, number, 0), 105,
                                                 philox(1, static_cast<std::uint32_t>(2 * number + d)), 0.02f)};
                    for (auto& pixel : drawing.pixels) pixel = pixel > 127 ? 0 : 255;
                    const std::string digits = std::to_string(10000 + number).substr(1);
                    zip.add(set + "/alphabet" + std::to_string(a) + "/character0" + std::to_string(c) + "/" + digits +
                                "_0" + std::to_string(d) + ".png",
                            encode_png(drawing), false);
                }
            }
        write_file(folder + "/" + set + ".zip", zip.finish());
    }
}

}  // namespace

TEST_CASE("prepared area averages equal those worked out pixel by pixel") {
    bytes plane(105 * 105);
    philox random(1, 1);
    for (auto& p : plane) p = static_cast<std::uint8_t>(random.below(256));
    for (const int in : {105, 28, 30})
        for (const int side : {14, 28}) {
            area_average average(in, side);
            std::vector<float> out(static_cast<std::size_t>(side * side));
            const auto part = std::span(plane).first(static_cast<std::size_t>(in * in));
            average(part, out.data());
            const auto expected = reduce_area(part, in, side);
            for (std::size_t i = 0; i < out.size(); ++i)
                CHECK(out[i] / 255 == doctest::Approx(expected[i]).epsilon(1e-4));
        }
}

TEST_CASE("IDX files, packed or not, give digits with their labels") {
    const temporary_folder folder;
    write_mnist(folder / "mnist");
    const auto set = mnist_digits(folder / "mnist", 28);
    CHECK(set.source() == "mnist");
    CHECK(set.classes() == 10);
    CHECK(set.count(split::train) == 40);
    CHECK(set.count(split::holdout) == 30);
    const auto first = images(40, 28, 28, 1), second = images(30, 28, 28, 2);
    for (int i = 0; i < 40; ++i) {
        CHECK(set.label(i) == i % 10);
        CHECK(std::equal(set.image(i).begin(), set.image(i).end(), first.begin() + 16 + 784 * i));
    }
    CHECK(std::equal(set.image(69).begin(), set.image(69).end(), second.begin() + 16 + 784 * 29));
    const auto small = mnist_digits(folder / "mnist", 14);
    for (int i : {0, 17, 69})
        for (int y = 0; y < 14; ++y)
            for (int x = 0; x < 14; ++x) {
                const auto at = [&](int v, int u) { return int{set.image(i)[static_cast<std::size_t>(28 * v + u)]}; };
                const int sum =
                    at(2 * y, 2 * x) + at(2 * y, 2 * x + 1) + at(2 * y + 1, 2 * x) + at(2 * y + 1, 2 * x + 1);
                CHECK(small.image(i)[static_cast<std::size_t>(14 * y + x)] == (sum + 2) / 4);
            }
}

TEST_CASE("an image of the training file is not held out") {
    const temporary_folder folder;
    write_mnist(folder / "mnist");
    write_file(folder / "mnist/t10k-images-idx3-ubyte.gz", gzip(images(30, 28, 28, 1)));  // the first 30 of train
    CHECK(mnist_digits(folder / "mnist", 28).count(split::holdout) == 0);
}

TEST_CASE("IDX files that do not serve are one sentence that names the file") {
    const temporary_folder folder;
    const std::string mnist = folder / "mnist";
    const auto said = [&](const std::string& file, const bytes& content) {
        write_mnist(mnist);
        write_file(mnist + "/" + file, content);
        return sentence([&] { mnist_digits(mnist, 28); });
    };
    bytes cut = gzip(images(30, 28, 28, 2));
    cut.resize(cut.size() / 2);
    CHECK(said("t10k-images-idx3-ubyte.gz", cut) ==
          mnist + "/t10k-images-idx3-ubyte.gz: the compressed data is truncated");
    bytes short_file = images(40, 28, 28, 1);
    short_file.resize(short_file.size() - 100);
    CHECK(has(said("train-images-idx3-ubyte", short_file), "/train-images-idx3-ubyte: the header promises 40 items"));
    CHECK(said("t10k-labels-idx1-ubyte", labels(29)) ==
          mnist + "/t10k-labels-idx1-ubyte: 29 labels, but " + mnist + "/t10k-images-idx3-ubyte.gz has 30 images");
    CHECK(said("t10k-labels-idx1-ubyte", labels(30, 9)) == mnist + "/t10k-labels-idx1-ubyte: no image of the digit 9");
    CHECK(said("t10k-labels-idx1-ubyte", labels(30, 11)) ==
          mnist + "/t10k-labels-idx1-ubyte: label 10 of image 10, expected 0 to 9");
    CHECK(said("train-images-idx3-ubyte", images(40, 28, 27, 1)) ==
          mnist + "/train-images-idx3-ubyte: images of 28 x 27, expected a square of at least 28");
    CHECK(said("train-images-idx3-ubyte", images(40, 20, 20, 1)) ==
          mnist + "/train-images-idx3-ubyte: images of 20 x 20, expected a square of at least 28");
    std::filesystem::remove(mnist + "/train-images-idx3-ubyte");
    CHECK(has(sentence([&] { mnist_digits(mnist, 28); }), "cannot read " + mnist + "/train-images-idx3-ubyte.gz"));
}

TEST_CASE("of each of the 50 alphabets three characters are held out, with all their drawings, in full ink") {
    const temporary_folder folder;
    write_omniglot(folder / "omniglot");
    const auto set = omniglot_characters(folder / "omniglot", 28);
    CHECK(set.source() == "omniglot");
    CHECK(set.classes() == 200);
    CHECK(set.size() == 400);
    CHECK(set.count(split::holdout) == 300);
    for (int alphabet = 0; alphabet < 50; ++alphabet) {
        int held = 0;
        for (int label = 4 * alphabet; label < 4 * alphabet + 4; ++label) {
            const auto train = set.of(split::train, label).size(), holdout = set.of(split::holdout, label).size();
            CHECK(train + holdout == 2);
            CHECK((train == 0 || holdout == 0));
            held += holdout > 0;
        }
        CHECK(held == 3);
    }
    for (int id = 0; id < set.size(); ++id) CHECK(*std::max_element(set.image(id).begin(), set.image(id).end()) == 255);
    const auto again = omniglot_characters(folder / "omniglot", 14);
    for (int id = 0; id < set.size(); ++id) CHECK(again.label(id) == set.label(id));
}

TEST_CASE("archives that do not serve are one sentence that names the file") {
    const temporary_folder folder;
    const std::string path = folder / "omniglot";
    const auto said = [&] { return sentence([&] { omniglot_characters(path, 14); }); };
    CHECK(has(said(), "cannot read " + path + "/images_background.zip"));
    write_omniglot(path, 29);
    CHECK(said() == path + "/images_background.zip: 29 alphabets, expected 30");
    write_omniglot(path, 30, 21);
    CHECK(said() == path + "/images_evaluation.zip: 21 alphabets, expected 20");
    write_omniglot(path, 30, 20, 3);
    CHECK(said() == path +
                        "/images_background.zip: alphabet alphabet0 has 3 characters, expected at least 4, of which 3 "
                        "are held out");
    std::filesystem::remove(path + "/images_evaluation.zip");
    CHECK(has(said(), "cannot read " + path + "/images_evaluation.zip"));
}

TEST_CASE("the options choose the source") {
    const temporary_folder folder;
    const auto source = [&](glyph_use use, const task_options& options) {
        return load_glyphs("a task", use, options)->source();
    };
    const auto said = [&](glyph_use use, const task_options& options) {
        return sentence([&] { load_glyphs("a task", use, options); });
    };
    CHECK(source(glyph_use::digits, {}) == "builtin");
    CHECK(load_glyphs("a task", glyph_use::any, {})->classes() == 10);
    CHECK(load_glyphs("a task", glyph_use::characters, {})->classes() == 1000);
    CHECK(load_glyphs("a task", glyph_use::any, {.fidelity = "paper"})->side() == 28);
    CHECK(said(glyph_use::any, {.data = folder.path}) ==
          "a task: data folder '" + folder.path + "' has no folder mnist");
    CHECK(said(glyph_use::characters, {.data = folder.path}) ==
          "a task: data folder '" + folder.path + "' has no folder omniglot");
    CHECK(said(glyph_use::any, {.stimuli = "omniglot"}) ==
          "a task: stimuli 'omniglot' need a data folder that holds omniglot/");
    write_mnist(folder / "mnist");
    write_omniglot(folder / "omniglot");
    const task_options data{.data = folder.path};
    CHECK(source(glyph_use::digits, data) == "mnist");
    CHECK(source(glyph_use::any, data) == "mnist");
    CHECK(source(glyph_use::characters, data) == "omniglot");
    CHECK(source(glyph_use::any, {.data = folder.path, .stimuli = "omniglot"}) == "omniglot");
    CHECK(source(glyph_use::digits, {.data = folder.path, .stimuli = "builtin"}) == "builtin");
    CHECK(said(glyph_use::digits, {.data = folder.path, .stimuli = "omniglot"}) ==
          "a task: stimuli 'omniglot' do not serve, the task shows digits; expected builtin or mnist");
    CHECK(said(glyph_use::characters, {.data = folder.path, .stimuli = "mnist"}) ==
          "a task: stimuli 'mnist' do not serve, the task shows characters; expected builtin or omniglot");
    CHECK(said(glyph_use::any, {.stimuli = "mnits"}) == "unknown stimuli 'mnits'; did you mean 'mnist'?");
}

TEST_CASE("glyphs of 32 pixels: digits in a margin, characters and drawn ones at that size") {
    const temporary_folder folder;
    write_mnist(folder / "mnist");
    write_omniglot(folder / "omniglot");
    task_options options;
    options.fidelity = "paper";
    options.data = folder.path;
    const auto usual = load_glyphs("perfect_recall", glyph_use::digits, options);
    options.glyph_side = 32;
    const auto large = load_glyphs("perfect_recall", glyph_use::digits, options);
    CHECK(usual->side() == 28);
    CHECK(large->side() == 32);
    REQUIRE(large->size() == usual->size());
    std::vector<float> small_image(28 * 28), image(32 * 32);
    for (int id = 0; id < large->size(); ++id) {
        usual->write(id, small_image.data());
        large->write(id, image.data());
        int different = 0;
        for (int y = 0; y < 32; ++y)
            for (int x = 0; x < 32; ++x) {
                const bool inside = y >= 2 && y < 30 && x >= 2 && x < 30;
                different += image[static_cast<std::size_t>(32 * y + x)] !=
                             (inside ? small_image[static_cast<std::size_t>(28 * (y - 2) + x - 2)] : 0.0f);
            }
        CHECK(different == 0);
    }
    CHECK(load_glyphs("one_shot_recall", glyph_use::characters, options)->side() == 32);
    options.data.clear();
    CHECK(load_glyphs("perfect_recall", glyph_use::digits, options)->side() == 32);
    options.glyph_side = 30;
    CHECK_THROWS_WITH_AS(load_glyphs("perfect_recall", glyph_use::digits, options),
                         "task.glyph_side: expected 14, 28 or 32, or 0 for the fidelity's, got 30", error);
}
