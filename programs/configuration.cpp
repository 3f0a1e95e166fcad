// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <limits>

#include <engram/core/bfloat16.hpp>
#include <engram/evaluate/answers.hpp>
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

void flatten_json(const json& object, const std::string& prefix, const std::string& source, named_texts& pairs) {
    for (const auto& item : object.items()) {
        const std::string name = prefix.empty() ? item.key() : prefix + "." + item.key();
        // A long name would be copied into each of those below it.
        require(name.size() <= 256, source, ": a setting's name of ", name.size(), " bytes, expected at most 256");
        if (item.value().is_object())
            flatten_json(item.value(), name, source, pairs);
        else
            pairs.emplace_back(name, text_of(item.value(), name, source));
    }
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
    flatten_json(settings, "", source, pairs);
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
    preset_case now{.policies = model_->library_policies(), .task = task};
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
    if (actors > 0) all["actors"] = actors;
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
    threads = static_cast<int>(number("threads", 1, std::numeric_limits<int>::max()));
    if (content.contains("actors")) actors = static_cast<int>(number("actors", 0, std::numeric_limits<int>::max()));
    const auto pairs = settings_from_json(*has("settings"), source);
    try {
        set_all(pairs);
    } catch (const error& problem) {
        fail(source, ": ", problem.what());
    }
    origin_.clear();
}

prepared_run::prepared_run(const configuration& config)
    : options(config.run.task),
      info(describe_task(config.task, options)),
      stimuli(task_stimuli(config.task, options)) {}

task_shape prepared_run::shape() const {
    return {{info.observation.height, info.observation.width, info.observation.channels}, info.actions};
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
