// unshuffle info: what this program is made of, or what a file holds.
#include <fmt/format.h>
#include <omp.h>

#include <Eigen/Core>
#include <chrono>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "options_page.hpp"
#include "say.hpp"
#include "shell.hpp"
#include "unshuffle/core/component.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/cytometry/compensation.hpp"
#include "unshuffle/cytometry/fcs.hpp"
#include "unshuffle/estimators/estimators.hpp"
#include "unshuffle/tables/describe.hpp"
#include "unshuffle/version.hpp"

namespace unshuffle::app {
namespace {

struct InfoCommand {
  std::string file;
  std::string describe;
  bool json = false;
};

/// A matrix that means nothing is no reason to refuse a file that need not be compensated.
bool has_spillover(cytometry::FcsFile& file) {
  try {
    return cytometry::spillover_of(file).has_value();
  } catch (const BadData& unusable) {
    file.notes.push_back(fmt::format("{}; --compensate is not possible", unusable.what()));
    return false;
  }
}

nlohmann::ordered_json describe(const cytometry::FcsFile& file, bool spillover) {
  nlohmann::ordered_json channels = nlohmann::ordered_json::array();
  for (const cytometry::FcsChannel& channel : file.channels) {
    channels.push_back({{"name", channel.name},
                        {"label", channel.label},
                        {"bits", channel.bits},
                        {"range", channel.range},
                        {"decades", channel.decades},
                        {"gain", channel.gain}});
  }
  return {{"file", file.source},    {"format", file.version}, {"events", file.events.rows()},
          {"spillover", spillover}, {"channels", channels},   {"notes", file.notes}};
}

std::string kind_word(CodeKind kind) {
  if (kind == CodeKind::category) return "text";
  return kind == CodeKind::truth ? "true or false" : name_of(kind);
}

nlohmann::ordered_json as_json(const Table& table, const std::vector<ColumnSummary>& columns) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ColumnSummary& column : columns) {
    nlohmann::ordered_json one{{"name", column.name},
                               {"kind", kind_word(column.kind)},
                               {"missing", column.missing},
                               {"distinct", column.distinct}};
    if (column.kind == CodeKind::category) {
      one["frequent"] = column.frequent;
    } else {
      one.update({{"low", column.low}, {"mean", column.mean}, {"high", column.high}});
    }
    if (!column.stray.empty()) one["stray"] = column.stray;
    list.push_back(one);
  }
  return {{"file", table.source}, {"format", table.detected}, {"rows", table.rows}, {"columns", list}};
}

std::string iso_date(double days) {
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(long(std::floor(days))))};
  return fmt::format("{}-{:02}-{:02}", int(date.year()), unsigned(date.month()), unsigned(date.day()));
}

std::string values_in_words(const ColumnSummary& column) {
  switch (column.kind) {
    case CodeKind::category:
      return fmt::format("{} distinct: {}{}", column.distinct, fmt::join(column.frequent, ", "),
                         Index(column.frequent.size()) < column.distinct ? ", ..." : "");
    case CodeKind::truth:
      return fmt::format("{:.0f} % true", 100 * column.mean);
    case CodeKind::date:
      if (column.distinct == 0) return "day and month cannot be told apart (--dates)";
      return fmt::format("{} .. {}, {} distinct", iso_date(column.low), iso_date(column.high), column.distinct);
    default:
      return fmt::format("{:g} .. {:g}, mean {:g}, {} distinct", column.low, column.high, column.mean, column.distinct);
  }
}

/// What a column holds, in one line.
std::string in_words(const ColumnSummary& column) {
  std::string out = values_in_words(column);
  if (column.missing > 0) out += fmt::format("; {} missing", column.missing);
  if (!column.stray.empty()) out += fmt::format("; {} is no number", column.stray);
  return out;
}

int run_on_table(const InfoCommand& command) {
  const Table table = read_csv(command.file);
  const std::vector<ColumnSummary> columns = describe(table);
  if (command.json) {
    fmt::print("{}\n", as_json(table, columns).dump(2));
    return 0;
  }
  const std::string form = table.detected.empty() ? "comma-separated" : table.detected;
  say(fmt::format("{}: {}, {} rows, {} columns\n", table.source, form, table.rows, columns.size()));
  for (const ColumnSummary& column : columns) {
    say(fmt::format("  {:<20}{:<15}{}\n", column.name, kind_word(column.kind), in_words(column)));
  }
  return 0;
}

int run_on_events(const InfoCommand& command) {
  cytometry::FcsFile file = cytometry::read_fcs(command.file);
  const bool spillover = has_spillover(file);
  if (command.json) {
    // Keywords are bytes in an unknown encoding; invalid UTF-8 is shown as a replacement character.
    fmt::print("{}\n", describe(file, spillover).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }
  say(fmt::format("{}: {}, {} events, {} channels{}\n", file.source, file.version, file.events.rows(),
                  file.channels.size(), spillover ? ", with a spillover matrix" : ""));
  for (std::size_t at = 0; at < file.channels.size(); ++at) {
    const cytometry::FcsChannel& channel = file.channels[at];
    const auto values = file.events.col(static_cast<Index>(at));
    say(fmt::format("  {:<18}{:<20}{:>2} bits  ", channel.name, channel.label, channel.bits));
    fmt::print("{}", channel.decades > 0 ? fmt::format("{:g} decades", channel.decades) : std::string("linear   "));
    if (values.size() > 0) fmt::print("  {:g} .. {:g}", values.minCoeff(), values.maxCoeff());
    fmt::print("\n");
  }
  for (const std::string& one : file.notes) note(one);
  return 0;
}

int run_on_file(const InfoCommand& command) {
  return cytometry::has_fcs_extension(command.file) ? run_on_events(command) : run_on_table(command);
}

/// What each optional component is for, or how to get it.
nlohmann::ordered_json components() {
  nlohmann::ordered_json list;
  for (const Component& component : {torch_component, opencv_component, mpi_component}) {
    list[component.name] = find_module(component).empty()
                               ? fmt::format("missing; for {}, {}", component.purpose, component.remedy)
                               : component.purpose;
  }
  return list;
}

std::vector<std::string> methods() {
  std::vector<std::string> names;
  for (const EstimatorEntry& entry : all_estimators()) names.emplace_back(entry.traits.name);
  return names;
}

int run(bool json) {
  const std::string eigen = fmt::format("{}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
  const nlohmann::ordered_json info{
      {"version", version},
      {"methods", methods()},
      {"models", {"linear", "sine", "rigid", "similarity", "affine", "spline:K"}},
      {"backends", {"dense", "sorted", "clouds"}},
      {"threads", omp_get_max_threads()},
      {"cpu_features", Eigen::SimdInstructionSetsInUse()},
      {"eigen", eigen},
      {"compiler", __VERSION__},
      {"components", components()},
  };
  if (json) {
    fmt::print("{}\n", info.dump(2));
    return 0;
  }
  for (const auto& [key, value] : info.items()) {
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (value.is_array()) text = fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), ", "));
    if (value.is_object()) {
      for (const auto& [name, state] : value.items()) fmt::print("{:<14}{}\n", name, state.get<std::string>());
      continue;
    }
    fmt::print("{:<14}{}\n", key, text);
  }
  return 0;
}

/// Names of the columns of a table, for completion on a command line: from its first rows, so that it is quick.
int list_columns(const std::string& path) {
  if (cytometry::has_fcs_extension(path)) {
    for (const cytometry::FcsChannel& channel : cytometry::read_fcs(path).channels) say(channel.name + "\n");
    return 0;
  }
  std::string text(1 << 16, '\0');
  std::ifstream file(path, std::ios::binary);
  const bool all = !file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (!all) text.resize(text.find_last_of('\n') + 1);
  for (const std::string& name : parse_csv(text, path).names()) say(name + "\n");
  return 0;
}

int describe_commands(const CLI::App& root, const std::string& reader, const std::string& file) {
  if (reader == "columns") return list_columns(file);
  if (reader == "man") fmt::print("{}", man_page(root));
  if (reader == "bash") fmt::print("{}", bash_completion(root));
  if (reader == "zsh") fmt::print("{}", zsh_completion(root));
  if (reader == "options") fmt::print("{}", options_page(all_estimators()));
  if (reader == "auto") fmt::print("{}", auto_table());
  return 0;
}

}  // namespace

Command add_info(CLI::App& root) {
  CLI::App* app = root.add_subcommand("info", "Version, components and CPU features; or what a file holds.");
  const auto command = std::make_shared<InfoCommand>();
  app->add_option("FILE", command->file,
                  "Table (CSV) or FCS file to describe instead: its form, and what its columns or channels hold.");
  app->add_flag("--json", command->json, "Print JSON.");
  app->add_option(
         "--describe", command->describe,
         "Print a description of the command line: a manual page, shell completions, the options of the methods "
         "as Markdown, the rules by which auto chooses, or the names of FILE's columns, one a line.")
      ->check(CLI::IsMember({"man", "bash", "zsh", "options", "auto", "columns"}));
  app->footer(
      "Examples:\n  unshuffle info --json\n  unshuffle info people.csv\n  unshuffle info cells.fcs\n  source "
      "<(unshuffle info --describe bash)");
  return {app,
          [command, &root] {
            if (!command->describe.empty()) return describe_commands(root, command->describe, command->file);
            return command->file.empty() ? run(command->json) : run_on_file(*command);
          },
          true};
}

}  // namespace unshuffle::app
