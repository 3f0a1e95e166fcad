#pragma once
// SPDX-License-Identifier: MIT

// Columns of several values copied by one launch on a device.

#include <vector>

#include <engram/device/kernel.hpp>

namespace engram {

/// Columns of up to eight values to columns of as many others; a source that is not there is zero.
template <class Real>
struct copy_columns {
    static constexpr int most = 8;
    device_rows<Real> from[most], to[most];
    int count = 0, width = 0;  // columns in all

    /// Whether the columns would be written by two threads.
    bool shares(const device_rows<Real>& other) const {
        for (int p = 0; p < count; ++p)
            if (other.data < to[p].data + to[p].width && to[p].data < other.data + other.width) return true;
        return false;
    }
    void add(const device_rows<Real>& source, const device_rows<Real>& target) {
        from[count] = source;
        to[count++] = target;
        width += target.width;
    }
    ENGRAM_HD void copy(std::ptrdiff_t i, bool cleared) const {
        const std::ptrdiff_t row = i / width;
        int column = static_cast<int>(i % width), p = 0;
        while (column >= to[p].width) column -= to[p++].width;
        to[p].take(row, column, cleared || !from[p].wanted() ? Real(0) : from[p].row(row)[column]);
    }
    ENGRAM_HD void operator()(std::ptrdiff_t i) const { copy(i, false); }
};

/// An input and an output of the same columns.
template <class Real>
struct copied_part {
    operand<Real> in, d_in, out, d_out;
};

/// Calls launch(columns) for all parts at once, but for those of one variable, whose gradients are added one after the
/// other.
template <class Real, class Launch>
void for_columns(const std::vector<copied_part<Real>>& parts, operand<Real> copied_part<Real>::*from,
                 operand<Real> copied_part<Real>::*to, int t, Launch launch) {
    copy_columns<Real> some;
    const auto send = [&] {
        if (some.count > 0) launch(some);
        some = {};
    };
    for (const copied_part<Real>& p : parts) {
        if (!(p.*to)) continue;
        const device_rows<Real> target(p.*to, t);
        if (some.count == copy_columns<Real>::most || some.shares(target)) send();
        some.add({p.*from, t}, target);
    }
    send();
}

}  // namespace engram
