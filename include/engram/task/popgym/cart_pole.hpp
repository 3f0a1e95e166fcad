#pragma once
// SPDX-License-Identifier: MIT

// StatelessCartPole and NoisyStatelessCartPole of POPGym (PositionOnlyCartPole in the package of today): Gymnasium's
// cart and pole (Barto, Sutton and Anderson 1983), of which cart's place and pole's angle are seen and their speeds are
// not. A step earns 1 / limit, the failing one too; the limit is 200, 400 or 600 steps. The noisy one has 200, and adds
// noise of deviation 0.1, 0.2 or 0.3 to both numbers before they are cut to their bounds.
//
// Actions push to the left and to the right. The state is kept in doubles as the original's, so an episode may differ
// in its last bits where the mathematics library does.

#include <cmath>

#include "engram/task/popgym/game.hpp"

namespace engram::popgym {

template <bool Noisy>
struct cart_pole : game<cart_pole<Noisy>> {
    using shared = game<cart_pole>;
    using shared::level, shared::random, shared::time, shared::last;

    static constexpr double fails_at = 2.4, falls_at = 12 * 2 * 3.14159265358979323846 / 360, dt = 0.02;

    kept_double place, speed, angle, turning;
    kept_float seen[2];

    ENGRAM_HD static sheet describe_at(setting s) {
        sheet made{Noisy ? "popgym_noisy_stateless_cart_pole" : "popgym_stateless_cart_pole", 2, 2, 2, limit(s)};
        made.lowest = -bound(0), made.highest = bound(0);
        return made;
    }

    ENGRAM_HD_CALL void reset() {
        this->begin();
        for (kept_double* each : {&place, &speed, &angle, &turning})
            *each = -0.05 + 0.1 * static_cast<double>(random.uniform());
        look();
    }

    ENGRAM_HD_CALL outcome step(int action) {
        const bool done = push(action == 1 ? 10.0 : -10.0);
        this->take(action);
        look();
        const int most = limit(level);
        return {1.0f / static_cast<float>(most), done || time == most};
    }

    ENGRAM_HD_CALL void observe(const float*, float* numbers) const {
        writer out = this->clear(numbers);
        out.number(seen[0].value()), out.number(seen[1].value());
        this->echo(out, 2);
    }

    int oracle() const {
        return angle.value() + 0.3 * turning.value() + 0.05 * place.value() + 0.1 * speed.value() > 0 ? 1 : 0;
    }

    bool valid() const {
        for (int i = 0; i < 2; ++i)
            if (!(std::fabs(seen[i].value()) <= bound(i))) return false;
        return this->runs() && std::fabs(place.value()) <= fails_at && std::fabs(angle.value()) <= falls_at &&
               std::fabs(speed.value()) < 1000 && std::fabs(turning.value()) < 1000;
    }

    ENGRAM_HD static int limit(setting s) { return Noisy ? 200 : s.of(200, 400, 600); }

    /// One step of 0.02 s; whether it failed.
    ENGRAM_HD_CALL bool push(double force) {
        constexpr double gravity = 9.8, pole = 0.1, total = pole + 1.0, half = 0.5, pole_length = pole * half;
        constexpr double lighter = 1 / total;  // a product where the equations divide by the mass
        const double x = place.value(), v = speed.value(), a = angle.value(), w = turning.value();
        const double c = std::cos(a), s = std::sin(a);
        const double pushed = (force + pole_length * (w * w) * s) * lighter;
        const double turned = (gravity * s - c * pushed) / (half * (4.0 / 3.0 - pole * (c * c) * lighter));
        const double moved = pushed - pole_length * turned * c * lighter;
        const double to = x + dt * v, leans = a + dt * w;
        place = to, speed = v + dt * moved, angle = leans, turning = w + dt * turned;
        return std::fabs(to) > fails_at || std::fabs(leans) > falls_at;
    }

private:
    ENGRAM_HD static float bound(int i) { return static_cast<float>(i == 0 ? 2 * fails_at : 2 * falls_at); }

    ENGRAM_HD_CALL void look() {
        const double truth[2]{place.value(), angle.value()};
        for (int i = 0; i < 2; ++i) {
            float x = static_cast<float>(truth[i]);
            if constexpr (Noisy) {
                x += random.normal() * 0.1f * static_cast<float>(level.of(1, 2, 3));
                const float most = bound(i);
                x = x > most ? most : x < -most ? -most : x;
            }
            seen[i] = x;
        }
    }
};

using stateless_cart_pole = cart_pole<false>;
using noisy_stateless_cart_pole = cart_pole<true>;
static_assert(environment<stateless_cart_pole> && environment<noisy_stateless_cart_pole>);

}  // namespace engram::popgym
