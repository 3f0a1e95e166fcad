// SPDX-License-Identifier: MIT
// MemUP's training on a device, here an emulated one: what the host's does, and checkpoints that move between them.

#include <doctest/doctest.h>

#include <cmath>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/stacked_lstm.hpp>
#include <engram/device/operations.hpp>
#include <engram/encoder/token_embedding.hpp>
#include <engram/learner/memup.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/agent.hpp>
#include <engram/task/copy_sequences.hpp>
#include <engram/train/memup_trainer.hpp>

#include "../train/same_file.hpp"

using namespace engram;

namespace {

using model = agent<token_embedding, stacked_lstm, no_memory, no_auxiliary, memup>;
using real = double;
using here = cpu<real>;
using there = emulated<real>;

/// Episodes of 5, 6, ... steps by index, so that rows end anywhere in a rollout.
class of_lengths final : public sequence_source {
public:
    const sequence_info& info() const override { return task_.info(); }
    void draw(const std::string& level, std::uint64_t seed, std::uint64_t index,
              const sequence_place& to) const override {
        task_.draw(level, seed, index, to);
    }
    int length(const std::string&, std::uint64_t, std::uint64_t index) const override {
        return 5 + static_cast<int>(index) % 13;
    }

private:
    copy_task<true> task_{{.items = 2, .steps = 17}};
};

enum class contexts { none, kept, retraced };

model::settings tiny(contexts seen = contexts::none, int block = 0) {
    model::settings s;
    s.encoder.width = 4;
    s.controller.hidden = 5;
    s.controller.dropout = 0.2;
    s.learner.rollout = 4;
    s.learner.every = 3;
    s.learner.selected = 2;
    s.learner.hidden = {6};
    s.learner.dropout = 0.2;
    s.learner.period = 2;
    s.learner.block = block;
    s.learner.context.layers = seen == contexts::none ? 0 : 1;
    s.learner.context.hidden = 3;
    s.learner.context.retraced = seen == contexts::retraced;
    return s;
}

template <class Backend>
struct run {
    explicit run(const model::settings& s, int threads = 1, std::uint64_t seed = 1)
        : source(std::make_shared<const of_lengths>()),
          fast(model::trace<Backend>(s, shape_of(source->info()), seed)),
          slow(model::trace<Backend>(s, shape_of(source->info()), seed, purpose::generating)),
          t(fast, slow, source, {5}, rate(), 3, threads, 0) {}
    static optimiser_settings rate() {
        optimiser_settings o;
        o.learning_rate = 3e-3;
        o.epsilon = 1e-8;
        o.clip = 1;
        return o;
    }
    void iterate(int n) {
        for (int i = 0; i < n; ++i) t.iterate();
    }
    safetensors saved() {
        safetensors f;
        t.save(f);
        return f;
    }
    std::shared_ptr<const sequence_source> source;
    traced_agent<Backend> fast, slow;
    memup_trainer<Backend> t;
};

double difference(const parameters<real>& a, const parameters<real>& b) {
    double worst = 0;
    for (std::size_t i = 0; i < a.flat().size(); ++i) worst = std::max(worst, std::abs(a.flat()[i] - b.flat()[i]));
    return worst;
}
/// Of weights and of averages.
template <class A, class B>
double difference(run<A>& a, run<B>& b) {
    a.t.settle();
    b.t.settle();
    return std::max(difference(*a.fast.store, *b.fast.store), difference(*a.slow.store, *b.slow.store));
}

}  // namespace

// They differ by the order of sums; twelve updates of Adam make of that 1e-11 at most here.
TEST_CASE("MemUP on a device does what it does on the host: pairs, contexts, averages, turns") {
    for (const int threads : {1, 2})
        for (const auto seen : {contexts::none, contexts::kept, contexts::retraced})
            for (const int block : {0, 2}) {
                CAPTURE(threads);
                CAPTURE(static_cast<int>(seen));
                CAPTURE(block);
                const auto s = tiny(seen, block);
                run<here> host(s, threads);
                run<there> device(s, threads), begun(s);
                host.iterate(12);
                device.iterate(12);
                CHECK(difference(host, device) < 1e-9);
                CHECK(difference(begun, device) > 1e-3);
                CHECK(difference(*begun.slow.store, *device.slow.store) > 1e-4);
                CHECK(device.t.steps() == host.t.steps());
                const auto a = host.t.take_window(), b = device.t.take_window();
                CHECK(b.updates == 12);
                CHECK(b.chosen_loss == doctest::Approx(a.chosen_loss).epsilon(1e-9));
                CHECK(b.current_loss == doctest::Approx(a.current_loss).epsilon(1e-9));
                CHECK(b.gradient_norm == doctest::Approx(a.gradient_norm).epsilon(1e-9));
                CHECK(b.mean_distance == a.mean_distance);
                CHECK(b.judged_share == a.judged_share);
            }
}

TEST_CASE("a run of MemUP that is resumed on a device equals the uninterrupted one bit for bit") {
    for (const auto seen : {contexts::none, contexts::retraced}) {
        const auto s = tiny(seen, 2);
        run<there> whole(s, 2);
        whole.iterate(7);
        const auto file = whole.saved();
        run<there> resumed(s, 2, 99);
        resumed.iterate(3);  // what it did before leaves no trace
        resumed.t.load(file);
        CHECK(same(resumed.saved(), file));
        whole.iterate(9);
        resumed.iterate(9);
        CHECK(same(resumed.saved(), whole.saved()));
    }
}

TEST_CASE("a checkpoint of MemUP moves from a device to the host and back without losing a bit") {
    for (const auto seen : {contexts::none, contexts::kept, contexts::retraced}) {
        const auto s = tiny(seen, 2);
        run<there> device(s);
        device.iterate(7);
        const auto file = device.saved();
        run<here> host(s, 1, 99);
        host.iterate(1);
        host.t.load(file);
        CHECK(same(host.saved(), file));
        device.iterate(5);
        host.iterate(5);
        CHECK(difference(host, device) < 1e-9);
        const auto later = host.saved();
        CHECK_FALSE(same(later, file));
        run<there> back(s, 1, 7);
        back.iterate(1);
        back.t.load(later);
        CHECK(same(back.saved(), later));
        back.iterate(5);
        host.iterate(5);
        CHECK(difference(host, back) < 1e-9);
    }
}

TEST_CASE("an update of MemUP on a device with a number that is not finite leaves the weights") {
    run<there> device(tiny());
    device.iterate(2);
    const auto before = device.saved();
    auto broken = before;
    const real nan = std::nan("");
    std::memcpy(broken.tensors.at("predictor.answer.weight").data.data(), &nan, sizeof nan);
    device.t.load(broken);
    CHECK_THROWS_WITH_AS(device.iterate(1), doctest::Contains("training stopped at step"), error);
    device.t.load(before);
    CHECK(same(device.saved(), before));
    device.iterate(1);
}
