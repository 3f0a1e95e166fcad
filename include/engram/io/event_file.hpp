#pragma once
// SPDX-License-Identifier: MIT

// Event files: curves of scalars as TensorBoard reads them.
//
//   record   length (8 bytes), masked CRC-32C of the length, data, masked CRC-32C of the data; all little-endian
//   data     a protocol buffer, Event {1: double wall_time, 2: int64 step, 3: string file_version, 5: Summary}
//            Summary {1: repeated Value}, Value {1: string tag, 2: float simple_value}
//   masked   ((crc >> 15) | (crc << 17)) + 0xa282ead8 mod 2^32
//
// The first event of a file carries the version "brain.Event:2" and no step. A file that is opened again keeps the
// records up to a step, byte for byte, and drops the rest with any half of a record that a killed run left: a resumed
// run has no step twice. Only what is written here is read back, which is why no protocol buffer library is needed.

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engram/core/error.hpp"
#include "engram/io/file.hpp"

namespace engram {

/// A named number at some step.
struct scalar_value {
    std::string tag;
    double value;
};

/// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78).
inline std::uint32_t crc32c(std::string_view data) {
    static constexpr auto table = [] {
        std::array<std::uint32_t, 256> all{};
        for (std::uint32_t i = 0; i < 256; ++i) {
            all[i] = i;
            for (int bit = 0; bit < 8; ++bit) all[i] = all[i] >> 1 ^ (all[i] & 1 ? 0x82f63b78u : 0u);
        }
        return all;
    }();
    std::uint32_t crc = ~0u;
    for (const char c : data) crc = crc >> 8 ^ table[(crc ^ static_cast<std::uint8_t>(c)) & 255];
    return ~crc;
}

/// The checksum of a record: CRC-32C, masked as the format asks.
inline std::uint32_t masked_crc32c(std::string_view data) {
    return std::rotr(crc32c(data), 15) + 0xa282ead8u;
}

namespace internal {

inline std::string little_endian(std::uint64_t value, int size) {
    std::string out;
    for (int i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i) & 255);
    return out;
}

inline std::string varint(std::uint64_t value) {
    std::string out;
    for (; value >= 128; value >>= 7) out += static_cast<char>((value & 127) | 128);
    return out + static_cast<char>(value);
}

// Field keys: number * 8 + wire type; 0 is a varint, 1 eight bytes, 2 a length and as many bytes, 5 four bytes.
inline std::string piece(int field, std::string_view content) {
    return varint(static_cast<std::uint64_t>(field * 8 + 2)) + varint(content.size()) + std::string(content);
}
inline std::string wall_time(double seconds) {
    return "\x09" + little_endian(std::bit_cast<std::uint64_t>(seconds), 8);
}

}  // namespace internal

/// One record around `data`.
inline std::string event_record(std::string_view data) {
    const std::string length = internal::little_endian(data.size(), 8);
    return length + internal::little_endian(masked_crc32c(length), 4) + std::string(data) +
           internal::little_endian(masked_crc32c(data), 4);
}

/// The record that begins a file; `seconds` since 1970.
inline std::string first_event(double seconds) {
    return event_record(internal::wall_time(seconds) + internal::piece(3, "brain.Event:2"));
}

/// The scalars of one step; those that are NaN are left out.
inline std::string scalar_event(double seconds, std::int64_t step, std::span<const scalar_value> scalars) {
    std::string summary;
    for (const auto& s : scalars) {
        if (std::isnan(s.value)) continue;
        const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(s.value));
        summary += internal::piece(1, internal::piece(1, s.tag) + "\x15" + internal::little_endian(bits, 4));
    }
    return event_record(internal::wall_time(seconds) + "\x10" + internal::varint(static_cast<std::uint64_t>(step)) +
                        internal::piece(5, summary));
}

/// The records of a file one by one; damage, or half a record, is the end of them.
class event_reader {
public:
    event_reader(std::span<const std::uint8_t> content) : content_(content) {}

    /// Moves to the next whole record; false when there is none.
    bool next() {
        const std::size_t left = content_.size() - end_;
        const auto* at = content_.data() + end_;
        if (left < 16) return false;
        const std::uint64_t size = number(at, 8);
        if (number(at + 8, 4) != masked_crc32c(text(at, 8)) || size > left - 16) return false;
        data_ = text(at + 12, static_cast<std::size_t>(size));
        if (number(at + 12 + size, 4) != masked_crc32c(data_)) return false;
        end_ += static_cast<std::size_t>(size) + 16;
        return true;
    }
    /// Bytes up to the end of the record.
    std::size_t end() const { return end_; }
    std::string_view data() const { return data_; }

    /// The step of the record, 0 when it names none, -1 when it is no event.
    std::int64_t step() const {
        std::uint64_t step = 0;
        std::size_t at = 0;
        const auto varint = [&](std::uint64_t& value) {
            value = 0;
            for (int shift = 0; shift < 64 && at < data_.size(); shift += 7) {
                const auto byte = static_cast<std::uint8_t>(data_[at++]);
                value |= std::uint64_t{byte & 127u} << shift;
                if (byte < 128) return true;
            }
            return false;
        };
        while (at < data_.size()) {
            std::uint64_t key = 0, length = 0;
            if (!varint(key)) return -1;
            if (key == 0x10) {
                if (!varint(step)) return -1;
                continue;
            }
            const auto wire = key & 7;
            if (wire == 0 ? !varint(length) : wire == 2 ? !varint(length) : wire != 1 && wire != 5) return -1;
            if (wire == 0) continue;
            if (wire != 2) length = wire == 1 ? 8 : 4;
            if (length > data_.size() - at) return -1;
            at += static_cast<std::size_t>(length);
        }
        return static_cast<std::int64_t>(step);
    }

private:
    static std::string_view text(const std::uint8_t* at, std::size_t size) {
        return {reinterpret_cast<const char*>(at), size};
    }
    static std::uint64_t number(const std::uint8_t* at, int size) {
        std::uint64_t value = 0;
        for (int i = 0; i < size; ++i) value |= std::uint64_t{at[i]} << (8 * i);
        return value;
    }

    std::span<const std::uint8_t> content_;
    std::string_view data_;
    std::size_t end_ = 0;
};

/// An event file that grows by whole records.
class event_file {
public:
    /// Keeps the records of `path` up to `step`; with 0, or where there is no file, it begins anew at time `seconds`.
    event_file(const std::string& path, std::int64_t step, double seconds) : path_(path) {
        std::string kept = first_event(seconds);
        if (step > 0 && ::access(path.c_str(), F_OK) == 0) {
            const bytes content = read_file(path);
            event_reader record(content);
            require(content.empty() || (record.next() && record.data().find("brain.Event:") != std::string_view::npos),
                    path, ": not an event file; move it away, or train without --tensorboard");
            std::size_t end = record.end();
            while (record.next() && record.step() >= 0 && record.step() <= step) end = record.end();
            if (end > 0) kept.assign(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(end));
        }
        write_file(path, kept);
        file_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
        require(file_ >= 0, "cannot write ", path, ": ", std::strerror(errno));
    }
    event_file(const event_file&) = delete;
    event_file& operator=(const event_file&) = delete;
    ~event_file() { ::close(file_); }

    void write(double seconds, std::int64_t step, std::span<const scalar_value> scalars) {
        const std::string record = scalar_event(seconds, step, scalars);
        ssize_t put;
        do put = ::write(file_, record.data(), record.size());
        while (put < 0 && errno == EINTR);
        require(put >= 0, "cannot write ", path_, ": ", std::strerror(errno));
        require(put == static_cast<ssize_t>(record.size()), "cannot write ", path_, ": the disk is full");
    }
    /// To the disk: a checkpoint must not know more than the events before it.
    void flush() {
        require(::fsync(file_) == 0 || errno == EINVAL, "cannot write ", path_, ": ", std::strerror(errno));
    }

private:
    std::string path_;
    int file_ = -1;
};

}  // namespace engram
