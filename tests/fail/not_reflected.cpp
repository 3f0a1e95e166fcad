// error: engram: this type is not reflected: add BOOST_HANA_ADAPT_STRUCT
#include <engram/core/reflection.hpp>

struct settings {
    int slots = 1024;
};

#ifdef ENGRAM_TWIN
BOOST_HANA_ADAPT_STRUCT(settings, slots);
#endif

int main() {
    int sum = 0;
    engram::for_each_member(settings{}, [&](std::string_view, int member) { sum += member; });
    return sum;
}
