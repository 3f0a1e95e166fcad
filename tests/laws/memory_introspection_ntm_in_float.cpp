// The laws of the same memories in float, the number type of training.

#include "../model/prepare.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/introspection.hpp>
#include <engram/memory/ntm.hpp>

using namespace prepared;

using looking_back = agent<identity, feed_forward, introspection, no_auxiliary, vtrace>;
using turing = looking_back::with<ntm>;

TEST_CASE("under a feed-forward controller, in float, at widths that leave a rest of a register") {
    auto s = tiny<looking_back>();
    s.memory.slots = 21;
    s.memory.order = "position";
    s.memory.masked = true;
    keeps_the_laws<looking_back, cpu<float>>(s);
    auto m = tiny<turing>();
    m.memory.slots = 37;
    m.memory.word = 19;
    m.memory.write_heads = 3;
    keeps_the_laws<turing, cpu<float>>(m);
}
