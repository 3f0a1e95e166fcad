#include <every_header.hpp>

int edit_distance_of_two(const char* a, const char* b) {
    return engram::edit_distance(a, b);
}
