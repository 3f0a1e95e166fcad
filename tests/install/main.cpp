#if __has_include(<engram/engram.hpp>)
#include <engram/engram.hpp>
#endif
#include <engram/core/error.hpp>

#include <cstdio>

int main() {
    const std::string name = engram::nearest_name("lsmt", std::vector<std::string>{"ff", "lstm"});
    std::puts(name.c_str());
    return name == "lstm" ? 0 : 1;
}
