// error: own environment: it needs `static constexpr engram::own_task specification`
#include <engram/task/registry.hpp>

using namespace engram;

struct coin {
#ifdef ENGRAM_TWIN
    static constexpr own_task specification{.name = "coin", .observation = {1, 1, 1}, .actions = 2};
#endif
    int side;
    void reset(philox& random) {
        side = random.below(2);
    }
    outcome step(int action) {
        return {action == side ? 1.0f : 0.0f, true};
    }
    void observe(float* numbers) const {
        numbers[0] = 0;
    }
};

int main() {
    add_task<coin>();
}
