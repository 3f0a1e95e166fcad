// The sequence baselines of MemUP learn under plain backpropagation through time: Transformer and SRNN copy four
// patterns of eight bits over a gap.

#include <doctest/doctest.h>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/srnn.hpp>
#include <engram/controller/transformer.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/evaluate/sequences.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/agent.hpp>
#include <engram/train/sequence_update.hpp>

using namespace engram;

namespace {

using backend = cpu<float>;

constexpr int items = 4, bits = 8, gap = 6, T = 2 * items + gap;

/// Patterns, a gap, and a flag at the steps that must give them back.
class short_copy final : public sequence_source {
public:
    short_copy() {
        info_.name = "short_copy";
        info_.steps = T;
        info_.observation = {1, bits + 1, 1};
        info_.targets = bits;
    }
    const sequence_info& info() const override { return info_; }
    void draw(const std::string& level, std::uint64_t seed, std::uint64_t index,
              const sequence_place& to) const override {
        philox random(seed, stream_id("short_copy." + level, static_cast<std::uint32_t>(index)));
        for (int t = 0; t < T; ++t) {
            std::fill_n(to.observation + t * to.rows * (bits + 1), bits + 1, 0.0f);
            std::fill_n(to.target + t * to.rows * bits, bits, 0.0f);
            to.weight[t * to.rows] = t >= items + gap;
        }
        for (int i = 0; i < items; ++i) {
            const int asked = items + gap + i;
            to.observation[asked * to.rows * (bits + 1) + bits] = 1;
            for (int b = 0; b < bits; ++b)
                to.observation[i * to.rows * (bits + 1) + b] = to.target[asked * to.rows * bits + b] =
                    static_cast<float>(random.below(2));
        }
    }

private:
    sequence_info info_;
};

/// Wrong bits a sequence; 16 by chance.
template <class Controller>
double wrong_bits(const typename Controller::settings& controller, int updates) {
    using model = agent<identity, Controller, no_memory, no_auxiliary, supervised>;
    typename model::settings s;
    s.controller = controller;
    s.learner.targets = "bits";
    const auto task = std::make_shared<const short_copy>();
    const auto traced = model::template trace<backend>(s, shape_of(task->info()), 1);
    optimiser_settings o;
    o.learning_rate = 3e-3;
    o.epsilon = 1e-8;
    o.clip = 1;
    training_loop<sequence_update<backend>> training({1, 1, 0}, traced, task, sequence_settings{32}, o);
    for (int i = 0; i < updates; ++i) training.iterate();
    sequence_player<backend> player(traced, task, 50);
    const double wrong = player.score("holdout_interpolate", 200, 1).mean;
    MESSAGE(updates, " updates: ", wrong, " wrong bits of 32");
    return wrong;
}

}  // namespace

TEST_CASE("a Transformer copies, with rotary and with learned positions") {
    transformer::settings s{.hidden = 32, .layers = 2, .heads = 4, .inner = 64};
    CHECK(wrong_bits<transformer>(s, 0) > 12);
    CHECK(wrong_bits<transformer>(s, 500) < 0.1);
    s.positions = "learned";
    s.longest = T;
    CHECK(wrong_bits<transformer>(s, 500) < 0.1);
}

TEST_CASE("an SRNN copies") {
    CHECK(wrong_bits<srnn>({.hidden = 64}, 1500) < 1);
}
