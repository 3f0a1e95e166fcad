// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <limits>

#include <engram/core/bfloat16.hpp>
#include <engram/evaluate/answers.hpp>
#include <engram/program/arguments.hpp>
#include <engram/program/configuration.hpp>
#include <engram/program/presets.hpp>
#include <engram/program/run_files.hpp>

namespace engram {

namespace {

json value_to_json(const setting& s) {
    if (s.kind == setting_kind::text) return s.value;
    if (s.kind != setting_kind::list) return json::parse(s.value);
    json list = json::array();
    for (const int number : parse<std::vector<int>>(s.name, s.value)) list.push_back(number);
    return list;
}

std::string text_of(const json& value, const std::string& name, const std::string& source) {
    if (value.is_string()) return value.get<std::string>();
    if (!value.is_array()) {
        require(value.is_number() || value.is_boolean(), source, ": ", name, ": expected one value, got ",
                value.type_name());
        return value.dump();
    }
    std::string list;
    for (const auto& item : value) {
        if (!list.empty()) list += ",";
        list += text_of(item, name, source);
    }
    return list;
}

void flatten_json(const json& object, const std::string& source, named_texts& pairs) {
    for_each_leaf(object, [&](const std::string& name, const json& value) {
        // A long name would be copied once for each value below it.
        require(name.size() <= 256, source, ": a setting's name of ", name.size(), " bytes, expected at most 256");
        pairs.emplace_back(name, text_of(value, name, source));
    });
}

std::string group_of(const std::string& name) {
    return name.substr(0, name.find('.'));
}

bool is_run_setting(const std::string& name) {
    const std::string group = group_of(name);
    return group == "rollout" || group == "sequence" || group == "optimiser" || group == "asynchronous" ||
           group == "phases" || group == "task";
}

/// What a sentence that refuses a preset together with further settings should add: those values of the preset that it
/// speaks of and that nothing further replaced. Sentences name a setting in full, or its group and the last part.
std::string contradiction(const std::string& preset, const named_texts& given, const named_texts& further,
                          const std::string& sentence) {
    const auto is_letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
    };
    const auto speaks_of = [&](const std::string& word) {
        for (auto at = sentence.find(word); at != sentence.npos; at = sentence.find(word, at + 1)) {
            const auto end = at + word.size();
            const bool begins = at == 0 || !is_letter(sentence[at - 1]);
            const bool ends = end == sentence.size() || !is_letter(sentence[end]) || sentence[end] == '.';
            if (begins && ends) return true;
        }
        return false;
    };
    const auto values = [](const named_texts& pairs) {
        std::map<std::string, std::string> last;
        for (const auto& [name, value] : pairs) last[name] = value;
        return last;
    };
    // A name that there is not is no matter of the preset's.
    if (sentence.starts_with("unknown ")) return "";
    const auto replaced = values(further);
    std::string list;
    bool about_further = false;
    for (const auto& [name, value] : values(given)) {
        const auto last = name.substr(name.rfind('.') + 1);
        if (!speaks_of(name) && !(sentence.starts_with(group_of(name)) && speaks_of(last))) continue;
        if (replaced.contains(name))
            about_further = true;
        else
            list += (list.empty() ? "" : ", ") + name + "=" + value;
    }
    for (const auto& [name, value] : replaced) about_further |= speaks_of(name) || sentence.starts_with(group_of(name));
    return list.empty() || !about_further ? "" : "; preset " + preset + " has " + list;
}

/// The task of the library whose levels a world names its own after, spot_diff for spot_diff_holdout_large; otherwise
/// its name. Presets of that task are then the world's.
std::string likeness(const world_settings& w) {
    std::string like = w.name;
    std::size_t longest = 0;
    for (const auto& [name, value] : w.create)
        if (name == "levelName")
            for (const auto& task : task_names())
                if (task.size() > longest && (value == task || value.starts_with(task + "_")))
                    like = task, longest = task.size();
    return like;
}

json texts_to_json(const world_texts& texts) {
    json all = json::object();
    for (const auto& [name, text] : texts) all[name] = text;
    return all;
}

json world_to_json(const world_settings& w) {
    return {{"addresses", w.addresses},     {"create", texts_to_json(w.create)}, {"join", texts_to_json(w.join)},
            {"columns", w.actions.columns}, {"actions", w.actions.rows},         {"repeat", w.repeat}};
}

world_settings world_from_json(const json& content, const std::string& name, const std::string& source) {
    world_settings w;
    w.name = name;
    try {
        w.addresses = content.at("addresses").get<std::vector<std::string>>();
        for (const char* kind : {"create", "join"})
            for (const auto& item : content.at(kind).items())
                (kind[0] == 'c' ? w.create : w.join).emplace_back(item.key(), item.value().get<std::string>());
        w.actions.columns = content.at("columns").get<std::vector<std::string>>();
        w.actions.rows = content.at("actions").get<std::vector<std::vector<double>>>();
        w.repeat = content.at("repeat").get<int>();
    } catch (const json::exception&) {
        fail(source, ": 'world' is not what a run writes of a world");
    }
    require(!w.addresses.empty() && w.repeat >= 1, source, ": 'world' has no address, or no repeat");
    for (const auto& address : w.addresses) check_world_address(address);
    for (const auto& row : w.actions.rows)
        require(row.size() == w.actions.rows[0].size() && !row.empty(), source,
                ": 'world' has actions of other widths");
    return w;
}

}  // namespace

json settings_to_json(const std::vector<setting>& settings) {
    json out = json::object();
    for (const setting& s : settings) {
        json* place = &out;
        std::string_view rest = s.name;
        for (std::size_t dot; (dot = rest.find('.')) != rest.npos; rest.remove_prefix(dot + 1))
            place = &(*place)[std::string(rest.substr(0, dot))];
        (*place)[std::string(rest)] = value_to_json(s);
    }
    return out;
}

named_texts settings_from_json(const json& settings, const std::string& source) {
    require(settings.is_object(), source, ": 'settings' must be an object");
    named_texts pairs;
    flatten_json(settings, source, pairs);
    return pairs;
}

std::vector<setting> configuration::settings() const {
    auto all = model_->settings();
    for (auto& s : list_settings(run))
        if (!s.name.starts_with("phases.") || model_->learns() == learning_kind::phases) all.push_back(std::move(s));
    return all;
}

void configuration::set(const named_texts& pairs) {
    set_all(pairs);
    for (const auto& pair : pairs) origin_[pair.first] = "--set";
}

void configuration::set_all(const named_texts& pairs) {
    if (pairs.empty()) return;
    std::vector<std::string> names;
    for (const auto& s : settings()) names.push_back(s.name);
    named_texts of_agent, of_run;
    for (const auto& pair : pairs) {
        require_known("setting", pair.first, names);
        (is_run_setting(pair.first) ? of_run : of_agent).push_back(pair);
    }
    run_settings changed = run;
    engram::set(changed, of_run);
    model_->set(of_agent);
    run = std::move(changed);
}

void configuration::assign(const std::vector<std::string>& assignments) {
    set(parse_assignments(assignments));
}

named_texts parse_assignments(const std::vector<std::string>& assignments) {
    named_texts pairs;
    for (const std::string& text : assignments) {
        const auto equals = text.find('=');
        require(equals != text.npos, "--set expects name=value, got '", text, "'");
        pairs.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    return pairs;
}

void configuration::refuse_foreign(const named_texts& asked) const {
    const auto sequences = sequence_names(), tasks = task_names();
    const auto has = [&](const auto& names) { return std::find(names.begin(), names.end(), task) != names.end(); };
    std::optional<std::vector<std::string>> reads;
    if (has(tasks))
        reads = find_task(task).reads;
    else if (has(sequences))
        reads = find_sequence(task).reads;
    if (!reads) return;
    for (auto& name : *reads) name = "task." + name;
    std::vector<std::string> known;
    for (const auto& s : settings()) known.push_back(s.name);
    for (const auto& [name, value] : asked) {
        // What is no setting at all is refused as such.
        if (group_of(name) != "task" || std::find(known.begin(), known.end(), name) == known.end()) continue;
        if (std::find(reads->begin(), reads->end(), name) != reads->end()) continue;
        std::string list;
        for (const auto& r : *reads) list += (list.empty() ? "" : ", ") + r;
        fail(name, ": the task ", task, " does not read it; it reads ", list);
    }
}

std::string configuration::origin_of(const std::string& setting) const {
    const auto found = origin_.find(setting);
    return found == origin_.end() ? "default" : found->second;
}

void configuration::apply_preset(const std::string& name, const named_texts& further) {
    const engram::preset& chosen = find_preset(name);
    preset_case now{.policies = model_->library_policies(), .task = elsewhere ? likeness(*elsewhere) : task};
    const auto is_task_option = [](const std::string& setting) { return setting.starts_with("task."); };
    // Some lines depend on how long a sequence or a corridor is, which options of the task say.
    named_texts options;
    for (const auto& line : chosen.lines)
        if (is_task_option(line.setting) && line.scope.covers(now)) options.emplace_back(line.setting, line.value);
    std::copy_if(further.begin(), further.end(), std::back_inserter(options),
                 [&](const auto& pair) { return is_task_option(pair.first); });
    run_settings tried = run;
    engram::set(tried, options);
    now.length = tried.task.length;
    const auto sequences = sequence_names();
    if (model_->learns_sequences() && std::find(sequences.begin(), sequences.end(), task) != sequences.end())
        now.steps = describe_sequence(task, tried.task).steps;

    named_texts given;
    std::map<std::string, std::string> origin;
    std::int64_t length = steps;
    for (const auto& line : chosen.lines) {
        if (!line.scope.covers(now)) continue;
        if (line.setting == "steps") {
            length = parse<std::int64_t>(line.setting, line.value);
            continue;
        }
        given.emplace_back(line.setting, line.value_in(now));
        origin[line.setting] = line.of_a_task() ? "task" : "preset";
    }
    require(!given.empty(), "preset ", name, ": there is none for engram-", model_->name(),
            "; expected small or paper");
    named_texts pairs = given;
    pairs.insert(pairs.end(), further.begin(), further.end());
    try {
        set_all(pairs);
    } catch (const error& problem) {
        fail(problem.what(), contradiction(name, given, further, problem.what()));
    }
    for (const auto& pair : further) origin[pair.first] = "--set";
    origin_ = std::move(origin);
    preset = name;
    steps = length;
}

product_precision configuration::products_on(const std::string& device_name) const {
    require_known("products", products, std::vector<std::string>{"float", "bfloat16"});
    if (products == "float") return product_precision::full;
    require(device_name == "cpu", "--products ", products, ": products in bfloat16 are the host's, --device ",
            device_name, " has float ones; expected --products float or --device cpu");
    return product_precision::bfloat16;
}

void configuration::note_slow_products() const {
    if (products == "float" || bfloat16_products) return;
    std::fprintf(stderr,
                 "engram-%s: --products bfloat16: this program was compiled for a processor without AVX-512 BF16; the "
                 "products are rounded alike and take longer than those of float\n",
                 model_->name().c_str());
}

json configuration::to_json() const {
    json all{{"engram", library_version()},
             {"ablation", model_->name()},
             {"task", task},
             {"preset", preset},
             {"seed", seed},
             {"steps", steps},
             {"threads", threads},
             {"mode", mode},
             {"device", device},
             {"products", products},
             {"checkpoint_every", checkpoint_every},
             {"evaluation_episodes", evaluation_episodes},
             {"evaluate_every", evaluate_every},
             {"evaluate_episodes", evaluate_episodes},
             {"weights", weights},
             {"settings", settings_to_json(settings())}};
    if (until_reward) all["until_reward"] = *until_reward;
    if (actors > 0) all["actors"] = actors;
    if (elsewhere) all["world"] = world_to_json(*elsewhere);
    return all;
}

void configuration::from_json(const json& content, const std::string& source) {
    require(content.is_object(), source, ": expected an object");
    const auto has = [&](const char* key) {
        require(content.contains(key), source, ": no '", key, "'; the file is incomplete");
        return &content.at(key);
    };
    const auto text = [&](const char* key) {
        const json* value = has(key);
        require(value->is_string(), source, ": '", key, "' must be a text");
        return value->get<std::string>();
    };
    // The ranges are those of the command line.
    const auto number = [&](const char* key, std::int64_t least,
                            std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
        const json* value = has(key);
        require(value->is_number_integer(), source, ": '", key, "' must be an integer");
        const bool fits =
            !value->is_number_unsigned() || value->get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
        require(fits && value->get<std::int64_t>() >= least, source, ": '", key, "' is ", value->dump(),
                ", expected a number from ", least, " to ", most);
        return value->get<std::int64_t>();
    };
    const std::string ablation = text("ablation");
    require(ablation == model_->name(), source, ": this is a run of engram-", ablation, ", expected one of engram-",
            model_->name());
    task = text("task"), preset = text("preset"), mode = text("mode"), device = text("device");
    seed = number("seed", 0), steps = number("steps", 1), checkpoint_every = number("checkpoint_every", 1);
    evaluation_episodes = number("evaluation_episodes", 0);
    // Runs from before there were such keys have none.
    if (content.contains("evaluate_every")) evaluate_every = number("evaluate_every", 0);
    if (content.contains("products")) products = text("products");
    if (content.contains("weights")) weights = text("weights");
    if (content.contains("evaluate_episodes")) evaluate_episodes = number("evaluate_episodes", 1);
    until_reward.reset();
    if (content.contains("until_reward")) {
        require(content.at("until_reward").is_number(), source, ": 'until_reward' must be a number");
        until_reward = content.at("until_reward").get<double>();
    }
    threads = static_cast<int>(number("threads", 1, std::numeric_limits<int>::max()));
    if (content.contains("actors")) actors = static_cast<int>(number("actors", 0, std::numeric_limits<int>::max()));
    elsewhere.reset();
    if (content.contains("world")) elsewhere = world_from_json(content.at("world"), task, source);
    const auto pairs = settings_from_json(*has("settings"), source);
    try {
        set_all(pairs);
    } catch (const error& problem) {
        fail(source, ": ", problem.what());
    }
    origin_.clear();
}

void configuration::be_patient(const arguments& a) {
    if (!a.patience || !elsewhere) return;
    elsewhere->patience = elsewhere->start_patience = static_cast<double>(whole_number("--patience", *a.patience, 1));
}

void configuration::ask_for_world(const arguments& a) {
    if (a.world.empty() && !elsewhere) {
        for (const auto& [given, flag] : {std::pair{!a.world_set.empty(), "--world-set"},
                                          {a.actions.has_value(), "--actions"},
                                          {a.world_repeat.has_value(), "--world-repeat"}})
            require(!given, flag, ": there is no world elsewhere; name one with --world rpc://host:port");
        return;
    }
    require(!a.task, "--world ", a.world.empty() ? elsewhere->addresses[0] : a.world[0],
            ": a world stands in place of --task ", a.task.value_or(""), "; leave one of them out");
    for (const auto& address : a.world) check_world_address(address);
    require(worlds_are_known(),
            "--world: this program was built without gRPC (ENGRAM_RPC), so it cannot reach a world "
            "elsewhere");
    require(model_->learns() == learning_kind::acting, "--world: engram-", model_->name(),
            model_->learns() == learning_kind::phases ? " trains in phases on tasks of the library"
                                                      : " learns from sequences",
            "; only agents that learn while they act can be in a world elsewhere");
    const bool again = elsewhere.has_value();
    if (!again) elsewhere.emplace();
    world_settings& w = *elsewhere;
    if (!a.world.empty()) w.addresses = a.world;
    const auto put = [](world_texts& texts, const std::string& name, const std::string& text) {
        for (auto& [known, value] : texts)
            if (known == name) return void(value = text);
        texts.emplace_back(name, text);
    };
    for (const auto& text : a.world_set) {
        const auto equals = text.find('=');
        require(equals != text.npos && equals > 0, "--world-set expects name=value, got '", text, "'");
        const std::string name = text.substr(0, equals), value = text.substr(equals + 1);
        if (name.starts_with("join."))
            put(w.join, name.substr(5), value);
        else
            put(w.create, name.starts_with("create.") ? name.substr(7) : name, value);
    }
    if (a.actions) {
        w.actions = read_actions(*a.actions);
        if (*a.actions == "dm_memorytasks") w.repeat = 4;
    }
    if (a.world_repeat)
        w.repeat = static_cast<int>(std::min<std::int64_t>(whole_number("--world-repeat", *a.world_repeat, 1), 10'000));
    be_patient(a);
    if (!again) {
        w.name = world_task_name(w.addresses[0]);
        for (const auto& [name, value] : w.create)
            if (name == "levelName") w.name = world_task_name(":" + value);
        task = w.name;
    }
}

void configuration::join() {
    if (!elsewhere) return;
    // Scores of another level stand beside those of the one that was trained on.
    for (const auto& [name, value] : elsewhere->create)
        if (name == "levelName") elsewhere->level = value;
    joined = join_world(*elsewhere);
    register_world(joined);
}

task_shape configuration::shape() const {
    if (model().learns_sequences()) return shape_of(describe_sequence(task, run.task));
    return shape_of(describe_task(task, run.task));
}

prepared_run::prepared_run(const configuration& config)
    : options(config.run.task), info(describe_task(config.task, options)), stimuli(task_stimuli(config.task, options)) {
    if (config.elsewhere) rows = std::min(rows, config.run.rollout.environments);
}

std::vector<std::string> tasks_of(const ablation& model) {
    if (!model.learns_sequences()) return task_names();
    // Who learns from targets needs a task that has some; who draws frames needs one that shows frames.
    bool supervised = false;
    for (const auto& s : model.settings()) supervised |= s.name == "learner.targets";
    std::vector<std::string> names;
    for (const auto& name : sequence_names())
        if ((describe_sequence(name).targets > 0) == supervised) names.push_back(name);
    return names;
}

void require_task(const ablation& model, const std::string& task) {
    const auto known = tasks_of(model);
    const auto among = [&](const std::vector<std::string>& names) {
        return std::find(names.begin(), names.end(), task) != names.end();
    };
    if (among(known)) return;
    const bool act = among(task_names()), sequence = among(sequence_names());
    if (!act && !sequence) require_known("task", task, known);
    const char* other = act                                   ? " is a task to act in, and "
                        : describe_sequence(task).targets > 0 ? " is a task of sequences with targets, and "
                                                              : " is a task of sequences without targets, and ";
    const char* own = !model.learns_sequences()                      ? " acts"
                      : describe_sequence(known.front()).targets > 0 ? " learns targets of sequences"
                                                                     : " draws sequences";
    fail(task, other, "engram-", model.name(), own, "; expected one of ", in_a_list(known));
}

prepared_sequences::prepared_sequences(const configuration& config)
    : source(make_sequence(config.task, config.run.task)) {}

bool prepared_sequences::gives_answers() const {
    return has_answers(source->info()) && !generates();
}

level_maker prepared_run::maker() const {
    return [name = info.name, options = options, stimuli = stimuli](const std::string& level, int count,
                                                                    std::uint64_t seed, int first) {
        return make_environment(name, level, count, seed, static_cast<std::uint32_t>(first), options, stimuli);
    };
}

}  // namespace engram
