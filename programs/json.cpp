// The parser and the writer of JSON, compiled once.

#include <engram/io/json.hpp>

namespace engram {

template json parse_json(std::string_view, std::string_view);
template std::string json_text(const json&);

}  // namespace engram
