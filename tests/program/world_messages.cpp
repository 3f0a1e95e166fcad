// SPDX-License-Identifier: MIT

// What arrives from a world is read or refused with a sentence, whatever its bytes are: answers that are whole, and
// thousands of mutations of each. What is read has the size that was promised, and no number in it is not finite.

#include <doctest/doctest.h>

#include <google/protobuf/stubs/logging.h>

#include <engram/core/philox.hpp>

#include "../../programs/world_messages.hpp"

namespace {

using namespace engram;
using namespace engram::world_messages;

rpc::TensorSpec spec(const char* name, rpc::DataType type, std::initializer_list<int> shape = {}) {
    rpc::TensorSpec s;
    s.set_name(name);
    s.set_dtype(type);
    for (const int n : shape) s.add_shape(n);
    return s;
}

rpc::ActionObservationSpecs specs(bool image) {
    rpc::ActionObservationSpecs s;
    auto& shown = *s.mutable_observations();
    shown[1] = spec("reward", rpc::FLOAT);
    shown[2] = spec("discount", rpc::DOUBLE, {1});
    if (image) {
        shown[3] = spec("frame", rpc::UINT8, {4, 6, 3});
        shown[4] = spec("place", rpc::DOUBLE, {3});
    } else {
        shown[3] = spec("bytes", rpc::INT8, {2, 2});
        shown[4] = spec("place", rpc::DOUBLE, {3});
        shown[5] = spec("flags", rpc::BOOL, {2});
        shown[6] = spec("count", rpc::UINT64);
        shown[7] = spec("words", rpc::STRING);
    }
    auto& action = (*s.mutable_actions())[9] = spec("do", rpc::UINT8);
    action.mutable_min()->mutable_uint8s()->set_array(std::string(1, 2));
    action.mutable_max()->mutable_uint8s()->set_array(std::string(1, 6));
    return s;
}

rpc::StepResponse answer(bool image) {
    rpc::StepResponse step;
    step.set_state(rpc::RUNNING);
    auto& shown = *step.mutable_observations();
    shown[1].mutable_floats()->add_array(1.5f);
    shown[2].add_shape(1);
    shown[2].mutable_doubles()->add_array(1);
    for (int i = 0; i < 3; ++i) shown[4].mutable_doubles()->add_array(i);
    shown[4].add_shape(-1);
    if (image) {
        for (const int n : {4, 6, 3}) shown[3].add_shape(n);
        std::string bytes;
        for (int i = 0; i < 72; ++i) bytes += static_cast<char>(3 * i);
        shown[3].mutable_uint8s()->set_array(bytes);
        return step;
    }
    shown[3].add_shape(2), shown[3].add_shape(2);
    shown[3].mutable_int8s()->set_array("\xff\x01\x02\x80");
    shown[5].add_shape(2);
    shown[5].mutable_bools()->add_array(true);  // one stands for all
    shown[6].mutable_uint64s()->add_array(1ull << 40);
    return step;
}

/// Bytes that are nearly these: some changed, cut, doubled, or two parts swapped.
std::string mutated(std::string bytes, philox& random) {
    const auto any = [&](std::size_t n) { return static_cast<std::size_t>(random.below(static_cast<int>(n))); };
    for (int k = 0; k <= random.below(4) && !bytes.empty(); ++k) {
        const auto at = any(bytes.size());
        switch (random.below(6)) {
            case 0:
                bytes[at] = static_cast<char>(random.below(256));
                break;
            case 1:
                bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
                break;
            case 2:
                bytes.resize(at);
                break;
            case 3:
                bytes.insert(at, bytes.substr(any(bytes.size()), any(40)));
                break;
            case 4:
                bytes.erase(at, any(8));
                break;
            default:
                bytes.insert(at, std::string(any(12), static_cast<char>(0xff)));
                break;
        }
    }
    return bytes;
}

}  // namespace

TEST_CASE("what a world shows is read in the order of its uids") {
    const reading r = read_specs(specs(false), {}, "w");
    CHECK(!r.image);
    CHECK(r.shape == observation_shape{1, 1, 10});
    CHECK(r.actions.rows.size() == 5);
    std::vector<float> seen(10);
    see(answer(false), r, seen.data(), "w");
    CHECK(seen == std::vector<float>{-1, 1, 2, -128, 0, 1, 2, 1, 1, 0x1p40f});
    CHECK(number_of(answer(false), *r.reward, "w") == 1.5);
    const reading i = read_specs(specs(true), {}, "w");
    CHECK(i.image);
    CHECK(i.shape == observation_shape{4, 6, 3});
    std::vector<float> pixels(72);
    see(answer(true), i, pixels.data(), "w");
    CHECK(pixels[1] == 3 * (1.0f / 255));
    // Only what is wanted is asked for, and an action is of the world's type.
    const auto request = step_request(i, &i.actions.rows[1], true).step();
    CHECK(request.actions().at(9).uint8s().array() == std::string(1, 3));
    CHECK(request.requested_observations_size() == 3);
    CHECK(step_request(i, nullptr, false).step().requested_observations_size() == 2);
}

TEST_CASE("settings are sent as what they read as") {
    CHECK(setting_tensor("12").int64s().array(0) == 12);
    CHECK(setting_tensor("-1.5").doubles().array(0) == -1.5);
    CHECK(setting_tensor("1e3").doubles().array(0) == 1000);
    CHECK(setting_tensor("true").bools().array(0));
    CHECK(setting_tensor("\"12\"").strings().array(0) == "12");
    CHECK(setting_tensor("spot_diff_train").strings().array(0) == "spot_diff_train");
    CHECK(setting_tensor("").strings().array(0).empty());
}

TEST_CASE("an action that the world's type cannot hold is refused") {
    auto all = specs(false);
    auto& action = (*all.mutable_actions())[9];
    action.clear_min(), action.clear_max();
    const auto table = [](double value) { return action_table{{}, {{value}}}; };
    CHECK(read_specs(all, table(255), "w").actions.rows[0][0] == 255);
    CHECK_THROWS_WITH_AS((void)read_specs(all, table(256), "w"), "w: action 'do' of 256 is no UINT8", error);
    CHECK_THROWS_WITH_AS((void)read_specs(all, table(0.5), "w"), doctest::Contains("which is a whole number"), error);
    action.mutable_min()->mutable_doubles()->add_array(-3);
    action.mutable_max()->mutable_doubles()->add_array(3);
    CHECK_THROWS_WITH_AS((void)read_specs(all, {}, "w"), "w: action 'do' of -3 is no UINT8", error);
}

TEST_CASE("one bound stands for every number, and discrete actions are whole") {
    auto all = specs(false);
    auto& action = (*all.mutable_actions())[9];
    action = spec("do", rpc::DOUBLE, {3});
    action.mutable_min()->mutable_doubles()->add_array(-1);
    action.mutable_max()->mutable_doubles()->add_array(1);
    CHECK(read_specs(all, {{}, {{0, -1, 1}}}, "w").actions.rows[0] == std::vector<double>{0, -1, 1});
    CHECK_THROWS_WITH_AS((void)read_specs(all, {{}, {{0, 0, 2}}}, "w"),
                         "--actions: line 1 says 2 for 'do', which w bounds by -1 and 1", error);
    action = spec("do", rpc::INT32);
    action.mutable_min()->mutable_doubles()->add_array(0.5);
    action.mutable_max()->mutable_doubles()->add_array(3);
    CHECK_THROWS_WITH_AS((void)read_specs(all, {}, "w"), doctest::Contains("which are whole numbers"), error);
}

TEST_CASE("sizes that nobody can hold are refused before anything is reserved") {
    const auto refused = [](const rpc::TensorSpec& s, const char* part) {
        auto all = specs(false);
        (*all.mutable_observations())[4] = s;
        try {
            (void)read_specs(all, {}, "w");
            FAIL("it was read");
        } catch (const error& problem) {
            CHECK(std::string(problem.what()).find(part) != std::string::npos);
        }
    };
    refused(spec("place", rpc::DOUBLE, {1 << 30, 1 << 30, 1 << 30, 1 << 30}), "expected at most 4194304 numbers");
    refused(spec("place", rpc::DOUBLE, {-1, 3}), "whose size is not fixed");
    refused(spec("place", rpc::DOUBLE, {3, 0}), "is empty");
    refused(spec("place", static_cast<rpc::DataType>(77)), "is of an unknown type (77)");
    refused(spec("place", rpc::DOUBLE, {1, 1, 1, 1, 1, 1, 1, 1, 1}), "has 9 dimensions");
}

TEST_CASE("mutated answers and specs are read or refused") {
    google::protobuf::SetLogHandler(nullptr);
    constexpr int rounds = 20'000;
    int read = 0, refused = 0;
    for (const bool image : {false, true}) {
        philox random(7, image);
        const auto whole_specs = specs(image);
        const reading r = read_specs(whole_specs, {}, "w");
        const std::string step = answer(image).SerializeAsString(), text = whole_specs.SerializeAsString();
        // A margin that must stay as it is.
        std::vector<float> seen(static_cast<std::size_t>(r.shape.size()) + 8, -7.0f);
        for (int i = 0; i < rounds; ++i) {
            try {
                rpc::StepResponse came;
                require(came.ParseFromString(mutated(step, random)), "no message");
                see(came, r, seen.data(), "w");
                const double reward = number_of(came, *r.reward, "w");
                for (int k = 0; k < r.shape.size(); ++k) REQUIRE(std::isfinite(seen[static_cast<std::size_t>(k)]));
                REQUIRE(std::isfinite(reward));
                ++read;
            } catch (const error& problem) {
                REQUIRE(std::string(problem.what()).size() < 1000);
                ++refused;
            }
            for (int k = 0; k < 8; ++k) REQUIRE(seen[static_cast<std::size_t>(r.shape.size() + k)] == -7.0f);
            try {
                rpc::ActionObservationSpecs came;
                require(came.ParseFromString(mutated(text, random)), "no message");
                const reading other = read_specs(came, {}, "w");
                REQUIRE(other.shape.size() > 0);
                REQUIRE(other.shape.size() <= numbers_at_most);
                REQUIRE(!other.actions.rows.empty());
                REQUIRE(other.actions.rows.size() <= static_cast<std::size_t>(actions_at_most));
            } catch (const error&) {
            }
        }
    }
    CHECK(read > rounds / 50);
    CHECK(refused > rounds / 2);
}
