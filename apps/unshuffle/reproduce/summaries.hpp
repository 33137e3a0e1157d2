// From single runs to curves and sentences.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reproduce/experiment.hpp"

namespace unshuffle::app {

/// The same colour for a method everywhere.
[[nodiscard]] Colour colour_of(const std::string& method);

/// Which measurements: empty strings match all.
struct Which {
  std::string panel, method, quantity;
};
[[nodiscard]] Measurements select(const Measurements& all, const Which& which);
/// Different values of a field, in order of first appearance.
[[nodiscard]] std::vector<std::string> panels_of(const Measurements& all);
[[nodiscard]] std::vector<std::string> methods_of(const Measurements& all);
[[nodiscard]] std::vector<double> settings_of(const Measurements& all);

[[nodiscard]] std::vector<double> values_at(const Measurements& all, double x);
[[nodiscard]] double mean(const std::vector<double>& values);
[[nodiscard]] double quantile(std::vector<double> values, double share);

/// Mean over runs against x, with the range of their middle half.
[[nodiscard]] Curve curve_of(const Measurements& all, const Which& which);
/// A panel with one such curve per method.
[[nodiscard]] Panel panel_of(const Measurements& all, const std::string& panel, const std::string& quantity,
                             const std::string& x_label, const std::string& y_label);

/// Runs the tasks on all cores; their measurements in the order of the tasks.
using Task = std::function<Measurements()>;
[[nodiscard]] Measurements run_all(const std::vector<Task>& tasks, const Settings& settings);

/// Compares the means of two methods at every setting of every panel of a quantity; smaller is better.
struct Contest {
  int settings = 0, won = 0;
  std::string lost_at;  ///< "e = 5 (0.012 against 0.011)", ...
};
[[nodiscard]] Contest contest(const Measurements& all, const std::string& method, const std::string& against,
                              const std::string& quantity, double slack = 1);

}  // namespace unshuffle::app
