// Tiles of convolutions on a device against the same convolutions a number at a time.

#include <doctest/doctest.h>

#include <engram/core/philox.hpp>
#include <engram/device/operations.hpp>

using namespace engram;

namespace {

using device = executor<emulated<double>>;
using numbers = aligned_vector<double>;

numbers random_numbers(std::ptrdiff_t count, std::uint64_t stream) {
    philox random(3, stream);
    numbers all(static_cast<std::size_t>(count));
    for (double& x : all) x = static_cast<double>(random.normal());
    return all;
}

step_rows<double> rows_of(numbers& data, int width, int stride, bool accumulate = false) {
    return {operand<double>{.data = data.data(), .stride = stride, .width = width, .accumulate = accumulate}, 0};
}

void nearly_equal(const numbers& a, const numbers& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < 1e-12 * std::max(1.0, std::abs(a[i])));
}

/// A convolution of a few images; rows of both sides are eight numbers apart.
struct images {
    explicit images(const convolution_shape& of, int n)
        : s(of),
          count(n),
          x_width(of.inputs()),
          y_width(of.outputs()),
          x_stride(fours(x_width) * 4 + 8),
          y_stride(y_width + 8),
          x(random_numbers(std::ptrdiff_t{n} * x_stride, 1)),
          y(random_numbers(std::ptrdiff_t{n} * y_stride, 2)),
          weight(random_numbers(s.weights(), 3)),
          bias(random_numbers(std::max(of.channels, of.filters), 4)) {}

    template <class Functor>
    void forward(Functor functor, int launches, numbers& to, bool add, bool with_bias) {
        functor.s = s;
        functor.weight = weight.data();
        functor.bias = with_bias ? bias.data() : nullptr;
        functor.x = rows_of(x, x_width, x_stride);
        functor.y = rows_of(to, y_width, y_stride, add);
        on.launch("forward", std::ptrdiff_t{count} * launches, functor);
    }
    template <class Functor>
    void back(Functor functor, int launches, numbers& to, bool add, bool with_bias) {
        functor.s = s;
        functor.weight = weight.data();
        functor.bias = with_bias ? bias.data() : nullptr;
        functor.y = rows_of(y, y_width, y_stride);
        functor.x = rows_of(to, x_width, x_stride, add);
        on.launch("back", std::ptrdiff_t{count} * launches, functor);
    }
    template <int In>
    numbers weight_gradient(bool add, thread_order order) {
        using slice = internal::weight_gradient_slice<double, In>;
        const gradient_slices split(s, In, slice::lanes, count);
        numbers partial = random_numbers(split.slices * s.weights(), 5), to = random_numbers(s.weights(), 6);
        on.order = order;
        on.launch_blocks("slices", std::ptrdiff_t{split.slices} * s.kernel * s.kernel * split.parts, slice::scratch,
                         slice{s, split, rows_of(x, x_width, x_stride), rows_of(y, y_width, y_stride),
                               count * s.out_height, partial.data()});
        using sum = internal::sum_slices<double>;
        on.launch_blocks("sum", sum::blocks(s.weights()), sum::scratch,
                         sum{partial.data(), s.weights(), split.slices, to.data(), add});
        on.order = thread_order::ascending;
        return to;
    }
    numbers weight_gradient_one_by_one(bool add) {
        using one = internal::window_weight_gradient<double>;
        numbers to = random_numbers(s.weights(), 6);
        on.launch_blocks("weights", s.weights(), one::lanes,
                         one{s, rows_of(x, x_width, x_stride), rows_of(y, y_width, y_stride), count, to.data(), add});
        return to;
    }

    template <int In>
    void check() {
        for (const bool add : {false, true}) {
            numbers one = y, tiled = y;
            forward(internal::convolve_pixel<double>{s, {}, {}, {}, {}}, y_width, one, add, !add);
            using tile = internal::convolve_tile<double, In>;
            forward(tile{s, {}, {}, {}, {}}, tile::launches(s), tiled, add, !add);
            nearly_equal(one, tiled);

            numbers back_one = x, back_tiled = x;
            back(internal::convolve_back<double>{s, {}, {}, {}, {}}, x_width, back_one, add, !add);
            using back_tile = internal::convolve_back_tile<double, In>;
            back(back_tile{s, {}, {}, {}, {}}, back_tile::launches(s), back_tiled, add, !add);
            nearly_equal(back_one, back_tiled);

            const numbers sums = weight_gradient<In>(add, thread_order::ascending);
            nearly_equal(weight_gradient_one_by_one(add), sums);
            CHECK(weight_gradient<In>(add, thread_order::descending) == sums);
            CHECK(weight_gradient<In>(add, thread_order::scrambled) == sums);
        }
    }

    convolution_geometry s;
    int count, x_width, y_width, x_stride, y_stride;
    numbers x, y, weight, bias;
    device on;
};

}  // namespace

TEST_CASE("tiles give the numbers that threads of their own give") {
    for (const padding_rule padding : {padding_rule::same, padding_rule::valid})
        for (const int kernel : {1, 3, 4})
            for (const int stride : {1, 2, 3})
                for (const int width : {4, 5, 9}) {
                    const auto shape = [&](int channels, int filters) {
                        return convolution_shape{6, width, channels, filters, kernel, stride, padding};
                    };
                    CAPTURE(kernel);
                    CAPTURE(stride);
                    CAPTURE(width);
                    images(shape(8, 4), 3).check<4>();
                    images(shape(8, 4), 1).check<1>();
                    images(shape(3, 12), 2).check<1>();
                }
}

TEST_CASE("more channels than a block has threads") {
    images({3, 3, 64, 64, 2, 1}, 2).check<4>();
    images({3, 3, 40, 24, 2, 1}, 2).check<1>();
}

TEST_CASE("sums of columns in slices") {
    device on;
    for (const int columns : {1, 3, 16, 130})
        for (const int rows : {1, 7, 300})
            for (const int slices : {1, 5}) {
                if (slices > rows) continue;
                const numbers x = random_numbers(std::ptrdiff_t{rows} * columns, 1);
                numbers partial(static_cast<std::size_t>(slices * columns)),
                    total(static_cast<std::size_t>(columns), 2);
                using slice = internal::column_sums_slice<double>;
                on.launch_blocks("slices", slices, slice::lanes,
                                 slice{x.data(), columns, rows, slices, partial.data()});
                using together = internal::sum_slices<double>;
                on.launch_blocks("sum", together::blocks(columns), together::scratch,
                                 together{partial.data(), columns, slices, total.data(), true});
                for (int c = 0; c < columns; ++c) {
                    double sum = 2;
                    for (int r = 0; r < rows; ++r) sum += x[static_cast<std::size_t>(r * columns + c)];
                    CHECK(total[static_cast<std::size_t>(c)] == doctest::Approx(sum).epsilon(1e-12));
                }
            }
}
