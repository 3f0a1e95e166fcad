// error: own environment: it needs `engram::outcome step(int action)`, the reward and whether it was the last
#include <engram/task/registry.hpp>

using namespace engram;

struct coin {
    static constexpr own_task specification{.name = "coin", .observation = {1, 1, 1}, .actions = 2};
    int side;
    void reset(philox& random) { side = random.below(2); }
#ifdef ENGRAM_TWIN
    outcome step(int action) {
        return {action == side ? 1.0f : 0.0f, true};
    }
#endif
    void observe(float* numbers) const {
        numbers[0] = 0;
    }
};

int main() {
    add_task<coin>();
}
