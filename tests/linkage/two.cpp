#include <every_header_reversed.hpp>

int edit_distance_of_two(const char* a, const char* b) {
    return engram::edit_distance(a, b);
}
