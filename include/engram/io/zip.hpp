#pragma once
// SPDX-License-Identifier: MIT

// Reading zip archives: stored and deflated entries, found through the central directory; every offset and size is
// checked against the file, every content against its CRC-32. Not read: zip64, encryption, several volumes.

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engram/core/error.hpp"
#include "engram/io/file.hpp"
#include "engram/io/gzip.hpp"

namespace engram {

struct zip_entry {
    std::string name;
    std::uint32_t flags = 0, method = 0, checksum = 0;
    std::size_t packed = 0, size = 0, offset = 0;
};

class zip_archive {
public:
    explicit zip_archive(std::string path) : path_(std::move(path)), content_(read_file(path_)) { read_directory(); }

    const std::string& path() const { return path_; }
    const std::vector<zip_entry>& entries() const { return entries_; }

    bytes read(const zip_entry& entry) const {
        const std::string name = path_ + ": " + entry.name;
        require((entry.flags & 1u) == 0, name, ": it is encrypted, which is not supported");
        byte_reader in(content_, name);
        in.seek(entry.offset);
        require(in.little32() == 0x04034b50u, name, ": no entry where the directory points; the archive is corrupt");
        in.take(22);
        const std::size_t name_size = in.little16(), extra_size = in.little16();
        in.take(name_size + extra_size);
        const auto packed = in.take(entry.packed);
        bytes data;
        if (entry.method == 0)
            data.assign(packed.begin(), packed.end());
        else if (entry.method == 8)
            data = inflate(packed, deflate_format::raw, entry.size, name);
        else
            fail(name, ": compression method ", entry.method, ", expected 0 (stored) or 8 (deflated)");
        require(data.size() == entry.size, name, ": ", data.size(), " bytes of content, expected ", entry.size);
        require(::crc32(0, data.data(), static_cast<uInt>(data.size())) == entry.checksum, name,
                ": the checksum does not fit the content; the archive is corrupt");
        return data;
    }

private:
    void read_directory() {
        constexpr std::size_t end_size = 22, longest_comment = 65535;
        require(content_.size() >= end_size, path_, ": ", content_.size(), " bytes are too few for a zip archive");
        std::size_t end = content_.size() - end_size;
        const std::size_t lowest = end > longest_comment ? end - longest_comment : 0;
        byte_reader in(content_, path_);
        for (;; --end) {
            in.seek(end);
            if (in.little32() == 0x06054b50u) break;
            require(end > lowest, path_, ": no end of a zip directory; the file is truncated or not a zip archive");
        }
        in.seek(end + 4);
        const std::uint32_t volume = in.little16();
        in.take(4);
        const std::size_t count = in.little16();
        in.take(4);
        const std::size_t start = in.little32();
        require(volume == 0 && count != 0xffff && start != 0xffffffffu, path_,
                ": zip64 or several volumes, which are not supported");
        in.seek(start);
        require(count <= in.left() / 46, path_, ": the directory promises ", count, " entries, but ", in.left(),
                " bytes follow; the archive is corrupt");
        entries_.reserve(count);
        for (std::size_t i = 0; i < count; ++i) entries_.push_back(read_entry(in));
    }

    zip_entry read_entry(byte_reader& in) const {
        require(in.little32() == 0x02014b50u, path_, ": the zip directory is corrupt at byte ", in.position() - 4);
        zip_entry entry;
        in.take(4);
        entry.flags = in.little16();
        entry.method = in.little16();
        in.take(4);
        entry.checksum = in.little32();
        entry.packed = in.little32();
        entry.size = in.little32();
        const std::size_t name = in.little16(), extra = in.little16(), comment = in.little16();
        in.take(8);
        entry.offset = in.little32();
        const auto letters = in.take(name);
        entry.name.assign(letters.begin(), letters.end());
        in.take(extra + comment);
        return entry;
    }

    std::string path_;
    bytes content_;
    std::vector<zip_entry> entries_;
};

}  // namespace engram
