#pragma once
// SPDX-License-Identifier: MIT

// The trace: a symbolic graph of operations over [T, B, F] values, written by ordinary code.
//
// T (time) and B (batch) stay symbolic; only widths F are fixed here. A `var` is a handle to some columns of a value.
// An operation is an immutable description; a program binds it to buffers. Errors are thrown while tracing, in the
// caller's call stack, and name the operation and both shapes.

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <engram/core/device.hpp>
#include <engram/core/error.hpp>
#include <engram/graph/parameters.hpp>

namespace engram {

template <class Backend>
class graph;
template <class Backend>
struct kernel;
template <class Backend>
class binder;

/// Rows of a value: one a time step and batch entry [T, B, F], or one a batch entry and unroll [B, F].
enum class extent { sequence, batch };

/// Columns [offset, offset + width) of a value; a detached view passes no gradient.
struct view {
    int value = -1;
    int offset = 0;
    int width = 0;
    bool detached = false;
};

/// A view that knows its graph: what policies hold and pass around.
template <class Backend>
struct var : view {
    graph<Backend>* owner = nullptr;
    int stands_for = 1;  // in a map, how many columns each of these serves
    int reset = -1;      // of an own state: the column [T, B, 1] that says where its reader has to clear it

    /// Columns [first, first + count), sharing storage and gradient.
    var columns(int first, int count) const {
        require(first >= 0 && count > 0 && first + count <= width, "columns [", first, ",", first + count,
                ") of a value that has ", width);
        var part = *this;
        part.offset += first;
        part.width = count;
        return part;
    }
    /// For map(): every column stands for `count` columns side by side, as a head's gate does for all of its slots.
    var spread(int count) const {
        require(count > 0, "spread: a column cannot stand for ", count, " columns");
        var wide = *this;
        wide.stands_for *= count;
        return wide;
    }
};

/// The same numbers as a constant.
template <class Backend>
var<Backend> stop_gradient(var<Backend> x) {
    x.detached = true;
    return x;
}

/// Columns of all of them side by side.
template <class Backend>
int columns_of(const std::vector<var<Backend>>& all) {
    int columns = 0;
    for (const auto& v : all) columns += v.width;
    return columns;
}

/// N equal column blocks.
template <int N, class Backend>
std::array<var<Backend>, N> split_columns(const var<Backend>& x) {
    require(x.width % N == 0, "split_columns: ", x.width, " columns do not divide into ", N, " equal parts");
    std::array<var<Backend>, N> parts;
    for (int i = 0; i < N; ++i) parts[static_cast<std::size_t>(i)] = x.columns(i * (x.width / N), x.width / N);
    return parts;
}

/// Weight [inputs, outputs] and bias [1, outputs] of an affine map.
struct linear {
    parameter weight;
    parameter bias;
};

/// What persists between unrolls besides states, one per batch row: an episodic memory's ring, for instance.
struct resource {
    virtual ~resource() = default;
    /// Everything that a checkpoint must keep of it.
    virtual std::vector<std::span<std::byte>> bytes() = 0;
};

/// A named resource of a graph and how to make it for B batch rows.
struct resource_description {
    std::string name;
    std::function<std::shared_ptr<resource>(int batch)> make;
};

/// An input that weighs a loss, and what training is to make of the loss by it.
struct adaptive_weight_description {
    std::string input, loss;
    double first, target;
};

/// One operation of a trace: inputs, outputs, settings; no buffers.
template <class Backend>
struct operation {
    std::string name;
    std::vector<view> inputs;
    std::vector<int> outputs;
    std::vector<int> parameters;   // ids it trains
    std::vector<int> resources;    // ids it touches: such an operation never moves in its scan
    bool writes_resource = false;  // kept even if nobody reads its outputs
    bool row_wise = true;          // rows are independent of each other: may be hoisted, sunk and sharded
    bool mixes_batch = false;      // rows of different batch entries meet: refuses to be sharded
    bool is_loss = false;
    bool is_record = false;     // a replaying plan reads its output from the trajectory instead
    bool splits = false;        // its inputs outside the time loop can be summed ahead of the loop
    bool in_place = false;      // keeps what it takes from its first input, and puts it back on the way back, so that
                                // its last output may lie where that input lies
    bool scans = false;         // its first input is what its last output was one step before: can run many steps
    bool takes_tables = false;  // can multiply a table once instead of each of the rows that were taken from it
    int table = -1;             // the parameter of which its output is rows, named by its only input
    int scan = -1;

    virtual ~operation() = default;
    virtual std::unique_ptr<kernel<Backend>> bind(const binder<Backend>&) const = 0;
};

/// One value of a trace.
struct value_info {
    enum class origin { computed, input, persistent, entering };

    std::string name;
    int width;
    extent rows;
    origin kind;
    int scan = -1;            // the scan whose body made it
    bool rows_alike = false;  // made of parameters alone: every row has the same numbers, and the host keeps one
    bool own = false;         // a state that one operation alone reads, clears and leaves
    bool uncleared = false;   // a state that stays as it is where an episode begins, until a memory fills it itself
};

/// A carried state of a scan: what it starts from, what a step sees, what a step leaves.
struct carried_state {
    view initial;
    int entering;
    int leaving = -1;
};

template <class Backend>
class graph {
public:
    using real = typename Backend::real;
    using variable = var<Backend>;

    using backend = Backend;

    explicit graph(std::shared_ptr<engram::parameters<real>> store) : store_(std::move(store)) {}
    graph(const graph&) = delete;
    graph& operator=(const graph&) = delete;

    engram::parameters<real>& store() { return *store_; }
    const engram::parameters<real>& store() const { return *store_; }

    /// Prefixes the names of all that is traced while the returned guard lives: "memory" gives "memory.key.weight".
    class scope_guard {
    public:
        scope_guard(graph& g, const std::string& name) : graph_(&g), before_(g.prefix_) { g.prefix_ += name + "."; }
        scope_guard(const scope_guard&) = delete;
        scope_guard& operator=(const scope_guard&) = delete;
        ~scope_guard() { graph_->prefix_ = before_; }

    private:
        graph* graph_;
        std::string before_;
    };
    /// Names of all that is traced while the returned guard lives begin with `name` and a dot.
    [[nodiscard]] scope_guard scope(const std::string& name) { return scope_guard(*this, name); }
    std::string full_name(const std::string& name) const { return prefix_ + name; }

    /// Numbers given from outside: [T, B, width], or [B, width] for extent::batch. `gradient` asks for theirs too.
    variable input(const std::string& name, int width, extent rows = extent::sequence, bool gradient = false) {
        const variable v = add_value(name, width, rows, value_info::origin::input);
        if (gradient) wanted_.push_back(v.value);
        return v;
    }

    /// A column [T, B, 1] that weighs what is in the loss of this name, `first` to begin with. What trains fills it,
    /// and changes it so that the loss without it comes near `target` (train/adaptive_weights.hpp).
    variable adaptive_weight(const std::string& name, const std::string& loss, double first, double target) {
        adaptive_.push_back({name, full_name(loss), first, target});
        return input(name, 1);
    }

    /// A state [B, width] that outlives the unroll; zero at first.
    variable state(const std::string& name, int width) {
        return add_value(full_name(name), width, extent::batch, value_info::origin::persistent);
    }
    /// A state that one operation alone reads, which clears it where an episode begins: a map, or a recurrence that
    /// leaves it too, so that it can run all steps at once and keep none but the last.
    variable own_state(const std::string& name, int width) {
        const variable v = state(name, width);
        values_[static_cast<std::size_t>(v.value)].own = true;
        return v;
    }

    /// A state that is not cleared where an episode begins: whoever reads it knows what was written since, or its
    /// memory fills it (`forget`).
    variable uncleared_state(const std::string& name, int width) {
        const variable v = state(name, width);
        values_[static_cast<std::size_t>(v.value)].uncleared = true;
        return v;
    }

    int add_resource(const std::string& name, std::function<std::shared_ptr<resource>(int)> make) {
        resources_.push_back({full_name(name), std::move(make)});
        return static_cast<int>(resources_.size()) - 1;
    }

    /// From now on declaring a name that the store has gives the parameter that is there: for several graphs over one
    /// store.
    void share_parameters() { shares_ = true; }

    /// A parameter [rows, columns] of the store; `first` fills it.
    parameter declare(const std::string& name, int rows, int columns, const initialiser<real>& first) {
        if (shares_)
            for (std::size_t i = 0; i < store_->entries().size(); ++i) {
                const auto& e = store_->entries()[i];
                if (e.name != full_name(name)) continue;
                require(e.rows == rows && e.columns == columns, "parameter '", e.name, "' is [", e.rows, ",", e.columns,
                        "] in another graph and [", rows, ",", columns, "] here");
                return {static_cast<int>(i)};
            }
        return store_->declare(full_name(name), rows, columns, first);
    }

    /// Weight and bias of an affine map from `inputs` to `outputs` columns; fan-in scaled unless given.
    linear declare_linear(const std::string& name, int inputs, int outputs, initialiser<real> weight = {},
                          initialiser<real> bias = {}) {
        return {declare(name + ".weight", inputs, outputs, weight ? weight : initial::fan_in<real>()),
                declare(name + ".bias", 1, outputs, bias ? bias : initial::zero<real>())};
    }

    /// Adds an operation with outputs of the given widths; operations of policies go through the functions of
    /// operations/.
    template <class Operation>
    std::vector<variable> add(std::unique_ptr<Operation> op, const std::vector<int>& widths, extent rows) {
        op->name = full_name(op->name);
        op->scan = current_scan_;
        std::vector<variable> outputs;
        for (std::size_t i = 0; i < widths.size(); ++i) {
            outputs.push_back(add_value(widths.size() == 1 ? op->name : message(op->name, ".", i), widths[i], rows,
                                        value_info::origin::computed));
            op->outputs.push_back(outputs.back().value);
        }
        operations_.push_back(std::move(op));
        return outputs;
    }

    /// Rows of an operation's output: sequence if any input is one or a scan is being traced.
    extent common_rows(const std::vector<view>& inputs) const {
        if (current_scan_ >= 0) return extent::sequence;
        for (const view& v : inputs)
            if (info(v).rows == extent::sequence) return extent::sequence;
        return extent::batch;
    }

    /// Declares that every row of what one operation made has the same numbers, so that the host computes and keeps
    /// one, and one gradient, that of all rows.
    void declare_rows_alike(const std::vector<variable>& made) {
        for (const variable& v : made) values_[static_cast<std::size_t>(v.value)].rows_alike = true;
    }
    bool rows_alike(const std::vector<view>& all) const {
        return std::all_of(all.begin(), all.end(), [&](const view& v) { return info(v).rows_alike; });
    }

    // --- scans (used by graph/scan.hpp) ---
    /// Whether a scan's body is being traced.
    bool in_scan() const { return current_scan_ >= 0; }
    void begin_scan() {
        require(current_scan_ < 0, "scan: a scan inside another is not supported");
        current_scan_ = static_cast<int>(scans_.size());
        scans_.emplace_back();
    }
    variable enter_state(const variable& from) {
        require(from.owner == this && info(from).rows == extent::batch, "scan: the initial state '", info(from).name,
                "' must be [B,F], one row a batch entry");
        const variable entering =
            add_value(info(from).name + ".entering", from.width, extent::sequence, value_info::origin::entering);
        values_[static_cast<std::size_t>(entering.value)].own = info(from).own;
        values_[static_cast<std::size_t>(entering.value)].uncleared = info(from).uncleared;
        scans_.back().push_back({from, entering.value});
        return entering;
    }
    void leave_state(std::size_t index, const variable& leaving) {
        carried_state& s = scans_.back()[index];
        require(leaving.owner == this && leaving.width == value(s.entering).width, "scan: state '",
                info(s.initial).name, "' enters as [B,", value(s.entering).width, "] and leaves as [B,", leaving.width,
                "]");
        s.leaving = leaving.value;
        values_[static_cast<std::size_t>(leaving.value)].rows_alike = false;  // an end of a state has all its rows
    }
    void end_scan() {
        for (const carried_state& s : scans_.back()) {
            const auto readers = std::count_if(operations_.begin(), operations_.end(), [&](const auto& op) {
                return std::any_of(op->inputs.begin(), op->inputs.end(),
                                   [&](const view& v) { return v.value == s.entering; });
            });
            require(readers <= 1 || !value(s.entering).own, "scan: '", info(s.initial).name,
                    "' is a state of one operation, and ", readers, " read it");
        }
        current_scan_ = -1;
    }
    bool is_fresh_body_value(const variable& v) const {
        const value_info& i = info(v);
        if (i.scan != current_scan_ || i.kind != value_info::origin::computed || i.width != v.width || v.detached ||
            i.rows_alike)
            return false;
        for (const carried_state& s : scans_.back())
            if (s.leaving == v.value) return false;
        return true;
    }

    /// The input or the state of this name; traced by no graph if there is none.
    variable named(const std::string& name) {
        for (std::size_t i = 0; i < values_.size(); ++i)
            if (found_by_name(values_[i].kind) && values_[i].name == name) return variable_of(static_cast<int>(i));
        return {};
    }
    variable variable_of(int id) {
        variable v;
        v.value = id, v.width = value(id).width, v.owner = this;
        return v;
    }

    // --- what plans read ---
    const value_info& value(int id) const { return values_[static_cast<std::size_t>(id)]; }
    const value_info& info(const view& v) const { return value(v.value); }
    const std::vector<value_info>& values() const { return values_; }
    const std::vector<std::unique_ptr<operation<Backend>>>& operations() const { return operations_; }
    /// Whether rows of different batch entries meet, so that a batch has to stay in one shard.
    bool mixes_batch() const {
        return std::any_of(operations_.begin(), operations_.end(), [](const auto& op) { return op->mixes_batch; });
    }
    const std::vector<std::vector<carried_state>>& scans() const { return scans_; }
    const std::vector<resource_description>& resources() const { return resources_; }
    const std::vector<int>& wanted_gradients() const { return wanted_; }
    const std::vector<adaptive_weight_description>& adaptive_weights() const { return adaptive_; }

    /// Declares `v` a constant of the loss although it is computed from parameters (a target, an advantage): gradient
    /// checks keep its first numbers.
    void hold(const variable& v) { held_.push_back(v.value); }
    const std::vector<int>& held() const { return held_; }

    /// Checks that `v` was traced by this graph, for the operation called `who`.
    const variable& own(const std::string& who, const variable& v) const {
        require(v.owner == this, full_name(who), ": an input belongs to another graph or was never traced");
        require(v.stands_for == 1, full_name(who), ": spread columns are for maps alone");
        require(v.reset < 0, full_name(who), ": '", info(v).name,
                "' is a state of one operation, which alone may read it");
        return v;
    }

private:
    static bool found_by_name(value_info::origin kind) {
        return kind == value_info::origin::input || kind == value_info::origin::persistent;
    }
    variable add_value(const std::string& name, int width, extent rows, value_info::origin kind) {
        require(width > 0, name, ": a value needs at least one column, not ", width);
        if (found_by_name(kind))
            for (const value_info& v : values_)
                require(v.name != name || !found_by_name(v.kind), "graph: '", name,
                        "' is the name of two inputs or states");
        values_.push_back({name, width, rows, kind, current_scan_});
        return variable_of(static_cast<int>(values_.size()) - 1);
    }

    std::shared_ptr<engram::parameters<real>> store_;
    std::vector<value_info> values_;
    std::vector<std::unique_ptr<operation<Backend>>> operations_;
    std::vector<std::vector<carried_state>> scans_;
    std::vector<resource_description> resources_;
    std::vector<int> wanted_, held_;
    std::vector<adaptive_weight_description> adaptive_;
    std::string prefix_;
    int current_scan_ = -1;
    bool shares_ = false;
};

}  // namespace engram
