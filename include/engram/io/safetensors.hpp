#pragma once
// SPDX-License-Identifier: MIT

// safetensors: named tensors and texts in one file, readable by every framework.
//
//     8 bytes   N, the length of the header, little-endian
//     N bytes   JSON: {"__metadata__": {"key": "text"}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0,
//     24]}} the rest  the numbers, little-endian, row-major, one tensor behind the other without holes
//
// Files are written whole or not at all. Reading is strict: a header that lies (offsets out of range, overlapping or
// with holes, a size that is not the shape's, a name that occurs twice) or a file that is too short or too long is an
// error that names the file. The metadata also holds a checksum of everything else, which other readers ignore; a file
// that has one must match it. Needs nlohmann's header, which is why engram.hpp leaves this one out.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <engram/core/error.hpp>
#include <engram/io/file.hpp>
#include <engram/io/json.hpp>

namespace engram {

static_assert(std::endian::native == std::endian::little, "engram: safetensors files are little-endian");

/// A number type of a tensor, by its name in the format; empty for types that are not supported.
template <class T>
inline constexpr std::string_view dtype_of = "";
template <>
inline constexpr std::string_view dtype_of<float> = "F32";
template <>
inline constexpr std::string_view dtype_of<double> = "F64";
template <>
inline constexpr std::string_view dtype_of<std::int32_t> = "I32";
template <>
inline constexpr std::string_view dtype_of<std::int64_t> = "I64";
template <>
inline constexpr std::string_view dtype_of<std::uint64_t> = "U64";
template <>
inline constexpr std::string_view dtype_of<std::uint8_t> = "U8";

/// Named tensors, kept in the order of their names, and named texts.
class safetensors {
public:
    struct tensor {
        std::string dtype;
        std::vector<std::int64_t> shape;
        bytes data;
    };

    std::map<std::string, std::string> metadata;
    std::map<std::string, tensor> tensors;

    /// Adds a copy of `values`, row-major; their number must be the product of `shape` ({} is one number).
    template <class T>
    void add(const std::string& name, std::vector<std::int64_t> shape, std::span<const T> values) {
        static_assert(!dtype_of<T>.empty(), "engram: a tensor holds float, double, int32, int64, uint64 or uint8");
        require(!name.empty() && name != "__metadata__", "'", name, "' cannot be the name of a tensor");
        require(!tensors.contains(name), "tensor '", name, "' is added twice");
        require(count(shape) == static_cast<std::int64_t>(values.size()), "tensor '", name, "': ", values.size(),
                " numbers for the shape ", text(shape));
        tensor t{std::string(dtype_of<T>), std::move(shape), bytes(values.size_bytes())};
        if (!values.empty()) std::memcpy(t.data.data(), values.data(), values.size_bytes());
        tensors.emplace(name, std::move(t));
    }

    template <class T>
    void add(const std::string& name, std::vector<std::int64_t> shape, const std::vector<T>& values) {
        add(name, std::move(shape), std::span<const T>(values));
    }

    bool contains(const std::string& name) const { return tensors.contains(name); }

    /// Where the tensors came from, at the start of every error.
    const std::string& source() const { return source_; }

    /// The tensor called `name`; throws with the nearest name when there is none.
    const tensor& at(const std::string& name) const {
        const auto found = tensors.find(name);
        if (found != tensors.end()) return found->second;
        std::vector<std::string> names;
        for (const auto& [known, _] : tensors) names.push_back(known);
        fail(source_, ": no tensor '", name, "'", names.empty() ? " (it has none)" : instead_of(name, names));
    }

    /// The numbers of a tensor, which must be of type T.
    template <class T>
    std::span<const T> values(const std::string& name) const {
        const tensor& t = at(name);
        require(t.dtype == dtype_of<T>, source_, ": tensor '", name, "' is ", t.dtype, ", expected ", dtype_of<T>);
        return {reinterpret_cast<const T*>(t.data.data()), t.data.size() / sizeof(T)};
    }

    /// The same, where the shape must be `shape` too.
    template <class T>
    std::span<const T> values(const std::string& name, const std::vector<std::int64_t>& shape) const {
        const auto numbers = values<T>(name);
        const auto& actual = at(name).shape;
        require(actual == shape, source_, ": tensor '", name, "' is ", text(actual), ", expected ", text(shape));
        return numbers;
    }

    /// The text called `key`; throws when there is none.
    const std::string& text_at(const std::string& key) const {
        const auto found = metadata.find(key);
        require(found != metadata.end(), source_, ": no metadata '", key, "'");
        return found->second;
    }

    /// Writes the file whole or not at all.
    void write(const std::string& path) const {
        const auto order = order_of_tensors();
        const std::string head = head_of(order, path);
        atomic_file file(path);
        file.write(head.data(), head.size());
        for (const auto& [_, name] : order) file.write(tensors.at(*name).data.data(), tensors.at(*name).data.size());
        file.commit();
    }
    /// What a file would hold.
    bytes to_bytes() const {
        const auto order = order_of_tensors();
        const std::string head = head_of(order, "tensors");
        bytes all(head.begin(), head.end());
        for (const auto& [_, name] : order) {
            const bytes& data = tensors.at(*name).data;
            all.insert(all.end(), data.begin(), data.end());
        }
        return all;
    }

    static safetensors read(const std::string& path) { return from_bytes(read_file(path), path); }
    /// The content of a file; `path` is at the start of every error.
    static safetensors from_bytes(std::span<const std::uint8_t> content, const std::string& path) {
        require(content.size() >= 8, path, ": ", content.size(), " bytes are no safetensors file; it is truncated");
        std::uint64_t length = 0;
        std::memcpy(&length, content.data(), sizeof length);
        require(length <= content.size() - 8, path, ": the header should have ", length, " bytes, but only ",
                content.size() - 8, " follow; the file is truncated or no safetensors file");
        const char* head = reinterpret_cast<const char*>(content.data()) + 8;
        const json header = parse_json({head, static_cast<std::size_t>(length)}, path);
        require(header.is_object(), path, ": the header is not an object");

        safetensors result;
        result.source_ = path;
        const std::span<const std::uint8_t> data = content.subspan(8 + static_cast<std::size_t>(length));
        layout order;
        for (const auto& item : header.items()) {
            if (item.key() == "__metadata__")
                result.read_metadata(item.value());
            else
                order.emplace(result.read_entry(item.key(), item.value(), static_cast<std::int64_t>(data.size())),
                              item.key());
        }
        result.check_layout(order, static_cast<std::int64_t>(data.size()));
        // Not before: many tensors that share their bytes would ask for more memory than the file has.
        for (const auto& [place, name] : order) {
            const auto piece = data.subspan(static_cast<std::size_t>(place.first),
                                            static_cast<std::size_t>(place.second - place.first));
            result.tensors.at(name).data.assign(piece.begin(), piece.end());
        }
        result.check_sum();
        return result;
    }

private:
    /// First byte, and the one behind the last, of every tensor, and its name.
    using layout = std::multimap<std::pair<std::int64_t, std::int64_t>, std::string>;

    static constexpr const char* checksum_key = "engram.checksum";

    // The largest numbers first, so that every tensor is aligned to its own type.
    std::vector<std::pair<std::int64_t, const std::string*>> order_of_tensors() const {
        std::vector<std::pair<std::int64_t, const std::string*>> order;
        for (const auto& [name, t] : tensors) order.emplace_back(-size_of(t.dtype), &name);
        std::stable_sort(order.begin(), order.end(), [](auto& a, auto& b) { return a.first < b.first; });
        return order;
    }
    /// The header and its length.
    std::string head_of(const std::vector<std::pair<std::int64_t, const std::string*>>& order,
                        const std::string& path) const {
        json header = json::object();
        std::int64_t begin = 0;
        header["__metadata__"] = metadata;
        header["__metadata__"][checksum_key] = std::to_string(checksum());
        for (const auto& [_, name] : order) {
            const tensor& t = tensors.at(*name);
            const std::int64_t end = begin + static_cast<std::int64_t>(t.data.size());
            header[*name] = {{"dtype", t.dtype}, {"shape", t.shape}, {"data_offsets", {begin, end}}};
            begin = end;
        }
        std::string text;
        try {
            text = header.dump();
        } catch (const nlohmann::json::exception&) {
            fail("cannot write ", path, ": a name or a text is not UTF-8");
        }
        text.resize((text.size() + 7) / 8 * 8, ' ');
        const std::uint64_t length = text.size();
        std::string head(sizeof length, '\0');
        std::memcpy(head.data(), &length, sizeof length);
        return head + text;
    }

    /// FNV-1a over words of 8 bytes, the last one of each piece filled with zeros: texts, names, types, shapes,
    /// numbers.
    std::uint64_t checksum() const {
        std::uint64_t sum = 0xcbf29ce484222325u;
        const auto add = [&](const auto& piece) {
            for (std::size_t at = 0; at < piece.size(); at += 8) {
                std::uint64_t word = 0;
                std::memcpy(&word, piece.data() + at, std::min<std::size_t>(8, piece.size() - at));
                sum = (sum ^ word) * 0x100000001b3u;
            }
        };
        for (const auto& [key, value] : metadata) add(key), add(value);
        for (const auto& [name, t] : tensors) add(name), add(t.dtype), add(text(t.shape)), add(t.data);
        return sum;
    }

    static std::int64_t size_of(std::string_view dtype) {
        return dtype == "U8" ? 1 : dtype == "F32" || dtype == "I32" ? 4 : 8;
    }

    static std::string text(const std::vector<std::int64_t>& shape) {
        std::string all;
        for (const std::int64_t n : shape) {
            if (!all.empty()) all += ",";
            all += std::to_string(n);
        }
        return "[" + all + "]";
    }

    /// Product of a shape, or -1 when it is negative somewhere or too large.
    static std::int64_t count(const std::vector<std::int64_t>& shape) {
        std::int64_t product = 1;
        for (const std::int64_t n : shape)
            if (n < 0 || __builtin_mul_overflow(product, n, &product)) return -1;
        return product <= std::numeric_limits<std::int64_t>::max() / 8 ? product : -1;
    }

    void read_metadata(const json& texts) {
        require(texts.is_object(), source_, ": __metadata__ is not an object");
        for (const auto& item : texts.items()) {
            require(item.value().is_string(), source_, ": metadata '", item.key(), "' is not a text");
            metadata.emplace(item.key(), item.value().get<std::string>());
        }
    }

    /// Adds one tensor, without its numbers, and returns their place in the `size` bytes behind the header.
    std::pair<std::int64_t, std::int64_t> read_entry(const std::string& name, const json& entry, std::int64_t size) {
        const auto whole = [](const json& list) {
            return list.is_array() && std::all_of(list.begin(), list.end(), [](const json& n) {
                       return n.is_number_unsigned() && n.get<std::uint64_t>() <= std::uint64_t{1} << 62;
                   });
        };
        require(entry.is_object() && entry.size() == 3 && entry.contains("dtype") && entry["dtype"].is_string() &&
                    entry.contains("shape") && whole(entry["shape"]) && entry.contains("data_offsets") &&
                    whole(entry["data_offsets"]) && entry["data_offsets"].size() == 2,
                source_, ": tensor '", name, "' needs exactly a dtype, a shape and two data_offsets");
        tensor t{entry["dtype"].get<std::string>(), entry["shape"].get<std::vector<std::int64_t>>(), {}};
        constexpr std::string_view known[] = {"F32", "F64", "I32", "I64", "U64", "U8"};
        require(std::find(std::begin(known), std::end(known), t.dtype) != std::end(known), source_, ": tensor '", name,
                "' is ", t.dtype, "; only F32, F64, I32, I64, U64 and U8 are read");

        const auto begin = entry["data_offsets"][0].get<std::int64_t>();
        const auto end = entry["data_offsets"][1].get<std::int64_t>();
        require(begin <= end && end <= size, source_, ": tensor '", name, "' should be bytes ", begin, " to ", end,
                " of ", size, "; the file is truncated or corrupt");
        require(count(t.shape) >= 0 && count(t.shape) * size_of(t.dtype) == end - begin, source_, ": tensor '", name,
                "' has ", end - begin, " bytes, which do not fit ", t.dtype, " ", text(t.shape));
        tensors.emplace(name, std::move(t));
        return {begin, end};
    }

    void check_layout(const layout& order, std::int64_t size) const {
        std::int64_t last = 0;
        for (const auto& [place, name] : order) {
            require(place.first >= last, source_, ": tensor '", name, "' overlaps the one before it");
            require(place.first == last, source_, ": nothing describes the ", place.first - last,
                    " bytes before tensor '", name, "'");
            last = place.second;
        }
        require(last == size, source_, ": nothing describes the last ", size - last, " bytes");
    }

    void check_sum() {
        const auto found = metadata.find(checksum_key);
        if (found == metadata.end()) return;
        const std::string expected = found->second;
        metadata.erase(found);
        require(expected == std::to_string(checksum()), source_,
                ": it does not match its checksum; the file is corrupt");
    }

    std::string source_ = "tensors";
};

}  // namespace engram
