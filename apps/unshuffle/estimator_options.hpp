// Flags for the options of estimators, generated from their declarations.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "unshuffle/core/execution.hpp"
#include "unshuffle/estimators/estimators.hpp"
#include "unshuffle/model/model.hpp"

namespace unshuffle::app {

/// One flag for every option that any of some estimators reads.
class EstimatorFlags {
 public:
  EstimatorFlags(CLI::App& app, const std::vector<EstimatorEntry>& entries);
  EstimatorFlags(const EstimatorFlags&) = delete;
  EstimatorFlags& operator=(const EstimatorFlags&) = delete;

  /// Names of the options that were given.
  [[nodiscard]] std::vector<std::string> given() const;
  [[nodiscard]] bool gives(const std::string& name) const;

  /// The file that --start names; empty: none.
  [[nodiscard]] std::string start_file() const;

  /// Sets the given options; throws InvalidInput for one that the estimator does not read.
  void apply(Estimator& estimator) const;
  /// The same, ignoring options it does not read: several estimators share one command line.
  void apply_what_is_read(Estimator& estimator) const;
  /// Coefficients from the file named by --start, in the order of the model; call it once the model is bound.
  void apply_start(Estimator& estimator, const Model& bound) const;

 private:
  struct Flag {
    CLI::Option* option = nullptr;
    OptionInfo info;
    std::string text;
    bool on = false;
  };
  [[nodiscard]] OptionValue value_of(const Flag& flag) const;
  [[nodiscard]] bool names_a_file(const Flag& flag) const;

  std::map<std::string, Flag> flags_;
};

/// --method and --robust.
class MethodFlags {
 public:
  MethodFlags(CLI::App& app, const std::vector<EstimatorEntry>& entries);

  /// The named estimator with the given options. Without a name: the first entry that reads all given options
  /// (`fit --epsilon 0.01` selects robot).
  [[nodiscard]] Estimator estimator(const EstimatorFlags& flags) const;

 private:
  std::vector<EstimatorEntry> entries_;
  std::string method_;
  bool robust_ = false;
  CLI::Option* method_given_;
};

/// --seed and --threads.
void add_execution_options(CLI::App& app, Execution& execution);
void add_threads_option(CLI::App& app, Execution& execution);

/// The entries of these names, in the order of the registry.
[[nodiscard]] std::vector<EstimatorEntry> entries_named(const std::vector<std::string>& names);

}  // namespace unshuffle::app
