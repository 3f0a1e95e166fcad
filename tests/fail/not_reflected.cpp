// error: engram: this type is not reflected: add ENGRAM_REFLECT
#include <engram/core/reflection.hpp>

struct settings {
    int slots = 1024;
};

#ifdef ENGRAM_TWIN
ENGRAM_REFLECT(settings, slots);
#endif

int main() {
    int sum = 0;
    engram::for_each_member(settings{}, [&](std::string_view, int member) { sum += member; });
    return sum;
}
