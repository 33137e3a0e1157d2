// From single runs to sentences.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reproduce/experiment.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle::app {

/// Which measurements: empty strings match all.
struct Which {
  std::string panel, method, quantity;
};
[[nodiscard]] Measurements select(const Measurements& all, const Which& which);
/// Different values of a field, in order of first appearance.
[[nodiscard]] std::vector<std::string> panels_of(const Measurements& all);
[[nodiscard]] std::vector<std::string> methods_of(const Measurements& all);
[[nodiscard]] std::vector<double> settings_of(const Measurements& all);

/// The cells x, run of a matrix; the others are 0. Throws BadData for one that it does not have.
[[nodiscard]] Matrix matrix_of(const Measurements& cells, Index rows, Index columns);

/// The first value at x of those measurements; throws BadData when there is none.
[[nodiscard]] double value_at(const Measurements& all, const Which& which, double x);

[[nodiscard]] std::vector<double> values_at(const Measurements& all, double x);
[[nodiscard]] double mean(const std::vector<double>& values);
[[nodiscard]] double quantile(std::vector<double> values, double share);

/// Runs the tasks on all cores; their measurements in the order of the tasks.
using Task = std::function<Measurements()>;
[[nodiscard]] Measurements run_all(const std::vector<Task>& tasks, const Settings& settings);

/// Compares the means of two methods at every setting of every panel of a quantity; smaller is better.
struct Contest {
  int settings = 0, won = 0;
  std::string lost_at;  ///< "d at 5: 0.012 against 0.011; ..."

  [[nodiscard]] bool won_all() const { return won == settings; }
  [[nodiscard]] std::string in_words() const;
};
[[nodiscard]] Contest contest(const Measurements& all, const std::string& method, const std::string& against,
                              const std::string& quantity, double slack = 1);

}  // namespace unshuffle::app
