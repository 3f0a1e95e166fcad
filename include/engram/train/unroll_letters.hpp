#pragma once
// SPDX-License-Identifier: MIT

// The form of what processes write to each other in asynchronous training; who says what when: train/actors_apart.hpp.

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <engram/train/processes.hpp>

namespace engram::unroll_letters {

enum class kind : std::int64_t { weights, pause, save, end, unroll, paused, ended, failed, stop };

/// What a letter begins with.
struct head {
    kind what;
    std::int64_t count = 0;     // weights: further unrolls; unroll: episodes that ended
    std::int64_t version = 0;   // updates of the weights
    std::int64_t group = 0;     // unroll: of environments
    std::int64_t promised = 0;  // unroll: the version of the weights that came with the permission
};

/// A head, and numbers or a text behind it.
template <class... Parts>
std::shared_ptr<const std::vector<std::byte>> write(const head& h, const Parts&... parts) {
    auto content = std::make_shared<std::vector<std::byte>>();
    const auto add = [&](auto span) {
        const auto bytes = std::as_bytes(span);
        content->insert(content->end(), bytes.begin(), bytes.end());
    };
    content->reserve((sizeof h + ... + std::as_bytes(std::span(parts)).size()));
    add(std::span(&h, 1));
    (add(std::span(parts)), ...);
    return content;
}

/// Takes a letter apart, from its head on.
class reader {
public:
    explicit reader(const processes::letter& from) : rest_(from.content) { take(std::span(&head_, 1)); }
    const engram::unroll_letters::head& head() const { return head_; }
    template <class Number>
    void take(std::span<Number> to) {
        const auto bytes = std::as_writable_bytes(to);
        require(bytes.size() <= rest_.size(), "a letter is ", bytes.size() - rest_.size(), " bytes too short");
        if (!bytes.empty()) std::memcpy(bytes.data(), rest_.data(), bytes.size());
        rest_ = rest_.subspan(bytes.size());
    }
    bool at_end() const { return rest_.empty(); }
    std::string text() const { return {reinterpret_cast<const char*>(rest_.data()), rest_.size()}; }

private:
    std::span<const std::byte> rest_;
    engram::unroll_letters::head head_{};
};

}  // namespace engram::unroll_letters
