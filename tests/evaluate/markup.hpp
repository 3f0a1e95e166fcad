#pragma once
// SPDX-License-Identifier: MIT

// Whether a page is well formed, and how often something stands in it.

#include <string>
#include <vector>

#include "../io/temporary.hpp"

inline int count_of(const std::string& text, const std::string& part) {
    int n = 0;
    for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
    return n;
}

/// Every element that is opened is closed in turn; the name of the first that is not.
inline std::string unbalanced(const std::string& html) {
    std::vector<std::string> open;
    for (std::size_t at = html.find('<'); at != html.npos; at = html.find('<', at)) {
        const std::size_t end = html.find('>', at);
        std::string tag = html.substr(at + 1, end - at - 1);
        at = end;
        if (tag.starts_with("!") || tag.ends_with("/") || tag.starts_with("meta")) continue;
        const std::string name = tag.substr(tag[0] == '/', tag.find(' ') - (tag[0] == '/'));
        if (tag[0] != '/') {
            open.push_back(name);
            if (name == "script" || name == "style") at = html.find("</" + name, at);
        } else {
            if (open.empty() || open.back() != name) return name;
            open.pop_back();
        }
    }
    return open.empty() ? "" : open.back();
}
