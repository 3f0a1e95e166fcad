// SPDX-License-Identifier: MIT

// A link between two network namespaces, for a kernel whose tc has no netem: two TUN devices, one in each, and what
// goes into one comes out of the other when a wire of this rate and delay would have carried it.
//
//   link NAMESPACE NAMESPACE DELAY_US RATE_MBIT      the devices are called `wire`; runs until it is killed
//
// A thread a direction, which sleeps between packets and runs ahead of all others when it wakes.

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <thread>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;

/// A TUN device in a namespace.
int open_wire(const std::string& where) {
    const int ns = open(("/run/netns/" + where).c_str(), O_RDONLY | O_CLOEXEC);
    if (ns < 0 || setns(ns, CLONE_NEWNET) != 0) {
        std::perror(("link: namespace " + where).c_str());
        std::exit(1);
    }
    close(ns);
    const int wire = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    ifreq request{};
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    std::strcpy(request.ifr_name, "wire");
    if (wire < 0 || ioctl(wire, TUNSETIFF, &request) != 0) {
        std::perror("link: /dev/net/tun");
        std::exit(1);
    }
    return wire;
}

struct packet {
    clock_type::time_point due;
    std::vector<char> bytes;
};

void carry(int from, int to, std::chrono::nanoseconds delay, double bytes_a_second) {
    prctl(PR_SET_TIMERSLACK, 1);
    sched_param ahead{};
    ahead.sched_priority = 10;
    if (sched_setscheduler(0, SCHED_FIFO, &ahead) != 0) std::perror("link: no real-time priority, so delays vary");
    constexpr std::size_t most = 4096;  // packets on the way: more wait in the device
    std::deque<packet> under_way;
    std::vector<char> room(65536);
    auto free_at = clock_type::now();
    for (;;) {
        bool idle = true;
        while (under_way.size() < most) {
            const ssize_t n = read(from, room.data(), room.size());
            if (n <= 0) break;
            idle = false;
            const auto takes =
                std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * static_cast<double>(n) / bytes_a_second));
            free_at = std::max(free_at, clock_type::now()) + takes;
            under_way.push_back({free_at + delay, {room.begin(), room.begin() + n}});
        }
        while (!under_way.empty() && under_way.front().due <= clock_type::now()) {
            const auto& p = under_way.front();
            if (write(to, p.bytes.data(), p.bytes.size()) < 0 && errno == EAGAIN) break;
            under_way.pop_front();
            idle = false;
        }
        if (!idle) continue;
        pollfd wake{from, POLLIN, 0};
        if (under_way.empty()) {
            poll(&wake, 1, -1);
            continue;
        }
        const auto left =
            std::chrono::duration_cast<std::chrono::nanoseconds>(under_way.front().due - clock_type::now());
        if (left.count() <= 0) continue;
        const timespec wait{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
        ppoll(&wake, under_way.size() < most ? 1 : 0, &wait, nullptr);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        std::fputs("usage: link NAMESPACE NAMESPACE DELAY_US RATE_MBIT\n", stderr);
        return 2;
    }
    const int a = open_wire(argv[1]), b = open_wire(argv[2]);
    const std::chrono::nanoseconds delay(static_cast<std::int64_t>(1e3 * std::atof(argv[3])));
    const double rate = 1e6 / 8 * std::atof(argv[4]);
    std::thread back(carry, b, a, delay, rate);
    carry(a, b, delay, rate);
}
