// SPDX-License-Identifier: MIT

// One full learner update of the Memory Recall Agent on 72 x 96 frames: ResNet, recurrent core with its memory, heads,
// V-trace, CPC, and one Adam step. It follows benchmarks/peers/mra_update.py, whose weights file it reads.
//
//   benchmark-mra_update [--threads N] [--repeats R] --weights FILE [--outputs FILE]
//
// One JSON line, as benchmarks/peers/run.sh reads it. Putting the memory back between repeats is not timed. The share
// is that of the rate of products alone, measured before and after on as many threads: all affine maps and convolutions
// of the update, counted, over the whole of its time.

#include <cstdio>

#include <engram/encoder/impala_resnet.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/operations/cpc.hpp>
#include <engram/train/optimiser.hpp>

#include "flags.hpp"
#include "mra_core.hpp"
#include "product_work.hpp"

namespace {

using mra::backend;
using mra::sizes;

/// The file's name of one of our parameters.
std::string file_name(std::string name) {
    const auto replace = [&](const std::string& from, const std::string& to) {
        if (const auto at = name.find(from); at != name.npos) name.replace(at, from.size(), to);
    };
    if (!name.starts_with("encoder.")) return name;
    replace("layers.0", "out");
    replace("section.", "");
    replace("convolution", "entry");
    if (name.find(".block.") != name.npos) {
        replace(".block.", ".");
        replace(".0.weight", ".first.weight"), replace(".0.bias", ".first.bias");
        replace(".1.weight", ".second.weight"), replace(".1.bias", ".second.bias");
    }
    return name;
}

/// cpc.weight is [N, H, X] in the file and [H, N X] here; all others lie alike.
std::vector<float> permuted(std::span<const float> from, int outer, int middle, int inner) {
    std::vector<float> to(from.size());
    for (int a = 0; a < outer; ++a)
        for (int b = 0; b < middle; ++b)
            std::copy_n(from.data() + (std::ptrdiff_t(a) * middle + b) * inner, inner,
                        to.data() + (std::ptrdiff_t(b) * outer + a) * inner);
    return to;
}

}  // namespace

int main(int argc, char** argv) try {
    const flags options(
        argc, argv, {{"--threads", "1"}, {"--repeats", "3"}, {"--weights", ""}, {"--outputs", ""}, {"--warmup", "1"}});
    if (options.text("--weights").empty()) {
        std::fputs("--weights is missing: make the file with benchmarks/peers/mra_update.py --save FILE\n", stderr);
        return 77;  // nothing to measure
    }
    const auto file = engram::safetensors::read(options.text("--weights"));
    const auto& frames = file.at("images").shape;
    const auto& prediction = file.at("cpc.weight").shape;
    sizes z{.steps = int(frames[0]), .batch = int(frames[1])};
    z.observed = int(prediction[2]), z.hidden = int(prediction[1]), z.key = int(file.at("key.bias").shape[0]);
    z.slots = int(file.at("ring.content").shape[1]);
    const int distances = int(prediction[0]);
    const engram::task_shape task{{int(frames[2]), int(frames[3]), int(frames[4])},
                                  int(file.at("policy.bias").shape[0])};

    auto store = std::make_shared<engram::parameters<float>>();
    mra::graph<backend> g(store);
    const auto observation = g.input("observation", task.observation.size()), reset = g.input("reset", 1);
    const engram::impala_resnet::settings network{
        .channels = {16, 32, 32}, .blocks = 2, .hidden = {}, .output = z.observed, .centre = false};
    const auto x = [&] {
        const auto scope = g.scope("encoder");
        return engram::impala_resnet::encode(network, engram::impala_resnet::declare(g, network, task.observation),
                                             observation, task.observation);
    }();
    const auto h = unroll(g, x, z).h;
    const engram::vtrace::settings learner{
        .discount = 1, .baseline_cost = 0.5, .entropy_cost = 0.0052, .rho_bar = 1, .c_bar = 1};
    engram::vtrace::add_losses(g, learner, engram::vtrace::add_heads(g, learner, h, task));
    const engram::linear predict{
        g.declare("cpc.weight", z.hidden, distances * z.observed, engram::initial::zero<float>()), {}};
    add_loss("cpc", cpc_loss("scores", x, engram::affine<backend>("predict", {h}, predict), reset), 10);

    mra::shards model(g, store, z.steps, z.batch, options.number("--threads", 1), {x, h});
    {
        auto edit = store->edit();
        for (std::size_t i = 0; i < store->entries().size(); ++i) {
            const std::string& name = store->entries()[i].name;
            const auto from = file.values<float>(file_name(name));
            engram::require(std::ptrdiff_t(from.size()) == store->entries()[i].size(), file.source(), ": tensor '",
                            file_name(name), "' has another size");
            const auto here = name == "cpc.weight" ? permuted(from, distances, z.hidden, z.observed)
                                                   : std::vector<float>(from.begin(), from.end());
            std::copy(here.begin(), here.end(), edit.values({int(i)}));
        }
    }
    const int count = file.contains("ring.count") ? file.values<std::int32_t>("ring.count")[0] : z.slots;
    mra::first_content content(model, *store, z, file.values<float>("ring.content"), count);
    const auto actions = file.values<std::int32_t>("actions");
    model.set_input("action", std::vector<float>(actions.begin(), actions.end()), 1);
    model.set_input("reward", file.values<float>("rewards"), 1);
    model.set_input("continues", file.values<float>("discounts"), 1);
    model.set_input("behaviour_log_probability", file.values<float>("behaviour.log_probability"), 1);
    model.set_input("bootstrap", file.values<float>("bootstrap"), 1, false);
    model.set_state("initial.h", file.values<float>("initial.h"), z.hidden);
    model.set_state("initial.c", file.values<float>("initial.c"), z.hidden);

    const auto images = file.values<std::uint8_t>("images");
    const auto forward = [&] {
        model.pool().run([&](int i) {
            const std::span<float> to = model[i].input("observation");
            const std::ptrdiff_t block = std::ptrdiff_t(model.rows()) * task.observation.size();
            for (int t = 0; t < z.steps; ++t) {
                const std::uint8_t* from = images.data() + (std::ptrdiff_t(t) * model.threads() + i) * block;
                for (std::ptrdiff_t p = 0; p < block; ++p)
                    to[std::size_t(t * block + p)] = float(from[p]) * (1 / 255.f);
            }
        });
        model.forward();
    };

    if (const std::string& path = options.text("--outputs"); !path.empty()) {
        forward();
        model.backward();
        engram::safetensors out;
        double loss = 0;
        for (int i = 0; i < model.threads(); ++i) loss += model[i].loss();
        out.add("loss", {1}, std::vector<float>{float(loss)});
        out.add("x", {z.steps, z.batch, z.observed},
                model.gather(z.observed, [&](mra::program& p) { return p.output(x); }));
        out.add("h", {z.steps, z.batch, z.hidden},
                model.gather(z.hidden, [&](mra::program& p) { return p.output(h); }));
        for (const auto& e : store->entries()) {
            const std::span<const float> slope =
                model[0].gradient().subspan(std::size_t(e.offset), std::size_t(e.size()));
            const std::string name = file_name(e.name);
            out.add("grad." + name, file.at(name).shape,
                    name == "cpc.weight" ? permuted(slope, z.hidden, distances, z.observed)
                                         : std::vector<float>(slope.begin(), slope.end()));
        }
        out.write(path);
    }

    engram::optimiser_settings adam;
    adam.learning_rate = 1e-5;
    adam.clip = 0;
    engram::optimiser<float> optimiser(adam, *store);
    std::vector<double> forward_ms, total_ms;
    double product_rate = benchmarks::pooled_product_rate(model.pool());
    const int warmup = options.number("--warmup");
    for (int turn = 0; turn < warmup + options.number("--repeats"); ++turn) {
        content.restore();
        const auto start = std::chrono::steady_clock::now();
        forward();
        const double half = mra::milliseconds_since(start);
        model.backward();
        optimiser.update(*store, model[0].gradient(), 0);
        if (turn < warmup) continue;
        forward_ms.push_back(half), total_ms.push_back(mra::milliseconds_since(start));
    }
    product_rate = std::max(product_rate, benchmarks::pooled_product_rate(model.pool()));
    const double total = mra::median(total_ms), work = benchmarks::product_work(g, z.steps, z.batch);
    if (!total_ms.empty())
        std::printf(
            "{\"threads\": %d, \"total_ms\": %.3f, \"forward_ms\": %.3f, \"frames_per_second\": %.1f, "
            "\"gigaflops\": %.1f, \"product_gigaflops\": %.1f, \"share_of_product_rate\": %.3f}\n",
            model.threads(), total, mra::median(forward_ms), 1e3 * z.steps * z.batch / total, 1e-6 * work / total,
            product_rate, 1e-6 * work / total / product_rate);
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
