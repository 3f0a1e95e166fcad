// error: own sequences: they need `static sequence_info describe(const task_options&)`
#include <engram/task/sequence_registry.hpp>

using namespace engram;

class zeros final : public sequence_source {
public:
#ifdef ENGRAM_TWIN
    static sequence_info describe(const task_options&) {
        return {.name = "zeros", .steps = 4, .observation = {1, 1, 1}, .targets = 1};
    }
#endif
    explicit zeros(const task_options&) {}
    const sequence_info& info() const override {
        return info_;
    }
    void draw(const std::string&, std::uint64_t, std::uint64_t, const sequence_place&) const override {}

private:
    sequence_info info_{};
};

int main() {
    add_sequence<zeros>();
}
