#pragma once
// SPDX-License-Identifier: MIT

// B environments in the memory of a device, stepped and observed by the rules and the random streams of the host's.
//
// One thread steps one environment. What is seen is drawn by one thread an environment, or by more of them where a
// frame falls apart by itself, with the host's bits where the device's arithmetic is the host's (the emulation's is):
//
//   a view of a room (shows_a_room)      a thread a column, after each environment has said of what room and from where
//   a panel in perspective (PsychLab)    a thread a row of the view, after each environment has drawn its panel
//
// Row b draws its episodes from stream first_row + b of the seed, as a row of the host's `batch_of` does.

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <engram/core/philox.hpp>
#include <engram/device/kernel.hpp>
#include <engram/task/environment.hpp>
#include <engram/task/psychlab.hpp>
#include <engram/task/ray_caster.hpp>
#include <engram/train/told.hpp>

namespace engram {

/// Whether the action of row b exists; raises the alarm where it does not.
ENGRAM_HD bool known_action(int action, int actions, int* alarm) {
    if (action >= 0 && action < actions) return true;
    *alarm = 1;
    return false;
}

namespace internal {

/// Takes the action of row b; a finished episode is followed by a fresh one.
template <class Environment>
struct step_environment {
    Environment* rows;
    const int* actions;
    outcome* outcomes;
    int known;
    int* alarm;
    ENGRAM_HD void operator()(std::ptrdiff_t b) const {
        if (!known_action(actions[b], known, alarm)) return;
        const outcome out = rows[b].step(actions[b]);
        if (out.done) rows[b].reset();
        outcomes[b] = out;
    }
};

template <class Environment>
struct observe_environment {
    const Environment* rows;
    const float* images;
    float* pixels;
    int size;
    ENGRAM_HD void operator()(std::ptrdiff_t b) const { rows[b].observe(images, pixels + b * size); }
};

template <class Environment>
struct find_view {
    const Environment* rows;
    room* spare;
    room_view* views;
    ENGRAM_HD void operator()(std::ptrdiff_t b) const { views[b] = rows[b].view(spare[b]); }
};

/// One column of frames of `width` columns.
struct draw_view_column {
    const room_view* views;
    float* pixels;
    int size, width;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t b = i / width;
        const room_view& seen = views[b];
        draw_column(*seen.in, outlook(*seen.in, seen.from), seen.through, {}, static_cast<int>(i % width),
                    pixels + b * size);
    }
};

template <class Environment>
struct draw_environment_panel {
    const Environment* rows;
    const float* images;
    float* texels;
    ENGRAM_HD void operator()(std::ptrdiff_t b) const {
        draw_panel(rows[b], panel{{texels + b * panel::fine_size, panel::fine_side}}, images);
    }
};

template <class Environment>
struct draw_panel_row {
    const Environment* rows;
    float *texels, *pixels;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        constexpr int line = 3 * psychlab_view_width;
        const std::ptrdiff_t b = i / psychlab_view_height;
        const int row = static_cast<int>(i % psychlab_view_height);
        view_panel_rows(panel{{texels + b * panel::fine_size, panel::fine_side}}, rows[b].clock.eye, row, row + 1,
                        psychlab_view_height, psychlab_view_width, pixels + i * line);
    }
};

/// Pixels as the numbers of a model.
template <class Real>
struct convert_pixels {
    const float* from;
    step_rows<Real> to;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        to.row(i / to.width)[i % to.width] = static_cast<Real>(from[i]);
    }
};

}  // namespace internal

/// What the last step of one environment did, in the host actor's terms.
template <class Real>
struct device_step {
    Real action, log_probability, value, reward;
    double episode_reward;  // so far, this step's reward included
    int done;
};

/// What an environment's step fills for the next one.
template <class Real>
struct device_inputs {
    step_rows<Real> last_action, last_reward, reset;
};

/// Where a learner reads what one step began with and did, [B, 1] each; what it does not read is not wanted.
template <class Real>
struct device_record {
    device_inputs<Real> began;
    step_rows<Real> action, reward, continues, log_probability, value;
    double* ended = nullptr;  // [B]: the reward of an episode that ended here, NaN where none did; may be null
};

/// All that a step of acting reads and writes besides the environments.
template <class Real>
struct device_acting {
    philox* random;            // [B]
    device_step<Real>* steps;  // [B]
    step_rows<Real> log_policy, value;
    device_inputs<Real> to;
    device_record<Real> record;
    int* alarm;
};

namespace internal {

/// Samples row b's action by its policy, takes it, and says what the next step is told about it.
template <class Real, class Environment>
struct act_row {
    Environment* rows;
    device_acting<Real> by;
    ENGRAM_HD void operator()(std::ptrdiff_t b) const {
        const Real* const policy = by.log_policy.row(b);
        const auto [a, finite] = draw_action(policy, by.log_policy.width, static_cast<double>(by.random[b].uniform()));
        if (!finite) *by.alarm = 1;
        const outcome out = rows[b].step(a);
        if (out.done) rows[b].reset();
        device_step<Real>& s = by.steps[b];
        const double before = s.done ? 0 : s.episode_reward, total = before + static_cast<double>(out.reward);
        const Real reward = static_cast<Real>(out.reward);
        s = {static_cast<Real>(a), policy[a], *by.value.row(b), reward, total, out.done};
        const device_record<Real>& record = by.record;
        const device_inputs<Real>& to = by.to;
        put(record.began.last_action, b, to.last_action.wanted() ? *to.last_action.row(b) : Real(0));
        put(record.began.last_reward, b, to.last_reward.wanted() ? *to.last_reward.row(b) : Real(0));
        put(record.began.reset, b, to.reset.wanted() ? *to.reset.row(b) : Real(0));
        put(record.action, b, s.action);
        put(record.reward, b, reward);
        put(record.continues, b, out.done ? Real(0) : Real(1));
        put(record.log_probability, b, s.log_probability);
        put(record.value, b, s.value);
        if (record.ended) record.ended[b] = out.done ? total : std::numeric_limits<double>::quiet_NaN();
        const auto next = told_after(s.action, reward, out.done);
        put(to.last_action, b, next.last_action);
        put(to.last_reward, b, next.last_reward);
        put(to.reset, b, next.reset);
    }

private:
    ENGRAM_HD static void put(const step_rows<Real>& to, std::ptrdiff_t b, Real by) {
        if (to.wanted()) *to.row(b) = by;
    }
};

}  // namespace internal

/// Environments of any one task in a device's memory, as an actor there sees them. Nothing but state() and restore()
/// waits for the device.
template <device_backend Backend>
struct resident_environments : environment_rows {
    using real = typename Backend::real;
    /// One step of all, by actions sampled from their policies.
    virtual void act(const device_acting<real>& by) = 0;
    /// What is seen now, into rows [B, pixels] of a model's input.
    virtual void observe(const step_rows<real>& to) = 0;
};

/// Makes those of rows [first_row, first_row + count) of a batch; `on` runs everything there and must outlive them.
template <device_backend Backend>
using resident_maker =
    std::function<std::unique_ptr<resident_environments<Backend>>(executor<Backend>& on, int count, int first_row)>;

template <device_backend Backend, environment Environment>
class device_environments final : public resident_environments<Backend> {
public:
    using real = typename Backend::real;
    template <class T>
    using array = typename executor<Backend>::template array<T>;

    /// `on` runs everything here and must outlive it.
    device_environments(executor<Backend>& on, const std::string& level, int batch, std::uint64_t seed,
                        std::uint32_t first_row, const task_options& options, const stimulus_set* stimuli)
        : on_(&on),
          info_(Environment::describe(options)),
          batch_(batch),
          rows_(count()),
          pixels_(count() * static_cast<std::size_t>(info_.observation.size())),
          images_(stimuli ? stimuli->pixels().size() : 0),
          alarm_(on.alarm(info_.name + ": an action is out of range")) {
        require(batch > 0, info_.name, ": a batch needs at least one environment, not ", batch);
        std::vector<Environment> rows(count(), Environment::make(info_.level(level).name, options, stimuli));
        for (std::size_t b = 0; b < rows.size(); ++b) {
            rows[b].random = philox(seed, stream_id("environment", first_row + static_cast<std::uint32_t>(b)));
            rows[b].reset();
        }
        send(rows, rows_);
        if (stimuli) send(std::vector<float>(stimuli->pixels().begin(), stimuli->pixels().end()), images_);
        if constexpr (shows_a_room<Environment>) {
            views_ = array<room_view>(count());
            spare_ = array<room>(count());
        }
        if constexpr (psychlab_task<Environment>)
            if (in_perspective()) texels_ = array<float>(count() * panel::fine_size);
    }

    const task_info& info() const override { return info_; }
    int size() const override { return batch_; }

    /// One step of all: actions [B] and outcomes [B] lie on the device.
    void step(const int* actions, outcome* outcomes) {
        on_->launch("step", batch_,
                    internal::step_environment<Environment>{rows_.data(), actions, outcomes, info_.actions, alarm_});
    }

    /// Frames [B, height * width * channels] on the device.
    const float* observe() {
        const float* const images = images_.empty() ? nullptr : images_.data();
        if constexpr (shows_a_room<Environment>) {
            on_->launch("view", batch_, internal::find_view<Environment>{rows_.data(), spare_.data(), views_.data()});
            const int width = info_.observation.width;
            on_->launch("observe", std::ptrdiff_t{batch_} * width,
                        internal::draw_view_column{views_.data(), pixels_.data(), info_.observation.size(), width});
            return pixels_.data();
        }
        if constexpr (psychlab_task<Environment>)
            if (in_perspective()) {
                on_->launch("panel", batch_,
                            internal::draw_environment_panel<Environment>{rows_.data(), images, texels_.data()});
                on_->launch("observe", std::ptrdiff_t{batch_} * psychlab_view_height,
                            internal::draw_panel_row<Environment>{rows_.data(), texels_.data(), pixels_.data()});
                return pixels_.data();
            }
        if constexpr (!shows_a_room<Environment>)
            on_->launch("observe", batch_,
                        internal::observe_environment<Environment>{rows_.data(), images, pixels_.data(),
                                                                   info_.observation.size()});
        return pixels_.data();
    }
    void act(const device_acting<real>& by) override {
        on_->launch("act", batch_, internal::act_row<real, Environment>{rows_.data(), by});
    }
    void observe(const step_rows<real>& to) override {
        const float* const pixels = observe();
        on_->launch("observe", std::ptrdiff_t{batch_} * to.width, internal::convert_pixels<real>{pixels, to});
    }

    std::span<const std::byte> state(int row) const override {
        on_->wait();
        on_->download_bytes(rows_.data() + row, &seen_, sizeof(Environment));
        return std::as_bytes(std::span(&seen_, 1));
    }
    void restore(int row, std::span<const std::byte> saved) override {
        (void)state(row);
        const Environment found = restored_environment(info_, seen_, saved);
        on_->upload_bytes(&found, rows_.data() + row, sizeof(Environment));
    }

private:
    std::size_t count() const { return static_cast<std::size_t>(batch_); }
    bool in_perspective() const { return info_.observation.height == psychlab_view_height; }
    template <class T>
    void send(const std::vector<T>& from, array<T>& to) {
        on_->upload_bytes(from.data(), to.data(), sizeof(T) * from.size());
    }

    executor<Backend>* on_;
    task_info info_;
    int batch_;
    mutable Environment seen_{};  // on the host
    array<Environment> rows_;
    array<float> pixels_, images_, texels_;
    array<room_view> views_;
    array<room> spare_;
    int* alarm_;
};

}  // namespace engram
