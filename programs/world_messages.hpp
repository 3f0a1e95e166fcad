#pragma once
// SPDX-License-Identifier: MIT

// What a world's messages mean to an agent here. Nothing that arrives is believed: sizes, shapes, types, numbers that
// are not finite are each an error with a sentence that begins with `where`.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/unknown_field_set.h>

#include <engram/core/error.hpp>
#include <engram/core/settings.hpp>
#include <engram/program/world.hpp>

#include "dm_env_rpc/v1/dm_env_rpc.pb.h"

namespace engram::world_messages {

namespace rpc = dm_env_rpc::v1;

constexpr std::int64_t numbers_at_most = 1 << 22, actions_at_most = 4096;
constexpr int bytes_at_most = 1 << 25;  // of a message

/// One tensor of a world's specs.
struct part {
    std::uint64_t uid = 0;
    std::string name{};
    rpc::DataType type = rpc::INVALID_DATA_TYPE;
    std::vector<std::int64_t> shape{};
    std::int64_t count = 1;
    std::vector<double> lowest{}, highest{};  // none, one for all elements, or one each
};

/// The bound of element i; `otherwise` where none is said.
inline double bound_of(const std::vector<double>& bounds, std::int64_t i, double otherwise) {
    return bounds.empty() ? otherwise : bounds[bounds.size() == 1 ? 0 : static_cast<std::size_t>(i)];
}

/// A world as an agent here sees it.
struct reading {
    std::vector<part> seen;  // one image, or numbers in the order of their uids
    bool image = false;
    std::optional<part> reward, discount, score;
    std::vector<part> takes;  // in the order of their uids
    action_table actions;     // a column an element of what it takes
    observation_shape shape;
    float lowest = 0, highest = 1;
};

inline bool is_number(rpc::DataType type) {
    return (type >= rpc::FLOAT && type <= rpc::BOOL);
}
inline bool is_whole(rpc::DataType type) {
    return type >= rpc::INT8 && type <= rpc::BOOL;
}

/// The least and the largest number of a type, as far as a double tells.
inline std::pair<double, double> range_of(rpc::DataType type) {
    switch (type) {
        case rpc::FLOAT:
            return {-0x1.fffffep127, 0x1.fffffep127};
        case rpc::INT8:
            return {-0x1p7, 0x1p7 - 1};
        case rpc::INT32:
            return {-0x1p31, 0x1p31 - 1};
        case rpc::INT64:
            return {-0x1p53, 0x1p53};
        case rpc::UINT8:
            return {0, 0x1p8 - 1};
        case rpc::UINT32:
            return {0, 0x1p32 - 1};
        case rpc::UINT64:
            return {0, 0x1p53};
        case rpc::BOOL:
            return {0, 1};
        default:
            return {-HUGE_VAL, HUGE_VAL};
    }
}

inline std::string text_of_type(int type) {
    return rpc::DataType_IsValid(type) ? rpc::DataType_Name(static_cast<rpc::DataType>(type))
                                       : "type " + std::to_string(type);
}
template <class Shape>
std::string text_of_shape(const Shape& shape) {
    std::string text;
    for (const auto n : shape) text += (text.empty() ? "" : ", ") + std::to_string(n);
    return "[" + text + "]";
}

/// The payload of a tensor that a type belongs in.
inline rpc::Tensor::PayloadCase payload_of(rpc::DataType type) {
    return static_cast<rpc::Tensor::PayloadCase>(static_cast<int>(type));
}

/// Calls body(array) with the elements of a tensor or of a bound; nothing for texts, messages and what is empty.
template <class Payload, class Body>
bool with_elements(const Payload& p, Body body) {
    const auto of_bytes = [&](const std::string& raw, auto zero) {
        using type = decltype(zero);
        static_assert(sizeof(type) == 1);
        body(reinterpret_cast<const type*>(raw.data()), static_cast<std::int64_t>(raw.size()));
    };
    const auto of_field = [&](const auto& field) { body(field.data(), static_cast<std::int64_t>(field.size())); };
    switch (p.payload_case()) {
        case Payload::kFloats:
            return of_field(p.floats().array()), true;
        case Payload::kDoubles:
            return of_field(p.doubles().array()), true;
        case Payload::kInt8S:
            return of_bytes(p.int8s().array(), std::int8_t{}), true;
        case Payload::kInt32S:
            return of_field(p.int32s().array()), true;
        case Payload::kInt64S:
            return of_field(p.int64s().array()), true;
        case Payload::kUint8S:
            return of_bytes(p.uint8s().array(), std::uint8_t{}), true;
        case Payload::kUint32S:
            return of_field(p.uint32s().array()), true;
        case Payload::kUint64S:
            return of_field(p.uint64s().array()), true;
        default:
            break;
    }
    if constexpr (requires { p.bools(); })
        if (p.payload_case() == Payload::kBools) return of_field(p.bools().array()), true;
    return false;
}

/// The bounds of a tensor's elements: none, one for all, or one each. Worlds from before version 1.1.0 of the protocol
/// say them in fields that it has dropped: float, double, int8, int32, int64, uint8, uint32, uint64, numbered from 1.
inline std::vector<double> bounds_of(const rpc::TensorSpec::Value& value, std::int64_t count,
                                     const std::string& where) {
    std::vector<double> found;
    const bool said = with_elements(value, [&](const auto* from, std::int64_t n) {
        require(n <= numbers_at_most, where, " has ", n, " bounds");
        for (std::int64_t i = 0; i < n; ++i) found.push_back(static_cast<double>(from[i]));
    });
    if (!said) {
        const auto& old = value.GetReflection()->GetUnknownFields(value);
        for (int i = 0; i < old.field_count(); ++i) {
            const auto& field = old.field(i);
            if (field.number() == 1 && field.type() == google::protobuf::UnknownField::TYPE_FIXED32) {
                float number;
                const std::uint32_t bits = field.fixed32();
                std::memcpy(&number, &bits, sizeof number);
                found = {static_cast<double>(number)};
            } else if (field.number() == 2 && field.type() == google::protobuf::UnknownField::TYPE_FIXED64) {
                double number;
                const std::uint64_t bits = field.fixed64();
                std::memcpy(&number, &bits, sizeof number);
                found = {number};
            } else if (field.number() >= 3 && field.number() <= 8 &&
                       field.type() == google::protobuf::UnknownField::TYPE_VARINT) {
                found = {field.number() <= 5 ? static_cast<double>(static_cast<std::int64_t>(field.varint()))
                                             : static_cast<double>(field.varint())};
            }
        }
    }
    for (const double bound : found) require(!std::isnan(bound), where, " has a bound that is not a number");
    require(found.size() < 2 || static_cast<std::int64_t>(found.size()) == count, where, " has ", found.size(),
            " bounds for ", count, " numbers");
    return found;
}

inline part read_part(std::uint64_t uid, const rpc::TensorSpec& spec, const std::string& where) {
    part p{uid, spec.name(), spec.dtype()};
    require(p.name.size() <= 256, where, " has a tensor with a name of ", p.name.size(), " bytes");
    const std::string tensor = where + ": '" + p.name + "'";
    require(rpc::DataType_IsValid(spec.dtype()) && spec.dtype() != rpc::INVALID_DATA_TYPE, tensor,
            " is of an unknown type (", static_cast<int>(spec.dtype()), ")");
    require(spec.shape_size() <= 8, tensor, " has ", spec.shape_size(), " dimensions, expected at most 8");
    for (const auto n : spec.shape()) {
        p.shape.push_back(n);
        require(n != 0, tensor, " is empty: shape ", text_of_shape(spec.shape()));
        p.count = n < 0 || p.count < 0 ? -1 : p.count * n;
        require(p.count <= numbers_at_most, tensor, " has shape ", text_of_shape(spec.shape()), ", expected at most ",
                numbers_at_most, " numbers");
    }
    if (!is_number(p.type) || p.count < 0) return p;
    p.lowest = spec.has_min() ? bounds_of(spec.min(), p.count, tensor) : std::vector<double>{};
    p.highest = spec.has_max() ? bounds_of(spec.max(), p.count, tensor) : std::vector<double>{};
    return p;
}

/// Tensors in the order of their uids.
template <class Map>
std::vector<part> read_parts(const Map& specs, const std::string& where) {
    std::vector<part> all;
    for (const auto& [uid, spec] : specs) all.push_back(read_part(uid, spec, where));
    std::sort(all.begin(), all.end(), [](const part& a, const part& b) { return a.uid < b.uid; });
    return all;
}

inline std::string names_of(const std::vector<part>& parts) {
    constexpr std::size_t most = 8;
    std::string list;
    for (std::size_t i = 0; i < std::min(parts.size(), most); ++i)
        list +=
            (i ? ", " : "") + parts[i].name + " " + text_of_type(parts[i].type) + " " + text_of_shape(parts[i].shape);
    if (parts.size() > most) list += message(" and ", parts.size() - most, " more");
    return list.empty() ? "nothing" : list;
}

/// Equal for equal specs.
inline std::string text_of(const rpc::ActionObservationSpecs& specs) {
    std::string text;
    google::protobuf::io::StringOutputStream to(&text);
    google::protobuf::io::CodedOutputStream coded(&to);
    coded.SetSerializationDeterministic(true);
    specs.SerializeToCodedStream(&coded);
    coded.Trim();
    return text;
}

/// The table of a world that takes one integer, whose values are our actions.
inline action_table actions_of(const std::vector<part>& takes, const std::string& where) {
    int whole = 0;
    for (const auto& p : takes) {
        require(is_number(p.type), where, " takes '", p.name, "', which is ", text_of_type(p.type), ", not numbers");
        whole += is_whole(p.type);
    }
    const int many = static_cast<int>(takes.size());
    require(whole == 0 || whole == many, where, " takes discrete and continuous actions (", names_of(takes),
            "); say with --actions FILE what an agent can do");
    require(whole == many, where, " takes continuous actions (", names_of(takes),
            "); say with --actions FILE what an agent can do");
    require(many == 1 && takes[0].count == 1, where, " takes several numbers (", names_of(takes),
            "); say with --actions FILE what an agent can do");
    const part& only = takes[0];
    double lowest = 0, highest = 1;
    if (only.type != rpc::BOOL) {
        require(!only.lowest.empty() && !only.highest.empty(), where, ": action '", only.name,
                "' has no bounds; say with --actions FILE what an agent can do");
        lowest = only.lowest[0], highest = only.highest[0];
    }
    require(highest >= lowest && highest - lowest < static_cast<double>(actions_at_most) &&
                std::fabs(lowest) < 0x1p53 && lowest == std::floor(lowest),
            where, ": action '", only.name, "' is bounded by ", lowest, " and ", highest, ", expected 1 to ",
            actions_at_most, " actions, which are whole numbers");
    action_table table;
    for (double value = lowest; value <= highest; ++value) table.rows.push_back({value});
    return table;
}

/// A table of the user's in the order of the world's numbers.
inline action_table ordered(const action_table& asked, const std::vector<part>& takes, const std::string& where) {
    struct column {
        const part* of;
        std::int64_t element;
    };
    std::size_t width = 0;
    for (const auto& p : takes) {
        require(is_number(p.type) && p.count > 0, where, " takes '", p.name, "', which is ", text_of_type(p.type), " ",
                text_of_shape(p.shape), ", not a fixed count of numbers");
        width += static_cast<std::size_t>(p.count);
    }
    require(asked.rows[0].size() == width, "--actions: a line has ", asked.rows[0].size(), " numbers, ", where,
            " takes ", width, " (", names_of(takes), ")");
    std::vector<column> columns;
    for (const auto& p : takes)
        for (std::int64_t i = 0; i < p.count; ++i) columns.push_back({&p, i});
    std::vector<std::size_t> from(width);
    for (std::size_t c = 0; c < width; ++c) from[c] = c;
    if (!asked.columns.empty()) {
        std::vector<std::string> names;
        for (const auto& c : columns) {
            require(c.of->count == 1, where, ": action '", c.of->name, "' has ", c.of->count,
                    " numbers, so columns of --actions cannot be called by names");
            names.push_back(c.of->name);
        }
        for (const auto& name : asked.columns) require_known("column of --actions", name, names);
        for (std::size_t c = 0; c < width; ++c) {
            const auto at = std::find(asked.columns.begin(), asked.columns.end(), names[c]);
            require(at != asked.columns.end(), "--actions: no column '", names[c], "', which ", where, " takes");
            from[c] = static_cast<std::size_t>(at - asked.columns.begin());
        }
    }
    action_table table;
    for (std::size_t r = 0; r < asked.rows.size(); ++r) {
        table.rows.emplace_back();
        for (std::size_t c = 0; c < width; ++c) {
            const double value = asked.rows[r][from[c]];
            const part& of = *columns[c].of;
            const double least = bound_of(of.lowest, columns[c].element, -HUGE_VAL);
            const double most = bound_of(of.highest, columns[c].element, HUGE_VAL);
            const std::string place = message("--actions: line ", r + 1, " says ", value, " for '", of.name, "'");
            require(!is_whole(of.type) || value == std::floor(value), place, ", which is a whole number");
            require(value >= least && value <= most, place, ", which ", where, " bounds by ", least, " and ", most);
            table.rows.back().push_back(value);
        }
    }
    return table;
}

inline bool is_image(const part& p) {
    return p.shape.size() == 3 && (p.type == rpc::UINT8 || p.type == rpc::FLOAT) &&
           (p.shape[2] == 1 || p.shape[2] == 3) && p.shape[0] > 1 && p.shape[1] > 1;
}

/// What an agent makes of a world; throws where that is nothing.
inline reading read_specs(const rpc::ActionObservationSpecs& specs, const action_table& asked,
                          const std::string& where) {
    reading r;
    std::vector<part> numbers, images;
    bool texts = false;
    const auto shown = read_parts(specs.observations(), where);
    for (const auto& p : shown) {
        const auto scalar = [&](std::optional<part>& to) {
            require(is_number(p.type) && p.count == 1, where, ": '", p.name, "' is ", text_of_type(p.type), " ",
                    text_of_shape(p.shape), ", expected one number");
            to = p;
        };
        if (p.name == "reward") {
            scalar(r.reward);
        } else if (p.name == "discount") {
            scalar(r.discount);
        } else if (is_image(p)) {
            images.push_back(p);
        } else if (is_number(p.type)) {
            if (p.name == "Score" && p.count == 1) r.score = p;
            numbers.push_back(p);
        } else {
            texts = true;
        }
    }
    // The Memory Tasks Suite tells the sum of its rewards.
    if (r.reward) r.score.reset();
    require(r.reward || r.score, where, " has no observation 'reward' (it shows ", names_of(shown),
            "); an agent here learns from rewards");
    require(images.size() <= 1, where, " shows ", images.size(), " images (", names_of(images),
            "); an agent here sees one");
    require(!images.empty() || !numbers.empty(), where, " shows ",
            texts ? "texts alone (" + names_of(shown) + ")" : std::string("nothing besides its reward"),
            "; an agent here sees one image, or numbers");
    r.image = !images.empty();
    r.seen = r.image ? images : numbers;
    std::int64_t total = 0;
    double lowest = HUGE_VAL, highest = -HUGE_VAL;
    for (const auto& p : r.seen) {
        require(p.count > 0, where, ": '", p.name, "' has shape ", text_of_shape(p.shape),
                ", whose size is not fixed; an agent here sees the same number of numbers every step");
        total += p.count;
        for (const double bound : p.lowest) lowest = std::min(lowest, bound);
        for (const double bound : p.highest) highest = std::max(highest, bound);
    }
    require(total <= numbers_at_most, where, " shows ", total, " numbers, expected at most ", numbers_at_most);
    if (r.image) {
        const auto& shape = r.seen[0].shape;
        r.shape = {static_cast<int>(shape[0]), static_cast<int>(shape[1]), static_cast<int>(shape[2])};
    } else {
        r.shape = {1, 1, static_cast<int>(total)};
        r.lowest = -1;
    }
    const bool scaled = r.image && r.seen[0].type == rpc::UINT8;
    if (!scaled && lowest < highest && lowest > -1e30 && highest < 1e30)
        r.lowest = static_cast<float>(lowest), r.highest = static_cast<float>(highest);

    r.takes = read_parts(specs.actions(), where);
    require(!r.takes.empty(), where, " takes no action");
    for (const auto& p : r.takes)
        require(p.count > 0, where, ": action '", p.name, "' has shape ", text_of_shape(p.shape),
                ", whose size is not fixed");
    r.actions = asked.rows.empty() ? actions_of(r.takes, where) : ordered(asked, r.takes, where);
    for (const auto& row : r.actions.rows) {
        std::size_t at = 0;
        for (const auto& p : r.takes)
            for (std::int64_t i = 0; i < p.count; ++i, ++at) {
                const auto [least, most] = range_of(p.type);
                require(row[at] >= least && row[at] <= most, where, ": action '", p.name, "' of ", row[at], " is no ",
                        text_of_type(p.type));
            }
    }
    return r;
}

/// The numbers of a tensor that should be `p`, as floats: to[0 .. p.count), times `scale`.
inline void unpack(const rpc::Tensor& tensor, const part& p, float scale, float* to, const std::string& where) {
    const auto named = [&] { return where + ": '" + p.name + "'"; };
    const auto arrived = static_cast<int>(tensor.payload_case());
    if (arrived != static_cast<int>(p.type))
        fail(named(), " came as ", arrived == 0 ? std::string("an empty tensor") : text_of_type(arrived), ", expected ",
             text_of_type(p.type));
    // One element stands for all; a size below zero is what is left.
    const auto& shape = tensor.shape();
    bool alike = shape.size() == static_cast<int>(p.shape.size());
    for (int i = 0; alike && i < shape.size(); ++i)
        alike = shape[i] < 0 || shape[i] == p.shape[static_cast<std::size_t>(i)];
    if (!alike && p.count == 1)
        alike = std::all_of(shape.begin(), shape.end(), [](auto n) { return n == 1 || n == -1; });
    if (!alike) fail(named(), " came in shape ", text_of_shape(shape), ", expected ", text_of_shape(p.shape));
    (void)with_elements(tensor, [&](const auto* from, std::int64_t n) {
        if (n != p.count && n != 1)
            fail(named(), " came with ", n, " numbers, expected ", p.count, " in shape ", text_of_shape(p.shape));
        if (n == 1) {
            std::fill_n(to, p.count, static_cast<float>(*from) * scale);
        } else {
            for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]) * scale;
        }
        using type = std::remove_cvref_t<decltype(*from)>;
        if constexpr (std::is_floating_point_v<type>)
            for (std::int64_t i = 0; i < p.count; ++i)
                if (!std::isfinite(to[i])) [[unlikely]]
                    fail(named(), " holds ", to[i], " at ", i, ", which is not finite");
    });
}

/// One tensor out of an answer's.
inline const rpc::Tensor& tensor_of(const rpc::StepResponse& step, const part& p, const std::string& where) {
    const auto found = step.observations().find(p.uid);
    if (found == step.observations().end()) fail(where, ": the answer to a step has no '", p.name, "'");
    return found->second;
}
inline double number_of(const rpc::StepResponse& step, const part& p, const std::string& where) {
    float number = 0;
    unpack(tensor_of(step, p, where), p, 1, &number, where);
    return static_cast<double>(number);
}
/// What an agent sees of an answer.
inline void see(const rpc::StepResponse& step, const reading& r, float* to, const std::string& where) {
    const float scale = r.image && r.seen[0].type == rpc::UINT8 ? 1.0f / 255 : 1.0f;
    for (const auto& p : r.seen) {
        unpack(tensor_of(step, p, where), p, scale, to, where);
        to += p.count;
    }
}

/// `count` numbers as a tensor of the part's type and shape.
inline rpc::Tensor pack(const part& p, const double* from) {
    rpc::Tensor tensor;
    for (const auto n : p.shape) tensor.add_shape(static_cast<std::int32_t>(n));
    for (std::int64_t i = 0; i < p.count; ++i) {
        const double v = from[i];
        switch (p.type) {
            case rpc::FLOAT:
                tensor.mutable_floats()->add_array(static_cast<float>(v));
                break;
            case rpc::DOUBLE:
                tensor.mutable_doubles()->add_array(v);
                break;
            case rpc::INT8:
                tensor.mutable_int8s()->mutable_array()->push_back(static_cast<char>(static_cast<std::int8_t>(v)));
                break;
            case rpc::INT32:
                tensor.mutable_int32s()->add_array(static_cast<std::int32_t>(v));
                break;
            case rpc::INT64:
                tensor.mutable_int64s()->add_array(static_cast<std::int64_t>(v));
                break;
            case rpc::UINT8:
                tensor.mutable_uint8s()->mutable_array()->push_back(static_cast<char>(static_cast<std::uint8_t>(v)));
                break;
            case rpc::UINT32:
                tensor.mutable_uint32s()->add_array(static_cast<std::uint32_t>(v));
                break;
            case rpc::UINT64:
                tensor.mutable_uint64s()->add_array(static_cast<std::uint64_t>(v));
                break;
            default:
                tensor.mutable_bools()->add_array(v != 0);
                break;
        }
    }
    return tensor;
}

/// The request of a step with the action of a line of the table, null for none; `all`: with what the agent sees.
inline rpc::EnvironmentRequest step_request(const reading& r, const std::vector<double>* action, bool all) {
    rpc::EnvironmentRequest request;
    auto& step = *request.mutable_step();
    const double* from = action ? action->data() : nullptr;
    if (from)
        for (const auto& p : r.takes) {
            (*step.mutable_actions())[p.uid] = pack(p, from);
            from += p.count;
        }
    if (all)
        for (const auto& p : r.seen) step.add_requested_observations(p.uid);
    for (const auto* p : {&r.reward, &r.discount, &r.score})
        if (*p && !(all && p == &r.score && !r.image)) step.add_requested_observations((*p)->uid);
    return request;
}

/// The tensor that the text of a setting means.
inline rpc::Tensor setting_tensor(const std::string& text) {
    rpc::Tensor tensor;
    const auto quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
    const char* end = text.data() + text.size();
    char* stopped = nullptr;
    if (quoted) {
        tensor.mutable_strings()->add_array(text.substr(1, text.size() - 2));
        return tensor;
    }
    if (text == "true" || text == "false") {
        tensor.mutable_bools()->add_array(text == "true");
        return tensor;
    }
    if (!text.empty() && (std::isdigit(static_cast<unsigned char>(text.front())) || text.front() == '-' ||
                          text.front() == '+' || text.front() == '.')) {
        errno = 0;
        const long long whole = std::strtoll(text.c_str(), &stopped, 10);
        if (stopped == end && errno == 0) {
            tensor.mutable_int64s()->add_array(whole);
            return tensor;
        }
        const double number = std::strtod(text.c_str(), &stopped);
        if (stopped == end && std::isfinite(number)) {
            tensor.mutable_doubles()->add_array(number);
            return tensor;
        }
    }
    tensor.mutable_strings()->add_array(text);
    return tensor;
}

}  // namespace engram::world_messages
