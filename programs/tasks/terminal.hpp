#pragma once
// SPDX-License-Identifier: MIT

// The terminal as a screen and a keyboard: no echo, keys at once, the cursor hidden, all of it undone at the end, also
// when a signal ends the program. POSIX.

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

#include <engram/core/error.hpp>

namespace engram {

enum class key { none, up, down, left, right, other };

struct key_press {
    key which = key::none;
    char letter = 0;  // of `other`
};

class terminal {
public:
    terminal() {
        require(::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO),
                "play: stdin or stdout is not a terminal; run it in one, or make a film (engram-tasks film)");
        require(::tcgetattr(STDIN_FILENO, &before_) == 0, "play: the terminal tells no settings");
        for (std::size_t i = 0; i < std::size(ends); ++i) {
            struct sigaction action {};
            action.sa_handler = [](int number) { ended = number; };
            sigemptyset(&action.sa_mask);
            ::sigaction(ends[i], &action, &handlers_[i]);
        }
        termios raw = before_;
        raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        raw.c_cc[VSUSP] = _POSIX_VDISABLE;  // a stopped program could not restore anything
        ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
        show("\x1b[?1049h\x1b[?25l\x1b[2J");
    }
    terminal(const terminal&) = delete;
    terminal& operator=(const terminal&) = delete;
    ~terminal() {
        show("\x1b[0m\x1b[?25h\x1b[?1049l");
        ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
        for (std::size_t i = 0; i < std::size(ends); ++i) ::sigaction(ends[i], &handlers_[i], nullptr);
    }

    /// Columns and lines.
    std::pair<int, int> size() const {
        winsize window{};
        const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 && window.ws_row > 0;
        return known ? std::pair<int, int>{window.ws_col, window.ws_row} : std::pair{80, 24};
    }

    void show(const std::string& text) const {
        const char* at = text.data();
        for (std::size_t left = text.size(); left > 0;) {
            const auto put = ::write(STDOUT_FILENO, at, left);
            if (put < 0 && errno == EINTR) continue;
            if (put <= 0) return;
            at += put, left -= static_cast<std::size_t>(put);
        }
    }

    /// Waits for a key; `none` when a signal or the end of the input came instead.
    key_press wait() const {
        char c = 0;
        if (!read(c, -1)) return {};
        if (c != '\x1b') return {key::other, c};
        char bracket = 0, arrow = 0;
        if (!read(bracket, 20) || (bracket != '[' && bracket != 'O') || !read(arrow, 20)) return {key::other, c};
        switch (arrow) {
            case 'A':
                return {key::up, 0};
            case 'B':
                return {key::down, 0};
            case 'C':
                return {key::right, 0};
            case 'D':
                return {key::left, 0};
            default:
                return {key::other, c};
        }
    }

    /// The signal that came, 0 if none.
    int signal() const { return ended; }

private:
    static constexpr int ends[]{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    static inline volatile std::sig_atomic_t ended = 0;

    bool read(char& c, int milliseconds) const {
        // A signal between the look and the wait would be slept through, so the wait is never long.
        for (int waited = 0; !ended && (milliseconds < 0 || waited <= milliseconds); waited += 20) {
            pollfd input{STDIN_FILENO, POLLIN, 0};
            const int ready = ::poll(&input, 1, milliseconds < 0 ? 200 : 20);
            if (ready < 0 && errno != EINTR) return false;
            if (ready > 0) return ::read(STDIN_FILENO, &c, 1) == 1;
        }
        return false;
    }

    termios before_{};
    struct sigaction handlers_[std::size(ends)]{};
};

}  // namespace engram
