#pragma once
// SPDX-License-Identifier: MIT

// Addressing by content (facts 4.6): w = softmax over the slots of softplus(strength + offset) cosine, a head after the
// other.

#include <string>

#include <engram/operations/softmax.hpp>

namespace engram {

/// A head is a piece of its row.
struct content_weights_rows {
    struct settings {
        double offset;
        int heads;
    };
    template <class Real>
    struct operands {
        input_row<Real> cosine, strength;
        output_row<Real> y;
    };
    static constexpr int pieces(settings s, int) { return s.heads; }
    static ENGRAM_HD void forward(auto row, const auto& o, settings s) {
        const auto sharp = softplus(raw(o, s));
        row.each(o.y.width, [&](auto i) { o.y.put(i, sharp * o.cosine[i]); });
        softmax_columns(row, o.y.width, o.y, o.y);
    }
    static ENGRAM_HD void backward(auto row, const auto& o, settings s) {
        const int n = o.y.width;
        const auto strength = raw(o, s), sharp = softplus(strength);
        const auto mean = row.sum(n, [&](auto i) { return o.y[i] * o.y.d[i]; });
        const auto slope = [&](auto i) { return o.y[i] * (o.y.d[i] - mean); };
        if (o.strength.d) {
            const auto sum = row.sum(n, [&](auto i) { return slope(i) * o.cosine[i]; });
            row.once([&] { o.strength.d.put(0, sum * logistic(strength)); });
        }
        if (o.cosine.d) row.each(n, [&](auto i) { o.cosine.d.put(i, sharp * slope(i)); });
    }

private:
    static ENGRAM_HD auto raw(const auto& o, settings s) {
        return o.strength[0] + static_cast<decltype(o.strength[0])>(s.offset);
    }
};

/// [., H * N]: softmax over the N slots of each head of its cosines [., H * N], sharpened by softplus(strength +
/// offset), strengths [., H] (facts 4.6).
template <class Backend>
var<Backend> content_weights(const std::string& name, const var<Backend>& cosine, const var<Backend>& strength,
                             double offset = 0) {
    graph<Backend>& g = *cosine.owner;
    require(cosine.width % strength.width == 0, g.full_name(name), ": cosines of ", cosine.width,
            " columns do not divide among ", strength.width, " strengths");
    return add_rows<content_weights_rows>(g, name, {cosine, strength}, {offset, strength.width}, {cosine.width})[0];
}

}  // namespace engram
