// error: map: the functor must be const, take one number for each input and return a number or a tuple of them
#include <engram/operations/map.hpp>

using namespace engram;

struct sum {
    auto operator()(auto x, auto y) const { return x + y; }
};

int main() {
    graph<cpu<float>> g(std::make_shared<parameters<float>>(1));
    const auto x = g.input("x", 3);
#ifndef ENGRAM_TWIN
    return map("sum", sum{}, x).width;
#else
    return map("sum", sum{}, x, x).width;
#endif
}
