#pragma once
// SPDX-License-Identifier: MIT

// An environment that lives in another process and speaks dm_env_rpc, chosen at run time by its address.
//
//   rpc://host:port, rpc+unix:/path, rpc://unix:/path
//
// A row of a batch is a stream of its own with a world of its own. All requests of a step are sent before any answer is
// waited for, and answers are taken in the order of the rows. What the world shows and how many actions there are is
// read when it is joined: one image (uint8 becomes a float between 0 and 1, once), or all numbers in a row. An agent
// here has one discrete action: an integer of the world's, or a line of a table.
//
// A row whose world dies or stalls ends its episode there, `outcome::interrupted`, and begins another in a new world;
// the other rows go on. A world is no file: it cannot be saved, so a resumed run begins new episodes in every row.
//
// What speaks gRPC is a module beside the program, loaded when a world is asked for (docs/decisions/0030).

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <engram/task/environment.hpp>

namespace engram {

/// Names of a world's settings and texts of their values. A text is sent as a whole number, a number, true or false if
/// it reads as one, as a text otherwise and where it stands in double quotes; {seed} and {row} in it are replaced.
using world_texts = std::vector<std::pair<std::string, std::string>>;

/// What there is to do: a line an action, a column a number that the world takes.
struct action_table {
    std::vector<std::string> columns;       // names of the world's; none: in the order of its numbers
    std::vector<std::vector<double>> rows;  // [A][columns]
    bool operator==(const action_table&) const = default;
};

/// Which world, and how it is spoken to.
struct world_settings {
    std::string name = "world";          // of the task
    std::string level = "train";         // its one level
    std::vector<std::string> addresses;  // row i is at address i, counted round
    world_texts create, join;            // settings of CreateWorld and of JoinWorld
    action_table actions;                // no rows: the world's one discrete action as it is
    int repeat = 1;                      // steps of the world an action, rewards summed
    double patience = 60;                // seconds without an answer until the run ends
    double start_patience = 10;          // the same when it is joined for the first time
};

/// What happened to the rows of a world so far.
struct world_counts {
    std::int64_t interrupted = 0;  // episodes that the world itself cut
    std::int64_t lost = 0;         // episodes that ended with their connection
    std::int64_t joined = 0;       // worlds that were joined, the first ones included
};

/// Where the time of a batch's thread went, in seconds.
struct world_times {
    double sending = 0, waiting = 0, parsing = 0, unpacking = 0;
};

/// A world that was joined once, so that its specs are known.
class world {
public:
    virtual ~world() = default;
    /// As a task, of one level.
    virtual const task_info& info() const = 0;
    /// What it shows and takes, in lines.
    virtual std::string about() const = 0;
    /// `count` rows, each joined anew; one thread at a time steps them.
    virtual std::unique_ptr<batch_environment> make(int count, std::uint64_t seed, std::uint32_t first_row) const = 0;
    virtual world_counts counts() const = 0;
    virtual world_times times() const = 0;
};

/// Whether programs of this build can reach a world.
bool worlds_are_known();
/// Joins a world and reads its specs; throws a sentence where that is impossible or nothing that an agent here can act
/// in.
std::shared_ptr<world> join_world(const world_settings& settings);
/// Makes it a task of the registry under its settings' name, in place of one that was there under it.
void register_world(std::shared_ptr<world> joined);

/// What --actions names: a file, or `dm_memorytasks`. A line an action, numbers apart by blanks or commas; names of
/// columns may come first; from # on a line is a remark.
action_table read_actions(const std::string& named);
/// Whether a text looks like the address of a world; throws where it nearly does.
void check_world_address(const std::string& address);
/// A name for a task from an address: letters, digits and underscores.
std::string world_task_name(const std::string& address);

}  // namespace engram
