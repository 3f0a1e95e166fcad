#pragma once
// SPDX-License-Identifier: MIT

// StatelessPendulum and NoisyStatelessPendulum of POPGym (PositionOnlyPendulum in the package of today): Gymnasium's
// pendulum that is to be swung up, of which cosine and sine of the angle are seen and the speed is not. A step costs
// angle^2 + 0.1 speed^2 + 0.001 torque^2, as they are before it, and earns (c - cost) / (c T), c = 8.1368022. Episodes
// have T = 200, 150 or 100 steps, the noisy ones 200 and noise of deviation 0.1, 0.2 or 0.3 on both numbers, which are
// then cut to [-1, 1].
//
// The original's action is a torque in [-2, 2]. Agents of this library choose among a few: -2, -1, 0, 1 and 2 (ours).
// `push` takes any. The previous action is seen as its torque, as in the original. The oracle swings it up by its
// energy; nobody claims that it is the best.

#include <cmath>

#include "engram/task/popgym/game.hpp"

namespace engram::popgym {

template <bool Noisy>
struct pendulum : game<pendulum<Noisy>> {
    using shared = game<pendulum>;
    using shared::level, shared::random, shared::time, shared::last;

    static constexpr int torques = 5;
    static constexpr double pi = 3.14159265358979323846, worst = 8.1368022, dt = 0.05;

    kept_double angle, speed;
    kept_float seen[2];

    ENGRAM_HD static sheet describe_at(setting s) {
        sheet made{Noisy ? "popgym_noisy_stateless_pendulum" : "popgym_stateless_pendulum", 2, 1, torques, length(s)};
        made.lowest = -2, made.highest = 2;
        return made;
    }

    ENGRAM_HD_CALL void reset() {
        this->begin();
        angle = -pi + 2 * pi * static_cast<double>(random.uniform());
        speed = -1 + 2 * static_cast<double>(random.uniform());
        look();
    }

    ENGRAM_HD_CALL outcome step(int action) {
        const float reward = push(torque_of(action));
        this->take(action);
        look();
        return {reward, time == length(level)};
    }

    ENGRAM_HD_CALL void observe(const float*, float* numbers) const {
        writer out = this->clear(numbers);
        out.number(seen[0].value()), out.number(seen[1].value());
        out.number(time == 0 ? 0.0f : static_cast<float>(torque_of(last)));
        this->mark(out);
    }

    int oracle() const {
        const double a = wrapped(angle.value()), w = speed.value();
        // Of a rod of mass and length 1: half of w^2 / 3, and 5 at the top.
        const double missing = 5 - (w * w / 6 + 5 * std::cos(a));
        const bool near = std::fabs(a) < 0.7 && std::fabs(missing) < 2;
        const double wanted = near ? -(12 * a + 3 * w) : missing * (w >= 0 ? 2.0 : -2.0);
        const double cut = wanted > 2 ? 2 : wanted < -2 ? -2 : wanted;
        return static_cast<int>(std::lround(cut)) + 2;
    }

    bool valid() const {
        for (const auto& each : seen)
            if (!(std::fabs(each.value()) <= 1)) return false;
        return this->runs() && std::fabs(angle.value()) < 1000 && std::fabs(speed.value()) <= 8;
    }

    ENGRAM_HD static int length(setting s) { return Noisy ? 200 : s.of(200, 150, 100); }
    ENGRAM_HD static double torque_of(int action) { return action - 2; }

    /// One step of 0.05 s under a torque in [-2, 2]; what it earned.
    ENGRAM_HD_CALL float push(double torque) {
        const double a = angle.value(), w = speed.value(), off = wrapped(a);
        const double cost = off * off + 0.1 * (w * w) + 0.001 * (torque * torque);
        const double faster = w + (15 * std::sin(a) + 3 * torque) * dt;
        const double next = faster > 8 ? 8 : faster < -8 ? -8 : faster;
        speed = next;
        angle = a + next * dt;
        return static_cast<float>((worst - cost) / worst / length(level));
    }

private:
    /// The angle in [-pi, pi).
    ENGRAM_HD static double wrapped(double a) { return a - 2 * pi * std::floor((a + pi) / (2 * pi)); }

    ENGRAM_HD_CALL void look() {
        const double truth[2]{std::cos(angle.value()), std::sin(angle.value())};
        for (int i = 0; i < 2; ++i) {
            float x = static_cast<float>(truth[i]);
            if constexpr (Noisy) {
                x += random.normal() * 0.1f * static_cast<float>(level.of(1, 2, 3));
                x = x > 1 ? 1 : x < -1 ? -1 : x;
            }
            seen[i] = x;
        }
    }
};

using stateless_pendulum = pendulum<false>;
using noisy_stateless_pendulum = pendulum<true>;
static_assert(environment<stateless_pendulum> && environment<noisy_stateless_pendulum>);

}  // namespace engram::popgym
