#pragma once
// SPDX-License-Identifier: MIT

// Whole files in, whole files out. A file is written beside its target under a temporary name, flushed to the disk and
// renamed: a reader, a crash or a full disk meets the old file or the new one, never half of one. Errors are sentences
// with the system's reason. POSIX.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engram/core/error.hpp"

namespace engram {

using bytes = std::vector<std::uint8_t>;

// <filesystem> takes 0.2 s of every compilation.

/// Whether there is anything at `path`.
inline bool exists_on_disk(const std::string& path) {
    struct stat found;
    return ::stat(path.c_str(), &found) == 0;
}
/// Whether there is a folder at `path`.
inline bool folder_on_disk(const std::string& path) {
    struct stat found;
    return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

/// The content of a regular file.
inline bytes read_file(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    require(file >= 0, "cannot read ", path, ": ", std::strerror(errno));
    struct stat facts {};
    if (::fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        ::close(file);
        fail("cannot read ", path, ": it is not a regular file");
    }
    bytes content(static_cast<std::size_t>(facts.st_size));
    std::size_t done = 0;
    while (done < content.size()) {
        const auto got = ::read(file, content.data() + done, content.size() - done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            const int reason = errno;
            ::close(file);
            fail("cannot read ", path, ": ", got < 0 ? std::strerror(reason) : "it became shorter while being read");
        }
        done += static_cast<std::size_t>(got);
    }
    ::close(file);
    return content;
}

/// Writes a file piece by piece; nothing is seen under its name before `commit`, and nothing at all without it.
class atomic_file {
public:
    /// What a file is called while it is written: its name, this, and six characters.
    static constexpr const char* suffix = ".partial-";

    explicit atomic_file(std::string path) : path_(std::move(path)), temporary_(path_ + suffix + "XXXXXX") {
        file_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
        require(file_ >= 0, "cannot write ", path_, ": ", std::strerror(errno));
    }
    atomic_file(const atomic_file&) = delete;
    atomic_file& operator=(const atomic_file&) = delete;
    ~atomic_file() { discard(); }

    void write(const void* data, std::size_t size) {
        const char* at = static_cast<const char*>(data);
        while (size > 0) {
            const auto put = ::write(file_, at, size);
            if (put < 0 && errno == EINTR) continue;
            if (put < 0) give_up();
            at += put;
            size -= static_cast<std::size_t>(put);
        }
    }

    void commit() {
        const auto mask = ::umask(0);
        ::umask(mask);
        if (::fchmod(file_, 0666 & ~mask) != 0 || ::fsync(file_) != 0) give_up();
        const int closed = ::close(file_);
        file_ = -1;
        if (closed != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) give_up();
        temporary_.clear();
        // The rename is durable once the folder is; a folder that cannot be flushed has lost nothing yet.
        const auto slash = path_.find_last_of('/');
        const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
        if (const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); directory >= 0) {
            ::fsync(directory);
            ::close(directory);
        }
    }

private:
    [[noreturn]] void give_up() {
        const int reason = errno;
        discard();
        fail("cannot write ", path_, ": ", std::strerror(reason), " (what was there before is unchanged)");
    }
    void discard() {
        if (file_ >= 0) ::close(file_);
        file_ = -1;
        if (!temporary_.empty()) ::unlink(temporary_.c_str());
        temporary_.clear();
    }

    std::string path_, temporary_;
    int file_ = -1;
};

/// Writes a file whole or not at all.
inline void write_file(const std::string& path, std::span<const std::uint8_t> content) {
    atomic_file file(path);
    file.write(content.data(), content.size());
    file.commit();
}

/// Writes a file whole or not at all.
inline void write_file(const std::string& path, std::string_view content) {
    atomic_file file(path);
    file.write(content.data(), content.size());
    file.commit();
}

/// Reads numbers and pieces from the front of a file's bytes; running out of them is a sentence that names the file.
class byte_reader {
public:
    byte_reader(std::span<const std::uint8_t> content, std::string name) : content_(content), name_(std::move(name)) {}

    std::size_t left() const { return content_.size() - at_; }
    std::size_t position() const { return at_; }
    void seek(std::size_t position) {
        require(position <= content_.size(), name_, ": it points to byte ", position, " of ", content_.size(),
                "; the file is truncated or corrupt");
        at_ = position;
    }
    std::span<const std::uint8_t> take(std::size_t size) {
        require(size <= left(), name_, ": ", size, " bytes expected at byte ", at_, ", but only ", left(),
                " are left; the file is truncated or corrupt");
        at_ += size;
        return content_.subspan(at_ - size, size);
    }
    std::uint32_t big32() {
        const auto b = take(4);
        return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
    }
    std::uint32_t little32() {
        const auto b = take(4);
        return std::uint32_t{b[3]} << 24 | std::uint32_t{b[2]} << 16 | std::uint32_t{b[1]} << 8 | b[0];
    }
    std::uint32_t little16() {
        const auto b = take(2);
        return std::uint32_t{b[1]} << 8 | b[0];
    }

private:
    std::span<const std::uint8_t> content_;
    std::string name_;
    std::size_t at_ = 0;
};

}  // namespace engram
