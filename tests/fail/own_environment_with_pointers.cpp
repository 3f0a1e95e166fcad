// error: own environment: it must be trivially copyable
#include <engram/task/registry.hpp>

using namespace engram;

struct coin {
    static constexpr own_task specification{.name = "coin", .observation = {1, 1, 1}, .actions = 2};
#ifndef ENGRAM_TWIN
    std::vector<int> sides;
#else
    int sides[2];
#endif
    void reset(philox& random) {
        sides[0] = random.below(2);
    }
    outcome step(int action) {
        return {action == sides[0] ? 1.0f : 0.0f, true};
    }
    void observe(float* numbers) const {
        numbers[0] = 0;
    }
};

int main() {
    add_task<coin>();
}
