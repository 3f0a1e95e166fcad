#pragma once
// SPDX-License-Identifier: MIT

// training_loop<Update>: what all training shares. The loop owns the optimiser, the threads, the counters, the window
// of numbers and the order of a checkpoint; an Update owns the rows and says what one iteration does with them:
//
//   struct my_update {
//       using backend = cpu<float>;
//       static constexpr const char* mode = "mine";                  // what a checkpoint calls it
//       const optimiser_settings& optimiser() const;
//       const std::shared_ptr<parameters<real>>& store() const;      // the weights
//       int shards() const;                                          // of a run; a checkpoint belongs to as many
//       std::vector<std::string> loss_names() const;                 // of the window's losses
//       program<backend>& learner(std::size_t i);                    // the first one has the newest weights
//       void iterate(training_context<backend>& by);
//       void each_part(auto body);                                   // body(name, bytes) of what a checkpoint keeps
//   };
//   training_loop<my_update> loop({.seed = 1, .threads = 2, .total_steps = 1000}, what its constructor takes...);
//
// An iteration lets threads carry shards (by.each_shard), sums over all shards of all processes (by.sum_losses,
// by.sum), steps the weights (by.step), counts time steps (by.steps) and notes numbers (by.note). Optional members:
//
//   check(file)               throws, before anything changes, when a checkpoint does not fit
//   save(file), load(file)    what is no bytes; load may throw as long as it has changed nothing
//   save_whole(file)          what every process has the whole of
//   collect_moments()         before any of them, for optimisers of its own
//   loaded(by)                all is back
//   sync_weights()            the newest weights are to be in the store
//   describe(by)              before a window is taken
//   pause()                   held while a checkpoint is made or read
//   updates()                 of its further optimisers, which count as well
//   every_process_does_all    a static member: each process carries every shard
//   role(), serve(), tell_to_stop(), told_to_stop()
//                             as those of `training`, where one process learns and others act (one_process_learns)
//
// An iteration takes subnormal numbers for zero, in all its threads, and leaves the caller's mode as it was.
//
// Laws, of every Update (tests/train/updates.cpp): what was saved, loaded and goes on has the bits of what went on; any
// number of threads gives the same bits at equal shards; an update with a number that is not finite changes no weight.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <engram/core/subnormals.hpp>
#include <engram/core/thread_pool.hpp>
#include <engram/train/optimiser.hpp>
#include <engram/train/processes.hpp>
#include <engram/train/saved_state.hpp>
#include <engram/train/weight_update.hpp>

namespace engram {

/// Numbers of the iterations since they were last taken: means over them, but for what says otherwise.
struct training_window {
    int iterations = 0;
    double loss = 0, gradient_norm = 0;
    double learning_rate = 0;                            // of the last update
    std::vector<std::pair<std::string, double>> losses;  // by name
    std::vector<double> episodes;                        // rewards of finished episodes, one after the other
    double lag = 0, largest_lag = 0;                     // updates between acting and learning, mean and largest
    std::vector<double> divergence, log_likelihood;      // of a generative model: nats a step [T] and sequence

    bool has(const std::string& name) const {
        return std::any_of(losses.begin(), losses.end(), [&](const auto& known) { return known.first == name; });
    }
    /// A loss by name; NaN for an unknown one.
    double operator[](const std::string& name) const {
        for (const auto& [known, value] : losses)
            if (known == name) return value;
        return std::numeric_limits<double>::quiet_NaN();
    }
};

struct loop_settings {
    std::uint64_t seed = 0;
    int threads = 1;
    std::int64_t total_steps = 0;  // of the run, for the schedule of the learning rate; 0: it stays
    processes* others = nullptr;   // that train the same model; null: this one is alone

    int process_count() const { return others ? others->count() : 1; }
    /// Threads of all processes: the shards of a run that does not say how many it has.
    int carriers() const { return threads * process_count(); }
    /// Of `all` shards, those that this process carries.
    shard_range mine(int all) const { return shards_of(others ? others->rank() : 0, process_count(), all); }
    /// The shards of a batch of `rows` rows: as many as the setting `name` says, or one a thread of every process.
    int count(int wanted, const char* name, int rows, const std::string& what) const {
        const int all = count_shards(wanted, name, carriers(), rows, what);
        require(process_count() <= all, process_count(), " processes, but the run has ", all, " shards (", name,
                "); expected at most as many");
        return all;
    }
};

/// What a loop does for its Update.
template <class Backend>
class training_context {
public:
    using real = typename Backend::real;
    using programs = std::vector<program<Backend>*>;

    training_context(const loop_settings& s, const optimiser_settings& o, std::shared_ptr<parameters<real>> store)
        : settings(s), optimiser(o, *store), store_(std::move(store)), pool_(std::max(1, s.threads)) {}

    const loop_settings settings;
    optimiser_of<Backend> optimiser;
    training_window window;
    std::int64_t steps = 0;       // of time, over all rows
    std::int64_t iterations = 0;  // that ended before this one

    double progress() const {
        return settings.total_steps > 0 ? static_cast<double>(steps) / static_cast<double>(settings.total_steps) : 0;
    }

    /// body(i) for each of this process's shards, i < count, neighbours by one thread.
    void each_shard(int count, const std::function<void(int)>& body) {
        const int threads = pool_.size();
        pool_.run([&](int thread) {
            for (int i = first_row(thread, threads, count); i < first_row(thread + 1, threads, count); ++i) body(i);
        });
    }

    /// Numbers of every shard, in order of the shards, at every process; `of_mine` are this process's.
    std::vector<std::vector<double>> gather(const std::vector<std::vector<double>>& of_mine) {
        return rows_of_all(settings.others, of_mine);
    }
    /// The sums over all shards.
    std::vector<double> sum(const std::vector<std::vector<double>>& of_mine) {
        std::vector<double> total(of_mine[0].size(), 0.0);
        for (const auto& row : gather(of_mine))
            for (std::size_t k = 0; k < total.size(); ++k) total[k] += row[k];
        return total;
    }
    /// The loss of a batch whose shards are programs, and, in the window's means, their losses by name; `share`: of the
    /// iteration.
    double sum_losses(const programs& shards, double share = 1) {
        std::vector<std::vector<double>> rows;
        for (auto* p : shards) {
            rows.push_back({p->loss()});
            for (const auto& loss : p->losses()) rows.back().push_back(loss.second);
        }
        const auto total = sum(rows);
        for (std::size_t k = 1; k < total.size(); ++k) window.losses[k - 1].second += share * total[k];
        return total[0];
    }

    /// One step of the weights by the sum of the gradients of `mine`, the programs of this process's shards out of
    /// `all`, `each` neighbouring ones a shard. Returns the gradient's norm. Throws, leaving the weights as they were,
    /// when the loss or the gradient is not finite.
    double step(const programs& mine, int all, double loss, int each = 1) {
        return step(optimiser, mine, all, loss, each);
    }
    /// The same by another optimiser of the same weights.
    double step(optimiser_of<Backend>& by, const programs& mine, int all, double loss, int each = 1) {
        if (!std::isfinite(loss)) refuse_update(steps, "loss", loss, mine, settings.others);
        window.learning_rate = by.learning_rate(progress());
        double norm = 0;
        if constexpr (device_backend<Backend>) {
            by.update(mine, each, progress(), settings.mine(all), settings.others);
            norm = by.norm(mine[0]->executor());
            if (!std::isfinite(norm)) --by.updates();
        } else {
            const auto gradient = sum_gradients(mine, each, settings.mine(all), pool_, settings.others, room_);
            norm = by.update(*store_, gradient.numbers, progress(), &pool_, gradient.in_parts);
        }
        if (!std::isfinite(norm)) refuse_update(steps, "gradient norm", norm, mine, settings.others);
        return norm;
    }

    /// Adds to the window's means; `share`: of the iteration.
    void note(double loss, double norm, double share = 1) {
        window.loss += share * loss;
        window.gradient_norm += share * norm;
    }
    /// The same of a loss by name.
    void note(const std::string& name, double value) {
        for (auto& [known, sum] : window.losses)
            if (known == name) sum += value;
    }

private:
    std::shared_ptr<parameters<real>> store_;
    thread_pool pool_;
    std::vector<real> room_;  // what another process sent
};

/// Training of any kind, as a run sees it.
class training {
public:
    virtual ~training() = default;

    /// Throws, leaving the weights as they were, when a loss or gradient is not finite.
    virtual void iterate() = 0;
    /// Of time, over all rows.
    virtual std::int64_t steps() const = 0;
    virtual std::int64_t total_steps() const = 0;
    /// Of the weights.
    virtual std::int64_t updates() const = 0;
    virtual std::vector<std::string> loss_names() const = 0;
    /// The numbers since it was last called.
    virtual training_window take_window() = 0;
    /// The newest weights are in the store; on a device they are elsewhere while it trains.
    virtual void sync_weights() = 0;
    /// Adds everything that the next iteration depends on.
    virtual void save(safetensors& file) = 0;
    /// Restores what save() wrote; throws before anything changes when the file belongs to something else.
    virtual void load(const safetensors& file) = 0;

    /// A process that acts for another one that learns goes on by serve(), not by iterate().
    virtual process_role role() const { return process_role::trains; }
    /// Acts for a while, or until it is called for something. A checkpoint is save(), which the learner waits for; from
    /// its own serve() on it calls for the others' parts.
    virtual process_call serve() { fail("this training has no process that only acts"); }
    /// Lets the process that learns know that this one was told to stop.
    virtual void tell_to_stop() {}
    virtual bool told_to_stop() const { return false; }
};

namespace internal {

/// What each_part() of an Update calls. To nvcc 13 a lambda in a requirement is never satisfied.
struct body_of_a_part {
    void operator()(const std::string&, std::span<std::byte>) const {}
};

}  // namespace internal

template <class U>
concept training_update = requires(U& u, training_context<typename U::backend>& by) {
    { U::mode } -> std::convertible_to<const char*>;
    { u.optimiser() } -> std::convertible_to<optimiser_settings>;
    { u.store() } -> std::convertible_to<std::shared_ptr<parameters<typename U::backend::real>>>;
    { u.shards() } -> std::convertible_to<int>;
    { u.loss_names() } -> std::convertible_to<std::vector<std::string>>;
    { u.learner(0) } -> std::convertible_to<program<typename U::backend>&>;
    u.iterate(by);
    u.each_part(internal::body_of_a_part{});
};

template <training_update Update>
class training_loop final : public training {
public:
    using backend = typename Update::backend;

    /// `what` goes to the Update's constructor, behind the settings.
    template <class... What>
    explicit training_loop(const loop_settings& s, What&&... what)
        : update_(own(s), std::forward<What>(what)...),
          context_(learnt_by_one ? alone(s) : own(s), update_.optimiser(), update_.store()),
          others_(own(s).others),
          several_(s.others) {
        empty_window();
    }

    void iterate() override {
        const zero_subnormals vanishing_gradients;
        try {
            update_.iterate(context_);
        } catch (const error& problem) {
            // What all do alike all find alike.
            if (!replicated || !several_) throw;
            throw agreed_error(problem.what());
        }
        ++context_.iterations;
        ++context_.window.iterations;
    }

    std::int64_t steps() const override { return context_.steps; }
    std::int64_t total_steps() const override { return context_.settings.total_steps; }
    std::int64_t updates() const override {
        if constexpr (requires { update_.updates(); })
            return context_.optimiser.updates() + update_.updates();
        else
            return context_.optimiser.updates();
    }
    std::vector<std::string> loss_names() const override { return update_.loss_names(); }

    training_window take_window() override {
        if constexpr (requires { update_.describe(context_); }) update_.describe(context_);
        training_window w = std::move(context_.window);
        empty_window();
        const double n = std::max(1, w.iterations);
        for (double* x : {&w.loss, &w.gradient_norm}) *x /= n;
        for (auto& loss : w.losses) loss.second /= n;
        for (auto* list : {&w.divergence, &w.log_likelihood})
            for (double& x : *list) x /= n;
        return w;
    }

    void sync_weights() override {
        fetch_weights(update_.learner(0), *update_.store());
        if constexpr (requires { update_.sync_weights(); }) update_.sync_weights();
    }

    void save(safetensors& file) override {
        [[maybe_unused]] const auto still = pause();
        sync_weights();
        context_.optimiser.collect_moments();
        if constexpr (requires { update_.collect_moments(); }) update_.collect_moments();
        save_weights(file, *update_.store(), context_.optimiser);
        save_counters(file, Update::mode,
                      {context_.steps, context_.optimiser.updates(), context_.iterations, update_.shards()});
        safetensors mine;
        update_.each_part([&](const std::string& name, std::span<std::byte> part) { save_bytes(mine, name, part); });
        if constexpr (requires { update_.save(mine); }) update_.save(mine);
        add_parts(file, others_, std::move(mine));
        if constexpr (requires { update_.save_whole(file); }) update_.save_whole(file);
    }

    /// Throws what load() would, and changes nothing.
    void check(const safetensors& file) {
        const auto counters = load_counters(file, Update::mode, 4);
        require(counters[3] == update_.shards(), file.source(), ": was written with ", counters[3],
                " shards, this run has ", update_.shards(), "; a run keeps its shards, on any number of threads");
        check_weights(file, *update_.store());
        if constexpr (requires { update_.check(file); }) update_.check(file);
        update_.each_part([&](const std::string& name, std::span<std::byte> part) { check_bytes(file, name, part); });
    }
    void load(const safetensors& file) override {
        [[maybe_unused]] const auto still = pause();
        check(file);
        const auto counters = load_counters(file, Update::mode, 4);
        if constexpr (requires { update_.load(file); }) update_.load(file);
        load_weights(file, *update_.store(), context_.optimiser);
        context_.steps = counters[0];
        context_.optimiser.updates() = counters[1];
        context_.iterations = counters[2];
        update_.each_part([&](const std::string& name, std::span<std::byte> part) { load_bytes(file, name, part); });
        if constexpr (requires { update_.loaded(context_); }) update_.loaded(context_);
        empty_window();
    }

    process_role role() const override {
        if constexpr (learnt_by_one)
            return update_.role();
        else
            return training::role();
    }
    process_call serve() override {
        const zero_subnormals as_in_iterate;
        if constexpr (learnt_by_one)
            return update_.serve();
        else
            return training::serve();
    }
    void tell_to_stop() override {
        if constexpr (learnt_by_one) update_.tell_to_stop();
    }
    bool told_to_stop() const override {
        if constexpr (learnt_by_one)
            return update_.told_to_stop();
        else
            return training::told_to_stop();
    }

    double progress() const { return context_.progress(); }
    Update* operator->() { return &update_; }
    const Update* operator->() const { return &update_; }

private:
    // Every process does the whole of such an Update, with the same numbers.
    static constexpr bool replicated = requires { Update::every_process_does_all; };
    // What is learnt from such an Update is nobody else's.
    static constexpr bool learnt_by_one = requires { Update::one_process_learns; };
    static loop_settings alone(loop_settings s) {
        s.others = nullptr;
        return s;
    }
    static loop_settings own(const loop_settings& s) { return replicated ? alone(s) : s; }
    auto pause() {
        if constexpr (requires { update_.pause(); })
            return update_.pause();
        else
            return 0;
    }
    void empty_window() {
        context_.window = {};
        for (const auto& name : update_.loss_names()) context_.window.losses.emplace_back(name, 0.0);
    }

    Update update_;
    training_context<backend> context_;
    processes* others_;  // with a part of every checkpoint
    bool several_;       // do this
};

}  // namespace engram
