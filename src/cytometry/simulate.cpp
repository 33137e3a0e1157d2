#include "unshuffle/cytometry/simulate.hpp"

#include <fmt/format.h>

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/random.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/cytometry/event_table.hpp"
#include "unshuffle/cytometry/fcs.hpp"
#include "unshuffle/cytometry/gating.hpp"
#include "unshuffle/version.hpp"

namespace unshuffle::cytometry {
namespace {

constexpr Index paper_rows = 1400;
constexpr Index paper_features = 20;

struct LinkedEvents {
  Vector y;
  Matrix z;
  std::string y_name;
  std::vector<std::string> z_names;
};

void require(bool holds, std::string_view option, double value, std::string_view expected) {
  if (!holds) throw InvalidInput(fmt::format("{} = {} must be {}", option, value, expected));
}

void validate(const ShuffleOptions& options) {
  require(options.rows >= 10, "n", static_cast<double>(options.rows), "at least 10");
  require(options.features >= 1, "dim-z", static_cast<double>(options.features), "at least 1");
  require(options.gate_error >= 0 && options.gate_error <= 1, "gate-error", options.gate_error, "between 0 and 1");
  require(options.test_share > 0 && options.test_share < 1, "test share", options.test_share, "above 0 and below 1");
  require(options.noise >= 0 && options.noise < 1, "noise", options.noise, "a share of variance from 0 to below 1");
}

Matrix rows_of(const Matrix& values, const std::vector<Index>& rows) { return values(rows, Eigen::all); }

/// Row 0 the means, row 1 the standard deviations.
Matrix unit_of(const Matrix& values) {
  Matrix unit(2, values.cols());
  unit.row(0) = values.colwise().mean();
  const Matrix centred = values.rowwise() - unit.row(0);
  unit.row(1) = (centred.colwise().squaredNorm() / static_cast<double>(values.rows())).cwiseSqrt();
  return unit;
}

Matrix in_unit(const Matrix& values, const Matrix& unit) {
  return (values.rowwise() - unit.row(0)).array().rowwise() / unit.row(1).array();
}

/// |t| of each feature in a linear regression on all of them, up to a common factor.
Vector significance(const Matrix& z, const Vector& y) {
  const Matrix standard = in_unit(z, unit_of(z));
  const Eigen::CompleteOrthogonalDecomposition<Matrix> factors(standard);
  const Matrix inverse = factors.pseudoInverse();
  const Vector w = inverse * (y.array() - y.mean()).matrix();
  return w.array().abs() / inverse.rowwise().norm().array().max(1e-300);
}

/// Columns `kept` of the events, in their order.
void keep_columns(LinkedEvents& events, std::vector<Index> kept) {
  std::sort(kept.begin(), kept.end());
  std::vector<std::string> names;
  for (const Index column : kept) names.push_back(events.z_names[static_cast<std::size_t>(column)]);
  events.z = Matrix(events.z(Eigen::all, kept));
  events.z_names = std::move(names);
}

void drop_constant_columns(LinkedEvents& events, std::vector<std::string>& notes) {
  std::vector<Index> kept;
  for (Index column = 0; column < events.z.cols(); ++column) {
    if (events.z.col(column).minCoeff() < events.z.col(column).maxCoeff()) {
      kept.push_back(column);
    } else {
      notes.push_back(
          fmt::format("channel \"{}\" is constant and is ignored", events.z_names[static_cast<std::size_t>(column)]));
    }
  }
  if (kept.empty()) throw BadData("no channel that varies is left to serve as a feature");
  keep_columns(events, std::move(kept));
}

void keep_most_significant(LinkedEvents& events, Index count) {
  if (events.z.cols() <= count) return;
  const Vector t = significance(events.z, events.y);
  std::vector<Index> order(static_cast<std::size_t>(t.size()));
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return t[a] > t[b]; });
  order.resize(static_cast<std::size_t>(count));
  keep_columns(events, std::move(order));
}

Problem linked_problem(const Matrix& y, const Matrix& z, const LinkedEvents& names) {
  Problem problem;
  problem.y = y;
  problem.z = z;
  problem.y_names = {names.y_name};
  problem.z_names = names.z_names;
  return problem;
}

/// True gates for the responses; for the features some labels are exchanged.
void sort_by_gates(Problem& problem, const ShuffleOptions& options) {
  if (options.gates == 0) return;
  problem.response_groups = equal_mass_gates(problem.y.col(0), options.gates);
  problem.feature_groups = problem.response_groups;
  RandomStream random(options.seed, Stream::simulated_gates);
  const auto wrong = std::lround(options.gate_error * static_cast<double>(problem.responses()));
  const std::vector<Index> rows = sample_rows(problem.responses(), static_cast<Index>(wrong), random);
  // Each takes the label of the next, and the last that of the first.
  for (std::size_t at = 0; at + 1 < rows.size(); ++at) {
    std::swap(problem.feature_groups[static_cast<std::size_t>(rows[at])],
              problem.feature_groups[static_cast<std::size_t>(rows[at + 1])]);
  }
}

void shuffle_features(ShuffledSample& sample, std::uint64_t seed) {
  Problem& problem = sample.problem;
  RandomStream random(seed, Stream::simulated_order);
  sample.permutation.resize(static_cast<std::size_t>(problem.responses()));
  std::iota(sample.permutation.begin(), sample.permutation.end(), Index{0});
  shuffle(sample.permutation, random);
  const Matrix linked = problem.z;
  const std::vector<Index> groups = problem.feature_groups;
  for (std::size_t row = 0; row < sample.permutation.size(); ++row) {
    const Index target = sample.permutation[row];
    problem.z.row(target) = linked.row(static_cast<Index>(row));
    if (!groups.empty()) problem.feature_groups[static_cast<std::size_t>(target)] = groups[row];
  }
}

/// Splits, normalises by the training events, sorts by gates and shuffles the links.
ShuffledEvents shuffled(const LinkedEvents& events, const ShuffleOptions& options) {
  const Index tests = std::max<Index>(1, std::lround(options.test_share * static_cast<double>(events.y.size())));
  std::vector<Index> train(static_cast<std::size_t>(events.y.size() - tests));
  std::vector<Index> test(static_cast<std::size_t>(tests));
  std::iota(train.begin(), train.end(), Index{0});
  std::iota(test.begin(), test.end(), events.y.size() - tests);
  ShuffledEvents result;
  result.options = options;
  const Matrix y_unit = unit_of(rows_of(events.y, train));
  result.y_unit = y_unit.col(0);
  result.z_unit = unit_of(rows_of(events.z, train));
  if (!(result.y_unit[1] > 0)) throw BadData(fmt::format("the response \"{}\" is constant", events.y_name));
  for (Index column = 0; column < result.z_unit.cols(); ++column) {
    if (!(result.z_unit(1, column) > 0)) {
      throw BadData(fmt::format("channel \"{}\" is constant in the training events",
                                events.z_names[static_cast<std::size_t>(column)]));
    }
  }
  const auto part = [&](const std::vector<Index>& rows) {
    return linked_problem(in_unit(rows_of(events.y, rows), y_unit), in_unit(rows_of(events.z, rows), result.z_unit),
                          events);
  };
  result.problem = part(train);
  result.test = part(test);
  sort_by_gates(result.problem, options);
  // The normalised training columns have mean zero: the intercept is zero.
  result.coefficients = result.problem.z.colPivHouseholderQr().solve(result.problem.y.col(0));
  shuffle_features(result, options.seed);
  return result;
}

nlohmann::ordered_json truth_of(const ShuffledEvents& events) {
  const ShuffleOptions& options = events.options;
  nlohmann::ordered_json truth;
  truth["design"] = "cytometry";
  truth["model"] = "linear";
  truth["coefficients_from"] = events.drawn ? "the events were drawn with them" : "least squares on linked events";
  nlohmann::ordered_json coefficients;
  nlohmann::ordered_json units;
  const auto unit = [](double mean, double sd) { return nlohmann::ordered_json{{"mean", mean}, {"sd", sd}}; };
  for (std::size_t at = 0; at < events.problem.z_names.size(); ++at) {
    const auto column = static_cast<Index>(at);
    coefficients[events.problem.z_names[at]] = events.coefficients[column];
    units[events.problem.z_names[at]] = unit(events.z_unit(0, column), events.z_unit(1, column));
  }
  units[events.problem.y_names[0]] = unit(events.y_unit[0], events.y_unit[1]);
  truth["coefficients"] = std::move(coefficients);
  truth["intercept"] = events.intercept;
  truth["units"] = std::move(units);
  truth["oracle_test_error"] = least_squares_test_error(events, true);
  truth["ls_test_error"] = least_squares_test_error(events, false);
  truth["permutation"] = events.permutation;
  truth["seed"] = options.seed;
  truth["options"] = {{"n", options.rows},
                      {"dim_z", options.features},
                      {"equal_mass_gates", options.gates},
                      {"gate_error", options.gate_error},
                      {"noise", events.drawn ? nlohmann::ordered_json(options.noise) : nullptr}};
  truth["version"] = version;
  return truth;
}

FcsFile as_fcs_file(const Matrix& values, const std::vector<std::string>& names, const std::vector<Index>& groups) {
  FcsFile file;
  file.events.resize(values.rows(), values.cols() + (groups.empty() ? 0 : 1));
  file.events.leftCols(values.cols()) = values;
  for (const std::string& name : names) file.channels.push_back({.name = name});
  if (!groups.empty()) {
    file.channels.push_back({.name = mass_gate_column});
    for (Index row = 0; row < values.rows(); ++row) {
      file.events(row, values.cols()) = static_cast<double>(groups[static_cast<std::size_t>(row)]);
    }
  }
  for (Index at = 0; at < file.events.cols(); ++at) {
    file.channels[static_cast<std::size_t>(at)].range = std::ceil(std::max(1.0, file.events.col(at).maxCoeff())) + 1;
  }
  return file;
}

}  // namespace

ShuffledEvents draw_events(const ShuffleOptions& chosen) {
  ShuffleOptions options = chosen;
  if (options.rows < 0) options.rows = paper_rows;
  if (options.features < 0) options.features = paper_features;
  validate(options);
  constexpr Index populations = 4;
  constexpr Index factors = 3;
  RandomStream random(options.seed, Stream::simulated_population);
  const auto normal = [&](Index rows, Index columns) {
    return Matrix(Matrix::NullaryExpr(rows, columns, [&] { return random.normal(); }));
  };
  // A channel of a cell: what its population shows, what its size and state add to every channel, and its own noise.
  const Matrix centres = normal(populations, options.features).array() * 1.5 + 3;
  const Matrix loadings = normal(factors, options.features) * 0.4;
  const Vector w = normal(options.features, 1).col(0);
  LinkedEvents events{Vector(options.rows), Matrix(options.rows, options.features), "y", {}};
  for (Index at = 0; at < options.features; ++at) events.z_names.push_back(fmt::format("z{}", at + 1));
  for (Index row = 0; row < options.rows; ++row) {
    const Index population = random.below(populations);
    events.z.row(row) = centres.row(population) + normal(1, factors) * loadings + 0.5 * normal(1, options.features);
  }
  const Vector signal = events.z * w;
  const double signal_sd = unit_of(signal)(1, 0);
  const double noise_sd = signal_sd * std::sqrt(options.noise / (1 - options.noise));
  events.y = signal + noise_sd * normal(options.rows, 1).col(0);
  ShuffledEvents result = shuffled(events, options);
  result.drawn = true;
  result.coefficients = w.array() * result.z_unit.row(1).transpose().array() / result.y_unit[1];
  result.intercept = (result.z_unit.row(0).dot(w) - result.y_unit[0]) / result.y_unit[1];
  return result;
}

ShuffledEvents shuffle_events(const Table& table, const std::string& response, const std::vector<std::string>& features,
                              const ShuffleOptions& chosen) {
  LinkedEvents events;
  events.y_name = response;
  events.z_names = features;
  if (features.empty()) {
    for (const Column& column : table.columns) {
      if (column.numeric() && column.name != response) events.z_names.push_back(column.name);
    }
  }
  if (std::find(features.begin(), features.end(), response) != features.end()) {
    throw InvalidInput(fmt::format("channel \"{}\" cannot be both response and feature", response));
  }
  ShuffleOptions options = chosen;
  if (options.rows < 0) options.rows = std::min(paper_rows, table.rows);
  if (options.features < 0) options.features = paper_features;
  validate(options);
  require(options.rows <= table.rows, "n", static_cast<double>(options.rows),
          fmt::format("at most the {} events of {}", table.rows, table.source));
  RandomStream random(options.seed, Stream::simulated_choice);
  std::vector<Index> rows = sample_rows(table.rows, options.rows, random);
  shuffle(rows, random);  // The last of them are for testing.
  events.y = rows_of(table.matrix({response}), rows).col(0);
  events.z = rows_of(table.matrix(events.z_names), rows);
  std::vector<std::string> notes;
  drop_constant_columns(events, notes);
  keep_most_significant(events, options.features);
  options.features = events.z.cols();
  ShuffledEvents result = shuffled(events, options);
  result.notes = std::move(notes);
  return result;
}

void write_events(const ShuffledEvents& events, const std::string& directory, bool as_fcs) {
  write_sample(events, mass_gate_column, truth_of(events).dump(2) + "\n", directory);
  if (!as_fcs) return;
  const Problem& problem = events.problem;
  const std::filesystem::path folder(directory);
  write_whole_file((folder / "responses.fcs").string(),
                   to_fcs(as_fcs_file(problem.y, problem.y_names, problem.response_groups)));
  write_whole_file((folder / "features.fcs").string(),
                   to_fcs(as_fcs_file(problem.z, problem.z_names, problem.feature_groups)));
}

}  // namespace unshuffle::cytometry
