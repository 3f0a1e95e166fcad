// What engram::engram brings: its headers, those of Eigen, xtensor and Boost.Hana, zlib and threads to link, and C++20.

#include <cstdio>
#include <filesystem>
#include <vector>

#include <zlib.h>

#include <engram/core/thread_pool.hpp>
#include <engram/io/eigen.hpp>
#include <engram/io/gzip.hpp>
#include <engram/io/json.hpp>
#include <engram/io/xtensor.hpp>

struct settings {
    int sums = 0;
    double rate = 0.5;
};
ENGRAM_REFLECT(settings, sums, rate);

int main() {
    // In the folder it is started in: several of them run at once.
    const auto place = std::filesystem::current_path() / "engram-consumer.npy";
    const xt::xarray<float> cube = xt::arange<float>(0, 24).reshape({2, 3, 4});
    engram::write_npy(place.string(), cube);
    const bool same = engram::read_xtensor<float>(place.string()) == cube;
    std::filesystem::remove(place);

    const auto packed = place.string() + ".gz";
    const gzFile file = gzopen(packed.c_str(), "wb");
    gzwrite(file, "abc", 3);
    gzclose(file);
    const bool unpacked = engram::read_maybe_gzip(packed) == engram::bytes{'a', 'b', 'c'};
    std::filesystem::remove(packed);

    std::vector<Eigen::Matrix2f> squares(4);
    engram::thread_pool pool(2);
    pool.run([&](int i) {
        for (std::size_t k = static_cast<std::size_t>(i); k < squares.size(); k += 2)
            squares[k] = Eigen::Matrix2f::Constant(static_cast<float>(k)) * Eigen::Matrix2f::Identity();
    });
    settings s;
    for (const auto& square : squares) s.sums += static_cast<int>(square.sum());
    std::printf("%s %s %s\n", same ? "written and read" : "not the same", unpacked ? "unpacked" : "not unpacked",
                engram::settings_to_json(s).dump().c_str());
}
