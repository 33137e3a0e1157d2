// The numbers behind the pictures of a report, small enough to embed in a page for tables of any size.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unshuffle/report/html.hpp"

namespace unshuffle {

/// Shares of a response and of its predictions for the matched rows, over the same bins.
struct Distribution {
  std::string response;
  std::vector<double> edges;
  std::vector<double> observed, predicted;
};
[[nodiscard]] std::vector<Distribution> distributions(const ReportInput& input);

/// Rows of the plan, sorted so that a good correspondence is a diagonal. A row holds the shares of its weight that go
/// to stretches of the sorted features; a few rows represent many.
struct Correspondence {
  std::vector<Index> rows;           ///< Response rows shown, by ascending response (minus the part explained by x).
  std::vector<double> row_mass;      ///< How much of each is matched.
  std::vector<double> feature_from;  ///< Smallest prediction in each stretch of features.
  std::vector<double> feature_mass;  ///< Mean matched share in each stretch.
  std::vector<std::vector<double>> share;
};
[[nodiscard]] Correspondence correspondence(const ReportInput& input);

/// The cost of the best soft matching along the direction in which it changes least.
struct Landscape {
  std::vector<double> direction;  ///< Per parameter; one unit of `offset` moves the parameters by it.
  std::vector<double> offset, objective;
  std::string objective_name;
};
[[nodiscard]] Landscape landscape(const ReportInput& input);

/// What multiplies every parameter to give standard deviations of the response per standard deviation of its column;
/// NaN for an intercept. Empty: the model, or several responses, have no such scale.
[[nodiscard]] std::vector<double> standardisation(const ReportInput& input);

/// Pairs by their probability, and how many of them are right.
struct CalibrationBin {
  double from, to;
  double mean_probability;
  Index pairs, right;
};
[[nodiscard]] std::vector<CalibrationBin> calibration(const ReportInput& input);

}  // namespace unshuffle
