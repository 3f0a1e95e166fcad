// SPDX-License-Identifier: MIT

#include "worlds.hpp"

#include <algorithm>
#include <charconv>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <dm_env_rpc/v1/dm_env_rpc.pb.h>

#include <engram/core/settings.hpp>
#include <engram/program/compiled_tasks.hpp>
#include <engram/train/trained_run.hpp>

namespace engram {

namespace rpc = dm_env_rpc::v1;

namespace {

/// Codes of google.rpc.Status.
enum class refused_for {
    invalid_argument = 3,
    not_found = 5,
    resources = 8,
    state = 9,
    unimplemented = 12,
    internal = 13
};

struct refusal : error {
    refused_for code;
    refusal(refused_for why, const std::string& sentence) : error(sentence), code(why) {}
};

template <class... Parts>
void demand(bool condition, refused_for why, const Parts&... parts) {
    if (!condition) throw refusal(why, message(parts...));
}

/// Names and texts that a client sends are as long as it likes; none of ours is.
constexpr std::size_t longest_text = 100;

/// The text as a sentence quotes it: cut where a letter begins.
std::string quoted(const std::string& text) {
    if (text.size() <= longest_text) return "'" + text + "'";
    std::size_t end = longest_text;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    return "'" + text.substr(0, end) + "...'";
}

/// A setting as it came: its value in words of ours, and what it was.
struct sent_value {
    enum kind { integer, number, flag, text } type = text;
    std::string written;
};

constexpr const char* kinds[]{"an integer", "a number", "true or false", "a text"};

/// The one element of a tensor.
sent_value only_element(const std::string& what, const rpc::Tensor& tensor) {
    for (const int extent : tensor.shape())
        demand(extent == 1 || extent == -1, refused_for::invalid_argument, what,
               ": expected one value, got a shape with ", extent);
    const auto one = [&](const auto& array) {
        demand(array.size() == 1, refused_for::invalid_argument, what, ": expected one value, got ", array.size());
        return array[0];
    };
    const auto integer = [&](const auto& array) {
        return sent_value{sent_value::integer, fmt::format("{}", one(array))};
    };
    switch (tensor.payload_case()) {
        case rpc::Tensor::kInt8S:
            return {sent_value::integer,
                    fmt::format("{}", static_cast<int>(static_cast<signed char>(one(tensor.int8s().array()))))};
        case rpc::Tensor::kUint8S:
            return {sent_value::integer,
                    fmt::format("{}", static_cast<int>(static_cast<unsigned char>(one(tensor.uint8s().array()))))};
        case rpc::Tensor::kInt32S:
            return integer(tensor.int32s().array());
        case rpc::Tensor::kInt64S:
            return integer(tensor.int64s().array());
        case rpc::Tensor::kUint32S:
            return integer(tensor.uint32s().array());
        case rpc::Tensor::kUint64S:
            return integer(tensor.uint64s().array());
        case rpc::Tensor::kFloats:
            return {sent_value::number, fmt::format("{}", one(tensor.floats().array()))};
        case rpc::Tensor::kDoubles:
            return {sent_value::number, fmt::format("{}", one(tensor.doubles().array()))};
        case rpc::Tensor::kBools:
            return {sent_value::flag, one(tensor.bools().array()) ? "true" : "false"};
        case rpc::Tensor::kStrings: {
            const std::string sent = one(tensor.strings().array());
            demand(sent.size() <= longest_text, refused_for::invalid_argument, what, ": a text of ", sent.size(),
                   " bytes; expected ", longest_text, " at most");
            return {sent_value::text, sent};
        }
        default:
            throw refusal(refused_for::invalid_argument, what + ": expected an integer, true or false, or a text");
    }
}

using sent_settings = google::protobuf::Map<std::string, rpc::Tensor>;

/// Options that a client may not name: files are the server's.
bool is_private(const std::string& option) {
    return option == "data";
}

/// Numbers of a length that somebody elsewhere asks for end here, whatever a task would take.
constexpr int largest_option = 1'000'000;

/// The task that a level name of the original suite means (spot_diff_holdout_interpolate), and the level behind it.
std::pair<std::string, std::string> task_and_level(const std::string& name) {
    const auto infos = all_tasks();
    for (const auto& info : infos)
        if (info.name == name) return {name, ""};
    for (const auto& info : infos)
        if (name.size() > info.name.size() && name.starts_with(info.name) && name[info.name.size()] == '_')
            for (const auto& level : info.levels)
                if (level == name.substr(info.name.size() + 1)) return {info.name, level};
    require_known("levelName", name, task_names());
    fail("levelName: ", name);
}

/// Bytes of an image: [0, 1] in 255 steps, the nearest of them.
void to_bytes(const std::vector<float>& from, std::string& to) {
    to.resize(from.size());
    // Pointers of its own, or every byte written could be a part of them to the compiler.
    const float* in = from.data();
    auto* out = reinterpret_cast<unsigned char*>(to.data());
    const std::size_t count = from.size();
    for (std::size_t i = 0; i < count; ++i) {
        const float low = in[i] > 0 ? in[i] : 0.0f, x = low < 1 ? low : 1.0f;
        out[i] = static_cast<unsigned char>((static_cast<int>(510 * x) + 1) / 2);
    }
}

/// What is observed, and by which number it is asked for.
enum observed : std::uint64_t { seen_uid = 1, reward_uid, discount_uid };
constexpr std::uint64_t action_uid = 1;

bool shows_image(const task_info& info) {
    return info.observation.height > 1 && info.lowest == 0 && info.highest == 1;
}

}  // namespace

/// What a CreateWorld, a Reset or a ResetWorld asks for.
struct served_settings {
    std::string task, level;
    std::optional<std::uint64_t> seed;
    std::optional<std::uint32_t> episode;
    task_options options;
    registered_task entry{};  // of the task
};

struct served_world {
    std::string name;
    std::string images;  // whose images it can share
    task_info info;
    std::shared_ptr<const stimulus_set> stimuli;
    std::weak_ptr<const int> maker;

    std::mutex lock;  // of what follows
    served_settings settings;
    std::unique_ptr<batch_environment> row;
    std::vector<float> seen;
    bool joined = false;
    bool running = false;
    bool fresh = true;         // the episode of the row has not been shown to anybody
    bool interrupted = false;  // by another stream, while it ran

    std::unique_ptr<batch_environment> made(const served_settings& s) const {
        return s.entry.make(s.level, 1, *s.seed, s.episode.value_or(0), s.options, stimuli);
    }
    void look() { row->observe(0, seen.data()); }
    void begin() {
        if (!fresh) row->reset(0, 1);
        fresh = false;
        running = true;
        look();
    }
};

namespace {

/// Settings as they were sent, by a request that sentences name.
struct setting_reader {
    const char* request;

    std::string what(const std::string& name) const { return fmt::format("{}: setting '{}'", request, name); }

    std::string expect(const std::string& name, const rpc::Tensor& tensor, sent_value::kind type) const {
        const sent_value value = only_element(what(name), tensor);
        demand(value.type == type, refused_for::invalid_argument, what(name), ": expected ", kinds[type], ", got ",
               kinds[value.type]);
        return value.written;
    }

    template <class Number>
    Number whole(const std::string& name, const rpc::Tensor& tensor) const {
        const std::string text = expect(name, tensor, sent_value::integer);
        demand(text[0] != '-', refused_for::invalid_argument, what(name), ": expected 0 or more, got ", text);
        Number value{};
        const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
        demand(read.ec == std::errc{}, refused_for::invalid_argument, what(name), ": ", text, " is out of range");
        return value;
    }

    /// The text of an option of a task.
    template <setting_type T>
    std::string option(const std::string& name, const rpc::Tensor& tensor, const served_tasks& offered) const {
        if constexpr (std::is_same_v<T, int>) {
            std::string text = expect(name, tensor, sent_value::integer);
            const int number = parse<int>(what(name), text), held = offered.options.stimulus_count;
            // Images take memory, and the server says of how many.
            const bool images = name == "stimulus_count" && held > 0;
            const int least = images ? 1 : 0, most = images ? held : largest_option;
            demand(number >= least && number <= most, refused_for::invalid_argument, what(name), ": expected ", least,
                   " to ", most, ", got ", number);
            return text;
        } else {
            return expect(name, tensor, std::is_same_v<T, bool> ? sent_value::flag : sent_value::text);
        }
    }
};

/// Settings of a request over those that there are. Options can be set only where a world is made.
served_settings settings_over(served_settings now, const char* request, const sent_settings& sent,
                              const served_tasks& offered, bool making) {
    const setting_reader read{request};
    std::vector<std::string> known{"seed", "episodeId", "level", "levelName"}, options;
    for_each_setting(now.options, [&](const std::string& name, const auto&) {
        if (!is_private(name)) options.push_back(name);
    });
    if (making) known.insert(known.end(), options.begin(), options.end());

    std::vector<std::pair<std::string, std::string>> changed;
    std::optional<std::string> level, level_name;
    for (const auto& [name, tensor] : sent) {
        demand(name.size() <= longest_text, refused_for::invalid_argument, request, ": unknown setting ", quoted(name));
        if (!making)
            for (const auto& option : options)
                demand(name != option, refused_for::invalid_argument, read.what(name),
                       " belongs to CreateWorld; of a world that is there seed, episodeId and level can change");
        require_known(std::string(request) + " setting", name, known);
        if (name == "seed") {
            now.seed = read.whole<std::uint64_t>(name, tensor);
        } else if (name == "episodeId") {
            now.episode = read.whole<std::uint32_t>(name, tensor);
        } else if (name == "level") {
            level = read.expect(name, tensor, sent_value::text);
        } else if (name == "levelName") {
            level_name = read.expect(name, tensor, sent_value::text);
        } else {
            for_each_setting(now.options,
                             [&, &called = name, &value = tensor](const std::string& option, const auto& old) {
                                 using type = std::remove_cvref_t<decltype(old)>;
                                 if (option == called)
                                     changed.emplace_back(option, read.template option<type>(option, value, offered));
                             });
        }
    }
    set(now.options, changed);
    // A seed means the same episodes whatever the world played before.
    if (sent.contains("seed") && !sent.contains("episodeId")) now.episode.reset();

    if (level_name) {
        const auto [task, of_name] = task_and_level(*level_name);
        demand(making || task == now.task, refused_for::invalid_argument, read.what("levelName"),
               ": this world is of the task ", now.task, "; CreateWorld makes another");
        demand(of_name.empty() || !level || *level == of_name, refused_for::invalid_argument, request, ": levelName '",
               *level_name, "' is of another level than '", level.value_or(""), "'");
        if (task != now.task) now.level.clear();
        now.task = task;
        if (!of_name.empty()) level = of_name;
    }
    demand(!now.task.empty(), refused_for::invalid_argument, request,
           ": the setting levelName is missing; it names a task of engram-tasks list");
    if (level) now.level = *level;

    now.entry = find_task(now.task);
    const auto& reads = now.entry.reads;
    for (const auto& [name, _] : changed)
        demand(!reads || std::find(reads->begin(), reads->end(), name) != reads->end(), refused_for::invalid_argument,
               read.what(name), ": the task ", now.task, " does not read it; it reads ",
               reads && !reads->empty() ? in_a_list(*reads) : "none");
    const task_info info = now.entry.describe(now.options);
    if (now.level.empty()) now.level = info.levels.front();
    require_known(now.task + " level", now.level, info.levels);
    return now;
}

/// What worlds that share images have in common.
std::string key_of(const served_settings& settings) {
    std::string key = settings.task;
    for_each_setting(settings.options, [&](const std::string&, const auto& value) { key += '\n' + to_text(value); });
    return key;
}

rpc::TensorSpec* spec(google::protobuf::Map<google::protobuf::uint64, rpc::TensorSpec>& all, std::uint64_t uid,
                      const char* name, rpc::DataType type) {
    rpc::TensorSpec& made = all[uid];
    made.set_name(name);
    made.set_dtype(type);
    return &made;
}

void describe_specs(const task_info& info, rpc::ActionObservationSpecs& specs) {
    auto* action = spec(*specs.mutable_actions(), action_uid, "action", rpc::INT32);
    action->mutable_min()->mutable_int32s()->add_array(0);
    action->mutable_max()->mutable_int32s()->add_array(info.actions - 1);

    auto& observations = *specs.mutable_observations();
    const auto& shape = info.observation;
    if (shows_image(info)) {
        auto* image = spec(observations, seen_uid, "RGB_INTERLEAVED", rpc::UINT8);
        for (const int extent : {shape.height, shape.width, shape.channels}) image->add_shape(extent);
        image->mutable_min()->mutable_uint8s()->set_array(std::string(1, '\0'));
        image->mutable_max()->mutable_uint8s()->set_array(std::string(1, '\xff'));
    } else {
        auto* numbers = spec(observations, seen_uid, "numbers", rpc::FLOAT);
        if (shape.height > 1 || shape.width > 1)
            for (const int extent : {shape.height, shape.width}) numbers->add_shape(extent);
        numbers->add_shape(shape.channels);
        numbers->mutable_min()->mutable_floats()->add_array(info.lowest);
        numbers->mutable_max()->mutable_floats()->add_array(info.highest);
    }
    spec(observations, reward_uid, "reward", rpc::FLOAT);
    auto* discount = spec(observations, discount_uid, "discount", rpc::FLOAT);
    discount->mutable_min()->mutable_floats()->add_array(0);
    discount->mutable_max()->mutable_floats()->add_array(1);
}

/// The action of a Step in a running episode.
int action_of(const rpc::StepRequest& asked, const task_info& info) {
    constexpr auto bad = refused_for::invalid_argument;
    for (const auto& [uid, _] : asked.actions())
        demand(uid == action_uid, bad, "step: there is no action with the uid ", uid, "; expected ", action_uid);
    const auto found = asked.actions().find(action_uid);
    demand(found != asked.actions().end(), bad, "step: the action (uid ", action_uid, ") is missing");
    const rpc::Tensor& tensor = found->second;
    demand(tensor.payload_case() == rpc::Tensor::kInt32S, bad, "step: the action must be of the type int32");
    demand(tensor.shape_size() == 0, bad, "step: the action must be a scalar, got ", tensor.shape_size(),
           " dimensions");
    demand(tensor.int32s().array_size() == 1, bad, "step: the action must be one number, got ",
           tensor.int32s().array_size());
    const int action = tensor.int32s().array(0);
    demand(action >= 0 && action < info.actions, bad, "step: action ", action, " is out of range; expected 0 to ",
           info.actions - 1);
    return action;
}

}  // namespace

served_worlds::served_worlds(served_tasks offered) : offered_(std::move(offered)) {
    require(offered_.worlds >= 1, "a server needs room for one world, not for ", offered_.worlds);
    all_tasks(offered_.options);
    if (offered_.task.empty()) {
        require(offered_.level.empty(), "a level is one of a task; name the task, too");
        load_stimuli(offered_.options);
        return;
    }
    const task_info info = describe_task(offered_.task, offered_.options);
    if (!offered_.level.empty()) require_known(info.name + " level", offered_.level, info.levels);
    task_stimuli(info.name, offered_.options);
}

served_worlds::~served_worlds() = default;

std::shared_ptr<served_world> served_worlds::create(const served_settings& asked,
                                                    const std::shared_ptr<const int>& maker) {
    auto made = std::make_shared<served_world>();
    made->settings = asked;
    made->images = key_of(asked);
    made->maker = maker;
    const auto make_room = [this] {
        if (std::ssize(worlds_) < offered_.worlds) return;
        const auto left = std::find_if(worlds_.begin(), worlds_.end(), [](const auto& w) {
            const std::lock_guard its(w->lock);
            return !w->joined && w->maker.expired();
        });
        demand(left != worlds_.end(), refused_for::resources, "create_world: there are ", worlds_.size(),
               " worlds, as many as this server holds; DestroyWorld ends one");
        worlds_.erase(left);
    };
    std::uint64_t number = 0;
    {
        const std::lock_guard hold(lock_);
        make_room();
        number = ++made_;
        if (!made->settings.seed) {
            made->settings.seed = offered_.seed;
            if (!asked.episode) made->settings.episode = static_cast<std::uint32_t>(number - 1);
        }
        // Worlds of the same images share them.
        for (const auto& other : worlds_)
            if (other->images == made->images) made->stimuli = other->stimuli;
    }
    // What takes time is done while nobody waits.
    made->name = fmt::format("{}.{}", asked.task, number);
    made->info = asked.entry.describe(asked.options);
    if (!made->stimuli) made->stimuli = asked.entry.stimuli(asked.options);
    made->row = made->made(made->settings);
    made->seen.resize(static_cast<std::size_t>(made->info.observation.size()));

    const std::lock_guard hold(lock_);
    make_room();  // others have been made meanwhile
    worlds_.push_back(made);
    return made;
}

std::shared_ptr<served_world> served_worlds::find(std::string_view request, const std::string& name) const {
    const std::lock_guard hold(lock_);
    for (const auto& world : worlds_)
        if (world->name == name) return world;
    throw refusal(refused_for::not_found,
                  fmt::format("{}: there is no world {}; CreateWorld makes one", request, quoted(name)));
}

void served_worlds::destroy(const std::string& name) {
    const auto world = find("destroy_world", name);
    const std::lock_guard hold(lock_);
    const std::lock_guard its(world->lock);
    demand(!world->joined, refused_for::state, "destroy_world: an agent has joined the world '", name, "'");
    std::erase(worlds_, world);
}

/// What a stream does for each kind of request.
struct served_stream::requests {
    served_stream& self;

    served_settings defaults() const {
        const served_tasks& offered = self.worlds_.offered();
        return {offered.task, offered.level, {}, {}, offered.options, {}};
    }

    void create(const rpc::CreateWorldRequest& asked, rpc::CreateWorldResponse& said) {
        const auto settings = settings_over(defaults(), "create_world", asked.settings(), self.worlds_.offered(), true);
        said.set_world_name(self.worlds_.create(settings, self.presence_)->name);
    }

    void join(const rpc::JoinWorldRequest& asked, rpc::JoinWorldResponse& said) {
        demand(!self.joined_, refused_for::state,
               "join_world: this stream has joined a world already; LeaveWorld first");
        for (const auto& [name, _] : asked.settings())
            throw refusal(refused_for::invalid_argument,
                          fmt::format("join_world: unknown setting {}; it has none", quoted(name)));
        const auto world = self.worlds_.find("join_world", asked.world_name());
        const std::lock_guard hold(world->lock);
        demand(!world->joined, refused_for::state, "join_world: another stream has joined the world '", world->name,
               "'; it has room for one agent");
        world->joined = true;
        world->running = world->interrupted = false;
        self.joined_ = world;
        describe_specs(world->info, *said.mutable_specs());
    }

    void leave() {
        if (!self.joined_) return;
        const std::lock_guard hold(self.joined_->lock);
        self.joined_->joined = self.joined_->running = self.joined_->interrupted = false;
    }

    served_world& joined(const char* request) const {
        demand(self.joined_ != nullptr, refused_for::state, request, ": no world is joined; JoinWorld first");
        return *self.joined_;
    }

    void step(const rpc::StepRequest& asked, rpc::StepResponse& said) {
        served_world& world = joined("step");
        bool wanted[discount_uid + 1]{};
        for (const std::uint64_t uid : asked.requested_observations()) {
            demand(uid >= seen_uid && uid <= discount_uid, refused_for::invalid_argument,
                   "step: there is no observation with the uid ", uid, "; expected ", seen_uid, " to ", discount_uid);
            wanted[uid] = true;
        }
        const std::lock_guard hold(world.lock);
        float reward = 0, discount = 1;
        if (!world.running) {
            world.begin();
            said.set_state(rpc::RUNNING);
        } else if (world.interrupted) {
            world.running = world.interrupted = false;
            said.set_state(rpc::INTERRUPTED);
        } else {
            const outcome result = world.row->step(0, action_of(asked, world.info));
            reward = result.reward;
            // An environment need not be observable after its last step: what was seen before it is shown once more.
            if (result.done) {
                discount = 0;
                world.running = false;
                world.fresh = true;
                said.set_state(rpc::TERMINATED);
            } else {
                world.look();
                said.set_state(rpc::RUNNING);
            }
        }
        auto& observations = *said.mutable_observations();
        if (wanted[reward_uid]) observations[reward_uid].mutable_floats()->add_array(reward);
        if (wanted[discount_uid]) observations[discount_uid].mutable_floats()->add_array(discount);
        if (wanted[seen_uid]) show(world, observations[seen_uid]);
    }

    static void show(const served_world& world, rpc::Tensor& to) {
        const auto& shape = world.info.observation;
        if (shape.height > 1 || shape.width > 1) {
            to.add_shape(shape.height);
            to.add_shape(shape.width);
        }
        to.add_shape(shape.channels);
        if (shows_image(world.info)) {
            to_bytes(world.seen, *to.mutable_uint8s()->mutable_array());
        } else {
            auto& array = *to.mutable_floats()->mutable_array();
            array.Add(world.seen.begin(), world.seen.end());
        }
    }

    /// A world in which the next Step begins an episode, with other settings where there are any. An agent that is not
    /// the one who asks, and in an episode, is told once.
    void begin_anew(served_world& world, const char* request, const sent_settings& sent, bool own) {
        std::optional<served_settings> next;
        std::unique_ptr<batch_environment> row;
        if (!sent.empty()) {
            {
                const std::lock_guard hold(world.lock);
                next = world.settings;
            }
            next = settings_over(*next, request, sent, self.worlds_.offered(), false);
            row = world.made(*next);
        }
        const std::lock_guard hold(world.lock);
        if (row) {
            world.settings = *next;
            world.row = std::move(row);
            world.fresh = true;
        }
        if (own)
            world.running = world.interrupted = false;
        else
            world.interrupted = world.running;
    }

    void reset(const rpc::ResetRequest& asked, rpc::ResetResponse& said) {
        served_world& world = joined("reset");
        begin_anew(world, "reset", asked.settings(), true);
        describe_specs(world.info, *said.mutable_specs());
    }

    void reset_world(const rpc::ResetWorldRequest& asked) {
        const auto world = self.worlds_.find("reset_world", asked.world_name());
        begin_anew(*world, "reset_world", asked.settings(), world == self.joined_);
    }
};

served_stream::served_stream(served_worlds& worlds) : worlds_(worlds), presence_(std::make_shared<const int>(0)) {}

served_stream::~served_stream() {
    requests{*this}.leave();
}

void served_stream::answer(const rpc::EnvironmentRequest& request, rpc::EnvironmentResponse& response) {
    const auto refuse = [&](refused_for why, const std::string& sentence) {
        response.Clear();
        response.mutable_error()->set_code(static_cast<int>(why));
        response.mutable_error()->set_message(sentence);
    };
    requests to{*this};
    response.Clear();
    try {
        switch (request.payload_case()) {
            case rpc::EnvironmentRequest::kStep:
                return to.step(request.step(), *response.mutable_step());
            case rpc::EnvironmentRequest::kCreateWorld:
                return to.create(request.create_world(), *response.mutable_create_world());
            case rpc::EnvironmentRequest::kJoinWorld:
                return to.join(request.join_world(), *response.mutable_join_world());
            case rpc::EnvironmentRequest::kReset:
                return to.reset(request.reset(), *response.mutable_reset());
            case rpc::EnvironmentRequest::kResetWorld:
                response.mutable_reset_world();
                return to.reset_world(request.reset_world());
            case rpc::EnvironmentRequest::kLeaveWorld:
                response.mutable_leave_world();
                to.leave();
                joined_ = nullptr;
                return;
            case rpc::EnvironmentRequest::kDestroyWorld:
                response.mutable_destroy_world();
                return worlds_.destroy(request.destroy_world().world_name());
            case rpc::EnvironmentRequest::kExtension:
                return refuse(refused_for::unimplemented, "extension: this server has none");
            default:
                return refuse(refused_for::invalid_argument,
                              "a request without content; expected one of dm_env_rpc v1");
        }
    } catch (const refusal& problem) {
        refuse(problem.code, problem.what());
    } catch (const error& problem) {
        refuse(refused_for::invalid_argument, problem.what());
    } catch (const std::bad_alloc&) {
        refuse(refused_for::resources, "the server is out of memory");
    } catch (const std::exception& problem) {
        refuse(refused_for::internal, problem.what());
    }
}

}  // namespace engram
