// error: map: the functor must be const, take one number for each input and return a number or a tuple of them
#include <engram/operations/map.hpp>

using namespace engram;

struct twice {
#ifndef ENGRAM_TWIN
    auto operator()(auto x) const {
        x = x + x;
    }
#else
    auto operator()(auto x) const {
        return x + x;
    }
#endif
};

int main() {
    graph<cpu<float>> g(std::make_shared<parameters<float>>(1));
    return map("twice", twice{}, g.input("x", 3)).width;
}
