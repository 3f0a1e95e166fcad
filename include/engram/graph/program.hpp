#pragma once
// SPDX-License-Identifier: MIT

// The run: a plan bound to buffers, replayed by forward() and backward() with no allocation or dispatch on types.
//
// Buffers are row-major, row t * B + b, in one arena. A carried state is one buffer of T + 1 blocks [B, F]: what a step
// leaves is block t + 1, what the next one enters with, so nothing is copied; what an operation scans is two blocks,
// and what is written in place is one, which the backward sweep takes back step by step. A gradient that its writers
// tile is stored, any other is cleared and added to. Deferred work (weights) follows the loop in kernel::after().

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <engram/device/executor.hpp>
#include <engram/device/weights.hpp>
#include <engram/graph/binder.hpp>
#include <engram/graph/layout.hpp>

namespace engram {

template <class Backend>
class program {
public:
    using real = typename Backend::real;
    using variable = var<Backend>;

    /// Plans and binds `g`, which must outlive the program, for the given sizes. `outputs` are kept alive besides
    /// losses and resources. The store may be another copy of the graph's own, with the same entries. Throws where
    /// there are no steps or no rows, and for a part of a batch whose rows meet.
    program(const graph<Backend>& g, std::shared_ptr<parameters<real>> store, const plan_options& options,
            const std::vector<variable>& outputs = {})
        : graph_(g),
          store_(std::move(store)),
          options_(options),
          plan_(make_plan(g, options, std::vector<view>(outputs.begin(), outputs.end()))),
          layout_(g, plan_, options_, *store_, std::vector<view>(outputs.begin(), outputs.end())),
          arena_(static_cast<std::size_t>(layout_.size)),
          gradient_(options.gradients ? static_cast<std::size_t>(store_->flat_size()) : 0) {
        require(options.steps > 0 && options.batch > 0, "plan: ", options.steps, " steps of ", options.batch,
                " rows leave nothing to run");
        refuse_sharded_mixing();
        if constexpr (device_backend<Backend>) weights_ = device_weights<Backend>::of(*store_);
        for (const auto& r : g.resources()) resources_.push_back(r.make(options.batch));
        find_entries();
        bind_all();
    }
    program(const program&) = delete;
    program& operator=(const program&) = delete;

    /// All steps, from the inputs and from the states as they were carried.
    void forward() {
        begin_forward();
        replay(0, [this] { sweep_forward(untimed{}); });
        if constexpr (device_backend<Backend>) executor_.check();
    }
    /// Gradients of the sum of all losses; call after forward().
    void backward() {
        require(options_.gradients, "backward: this program was planned without gradients");
        replay(1, [this] { sweep_backward(untimed{}); });
    }
    /// Makes a NaN of every gradient that backward() stores, so that whoever reads what nobody gave is found. On a
    /// device nothing happens.
    void spoil_gradients() {
        if constexpr (!device_backend<Backend>)
            std::fill(arena_.begin() + (layout_.cleared_first + layout_.cleared_count), arena_.end(),
                      std::numeric_limits<real>::quiet_NaN());
    }
    /// Computes again what depends on an input that was written after forward(), and all losses. States, memories and
    /// the number of replays stay as they are; nothing in a scan may depend on that input.
    void refresh(const std::string& name) {
        const int from = find_value(name, value_info::origin::input, "input");
        if constexpr (device_backend<Backend>)
            executor_.upload(input(name).data(), arena_.data() + layout_.base[static_cast<std::size_t>(from)],
                             layout_.length(from));
        std::vector<char> changed(graph_.values().size(), 0);
        changed[static_cast<std::size_t>(from)] = 1;
        const auto reads = [&](const bound& k) {
            const auto& inputs = operation_of(k).inputs;
            return std::any_of(inputs.begin(), inputs.end(),
                               [&](const view& v) { return changed[static_cast<std::size_t>(v.value)] != 0; });
        };
        clear_losses();
        const auto run_again = [&](std::vector<bound>& list, bool once) {
            for (bound& k : list) {
                if (!reads(k) && !operation_of(k).is_loss) continue;
                for (const int out : operation_of(k).outputs) changed[static_cast<std::size_t>(out)] = 1;
                once ? run_forward(k) : k.kernel->forward(0, options_.steps);
            }
        };
        for (run_segment& s : run_) {
            run_again(s.once, true);
            run_again(s.before, false);
            const auto refuse = [&](const bound& k) {
                require(!reads(k), "refresh: '", name, "' is read by '", operation_of(k).name, "', in a scan");
            };
            std::for_each(s.chains.begin(), s.chains.end(), refuse);
            std::for_each(s.loop.begin(), s.loop.end(), refuse);
            run_again(s.after, false);
        }
    }
    /// The same sweeps, every call of a kernel wrapped as `around(operation, call)`: for measuring them.
    void forward_around(auto around) {
        begin_forward();
        sweep_forward([&](const bound& k, auto call) { around(operation_of(k), call); });
    }
    void backward_around(auto around) {
        require(options_.gradients, "backward: this program was planned without gradients");
        sweep_backward([&](const bound& k, auto call) { around(operation_of(k), call); });
    }

    /// What runs the kernels of a device.
    engram::executor<Backend>& executor() { return executor_; }
    /// Weights, gradient, and a variable or its gradient as kernels see them.
    device_weights<Backend>& device_weights_in_use() requires device_backend<Backend> { return *weights_; }
    real* device_gradient() { return gradient_.data(); }
    std::ptrdiff_t gradient_size() const { return static_cast<std::ptrdiff_t>(gradient_.size()); }
    operand<real> on_device(const variable& v, bool gradient = false) { return place_view(v, gradient); }
    const plan_options& options() const { return options_; }
    const engram::plan& planned() const { return plan_; }

    /// Buffer of an input, to be filled before forward(): [T, B, F] or [B, F], dense. Throws for a name that is no
    /// input, or one that this plan does not read (has_input).
    std::span<real> input(const std::string& name) { return find_buffer(name, value_info::origin::input, "input"); }
    bool has_input(const std::string& name) const {
        for (std::size_t v = 0; v < graph_.values().size(); ++v)
            if (graph_.values()[v].name == name && is_input(static_cast<int>(v))) return layout_.used[v];
        return false;
    }
    /// Values of a variable: those of row b at step t are the `.width` numbers from `.at(t) + b * .stride` on. Throws
    /// where this plan does not compute it.
    operand<const real> output(const variable& v) const {
        require(layout_.used[static_cast<std::size_t>(v.value)], "output: '", graph_.info(v).name,
                "' is not computed by this plan; name it among the outputs");
        return const_cast<program*>(this)->shown(v, false);
    }
    /// Gradient of an input, or of one of the outputs, after backward(), laid out as output() is; null when it has
    /// none. Throws for other variables, whose gradients share memory and are gone by then.
    operand<const real> gradient_of(const variable& v) const {
        require(plan_.looked_up[static_cast<std::size_t>(v.value)] < 0, "gradient_of: '", graph_.info(v).name,
                "' is not written out by this plan; name it among the outputs");
        if (!plan_.active[static_cast<std::size_t>(v.value)]) return {};
        require(layout_.kept[static_cast<std::size_t>(v.value)], "gradient_of: '", graph_.info(v).name,
                "' has no gradient left after the backward sweep; name it among the outputs");
        return const_cast<program*>(this)->shown(v, true);
    }

    /// A persistent state as the next forward() will enter with it: [B, F]. Throws for an unknown name (state_names).
    std::span<real> state(const std::string& name) {
        return find_buffer(name, value_info::origin::persistent, "state");
    }
    /// The same state as the last forward() left it.
    std::span<real> next_state(const std::string& name) {
        return find_buffer(name, value_info::origin::persistent, "state", true);
    }
    std::vector<std::string> state_names() const {
        std::vector<std::string> names;
        for (std::size_t v = 0; v < layout_.used.size(); ++v)
            if (graph_.values()[v].kind == value_info::origin::persistent && layout_.used[v])
                names.push_back(graph_.values()[v].name);
        return names;
    }
    /// Goes on where the last forward() ended.
    void carry() {
        if constexpr (device_backend<Backend>) executor_.send_written();
        for (const auto& c : layout_.states)
            executor_.copy(arena_.data() + c.base + c.last, arena_.data() + c.base, c.block);
    }

    std::shared_ptr<resource>& bound_resource(std::size_t id) {
        if constexpr (device_backend<Backend>) executor_.wait();
        return resources_[id];
    }
    std::size_t resource_count() const { return resources_.size(); }

    const std::vector<std::pair<std::string, double>>& losses() const {
        const_cast<program*>(this)->fetch_losses();
        return losses_;
    }
    double loss() const {
        double sum = 0;
        for (const auto& [name, value] : losses()) sum += value;
        return sum;
    }
    /// Gradients in the layout of the store.
    std::span<real> gradient() {
        return on_host(gradient_.data(), static_cast<std::ptrdiff_t>(gradient_.size()), false);
    }
    /// Replays so far; set it to make a resumed run draw the same noise.
    std::uint64_t& replay_count() { return replays_; }

    /// Name of the first value, in the order of computation, that holds a NaN or an infinity; empty when none does.
    std::string first_non_finite() const;

    /// From now on forward() leaves the values that the graph declares constants of the loss as they are.
    void hold_constants() {
        for (run_segment& s : run_)
            for (bound& k : s.once)
                for (const int out : graph_.operations()[static_cast<std::size_t>(k.op)]->outputs)
                    k.held |= std::find(graph_.held().begin(), graph_.held().end(), out) != graph_.held().end();
        if constexpr (device_backend<Backend>) executor_.forget();
    }

    /// Bytes of the arena and of the parameter gradients.
    std::size_t memory() const { return sizeof(real) * (arena_.size() + gradient_.size()); }
    /// Number of operations that a replay runs.
    std::size_t operation_count() const { return kernels_.size(); }

private:
    friend class binder<Backend>;
    friend class recorded_steps<Backend>;
    struct bound {
        engram::kernel<Backend>* kernel;
        int steps;
        bool stepwise;
        bool backward;
        int op;
        bool held = false;
    };
    struct run_segment {
        int scan;
        bool first;  // of its scan
        std::vector<bound> once, before, chains, loop, after;
    };
    struct entry_copy {
        int scan;
        operand<real> from, to, d_from, d_to;
    };

    struct untimed {
        void operator()(const bound&, auto call) const { call(); }
    };

    const operation<Backend>& operation_of(const bound& k) const {
        return *graph_.operations()[static_cast<std::size_t>(k.op)];
    }

    void begin_forward() {
        ++replays_;
        losses_known_ = false;
        if constexpr (device_backend<Backend>) {
            weights_->refresh(executor_, *store_);
            executor_.send(replays_);
        }
    }
    /// Sweep number `sweep`: run here, or replayed by a device that records it.
    template <class Sweep>
    void replay(int sweep, Sweep run) {
        if constexpr (device_backend<Backend>)
            executor_.replay(sweep, resources_, run);
        else
            run();
    }

    void clear_losses() {
        losses_known_ = false;
        for (auto& [name, value] : losses_) value = 0;
        if constexpr (device_backend<Backend>) executor_.clear_scalars();
    }

    template <class Around>
    void sweep_forward(Around around) {
        clear_losses();
        for (const entry_copy& c : entries_) send_rows(executor_, c.from, c.to, options_.batch, false);
        for (const run_segment& s : run_) {
            for (const bound& k : s.once) around(k, [&] { run_forward(k); });
            for (const bound& k : s.before) around(k, [&] { k.kernel->forward(0, options_.steps); });
            for (const bound& k : s.chains) around(k, [&] { k.kernel->forward(0, options_.steps); });
            if (!s.loop.empty()) {
                for (const bound& k : s.loop) around(k, [&] { k.kernel->before(); });
                for (int t = 0; t < options_.steps; ++t)
                    for (const bound& k : s.loop) around(k, [&] { k.kernel->forward(t, 1); });
            }
            for (const bound& k : s.after) around(k, [&] { k.kernel->forward(0, options_.steps); });
        }
        for (const auto& c : layout_.states)
            if (c.in_place) executor_.copy(arena_.data() + c.base + c.block, arena_.data() + c.base + c.last, c.block);
    }

    template <class Around>
    void sweep_backward(Around around) {
        executor_.clear(arena_.data() + layout_.cleared_first, layout_.cleared_count);
        for (const auto& [first, count] : layout_.cleared_parameters) executor_.clear(gradient_.data() + first, count);
        for (auto s = run_.rbegin(); s != run_.rend(); ++s) {
            run_backward(s->after, around);
            for (int t = options_.steps; t-- > 0;)
                for (auto k = s->loop.rbegin(); k != s->loop.rend(); ++k)
                    if (k->backward) around(*k, [&] { k->kernel->backward(t, 1); });
            for (auto k = s->loop.rbegin(); k != s->loop.rend(); ++k)
                if (k->backward) around(*k, [&] { k->kernel->after(); });
            for (auto k = s->chains.rbegin(); k != s->chains.rend(); ++k)
                if (k->backward) around(*k, [&] { k->kernel->backward(0, options_.steps), k->kernel->after(); });
            run_backward(s->before, around);
            for (const entry_copy& c : entries_)
                if (s->first && c.scan == s->scan && c.d_from)
                    send_rows(executor_, c.d_to, c.d_from, options_.batch, true);
            run_backward(s->once, around);
        }
    }

    view whole(int value) const { return {value, 0, graph_.value(value).width, false}; }

    bool is_input(int v) const {
        if (graph_.value(v).kind == value_info::origin::input) return true;
        if (!options_.replay) return false;
        for (const auto& op : graph_.operations())
            if (op->is_record && op->outputs[0] == v) return true;
        return false;
    }

    bool is_stepwise(int i) const { return runs_stepwise(graph_, plan_, i); }

    void refuse_sharded_mixing() const;

    // States that start from a computed variable, and those that are written in place, are copied in; the gradient of
    // the former is handed back.
    void find_entries() {
        for (std::size_t k = 0; k < graph_.scans().size(); ++k)
            for (const carried_state& s : graph_.scans()[k]) {
                const auto from = static_cast<std::size_t>(s.initial.value), to = static_cast<std::size_t>(s.entering);
                if (!layout_.used[to] || layout_.base[from] == layout_.base[to]) continue;
                entry_copy c{
                    static_cast<int>(k), place_view(s.initial, false), place_view(whole(s.entering), false), {}, {}};
                if (plan_.active[from] && !s.initial.detached) {
                    c.d_from = place_view(s.initial, true);
                    c.d_to = place_view(whole(s.entering), true);
                }
                entries_.push_back(c);
            }
    }

    operand<real> place_view(const view& v, bool gradient) {
        const value_info& info = graph_.info(v);
        const std::size_t i = static_cast<std::size_t>(v.value);
        const std::ptrdiff_t base = gradient ? layout_.d_base[i] : layout_.base[i];
        if (base < 0) return {};
        operand<real> o;
        o.data = arena_.data() + base + v.offset;
        o.stride = layout_.one_row(v.value) ? 0 : info.width;
        const bool timeless = info.rows == extent::batch || plan_.scanned[i] || plan_.in_place[i];
        o.step = timeless ? 0 : std::ptrdiff_t{options_.batch} * o.stride;
        o.width = v.width;
        o.accumulate = gradient && !layout_.stored[i];
        return o;
    }

    /// Numbers of the arena as the host sees them; on a device with a memory of its own a copy.
    std::span<real> on_host(real* data, std::ptrdiff_t count, bool writes) {
        if constexpr (!device_backend<Backend>)
            return {data, static_cast<std::size_t>(count)};
        else
            return executor_.fetched(data, count, writes);
    }
    /// Once a sweep: every fetch waits for the device.
    void fetch_losses() {
        if constexpr (device_backend<Backend>) {
            if (losses_known_) return;
            executor_.wait();
            for (std::size_t i = 0; i < losses_.size(); ++i) losses_[i].second = executor_.fetch(loss_places_[i]);
            losses_known_ = true;
        }
    }
    operand<const real> shown(const view& v, bool gradient) {
        const operand<real> o = place_view(v, gradient);
        if (!o) return {};
        const real* data = on_host(o.data - v.offset, layout_.length(v.value), false).data() + v.offset;
        return {data, o.stride, o.step, o.width, false};
    }

    void bind_all() {
        kernels_.clear();
        std::vector<kernel<Backend>*> at(graph_.operations().size(), nullptr);
        // Slots first: binders hand out pointers into the list.
        for (std::size_t i = 0; i < plan_.live.size(); ++i)
            if (plan_.live[i] && graph_.operations()[i]->is_loss)
                losses_.emplace_back(graph_.operations()[i]->name, 0.0);
        loss_places_.resize(losses_.size());
        for (std::size_t i = 0; i < plan_.live.size(); ++i) {
            if (!plan_.live[i]) continue;
            kernels_.push_back(graph_.operations()[i]->bind(binder<Backend>(*this, static_cast<int>(i))));
            at[i] = kernels_.back().get();
        }
        for (const auto& s : plan_.segments) {
            run_segment r{s.scan, s.first, {}, {}, {}, {}, {}};
            const auto fill = [&](const std::vector<int>& from, std::vector<bound>& to) {
                for (const int op : from) {
                    const auto& o = *graph_.operations()[static_cast<std::size_t>(op)];
                    const int first = o.outputs.empty() ? o.inputs[0].value : o.outputs[0];
                    const bool timeless = graph_.value(first).rows == extent::batch && !is_stepwise(op) && o.row_wise;
                    to.push_back({at[static_cast<std::size_t>(op)], timeless ? 1 : options_.steps, is_stepwise(op),
                                  plan_.backward[static_cast<std::size_t>(op)] != 0, op});
                }
            };
            fill(s.once, r.once);
            fill(s.before, r.before);
            fill(s.loop, r.loop);
            const auto chains = std::stable_partition(r.loop.begin(), r.loop.end(),
                                                      [](const bound& k) { return !k.kernel->runs_loop(); });
            r.chains.assign(chains, r.loop.end());
            r.loop.erase(chains, r.loop.end());
            fill(s.after, r.after);
            run_.push_back(std::move(r));
        }
    }

    void run_forward(const bound& k) {
        if (k.held) return;
        if (!k.stepwise) return k.kernel->forward(0, k.steps);
        for (int t = 0; t < options_.steps; ++t) k.kernel->forward(t, 1);
    }
    template <class Around>
    void run_backward(const std::vector<bound>& list, Around& around) {
        for (auto k = list.rbegin(); k != list.rend(); ++k) {
            if (!k->backward) continue;
            around(*k, [&] {
                if (!k->stepwise) return k->kernel->backward(0, k->steps);
                for (int t = options_.steps; t-- > 0;) k->kernel->backward(t, 1);
                k->kernel->after();
            });
        }
    }

    int find_value(const std::string& name, value_info::origin kind, const char* what) const;
    std::span<real> find_buffer(const std::string& name, value_info::origin kind, const char* what, bool last = false) {
        const int v = find_value(name, kind, what);
        const auto i = static_cast<std::size_t>(v);
        require(layout_.base[i] >= 0, what, " '", name, "' is not used by this plan");
        real* const data = arena_.data() + layout_.base[i] + (last ? layout_.last_block[i] : 0);
        if constexpr (device_backend<Backend>)
            if (kind == value_info::origin::input) return executor_.input(data, layout_.length(v));
        return on_host(data, layout_.length(v), !last);
    }
    double* loss_slot(const std::string& name) {
        for (std::size_t i = 0; i < losses_.size(); ++i) {
            if (losses_[i].first != name) continue;
            if constexpr (device_backend<Backend>)
                return loss_places_[i] ? loss_places_[i] : loss_places_[i] = executor_.scalar();
            else
                return &losses_[i].second;
        }
        fail("loss '", name, "' is not part of this plan");
    }

    const graph<Backend>& graph_;
    std::shared_ptr<parameters<real>> store_;
    plan_options options_;
    engram::plan plan_;
    std::vector<std::shared_ptr<resource>> resources_;
    memory_layout<Backend> layout_;
    std::vector<entry_copy> entries_;
    engram::executor<Backend> executor_;
    typename engram::executor<Backend>::buffer arena_, gradient_;
    std::shared_ptr<device_weights<Backend>> weights_;  // none on the host
    std::vector<std::unique_ptr<kernel<Backend>>> kernels_;
    std::vector<run_segment> run_;
    std::vector<std::pair<std::string, double>> losses_;
    std::vector<double*> loss_places_;  // on a device
    bool losses_known_ = false;         // on a device: those of the last sweep are in losses_
    std::uint64_t replays_ = 0;
};

}  // namespace engram

#include <engram/graph/program_errors.hpp>
