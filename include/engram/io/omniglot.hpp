#pragma once
// SPDX-License-Identifier: MIT

// Omniglot (Lake, Salakhutdinov, Tenenbaum 2015): one zip archive of drawings named
// <set>/<alphabet>/characterMM/NNNN_DD.png, 105 x 105, 0 = ink, 255 = paper after decoding. The index is read at once,
// a drawing is decoded when asked for (all of them together would be hundreds of MiB).

#include <string>
#include <utility>
#include <vector>

#include "engram/core/error.hpp"
#include "engram/io/png.hpp"
#include "engram/io/zip.hpp"

namespace engram {

class omniglot_archive {
public:
    struct drawing {
        std::string alphabet;
        int character = 0;  // NNNN, over the whole data set, from 1
        int drawer = 0;     // DD, from 1
        int entry = 0;
    };

    explicit omniglot_archive(std::string path) : archive_(std::move(path)) {
        const auto& entries = archive_.entries();
        for (std::size_t i = 0; i < entries.size(); ++i) {
            const std::string& name = entries[i].name;
            if (!name.ends_with(".png")) continue;
            drawings_.push_back(parse(name));
            drawings_.back().entry = static_cast<int>(i);
        }
        require(!drawings_.empty(), archive_.path(),
                ": no drawings in the archive, expected <set>/<alphabet>/characterMM/NNNN_DD.png");
    }

    const std::vector<drawing>& drawings() const { return drawings_; }

    /// [105, 105, 1]; 0 = ink, 255 = paper.
    picture image(int i) const {
        require(i >= 0 && i < static_cast<int>(drawings_.size()), archive_.path(), ": drawing ", i,
                " does not exist; there are ", drawings_.size());
        const auto& entry = archive_.entries()[static_cast<std::size_t>(drawings_[static_cast<std::size_t>(i)].entry)];
        const std::string name = archive_.path() + ": " + entry.name;
        picture found = decode_png(archive_.read(entry), name);
        require(found.height == 105 && found.width == 105 && found.channels == 1, name, ": a drawing of ", found.height,
                " x ", found.width, " x ", found.channels, ", expected 105 x 105 x 1");
        return found;
    }

private:
    drawing parse(const std::string& name) const {
        std::vector<std::string> parts(1);
        for (const char c : name) {
            if (c == '/')
                parts.emplace_back();
            else
                parts.back().push_back(c);
        }
        const std::string& file = parts.back();
        const auto digits = [&](std::size_t from, std::size_t count) {
            int value = 0;
            for (std::size_t i = from; i < from + count; ++i) {
                const bool digit = i < file.size() && file[i] >= '0' && file[i] <= '9';
                require(digit, archive_.path(), ": entry '", name,
                        "' is not named <set>/<alphabet>/characterMM/NNNN_DD.png");
                value = 10 * value + (file[i] - '0');
            }
            return value;
        };
        require(parts.size() == 4 && file.size() == 11, archive_.path(), ": entry '", name,
                "' is not named <set>/<alphabet>/characterMM/NNNN_DD.png");
        return {parts[1], digits(0, 4), digits(5, 2), 0};
    }

    zip_archive archive_;
    std::vector<drawing> drawings_;
};

}  // namespace engram
