// Every recurrence of today copies a pattern or two of eight bits by what it carries; traces of what was seen, which
// select nothing, tell one pattern.

#include "../train/recurrences_learn.hpp"

#include <engram/controller/fast_and_forgetful.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/controller/gated_delta_net.hpp>
#include <engram/controller/gru.hpp>
#include <engram/controller/gtrxl.hpp>
#include <engram/controller/linear_recurrent_unit.hpp>
#include <engram/controller/min_gru.hpp>
#include <engram/controller/mlstm.hpp>
#include <engram/controller/s5.hpp>
#include <engram/controller/stable_hadamard.hpp>
#include <engram/memory/memory_traces.hpp>

using namespace engram;
using copying::wrong_bits;

TEST_CASE("every recurrence copies") {
    const auto copies = [](const std::string& name, double wrong) {
        MESSAGE(name, ": ", wrong, " bits wrong");
        CHECK_MESSAGE(wrong < 0.5, name);
    };
    constexpr int updates = 4000;
    copies("GRU", wrong_bits<gru>({.hidden = 64}, 2, updates));
    copies("MinGRU", wrong_bits<min_gru>({.hidden = 64, .layers = 2}, 2, updates));
    copies("LRU", wrong_bits<linear_recurrent_unit>({.hidden = 48, .layers = 2, .states = 32}, 2, updates));
    copies("S5", wrong_bits<s5>({.hidden = 48, .layers = 2, .states = 32}, 2, updates));
    copies("FFM", wrong_bits<fast_and_forgetful>({.hidden = 64, .traces = 16, .longest = 64}, 2, updates));
    copies("SHM", wrong_bits<stable_hadamard>({.hidden = 48, .size = 16}, 2, updates));
    copies("mLSTM", wrong_bits<mlstm>({.hidden = 32, .heads = 2, .key = 16, .inner = 32}, 2, updates));
    copies("gated DeltaNet",
           wrong_bits<gated_delta_net>({.hidden = 32, .heads = 2, .key = 16, .value = 16}, 2, updates));
    copies("GTrXL", wrong_bits<gtrxl>({.hidden = 32, .heads = 2, .inner = 64, .window = 8}, 2, updates));
    copies("memory traces", wrong_bits<feed_forward, memory_traces>({.hidden = 128}, 1, updates));
}
