#pragma once
// SPDX-License-Identifier: MIT

// Clearing rows on a device: columns of up to eight values are one launch.

#include <engram/device/copy_columns.hpp>
#include <engram/graph/ops/clear_rows.hpp>

namespace engram {

template <class Real>
struct clear_columns {
    device_rows<Real> reset;
    copy_columns<Real> columns;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const { columns.copy(i, *reset.row(i / columns.width) > Real(0.5)); }
};

template <device_backend Backend>
struct clear_rows_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    clear_rows_kernel(const binder<Backend>& b, no_settings) : device_kernel<Backend>(b), reset(b.in(0)) {
        for (std::size_t i = 0; i + 1 < b.op().inputs.size(); ++i)
            parts.push_back({b.in(i + 1), b.d_in(i + 1), b.out(i), b.d_out(i)});
    }
    void forward(int t, int steps) override {
        for_columns<real>(parts, &part::in, &part::out, t, [&](const copy_columns<real>& some) {
            this->launch(steps, some.width, clear_columns<real>{{reset, t}, some});
        });
    }
    void backward(int t, int steps) override {
        for_columns<real>(parts, &part::d_out, &part::d_in, t, [&](const copy_columns<real>& some) {
            this->launch(steps, some.width, clear_columns<real>{{reset, t}, some});
        });
    }

private:
    using part = copied_part<real>;

    operand<real> reset;
    std::vector<part> parts;
};

}  // namespace engram
