#pragma once
// SPDX-License-Identifier: MIT

// The run: a plan bound to buffers, replayed by forward() and backward() with no allocation, dispatch on types or look-up.
//
// Buffers are row-major, row t * B + b, in one arena. A carried state is one buffer of T + 1 blocks [B, F]: what a step
// leaves is block t + 1, what the next one enters with, so nothing is copied. A gradient whose writers tile it exactly is
// stored, any other is cleared and added to. Deferred work (weight gradients, gradients of hoisted parts) follows the
// time loop in kernel::after().

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <engram/core/aligned.hpp>
#include <engram/graph/plan.hpp>

namespace engram {

/// Where some columns of a value lie: row b of step t starts at data + t * step + b * stride.
template <class Real>
struct operand {
    Real* data = nullptr;
    std::ptrdiff_t stride = 0;
    std::ptrdiff_t step = 0;
    int width = 0;
    bool accumulate = false;    // for gradients: add instead of store

    Real* at(int t) const { return data + t * step; }
    explicit operator bool() const { return data != nullptr; }
};

/// An operation bound to buffers. Ranges are `steps` time steps from t on; outside time loops that is all of them.
template <class Backend>
struct kernel {
    virtual ~kernel() = default;
    /// The share that can be summed over all steps ahead of the time loop.
    virtual void before() {}
    virtual void forward(int t, int steps) = 0;
    virtual void backward(int /*t*/, int /*steps*/) {}
    /// What was put off until the backward time loop had ended.
    virtual void after() {}
};

template <class Backend>
class program;

/// What an operation asks for when it is bound.
template <class Backend>
class binder {
  public:
    using real = typename Backend::real;

    binder(program<Backend>& owner, int op) : program_(&owner), op_(op) {}

    const operation<Backend>& op() const { return *program_->graph_.operations()[static_cast<std::size_t>(op_)]; }
    int steps() const { return program_->options_.steps; }
    int batch() const { return program_->options_.batch; }
    int total_batch() const { return program_->options_.whole_batch(); }
    int first_row() const { return program_->options_.first_row; }
    bool side_effects() const { return program_->options_.side_effects; }

    /// Called one step at a time (in a time loop, or because some inputs have no time).
    bool stepwise() const { return program_->is_stepwise(op_); }
    /// Input i is known before the time loop in which this operation stands.
    bool hoisted(std::size_t i) const {
        const auto& in = op().inputs[i];
        return program_->plan_.place[static_cast<std::size_t>(op_)] == placement::loop && program_->options_.hoist &&
               op().splits && !program_->plan_.in_loop[static_cast<std::size_t>(in.value)] &&
               program_->graph_.info(in).rows == extent::sequence;
    }
    bool needs_backward() const { return program_->plan_.backward[static_cast<std::size_t>(op_)]; }

    operand<real> in(std::size_t i) const { return program_->place_view(op().inputs[i], false); }
    operand<real> out(std::size_t i) const { return program_->place_view(program_->whole(op().outputs[i]), false); }
    /// Gradient of input i to write; null when nobody wants it.
    operand<real> d_in(std::size_t i) const {
        const view& v = op().inputs[i];
        if (!needs_backward() || v.detached || !program_->plan_.active[static_cast<std::size_t>(v.value)]) return {};
        return program_->place_view(v, true);
    }
    /// Gradient of output i to read; null when it is zero.
    operand<real> d_out(std::size_t i) const {
        const int v = op().outputs[i];
        if (!program_->plan_.active[static_cast<std::size_t>(v)]) return {};
        return program_->place_view(program_->whole(v), true);
    }

    parameters<real>& store() const { return *program_->store_; }
    /// Gradient of a parameter; `accumulate` tells whether to add to it.
    operand<real> d_parameter(parameter p) const {
        operand<real> g;
        if (!needs_backward()) return g;
        const auto& entry = store()[p];
        g.data = program_->gradient_.data() + entry.offset;
        g.stride = g.width = entry.columns;
        g.accumulate = program_->parameter_writers_[static_cast<std::size_t>(p.id)] != 1;
        return g;
    }
    /// The resource in use; read through the pointer at every call, because programs may exchange it.
    std::shared_ptr<resource>* bound_resource(int id) const { return &program_->resources_[static_cast<std::size_t>(id)]; }
    /// Where a loss adds its value.
    double* loss_slot(const std::string& name) const { return program_->loss_slot(name); }
    /// Counter of forward() calls, which noise is keyed by.
    const std::uint64_t* replay_count() const { return &program_->replays_; }

  private:
    program<Backend>* program_;
    int op_;
};

template <class Backend>
class program {
  public:
    using real = typename Backend::real;
    using variable = var<Backend>;

    /// Plans and binds `g` for the given sizes. `outputs` are kept alive besides losses and resources. The store may be
    /// another copy of the graph's own, with the same entries.
    program(const graph<Backend>& g, std::shared_ptr<parameters<real>> store, const plan_options& options,
            const std::vector<variable>& outputs = {})
        : graph_(g), store_(std::move(store)), options_(options),
          plan_(make_plan(g, options, std::vector<view>(outputs.begin(), outputs.end()))) {
        require(options.steps > 0 && options.batch > 0, "plan: ", options.steps, " steps of ", options.batch,
                " rows leave nothing to run");
        refuse_sharded_mixing();
        for (const auto& r : g.resources()) resources_.push_back(r.make(options.batch));
        lay_out();
        bind_all();
    }
    program(const program&) = delete;
    program& operator=(const program&) = delete;

    void forward() {
        ++replays_;
        for (auto& [name, value] : losses_) value = 0;
        for (const entry_copy& c : entries_)
            copy_rows(c.from, c.to);
        for (const run_segment& s : run_) {
            for (const bound& k : s.once) run_forward(k);
            for (const bound& k : s.before) k.kernel->forward(0, options_.steps);
            if (!s.loop.empty()) {
                for (const bound& k : s.loop) k.kernel->before();
                for (int t = 0; t < options_.steps; ++t)
                    for (const bound& k : s.loop) k.kernel->forward(t, 1);
            }
            for (const bound& k : s.behind) k.kernel->forward(0, options_.steps);
        }
    }

    /// Gradients of the sum of all losses; call after forward().
    void backward() {
        require(options_.gradients, "backward: this program was planned without gradients");
        std::memset(arena_.data() + cleared_first_, 0, sizeof(real) * static_cast<std::size_t>(cleared_count_));
        for (const auto& [first, count] : cleared_parameters_)
            std::memset(gradient_.data() + first, 0, sizeof(real) * static_cast<std::size_t>(count));
        for (auto s = run_.rbegin(); s != run_.rend(); ++s) {
            run_backward(s->behind);
            for (int t = options_.steps; t-- > 0;)
                for (auto k = s->loop.rbegin(); k != s->loop.rend(); ++k)
                    if (k->backward) k->kernel->backward(t, 1);
            for (auto k = s->loop.rbegin(); k != s->loop.rend(); ++k)
                if (k->backward) k->kernel->after();
            run_backward(s->before);
            for (const entry_copy& c : entries_)
                if (c.scan == s->scan && c.d_from) add_rows(c.d_to, c.d_from);
            run_backward(s->once);
        }
    }

    const plan_options& options() const { return options_; }
    const engram::plan& planned() const { return plan_; }

    /// Buffer of an input, to be filled before forward(): [T, B, F] or [B, F], dense.
    std::span<real> input(const std::string& name) { return find_buffer(name, value_info::origin::input, "input"); }
    bool has_input(const std::string& name) const {
        for (std::size_t v = 0; v < graph_.values().size(); ++v)
            if (graph_.values()[v].name == name && is_input(static_cast<int>(v))) return used_[v];
        return false;
    }
    /// Values of any variable that this plan computes.
    operand<const real> output(const variable& v) const {
        require(used_[static_cast<std::size_t>(v.value)], "output: '", graph_.info(v).name,
                "' is not computed by this plan; name it among the outputs");
        const operand<real> o = const_cast<program*>(this)->place_view(v, false);
        return {o.data, o.stride, o.step, o.width, false};
    }
    /// Gradient of a variable after backward(); null when it has none.
    operand<const real> gradient_of(const variable& v) const {
        if (!plan_.active[static_cast<std::size_t>(v.value)]) return {};
        const operand<real> o = const_cast<program*>(this)->place_view(v, true);
        return {o.data, o.stride, o.step, o.width, false};
    }

    /// A persistent state as the next forward() will enter with it: [B, F].
    std::span<real> state(const std::string& name) { return find_buffer(name, value_info::origin::persistent, "state"); }
    /// The same state as the last forward() left it.
    std::span<real> next_state(const std::string& name) {
        const auto entering = state(name);
        const int v = find_value(name, value_info::origin::persistent, "state");
        return {entering.data() + state_length_[static_cast<std::size_t>(v)] * std::ptrdiff_t{options_.steps}, entering.size()};
    }
    std::vector<std::string> state_names() const {
        std::vector<std::string> names;
        for (std::size_t v = 0; v < used_.size(); ++v)
            if (graph_.values()[v].kind == value_info::origin::persistent && used_[v]) names.push_back(graph_.values()[v].name);
        return names;
    }
    /// Goes on where the last forward() ended.
    void carry() {
        for (const carried& c : carried_)
            std::memcpy(arena_.data() + c.base, arena_.data() + c.base + c.block * options_.steps,
                        sizeof(real) * static_cast<std::size_t>(c.block));
    }

    std::shared_ptr<resource>& bound_resource(std::size_t id) { return resources_[id]; }
    std::size_t resource_count() const { return resources_.size(); }

    const std::vector<std::pair<std::string, double>>& losses() const { return losses_; }
    double loss() const {
        double sum = 0;
        for (const auto& [name, value] : losses_) sum += value;
        return sum;
    }
    /// Gradients in the layout of the store.
    std::span<real> gradient() { return gradient_; }
    /// Replays so far; set it to make a resumed run draw the same noise.
    std::uint64_t& replay_count() { return replays_; }

    /// Name of the first value, in the order of computation, that holds a NaN or an infinity; empty when all are finite.
    std::string first_non_finite() const {
        const auto bad = [&](int op, int t, int steps) -> std::string {
            for (const int out : graph_.operations()[static_cast<std::size_t>(op)]->outputs) {
                const operand<real> o = const_cast<program*>(this)->place_view(whole(out), false);
                const bool timeless = o.step == 0;
                for (int s = t; s < (timeless ? t + 1 : t + steps); ++s)
                    for (int i = 0; i < options_.batch * o.width; ++i)
                        if (!std::isfinite(o.at(s)[i])) return graph_.value(out).name;
            }
            return {};
        };
        const auto scan_list = [&](const std::vector<int>& list, int t, int steps) -> std::string {
            for (const int op : list)
                if (auto name = bad(op, t, steps); !name.empty()) return name;
            return {};
        };
        for (const auto& s : plan_.segments) {
            if (auto name = scan_list(s.once, 0, options_.steps); !name.empty()) return name;
            if (auto name = scan_list(s.before, 0, options_.steps); !name.empty()) return name;
            for (int t = 0; t < options_.steps; ++t)
                if (auto name = scan_list(s.loop, t, 1); !name.empty()) return name;
            if (auto name = scan_list(s.behind, 0, options_.steps); !name.empty()) return name;
        }
        return {};
    }

    /// From now on forward() leaves the values that the graph declares constants of the loss as they are.
    void hold_constants() {
        for (run_segment& s : run_)
            for (bound& k : s.once)
                for (const int out : graph_.operations()[static_cast<std::size_t>(k.op)]->outputs)
                    k.held |= std::find(graph_.held().begin(), graph_.held().end(), out) != graph_.held().end();
    }

    /// Bytes of the arena and of the parameter gradients.
    std::size_t memory() const { return sizeof(real) * (arena_.size() + gradient_.size()); }
    /// Number of operations that a replay runs.
    std::size_t operation_count() const { return kernels_.size(); }

  private:
    friend class binder<Backend>;

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
        std::vector<bound> once, before, loop, behind;
    };
    struct entry_copy {
        int scan;
        operand<real> from, to, d_from, d_to;
    };
    struct carried {
        std::ptrdiff_t base, block;
    };

    static view all_columns(int value, int width) { return {value, 0, width, false}; }
    view whole(int value) const { return all_columns(value, graph_.value(value).width); }

    bool is_input(int v) const {
        if (graph_.value(v).kind == value_info::origin::input) return true;
        if (!options_.replay) return false;
        for (const auto& op : graph_.operations())
            if (op->is_record && op->outputs[0] == v) return true;
        return false;
    }

    bool is_stepwise(int i) const {
        const auto& op = *graph_.operations()[static_cast<std::size_t>(i)];
        if (plan_.place[static_cast<std::size_t>(i)] == placement::loop) return true;
        if (plan_.place[static_cast<std::size_t>(i)] != placement::once || !op.row_wise) return false;
        bool timeless = false, timed = false;
        for (const view& in : op.inputs) (graph_.info(in).rows == extent::batch ? timeless : timed) = true;
        for (const int out : op.outputs) (graph_.value(out).rows == extent::batch ? timeless : timed) = true;
        return timeless && timed;
    }

    void refuse_sharded_mixing() const {
        if (options_.whole_batch() == options_.batch) return;
        for (std::size_t i = 0; i < plan_.live.size(); ++i)
            if (plan_.live[i] && graph_.operations()[i]->mixes_batch)
                fail(graph_.operations()[i]->name, ": mixes rows of the batch, so the batch cannot be split over threads; use one");
    }

    // Gives every used value its place in the arena: values, then gradients that are cleared, then gradients that are stored.
    void lay_out() {
        const auto& values = graph_.values();
        const std::ptrdiff_t rows = options_.batch;
        used_.assign(values.size(), 0);
        for (std::size_t i = 0; i < plan_.live.size(); ++i) {
            if (!plan_.live[i]) continue;
            for (const view& in : graph_.operations()[i]->inputs) used_[static_cast<std::size_t>(in.value)] = 1;
            for (const int out : graph_.operations()[i]->outputs) used_[static_cast<std::size_t>(out)] = 1;
        }
        for (const auto& scan : graph_.scans())
            for (const carried_state& s : scan)
                if (used_[static_cast<std::size_t>(s.entering)]) used_[static_cast<std::size_t>(s.initial.value)] = 1;

        base_.assign(values.size(), -1);
        d_base_.assign(values.size(), -1);
        state_length_.assign(values.size(), 0);
        std::ptrdiff_t end = 0;
        const auto take = [&end](std::ptrdiff_t count) {
            const std::ptrdiff_t start = end;
            end += (count + 15) / 16 * 16;
            return start;
        };
        // A state's T + 1 blocks first, so that the values at its ends share them.
        const auto each_state = [&](auto&& f) {
            for (std::size_t k = 0; k < graph_.scans().size(); ++k)
                for (const carried_state& s : graph_.scans()[k])
                    if (used_[static_cast<std::size_t>(s.entering)]) f(static_cast<int>(k), s);
        };
        each_state([&](int, const carried_state& s) {
            const std::ptrdiff_t block = rows * graph_.value(s.entering).width;
            const std::ptrdiff_t start = take(block * (options_.steps + 1));
            base_[static_cast<std::size_t>(s.entering)] = start;
            base_[static_cast<std::size_t>(s.leaving)] = start + block;
            if (graph_.info(s.initial).kind == value_info::origin::persistent && s.initial.width == graph_.info(s.initial).width) {
                base_[static_cast<std::size_t>(s.initial.value)] = start;
                state_length_[static_cast<std::size_t>(s.initial.value)] = block;
                carried_.push_back({start, block});
            }
        });
        const auto length = [&](std::size_t v) {
            return rows * values[v].width * (values[v].rows == extent::batch ? 1 : options_.steps);
        };
        for (std::size_t v = 0; v < values.size(); ++v)
            if (used_[v] && base_[v] < 0) base_[v] = take(length(v));

        const std::vector<char> stored = stored_gradients();
        cleared_first_ = end;
        each_state([&](int, const carried_state& s) {
            if (!plan_.active[static_cast<std::size_t>(s.entering)] && !plan_.active[static_cast<std::size_t>(s.leaving)]) return;
            const std::ptrdiff_t block = rows * graph_.value(s.entering).width;
            const std::ptrdiff_t start = take(block * (options_.steps + 1));
            d_base_[static_cast<std::size_t>(s.entering)] = start;
            d_base_[static_cast<std::size_t>(s.leaving)] = start + block;
        });
        for (std::size_t v = 0; v < values.size(); ++v)
            if (plan_.active[v] && d_base_[v] < 0 && !stored[v]) d_base_[v] = take(length(v));
        cleared_count_ = end - cleared_first_;
        for (std::size_t v = 0; v < values.size(); ++v)
            if (plan_.active[v] && d_base_[v] < 0) d_base_[v] = take(length(v));
        stored_ = stored;
        arena_.assign(static_cast<std::size_t>(end), real(0));
        if (options_.gradients) gradient_.assign(static_cast<std::size_t>(store_->flat_size()), real(0));

        each_state([&](int k, const carried_state& s) {
            if (base_[static_cast<std::size_t>(s.initial.value)] == base_[static_cast<std::size_t>(s.entering)]) return;
            entry_copy c{k, place_view(s.initial, false), place_view(whole(s.entering), false), {}, {}};
            if (plan_.active[static_cast<std::size_t>(s.initial.value)] && !s.initial.detached) {
                c.d_from = place_view(s.initial, true);
                c.d_to = place_view(whole(s.entering), true);
            }
            entries_.push_back(c);
        });
    }

    // Values whose gradient writers cover each column exactly once and each row in the same call.
    std::vector<char> stored_gradients() {
        struct interval {
            int first, last;
        };
        const auto& ops = graph_.operations();
        std::vector<std::vector<interval>> writers(graph_.values().size());
        std::vector<char> stored(graph_.values().size(), 0);
        parameter_writers_.assign(store_->entries().size(), 0);
        for (std::size_t i = 0; i < ops.size(); ++i) {
            if (!plan_.backward[i]) continue;
            for (const int p : ops[i]->parameters) ++parameter_writers_[static_cast<std::size_t>(p)];
            for (const view& in : ops[i]->inputs)
                if (!in.detached) writers[static_cast<std::size_t>(in.value)].push_back({in.offset, in.offset + in.width});
        }
        for (std::size_t v = 0; v < stored.size(); ++v) {
            if (!plan_.active[v] || plan_.state_of[v] >= 0 || graph_.values()[v].rows == extent::batch) continue;
            auto& w = writers[v];
            std::sort(w.begin(), w.end(), [](const interval& a, const interval& b) { return a.first < b.first; });
            int covered = 0;
            bool exact = true;
            for (const interval& x : w) {
                exact &= x.first == covered;
                covered = x.last;
            }
            stored[v] = exact && covered == graph_.values()[v].width;
        }
        for (std::size_t p = 0; p < parameter_writers_.size(); ++p)
            if (parameter_writers_[p] != 1)
                cleared_parameters_.push_back({store_->entries()[p].offset, store_->entries()[p].size()});
        return stored;
    }

    operand<real> place_view(const view& v, bool gradient) {
        const value_info& info = graph_.info(v);
        const std::size_t i = static_cast<std::size_t>(v.value);
        const std::ptrdiff_t base = gradient ? d_base_[i] : base_[i];
        if (base < 0) return {};
        operand<real> o;
        o.data = arena_.data() + base + v.offset;
        o.stride = info.width;
        o.step = info.rows == extent::batch ? 0 : std::ptrdiff_t{options_.batch} * info.width;
        o.width = v.width;
        o.accumulate = gradient && !stored_[i];
        return o;
    }

    void bind_all() {
        kernels_.clear();
        std::vector<kernel<Backend>*> at(graph_.operations().size(), nullptr);
        // Slots first: binders hand out pointers into the list.
        for (std::size_t i = 0; i < plan_.live.size(); ++i)
            if (plan_.live[i] && graph_.operations()[i]->is_loss) losses_.emplace_back(graph_.operations()[i]->name, 0.0);
        for (std::size_t i = 0; i < plan_.live.size(); ++i) {
            if (!plan_.live[i]) continue;
            kernels_.push_back(graph_.operations()[i]->bind(binder<Backend>(*this, static_cast<int>(i))));
            at[i] = kernels_.back().get();
        }
        for (const auto& s : plan_.segments) {
            run_segment r{s.scan, {}, {}, {}, {}};
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
            fill(s.behind, r.behind);
            run_.push_back(std::move(r));
        }
    }

    void run_forward(const bound& k) {
        if (k.held) return;
        if (!k.stepwise) return k.kernel->forward(0, k.steps);
        for (int t = 0; t < options_.steps; ++t) k.kernel->forward(t, 1);
    }
    void run_backward(const std::vector<bound>& list) {
        for (auto k = list.rbegin(); k != list.rend(); ++k) {
            if (!k->backward) continue;
            if (!k->stepwise) {
                k->kernel->backward(0, k->steps);
            } else {
                for (int t = options_.steps; t-- > 0;) k->kernel->backward(t, 1);
                k->kernel->after();
            }
        }
    }
    void copy_rows(const operand<real>& from, const operand<real>& to) {
        for (int b = 0; b < options_.batch; ++b)
            std::copy_n(from.data + b * from.stride, from.width, to.data + b * to.stride);
    }
    void add_rows(const operand<real>& from, const operand<real>& to) {
        for (int b = 0; b < options_.batch; ++b)
            for (int f = 0; f < from.width; ++f) to.data[b * to.stride + f] += from.data[b * from.stride + f];
    }

    int find_value(const std::string& name, value_info::origin kind, const char* what) const {
        std::vector<std::string> names;
        for (std::size_t v = 0; v < graph_.values().size(); ++v) {
            const bool right = kind == value_info::origin::input ? is_input(static_cast<int>(v))
                                                                 : graph_.values()[v].kind == kind;
            if (!right) continue;
            if (graph_.values()[v].name == name) return static_cast<int>(v);
            names.push_back(graph_.values()[v].name);
        }
        fail("unknown ", what, " '", name, "'; did you mean '", nearest_name(name, names), "'?");
    }
    std::span<real> find_buffer(const std::string& name, value_info::origin kind, const char* what) {
        const auto v = static_cast<std::size_t>(find_value(name, kind, what));
        require(base_[v] >= 0, what, " '", name, "' is not used by this plan");
        const std::ptrdiff_t rows = std::ptrdiff_t{options_.batch} *
                                    (graph_.values()[v].rows == extent::batch ? 1 : options_.steps);
        return {arena_.data() + base_[v], static_cast<std::size_t>(rows * graph_.values()[v].width)};
    }
    double* loss_slot(const std::string& name) {
        for (auto& [known, value] : losses_)
            if (known == name) return &value;
        fail("loss '", name, "' is not part of this plan");
    }

    const graph<Backend>& graph_;
    std::shared_ptr<parameters<real>> store_;
    plan_options options_;
    engram::plan plan_;
    std::vector<std::shared_ptr<resource>> resources_;
    std::vector<char> used_, stored_;
    std::vector<std::ptrdiff_t> base_, d_base_, state_length_;
    std::ptrdiff_t cleared_first_ = 0, cleared_count_ = 0;
    std::vector<int> parameter_writers_;
    std::vector<std::pair<std::ptrdiff_t, std::ptrdiff_t>> cleared_parameters_;
    std::vector<carried> carried_;
    std::vector<entry_copy> entries_;
    aligned_vector<real> arena_, gradient_;
    std::vector<std::unique_ptr<kernel<Backend>>> kernels_;
    std::vector<run_segment> run_;
    std::vector<std::pair<std::string, double>> losses_;
    std::uint64_t replays_ = 0;
};

}  // namespace engram
