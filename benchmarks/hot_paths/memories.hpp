#pragma once
// SPDX-License-Identifier: MIT

// What memories read, address and keep, for one row of a batch; the k-NN memory for B rows.

#include <memory>
#include <vector>

#include <engram/kernels/dnc_allocate.hpp>
#include <engram/kernels/dnc_link.hpp>
#include <engram/kernels/matrix_memory.hpp>
#include <engram/kernels/ntm_address.hpp>
#include <engram/operations/knn.hpp>
#include <engram/operations/slots.hpp>

#include "path.hpp"

namespace benchmarks {

/// B rings of N slots as the Memory Recall Agent has them, one query each.
inline path nearest(const sizes& z, bool backward) {
    constexpr int D = 128, V = 512, C = 256 + V, K = 10;
    auto rings = std::make_shared<knn_rings<float>>(z.B, z.N, C, D);
    const numbers content = draw(C), keys = draw(std::ptrdiff_t{z.N} * D);
    for (int b = 0; b < z.B; ++b)
        for (int n = 0; n < z.N; ++n) knn_write(rings->ring(b), content.data(), keys.data() + std::ptrdiff_t{n} * D);
    const auto rows = static_cast<std::size_t>(z.B * K);
    path p{"B " + std::to_string(z.B) + ", " + by({z.N, D}) + ", K " + std::to_string(K), 0, 0, {}};
    p.operations = backward ? 0 : 2.0 * z.B * z.N * D;
    // What is read: of most slots the compact key and its bounds where there are those, and not the key.
    const bool compact = rings->ring(0).compact.words && knn_compact_pays(z.N, D, K);
    const double slot = compact ? D + 4 * knn_compact_bounds : 4 * (D + 1);
    p.bytes = z.B * (backward ? 4.0 * (K * (V + 2 * D) + V) : z.N * slot + 4.0 * K * (V + D));
    p.run = [=, q = draw(z.B * D), distance = numbers(rows), weight = numbers(rows), d_keys = numbers(rows * D),
             slot = std::vector<int>(rows), read = draw(z.B * V), d_query = numbers(static_cast<std::size_t>(z.B * D)),
             scratch = numbers(static_cast<std::size_t>(z.N)), first = true]() mutable {
        for (int b = 0; b < z.B; ++b) {
            const auto ring = rings->ring(b);
            const float* query = q.data() + b * D;
            int* slots = slot.data() + b * K;
            if (!backward || first) {
                const int found = knn_select(ring, query, K, slots, scratch.data());
                knn_read(query, ring.key, D, ring.content, C, C - V, V, found, 1e-3f, distance.data() + b * K,
                         weight.data() + b * K, read.data() + b * V, slots);
            } else {
                // Keys of the neighbours lie together, contents in the ring.
                knn_read_gradient(query, ring.key, D, ring.content, C, C - V, V, K, 1e-3f, distance.data() + b * K,
                                  weight.data() + b * K, read.data() + b * V, d_query.data() + b * D,
                                  d_keys.data() + std::ptrdiff_t{b} * K * D);
            }
        }
        first = false;
    };
    return p;
}

/// Cosine similarity, sharpening, softmax, gate and shift of one head, as an NTM points by content.
inline path pointed(const sizes& z, bool backward) {
    constexpr int W = 64, R = 1;
    const auto all = static_cast<std::size_t>(z.N * R);
    numbers memory = draw(std::ptrdiff_t{z.N} * W), key = draw(W), raw = draw(ntm_address_columns),
            previous(all, 1.0f / static_cast<float>(z.N));
    numbers cosine(all), key_norm(R), row_norm(all), weight(all), content(all), shifted(all),
        scratch(static_cast<std::size_t>(ntm_address_scratch(z.N)));
    std::vector<ntm_head<float>> head(R);
    const auto forward = [=](auto& c, auto& kn, auto& rn, auto& w, auto& co, auto& sh, auto& h, auto& s) {
        cosine_scores(memory.data(), z.N, W, key.data(), R, 1e-6f, c.data(), kn.data(), rn.data());
        ntm_address(c.data(), raw.data(), previous.data(), z.N, R, w.data(), co.data(), sh.data(), h.data(), s.data());
    };
    forward(cosine, key_norm, row_norm, weight, content, shifted, head, scratch);
    return {by({z.N, W}) + ", one head", (backward ? 6.0 : 4.0) * z.N * W, 4.0 * z.N * W * (backward ? 3 : 1),
            [=, d_weight = draw(z.N), d_cosine = cosine, d_raw = raw, d_previous = previous, d_memory = memory,
             d_key = key, work = cosine]() mutable {
                if (!backward) return forward(cosine, key_norm, row_norm, weight, content, shifted, head, scratch);
                ntm_address_gradient(cosine.data(), raw.data(), previous.data(), z.N, R, weight.data(), content.data(),
                                     shifted.data(), head.data(), d_weight.data(), d_cosine.data(), d_raw.data(),
                                     d_previous.data(), scratch.data());
                cosine_scores_gradient(memory.data(), z.N, W, key.data(), R, 1e-6f, cosine.data(), key_norm.data(),
                                       row_norm.data(), d_cosine.data(), d_memory.data(), d_key.data(), work.data());
            }};
}

inline path allocated(const sizes& z, bool backward) {
    const auto n = static_cast<std::size_t>(z.N);
    numbers usage = draw_shares(z.N), allocation(n), scratch(n);
    std::vector<int> order(n);
    dnc_allocate(usage.data(), z.N, order.data(), allocation.data(), scratch.data());
    return {by({z.N}) + " slots", 0, 4.0 * z.N * 4, [=, d = draw(z.N)]() mutable {
                if (backward)
                    dnc_allocate_gradient(usage.data(), z.N, order.data(), d.data(), allocation.data(), scratch.data());
                else
                    dnc_allocate(usage.data(), z.N, order.data(), allocation.data(), scratch.data());
            }};
}

inline path linked(const sizes& z, bool backward) {
    constexpr int R = 4;
    const std::ptrdiff_t N = z.N;
    numbers link = draw(N * N, 1e-3), written = draw_shares(N), precedence = draw_shares(N), read = draw_shares(N * R);
    return {by({z.N, z.N}) + ", four read heads", (backward ? 16.0 * R + 10 : 4.0 * R + 4) * double(N * N),
            4.0 * double(N * N) * (backward ? 5 : 4),
            [=, next = numbers(link.size()), forward = draw(N * R), behind = draw(N * R + 1), d_link = numbers(link),
             d_written = written, d_precedence = written, d_read = read]() mutable {
                if (!backward) {
                    link_update(link.data(), written.data(), precedence.data(), z.N, next.data());
                    link_read(next.data(), z.N, read.data(), R, forward.data(), behind.data(), N);
                } else {
                    std::fill(d_link.begin(), d_link.end(), 0.0f);  // else it grows from call to call
                    link_gradient(link.data(), written.data(), precedence.data(), z.N, read.data(), R, forward.data(),
                                  behind.data(), N, d_link.data(), d_written.data(), d_precedence.data(), d_read.data(),
                                  next.data());
                }
            }};
}

inline const std::string attention = "attention";

/// Columns of head r.
inline row_columns<float> head(const numbers& of, int N, int r) {
    return {{const_cast<float*>(of.data()) + std::ptrdiff_t{r} * N}, 0, 0, N, 0};
}

inline path introspected(const sizes& z, bool backward) {
    constexpr int W = 64, R = 4;
    numbers memory = draw(std::ptrdiff_t{z.N} * W), x = draw(z.N * R), weight(x.size()), total(R), read(R * W);
    const auto forward = [=](numbers& w, numbers& sums, numbers& r) {
        for (int h = 0; h < R; ++h)
            sums[static_cast<std::size_t>(h)] = weigh_slots(
                host_row<float>(attention), z.N, z.N, slot_attention_kind::softplus, head(x, z.N, h), head(w, z.N, h));
        weighted_read(memory.data(), z.N, W, w.data(), R, r.data());
    };
    forward(weight, total, read);
    return {by({z.N, W}) + ", four heads", 2.0 * R * z.N * W * (backward ? 2 : 1), 4.0 * z.N * W * (backward ? 3 : 1),
            [=, d_read = draw(R * W), d_memory = memory, d_weight = weight, d_x = x]() mutable {
                if (!backward) return forward(weight, total, read);
                weighted_read_gradient(memory.data(), z.N, W, weight.data(), R, d_read.data(), d_memory.data(),
                                       d_weight.data());
                for (int h = 0; h < R; ++h)
                    weigh_slots_gradient(host_row<float>(attention), z.N, z.N, total[static_cast<std::size_t>(h)],
                                         head(x, z.N, h), head(weight, z.N, h), head(d_weight, z.N, h),
                                         head(d_x, z.N, h));
            }};
}

}  // namespace benchmarks
