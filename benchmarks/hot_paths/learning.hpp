#pragma once
// SPDX-License-Identifier: MIT

// Losses, the scans of returns, the optimiser, and the ray caster that feeds them.

#include <vector>

#include <engram/kernels/cpc_scores.hpp>
#include <engram/kernels/optimiser.hpp>
#include <engram/kernels/scan_returns.hpp>
#include <engram/task/rotation.hpp>

#include "path.hpp"

namespace benchmarks {

inline path contrasted(const sizes& z, bool backward) {
    constexpr int X = 256, N = 10;
    const int T = z.T;
    numbers x = draw(std::ptrdiff_t{T} * X), pred = draw(std::ptrdiff_t{T} * N * X, 0.1), d_loss = draw(T),
            loss(static_cast<std::size_t>(T)), scores(static_cast<std::size_t>(cpc_scores_size(T, N)));
    std::vector<int> segment(static_cast<std::size_t>(T), 0);
    cpc_forward(x.data(), X, pred.data(), N * X, segment.data(), T, X, N, loss.data(), 1, scores.data());
    double pairs = 0;
    for (int k = 1; k <= N; ++k) pairs += double(T - k) * (T - k);
    return {"T " + std::to_string(T) + ", ten steps of " + std::to_string(X), (backward ? 4 : 2) * pairs * X,
            4.0 * T * X * (1 + N) * (backward ? 2 : 1),
            [=, d_x = x, d_pred = pred, work = numbers(static_cast<std::size_t>(cpc_workspace_size(T)))]() mutable {
                if (backward)
                    cpc_backward(x.data(), X, pred.data(), N * X, segment.data(), T, X, N, d_loss.data(), 1,
                                 scores.data(), d_x.data(), X, d_pred.data(), N * X, work.data());
                else
                    cpc_forward(x.data(), X, pred.data(), N * X, segment.data(), T, X, N, loss.data(), 1,
                                scores.data());
            }};
}

inline path returned(const sizes& z, bool vtrace) {
    const int T = z.T, B = z.B;
    return {by({T, B}), 0, 4.0 * T * B * (vtrace ? 6 : 5),
            [=, ratio = draw(T * B, 0.1), reward = draw(T * B + 1), discount = draw_shares(T * B),
             value = draw(T * B + 2), bootstrap = draw(B), targets = draw(T * B), advantage = draw(T * B)]() mutable {
                if (vtrace)
                    vtrace_scan(ratio.data(), reward.data(), discount.data(), value.data(), bootstrap.data(), T, B, B,
                                {}, targets.data(), advantage.data());
                else
                    generalised_advantages(reward.data(), discount.data(), value.data(), bootstrap.data(), T, B, B,
                                           0.95f, targets.data(), advantage.data());
            }};
}

/// `which`: the norm of the gradient, Adam, RMSProp.
inline path optimised(int which) {
    const int n = 1 << 20;
    return {by({n}) + " numbers", 0, 4.0 * n * (which == 0 ? 1 : 7),
            [=, p = draw(n), g = draw(n), m = numbers(std::size_t{n}), v = numbers(std::size_t{n})]() mutable {
                if (which == 0)
                    p[0] += 1e-9f * squared_norm(g.data(), n);
                else if (which == 1)
                    adam_update(p.data(), g.data(), m.data(), v.data(), n, 1e-3f, 0.9f, 0.999f, 1e-8f, 10, 1.0f);
                else
                    rmsprop_update(p.data(), g.data(), m.data(), v.data(), n, 1e-3f, 0.99f, 0.1f, 0.0f, 1.0f);
            },
            4.0 * n * (which == 0 ? 1 : 4)};
}

inline path drawn(const sizes&) {
    task_options options;
    options.fidelity = "paper";
    const lens through{.height = 72, .width = 96, .samples = 1};
    return {
        by({72, 96, 3}), 0, 4.0 * 72 * 96 * 3,
        [=, scene = rotation_task(options).draw_scene("train", 1, 1), pixels = numbers(72 * 96 * 3), t = 0]() mutable {
            render(scene.place, rotation_task::looking(scene.start, t++ % rotation_task::period), through, {},
                   pixels.data());
        }};
}

}  // namespace benchmarks
