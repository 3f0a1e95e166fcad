// error: this_setting_has_no_such_word
#include <engram/core/choice.hpp>
using namespace engram;

#ifndef ENGRAM_TWIN
constexpr choice<"age", "position"> order = "aged";
#else
constexpr choice<"age", "position"> order = "position";
#endif

int main() {
    return order == "age";
}
