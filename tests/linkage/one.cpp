// Every header in two translation units: a function that is not inline would be defined twice and fail to link. In two
// orders: a local name that hides a type of a header before it is a warning in one of them alone.
#include <every_header.hpp>

int edit_distance_of_two(const char* a, const char* b);

int main() {
    return engram::edit_distance("usage", "image") == edit_distance_of_two("usage", "image") ? 0 : 1;
}
