#pragma once
// SPDX-License-Identifier: MIT

// The shape of an image in the columns of a variable: height, width, channels, channels last; or a token.

#include <ostream>

#include <engram/version.hpp>

namespace engram {

struct image_shape {
    int height = 1, width = 1, channels = 1;
    int tokens = 0;  // what is seen is the index of one of so many tokens instead; 0: numbers

    int size() const { return height * width * channels; }
    /// After a SAME convolution or pooling.
    image_shape reduced(int stride, int filters) const {
        return {(height + stride - 1) / stride, (width + stride - 1) / stride, filters};
    }
    /// After a transposed convolution or up-sampling.
    image_shape enlarged(int stride, int filters) const { return {height * stride, width * stride, filters}; }
    bool operator==(const image_shape&) const = default;
};

/// "[16,16,3]": height, width, channels.
inline std::ostream& operator<<(std::ostream& out, const image_shape& s) {
    return out << "[" << s.height << "," << s.width << "," << s.channels << "]";
}

}  // namespace engram
