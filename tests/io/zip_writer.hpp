#pragma once
// SPDX-License-Identifier: MIT

// Makes small zip archives for tests.

#include <zlib.h>

#include <string>
#include <utility>
#include <vector>

#include "engram/io/file.hpp"

struct zip_writer {
    engram::bytes out, directory;
    unsigned count = 0;

    static void put(engram::bytes& to, std::size_t value, int size) {
        for (int i = 0; i < size; ++i) to.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
    }

    void add(const std::string& name, const engram::bytes& content, bool deflated) {
        engram::bytes packed = content;
        if (deflated) {
            packed.resize(content.size() + 100);
            z_stream stream{};
            deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
            stream.next_in = const_cast<Bytef*>(content.data());
            stream.avail_in = static_cast<uInt>(content.size());
            stream.next_out = packed.data();
            stream.avail_out = static_cast<uInt>(packed.size());
            deflate(&stream, Z_FINISH);
            packed.resize(stream.total_out);
            deflateEnd(&stream);
        }
        const std::size_t offset = out.size();
        const auto common = [&](engram::bytes& to) {
            put(to, 20, 2);
            put(to, 0, 2);
            put(to, deflated ? 8 : 0, 2);
            put(to, 0, 4);
            put(to, crc32(0, content.data(), static_cast<uInt>(content.size())), 4);
            put(to, packed.size(), 4);
            put(to, content.size(), 4);
            put(to, name.size(), 2);
            put(to, 0, 2);
        };
        put(out, 0x04034b50, 4);
        common(out);
        out.insert(out.end(), name.begin(), name.end());
        out.insert(out.end(), packed.begin(), packed.end());
        put(directory, 0x02014b50, 4);
        put(directory, 20, 2);
        common(directory);
        put(directory, 0, 8);
        put(directory, 0, 2);
        put(directory, offset, 4);
        directory.insert(directory.end(), name.begin(), name.end());
        ++count;
    }

    engram::bytes finish(const std::string& comment = "") const {
        engram::bytes whole = out;
        whole.insert(whole.end(), directory.begin(), directory.end());
        put(whole, 0x06054b50, 4);
        put(whole, 0, 4);
        put(whole, count, 2);
        put(whole, count, 2);
        put(whole, directory.size(), 4);
        put(whole, out.size(), 4);
        put(whole, comment.size(), 2);
        whole.insert(whole.end(), comment.begin(), comment.end());
        return whole;
    }
};
