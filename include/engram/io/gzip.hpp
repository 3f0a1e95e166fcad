#pragma once
// SPDX-License-Identifier: MIT

// Inflating (RFC 1950, 1951, 1952) by zlib. Memory grows with what has really been inflated, and deflate cannot expand
// more than 1032 times, so a lying header cannot ask for more than the file can hold.

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

#include "engram/core/error.hpp"
#include "engram/io/file.hpp"

namespace engram {

enum class deflate_format : int { raw = -15, zlib = 15, gzip = 31 };

/// Inflates all of `packed`, at most `limit` bytes; `name` is what errors speak of.
inline bytes inflate(std::span<const std::uint8_t> packed, deflate_format format, std::size_t limit,
                     const std::string& name) {
    require(packed.size() < (std::size_t{1} << 31), name, ": more than 2 GiB of compressed data");
    z_stream stream{};
    require(inflateInit2(&stream, static_cast<int>(format)) == Z_OK, name, ": zlib has no memory");
    struct closer {
        z_stream* stream;
        ~closer() { inflateEnd(stream); }
    } const close{&stream};
    stream.next_in = const_cast<Bytef*>(packed.data());
    stream.avail_in = static_cast<uInt>(packed.size());

    bytes out;
    std::size_t done = 0;
    for (;;) {
        // Only when it is full: a file of many tiny members would clear the rest anew for each of them.
        if (done == out.size()) out.resize(done + std::min(std::max<std::size_t>(4096, done), limit + 1 - done));
        stream.next_out = out.data() + done;
        stream.avail_out = static_cast<uInt>(std::min(out.size() - done, std::size_t{1} << 30));
        const int status = ::inflate(&stream, Z_NO_FLUSH);
        done = static_cast<std::size_t>(stream.next_out - out.data());
        require(done <= limit, name, ": more than the expected ", limit, " bytes of content");
        if (status == Z_STREAM_END) {
            if (stream.avail_in == 0) {
                out.resize(done);
                return out;
            }
            // A gzip file may be several members, one after another.
            require(format == deflate_format::gzip && inflateReset(&stream) == Z_OK, name,
                    ": bytes follow the end of the compressed data");
            continue;
        }
        require(status != Z_BUF_ERROR || stream.avail_in != 0, name, ": the compressed data is truncated");
        require(status == Z_OK || status == Z_BUF_ERROR, name, ": the compressed data is corrupt (",
                stream.msg ? stream.msg : "no reason given", ")");
    }
}

/// The content of a file, inflated if it begins as a gzip file does.
inline bytes read_maybe_gzip(const std::string& path) {
    bytes content = read_file(path);
    if (content.size() < 2 || content[0] != 0x1f || content[1] != 0x8b) return content;
    return inflate(content, deflate_format::gzip, content.size() * 1032 + 1032, path);
}

}  // namespace engram
