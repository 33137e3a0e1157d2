#include "estimator_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "unshuffle/core/error.hpp"
#include "unshuffle/core/files.hpp"
#include "unshuffle/core/wording.hpp"
#include "unshuffle/report/json.hpp"

namespace unshuffle::app {
namespace {

bool reads(const EstimatorEntry& entry, const std::string& name) {
  return std::any_of(entry.options.begin(), entry.options.end(),
                     [&](const OptionInfo& info) { return info.name == name; });
}

/// The help of an option, after the names of those who read it where they are few.
std::string help_of(const OptionInfo& info, const std::vector<EstimatorEntry>& entries) {
  constexpr std::size_t few = 4;
  std::vector<std::string_view> readers;
  for (const EstimatorEntry& entry : entries) {
    if (reads(entry, info.name)) readers.push_back(entry.traits.name);
  }
  const std::string words = info.words.empty() ? "" : fmt::format(" ({})", fmt::join(info.words, ", "));
  const std::string prefix =
      readers.size() <= few && entries.size() > few ? fmt::format("{}: ", fmt::join(readers, ", ")) : "";
  return fmt::format("{}{}{}", prefix, info.help, words);
}

std::string type_name_of(const OptionInfo& info) {
  if (info.kind == "whole number") return "N";
  if (info.kind == "number") return "X";
  return info.name == "start" ? "WORD|FILE" : "WORD";
}

}  // namespace

EstimatorFlags::EstimatorFlags(CLI::App& app, const std::vector<EstimatorEntry>& entries) {
  for (const EstimatorEntry& entry : entries) {
    for (const OptionInfo& info : entry.options) {
      if (flags_.contains(info.name)) continue;
      Flag& flag = flags_[info.name];
      flag.info = info;
      const std::string help = help_of(info, entries);
      if (info.kind == "switch") {
        flag.option = app.add_flag(flag_of(info.name), flag.on, help);
      } else {
        flag.option = app.add_option(flag_of(info.name), flag.text, help)
                          ->type_name(type_name_of(info))
                          ->default_str(text_of(info.standard));
      }
    }
  }
}

std::vector<std::string> EstimatorFlags::given() const {
  std::vector<std::string> names;
  for (const auto& [name, flag] : flags_) {
    if (flag.option->count() > 0) names.push_back(name);
  }
  return names;
}

bool EstimatorFlags::gives(const std::string& name) const {
  const auto found = flags_.find(name);
  return found != flags_.end() && found->second.option->count() > 0;
}

OptionValue EstimatorFlags::value_of(const Flag& flag) const {
  return flag.info.kind == "switch" ? OptionValue(flag.on) : OptionValue(flag.text);
}

bool EstimatorFlags::names_a_file(const Flag& flag) const {
  const std::vector<std::string>& words = flag.info.words;
  return flag.info.name == "start" && std::find(words.begin(), words.end(), flag.text) == words.end();
}

std::string EstimatorFlags::start_file() const {
  const auto found = flags_.find("start");
  const bool given = found != flags_.end() && found->second.option->count() > 0;
  return given && names_a_file(found->second) ? found->second.text : "";
}

void EstimatorFlags::apply(Estimator& estimator) const {
  for (const auto& [name, flag] : flags_) {
    if (flag.option->count() == 0) continue;
    // A file is read once the model is known; until then the name records that the option was given.
    set_option(estimator, name, names_a_file(flag) ? OptionValue(std::vector<double>{}) : value_of(flag));
  }
  validate(estimator, given());
}

void EstimatorFlags::apply_what_is_read(Estimator& estimator) const {
  for (const auto& [name, standard] : option_values(estimator)) {
    const auto found = flags_.find(name);
    if (found == flags_.end() || found->second.option->count() == 0) continue;
    if (!names_a_file(found->second)) set_option(estimator, name, value_of(found->second));
  }
  for (const std::string& name : unread_options(estimator)) set_option(estimator, name, std::string("auto"));
  validate(estimator);
}

void EstimatorFlags::apply_start(Estimator& estimator, const Model& bound) const {
  const std::string path = start_file();
  if (path.empty()) return;
  const auto values = option_values(estimator);
  if (std::none_of(values.begin(), values.end(), [](const auto& one) { return one.first == "start"; })) return;
  const Vector start = in_order(parameters_from_json(read_file(path), path), bound.parameter_names(), path);
  set_option(estimator, "start", std::vector<double>(start.begin(), start.end()));
}

MethodFlags::MethodFlags(CLI::App& app, const std::vector<EstimatorEntry>& entries) : entries_(entries) {
  std::string help = "How rows are linked:";
  std::vector<std::string> names;
  for (const EstimatorEntry& entry : entries_) {
    names.emplace_back(entry.traits.name);
    help += fmt::format("\n  {:<15}{}", entry.traits.name, entry.traits.help);
  }
  method_ = names.front();
  method_given_ = app.add_option("--method", method_, help)->check(CLI::IsMember(names))->capture_default_str();
  app.add_flag("--robust", robust_, "Allow rows without a partner: --method robot-robust.");
}

Estimator MethodFlags::estimator(const EstimatorFlags& flags) const {
  std::string name = method_;
  if (robust_) {
    name = "robot-robust";
    if (method_given_->count() > 0 && method_ != name)
      throw InvalidInput(fmt::format("--robust contradicts --method {}", method_));
  } else if (method_given_->count() == 0) {
    const std::vector<std::string> given = flags.given();
    const auto reads_all = [&](const EstimatorEntry& entry) {
      return std::all_of(given.begin(), given.end(), [&](const std::string& one) { return reads(entry, one); });
    };
    for (const std::string_view candidate : {std::string_view(method_), std::string_view("robot")}) {
      const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                      [&](const EstimatorEntry& one) { return one.traits.name == candidate; });
      if (entry == entries_.end() || !reads_all(*entry)) continue;
      name = candidate;
      break;
    }
  }
  Estimator estimator = estimator_named(name).value();
  flags.apply(estimator);
  return estimator;
}

void add_execution_options(CLI::App& app, Execution& execution) {
  app.add_option("--seed", execution.seed, "Seed of all random numbers; same seed, same result.")
      ->capture_default_str();
  add_threads_option(app, execution);
}

void add_threads_option(CLI::App& app, Execution& execution) {
  app.add_option("--threads", execution.threads, "0: all. The answer does not depend on it.")->capture_default_str();
}

std::vector<EstimatorEntry> entries_named(const std::vector<std::string>& names) {
  std::vector<EstimatorEntry> entries;
  for (const EstimatorEntry& entry : all_estimators()) {
    if (std::find(names.begin(), names.end(), entry.traits.name) != names.end()) entries.push_back(entry);
  }
  return entries;
}

}  // namespace unshuffle::app
