// Training on sequences on a device, here an emulated one, where more than weights is kept: batch normalisation's
// statistics and the link matrices of a DNC. Then what it scores and draws.

#include "device_run.hpp"

#include <engram/encoder/inception.hpp>
#include <engram/evaluate/sequences.hpp>
#include <engram/memory/dnc.hpp>

#include "generated_echo.hpp"

using namespace device_run;

using echoing = generative<inception, dnc>;

TEST_CASE("statistics of batches and matrices of a memory are the host's") {
    learns_as_on_the_host<echoing, sequence_update>(small_settings<echoing>(), task, 1);
    run<echoing, sequence_update, host> here(small_settings<echoing>(), task);
    run<echoing, sequence_update, device> there(small_settings<echoing>(), task);
    here.iterate(8);
    there.iterate(8);
    const auto a = here.saved(), b = there.saved();
    int compared = 0;
    for (const auto& [name, kept] : a.tensors) {
        if (!name.starts_with("shard.0.resource.")) continue;
        REQUIRE(b.contains(name));
        REQUIRE(b.at(name).data.size() == kept.data.size());
        const auto numbers = [](const auto& bytes) {
            std::vector<float> all(bytes.size() / sizeof(float));
            std::memcpy(all.data(), bytes.data(), bytes.size());
            return all;
        };
        const auto x = numbers(kept.data), y = numbers(b.at(name).data);
        for (std::size_t i = 0; i < x.size(); ++i) CHECK(x[i] == doctest::Approx(y[i]).epsilon(1e-3).scale(1));
        compared += static_cast<int>(x.size());
    }
    CHECK(compared > 0);
}

TEST_CASE("statistics of batches are resumed bit for bit") {
    resumes_exactly<echoing, sequence_update>(small_settings<echoing>(), task, 1);
}

TEST_CASE("a checkpoint of a sequence model moves from a device to the host and back without losing a bit") {
    moves_between_host_and_device<echoing, sequence_update>(small_settings<echoing>(), task);
}

TEST_CASE("a device scores and draws as the host does") {
    const auto trace = [&]<class Backend>(Backend) {
        auto s = small_settings<echoing>();
        s.encoder.frozen = true;
        return echoing::trace<Backend>(s, shape_of(task->info()), 1, purpose::generating);
    };
    const auto here = trace(host{});
    const auto there = trace(device{});
    sequence_player<host> a(here, task, 3);
    sequence_player<device> b(there, task, 3);
    const auto x = a.score("train", 7, 5), y = b.score("train", 7, 5);
    CHECK(x.sequences == y.sequences);
    are_close({x.mean, x.standard_error, x.recall, x.before}, {y.mean, y.standard_error, y.recall, y.before});
    are_close(x.divergence, y.divergence);
    const auto d = a.draw("train", 5, 3), e = b.draw("train", 5, 3);
    CHECK(d.observed == e.observed);
    const auto close = [](const std::vector<float>& v, const std::vector<float>& w) {
        are_close({v.begin(), v.end()}, {w.begin(), w.end()});
    };
    close(d.generated, e.generated);
    close(d.read_weight, e.read_weight);
    CHECK(d.read_weight.size() > 0);
}
