#pragma once
// SPDX-License-Identifier: MIT

// How reports call things: ablations, tasks and levels in words, numbers in the fewest digits that a reader needs.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <engram/version.hpp>

namespace engram {

enum class memory_kind { with, without, unknown };

struct ablation_name {
    std::string_view name, title;
    memory_kind memory;
};

/// Every name of the catalogue, in the order of a tie: by paper, plain models first (ours).
inline constexpr std::array<ablation_name, 70> ablation_names{{
    {"ff", "FF", memory_kind::without},
    {"lstm", "LSTM", memory_kind::without},
    {"lstm_cpc", "LSTM+CPC", memory_kind::without},
    {"ff_mem", "FF+MEM", memory_kind::with},
    {"ff_mem_cpc", "FF+MEM+CPC", memory_kind::with},
    {"ff_mem_rec", "FF+MEM+REC", memory_kind::with},
    {"lstm_mem", "LSTM+MEM", memory_kind::with},
    {"lstm_mem_rec", "LSTM+MEM+REC", memory_kind::with},
    {"mra_no_jumpy", "MRA without jumpy", memory_kind::with},
    {"mra", "MRA", memory_kind::with},
    {"vrnn", "VRNN", memory_kind::without},
    {"introspective_gtmm", "Introspective GTMM", memory_kind::with},
    {"ntm_gtmm", "NTM GTMM", memory_kind::with},
    {"lru_gtmm", "LRU GTMM", memory_kind::with},
    {"dnc_gtmm", "DNC GTMM", memory_kind::with},
    {"memup", "MemUP", memory_kind::with},
    {"bptt_lstm", "LSTM, BPTT", memory_kind::without},
    {"tbptt_lstm", "LSTM, truncated BPTT", memory_kind::without},
    {"bptt_srnn", "SRNN, BPTT", memory_kind::without},
    {"tbptt_srnn", "SRNN, truncated BPTT", memory_kind::without},
    {"bptt_transformer", "Transformer, BPTT", memory_kind::unknown},
    {"tbptt_transformer", "Transformer, truncated BPTT", memory_kind::unknown},
    {"ppo_lstm", "PPO+LSTM", memory_kind::without},
    {"ppo_memup", "PPO+MemUP", memory_kind::with},
    {"ppo_ff", "PPO+FF", memory_kind::without},
    {"ppo_lstm_mem", "PPO+LSTM+MEM", memory_kind::with},
    {"ppo_dnc", "PPO+DNC", memory_kind::with},
    {"gru", "GRU", memory_kind::unknown},
    {"min_gru", "MinGRU", memory_kind::unknown},
    {"linear_recurrent_unit", "Linear recurrent unit", memory_kind::unknown},
    {"s5", "S5", memory_kind::unknown},
    {"fast_and_forgetful", "FFM", memory_kind::unknown},
    {"stable_hadamard", "SHM", memory_kind::unknown},
    {"mlstm", "mLSTM", memory_kind::unknown},
    {"gated_delta_net", "Gated DeltaNet", memory_kind::unknown},
    {"gtrxl", "GTrXL", memory_kind::unknown},
    {"memory_traces", "Memory traces", memory_kind::with},
    {"ppo_gru", "PPO+GRU", memory_kind::unknown},
    {"ppo_min_gru", "PPO+MinGRU", memory_kind::unknown},
    {"ppo_linear_recurrent_unit", "PPO+linear recurrent unit", memory_kind::unknown},
    {"ppo_s5", "PPO+S5", memory_kind::unknown},
    {"ppo_fast_and_forgetful", "PPO+FFM", memory_kind::unknown},
    {"ppo_stable_hadamard", "PPO+SHM", memory_kind::unknown},
    {"ppo_mlstm", "PPO+mLSTM", memory_kind::unknown},
    {"ppo_gated_delta_net", "PPO+gated DeltaNet", memory_kind::unknown},
    {"ppo_gtrxl", "PPO+GTrXL", memory_kind::unknown},
    {"ppo_memory_traces", "PPO+memory traces", memory_kind::with},
    {"bptt_gru", "GRU, BPTT", memory_kind::unknown},
    {"bptt_min_gru", "MinGRU, BPTT", memory_kind::unknown},
    {"bptt_linear_recurrent_unit", "Linear recurrent unit, BPTT", memory_kind::unknown},
    {"bptt_s5", "S5, BPTT", memory_kind::unknown},
    {"bptt_fast_and_forgetful", "FFM, BPTT", memory_kind::unknown},
    {"bptt_stable_hadamard", "SHM, BPTT", memory_kind::unknown},
    {"bptt_mlstm", "mLSTM, BPTT", memory_kind::unknown},
    {"bptt_gated_delta_net", "Gated DeltaNet, BPTT", memory_kind::unknown},
    {"bptt_gtrxl", "GTrXL, BPTT", memory_kind::unknown},
    {"bptt_memory_traces", "Memory traces, BPTT", memory_kind::with},
    {"hybrid", "LSTM+hybrid", memory_kind::with},
    {"ppo_hybrid", "PPO+LSTM+hybrid", memory_kind::with},
    {"bptt_hybrid", "LSTM+hybrid, BPTT", memory_kind::with},
    {"hybrid_gtmm", "Hybrid GTMM", memory_kind::with},
    {"ppo_introspection", "PPO+LSTM+introspection", memory_kind::with},
    {"ppo_ntm", "PPO+LSTM+NTM", memory_kind::with},
    {"ppo_lru_access", "PPO+LSTM+LRU access", memory_kind::with},
    {"bptt_ff", "FF, BPTT", memory_kind::without},
    {"bptt_lstm_mem", "LSTM+MEM, BPTT", memory_kind::with},
    {"bptt_introspection", "LSTM+introspection, BPTT", memory_kind::with},
    {"bptt_ntm", "LSTM+NTM, BPTT", memory_kind::with},
    {"bptt_lru_access", "LSTM+LRU access, BPTT", memory_kind::with},
    {"bptt_dnc", "LSTM+DNC, BPTT", memory_kind::with},
}};

/// Position in that order; names from elsewhere (a user's own) come last.
inline int ablation_rank(std::string_view name) {
    const auto at = std::find_if(ablation_names.begin(), ablation_names.end(), [&](auto& a) { return a.name == name; });
    return static_cast<int>(at - ablation_names.begin());
}

/// What the paper calls an ablation; the name itself for one that is not known.
inline std::string ablation_title(std::string_view name) {
    const auto rank = static_cast<std::size_t>(ablation_rank(name));
    return std::string(rank < ablation_names.size() ? ablation_names[rank].title : name);
}

/// What kind of memory an ablation has.
inline memory_kind ablation_memory(std::string_view name) {
    const auto rank = static_cast<std::size_t>(ablation_rank(name));
    return rank < ablation_names.size() ? ablation_names[rank].memory : memory_kind::unknown;
}

/// "arbitrary_visuomotor_mapping" as "arbitrary visuomotor mapping", within a sentence.
inline std::string plain_words(std::string name) {
    std::replace(name.begin(), name.end(), '_', ' ');
    return name;
}

/// "arbitrary_visuomotor_mapping" as "Arbitrary visuomotor mapping".
inline std::string in_words(std::string name) {
    name = plain_words(std::move(name));
    if (!name.empty() && name[0] >= 'a' && name[0] <= 'z') name[0] = static_cast<char>(name[0] - 'a' + 'A');
    return name;
}

/// Whether a level is one to train on.
inline bool is_train_level(std::string_view level) {
    return level == "train" || level.starts_with("train_");
}
/// Whether a level was kept from training.
inline bool is_holdout_level(std::string_view level) {
    return level.starts_with("holdout");
}

/// 12 of "length_12": levels that differ by a number are points of one curve.
inline std::optional<int> level_number(std::string_view level) {
    const auto at = level.rfind('_');
    int number = 0;
    if (at == level.npos) return {};
    const auto [stop, problem] = std::from_chars(level.data() + at + 1, level.data() + level.size(), number);
    if (problem != std::errc() || stop != level.data() + level.size() || number < 0) return {};
    return number;
}

/// "holdout_interpolate" as "Holdout, interpolate".
inline std::string level_title(std::string_view level) {
    for (const std::string_view start : {"train_", "holdout_"})
        if (level.starts_with(start))
            return in_words(std::string(start.substr(0, start.size() - 1))) + ", " +
                   in_words("-" + std::string(level.substr(start.size()))).substr(1);
    return in_words(std::string(level));
}

/// A number with so many decimals; "-" for one that is not finite.
inline std::string fixed(double x, int digits) {
    std::array<char, 64> out{};
    if (!std::isfinite(x)) return "-";
    if (std::abs(x) >= 1e15) {
        std::snprintf(out.data(), out.size(), "%.3g", x);
        return out.data();
    }
    std::snprintf(out.data(), out.size(), "%.*f", digits, x);
    std::string text = out.data();
    return text.starts_with("-") && text.find_first_of("123456789") == text.npos ? text.substr(1) : text;
}

/// About `digits` significant digits, without trailing zeros: 0.0123, 49.9, 1200.
inline std::string significant(double x, int digits = 3) {
    if (!std::isfinite(x)) return "-";
    const double size = std::abs(x);
    if (size != 0 && (size < 1e-4 || size >= 1e9)) {
        std::array<char, 64> out{};
        std::snprintf(out.data(), out.size(), "%.*g", digits, x);
        return out.data();
    }
    const int before = size < 1e-300 ? 1 : static_cast<int>(std::floor(std::log10(size))) + 1;
    std::string text = fixed(x, std::max(0, digits - before));
    if (text.find('.') != text.npos) {
        text.erase(text.find_last_not_of('0') + 1);
        if (text.back() == '.') text.pop_back();
    }
    return text;
}

/// 618.9, 8.56, 0.79, 0.012: nats and ratios, with the same decimals down a column.
inline std::string measured(double x) {
    const double size = std::abs(x);
    if (size < 1e-4) return fixed(x, 2);
    return size < 0.1 ? significant(x, 2) : fixed(x, size < 100 ? 2 : 1);
}

/// A standard error with the decimals of its `measured` mean, or one digit where it is smaller.
inline std::string measured_error(double error, double mean) {
    const std::string text = fixed(error, std::abs(mean) < 100 ? 2 : 1);
    return error != 0 && text.find_first_of("123456789") == text.npos ? significant(error, 1) : text;
}

/// 950, 12.3 k, 2.05 M, 1.2 G.
inline std::string short_count(double x) {
    for (const auto& [size, unit] : {std::pair{1e9, "\u00a0G"}, {1e6, "\u00a0M"}, {1e3, "\u00a0k"}})
        if (std::abs(x) >= 0.9995 * size) return significant(x / size) + unit;
    return significant(x);
}

/// "9.5 s", "2 min 3 s", "1 h 5 min".
inline std::string duration(double seconds) {
    if (seconds < 10) return fixed(seconds, 1) + " s";
    const auto whole = static_cast<long long>(std::llround(seconds));
    if (whole < 60) return std::to_string(whole) + " s";
    if (whole < 3600) return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
    return std::to_string(whole / 3600) + " h " + std::to_string(whole % 3600 / 60) + " min";
}

/// "1 seed", "3 seeds".
template <class Count>
std::string counted(Count n, const std::string& what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

}  // namespace engram
