#include "unshuffle/tables/simulate.hpp"

#include <fmt/format.h>

#include <Eigen/QR>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <numeric>
#include <random>

#include "core/in_parallel.hpp"
#include "core/read_json.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/tables/table.hpp"
#include "unshuffle/version.hpp"

namespace unshuffle {
namespace {

/// The standard fixes the engine but not the distributions; these are the same with every library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  double uniform() { return (static_cast<double>(engine_() >> 11) + 0.5) * 0x1p-53; }

  double gaussian() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

  /// Marsaglia & Tsang (2000); a shape below one is reached from shape + 1 by a power of a uniform.
  double gamma(double shape) {
    if (shape < 1) {
      const double larger = gamma(shape + 1);
      return larger * std::pow(uniform(), 1 / shape);
    }
    const double d = shape - 1.0 / 3;
    for (;;) {
      const double z = gaussian();
      const double v = std::pow(1 + z / std::sqrt(9 * d), 3);
      if (v > 0 && std::log(uniform()) < 0.5 * z * z + d - d * v + d * std::log(v)) return d * v;
    }
  }

  Matrix gaussian(Index rows, Index columns, double mean) {
    Matrix values(rows, columns);
    for (Index row = 0; row < rows; ++row) {
      for (Index column = 0; column < columns; ++column) values(row, column) = mean + gaussian();
    }
    return values;
  }

  void shuffle(std::vector<Index>& values) {
    for (std::size_t left = values.size(); left > 1; --left) {
      const auto pick = static_cast<std::size_t>(uniform() * static_cast<double>(left));
      std::swap(values[left - 1], values[std::min(pick, left - 1)]);
    }
  }

 private:
  std::mt19937_64 engine_;
};

const char* name_of(Design design) {
  switch (design) {
    case Design::sensing:
      return "sensing";
    case Design::linear:
      return "linear";
    case Design::nonlinear:
      return "nonlinear";
    case Design::gamma:
      return "gamma";
  }
  return "";
}

void require(bool holds, std::string_view option, double value, std::string_view expected) {
  if (!holds) throw InvalidInput(fmt::format("{} = {} must be {}", option, value, expected));
}

Vector signal(Design design, const Matrix& features, const Vector& w) {
  if (design != Design::nonlinear) return features * w;
  return (features * w.asDiagonal()).array().sin().rowwise().sum();
}

double shape_of(const SimulateOptions& options, Index column) {
  return options.shape > 0 ? options.shape : 0.5 * std::pow(2.0, static_cast<double>(column));
}

Matrix draw_features(Random& random, const SimulateOptions& options) {
  if (options.design != Design::gamma) {
    return random.gaussian(options.rows, options.dim_x + options.dim_z, options.mean);
  }
  Matrix values(options.rows, options.dim_z);
  for (Index row = 0; row < values.rows(); ++row) {
    for (Index column = 0; column < values.cols(); ++column) {
      const double shape = shape_of(options, column);
      values(row, column) = options.mean + random.gamma(shape);
    }
  }
  return values;
}

/// Linked rows: features of both sides drawn together.
Problem draw(Random& random, const SimulateOptions& options, const Vector& w) {
  Problem problem;
  const Matrix features = draw_features(random, options);
  problem.x = features.leftCols(options.dim_x);
  problem.z = features.rightCols(options.dim_z);
  problem.y = signal(options.design, features, w);
  for (Index row = 0; row < options.rows; ++row) problem.y(row, 0) += std::sqrt(options.noise) * random.gaussian();
  return unshuffle::completed(std::move(problem));
}

/// permutation[i] = row of the shuffled z that belongs to response i.
std::vector<Index> draw_permutation(Random& random, const SimulateOptions& options) {
  std::vector<Index> permutation(static_cast<std::size_t>(options.rows));
  std::iota(permutation.begin(), permutation.end(), Index{0});
  std::vector<Index> moved = permutation;
  random.shuffle(moved);
  moved.resize(static_cast<std::size_t>(std::lround(options.shuffle * static_cast<double>(options.rows))));
  std::vector<Index> places = moved;
  random.shuffle(places);
  for (std::size_t at = 0; at < moved.size(); ++at) permutation[static_cast<std::size_t>(moved[at])] = places[at];
  return permutation;
}

Matrix design_matrix(const Problem& problem, const Matrix& z) {
  Matrix design(problem.responses(), problem.x.cols() + z.cols() + 1);
  if (problem.x.cols() > 0) design.leftCols(problem.x.cols()) = problem.x;
  design.middleCols(problem.x.cols(), z.cols()) = z;
  design.rightCols(1).setOnes();
  return design;
}

void add_columns(Table& table, const Matrix& values, const std::vector<std::string>& names) {
  table.rows = values.rows();
  for (Index column = 0; column < values.cols(); ++column) {
    Column added{.name = names[static_cast<std::size_t>(column)]};
    added.numbers.assign(values.col(column).begin(), values.col(column).end());
    table.columns.push_back(std::move(added));
  }
}

void add_groups(Table& table, const std::vector<Index>& groups, const std::string& name) {
  if (groups.empty()) return;
  table.columns.push_back({.name = name, .numbers = {groups.begin(), groups.end()}});
}

struct Tables {
  Table responses, features, test;
};

Tables tables_of(const ShuffledSample& sample, const std::string& group_name) {
  const Problem& train = sample.problem;
  const Problem& test = sample.test;
  Tables tables;
  add_columns(tables.responses, train.x, train.x_names);
  add_columns(tables.responses, train.y, train.y_names);
  add_groups(tables.responses, train.response_groups, group_name);
  add_columns(tables.features, train.z, train.z_names);
  add_groups(tables.features, train.feature_groups, group_name);
  add_columns(tables.test, test.x, test.x_names);
  add_columns(tables.test, test.z, test.z_names);
  add_columns(tables.test, test.y, test.y_names);
  return tables;
}

/// Without the links where there are several shards: each has its own.
std::string truth_json(const Simulation& simulation, Index rows, Index shards) {
  const SimulateOptions& options = simulation.options;
  nlohmann::ordered_json truth;
  truth["design"] = name_of(options.design);
  truth["model"] = options.design == Design::nonlinear ? "sine" : "linear";
  auto& coefficients = truth["coefficients"] = nlohmann::ordered_json::object();
  Index at = 0;
  for (const auto* names : {&simulation.problem.x_names, &simulation.problem.z_names}) {
    for (const std::string& name : *names) coefficients[name] = simulation.coefficients[at++];
  }
  truth["intercept"] = 0.0;
  truth["noise_variance"] = options.noise;
  if (options.design != Design::nonlinear && shards == 1) {
    truth["oracle_test_error"] = least_squares_test_error(simulation, true);
    truth["ls_test_error"] = least_squares_test_error(simulation, false);
  }
  if (shards == 1)
    truth["permutation"] = simulation.permutation;
  else
    truth["shards"] = shards;
  truth["seed"] = options.seed;
  auto& said = truth["options"] = {{"n", rows},
                                   {"dim_x", options.dim_x},
                                   {"dim_z", options.dim_z},
                                   {"shuffle", options.shuffle},
                                   {"noise", options.noise},
                                   {"mean", options.mean}};
  if (options.design == Design::gamma) said["shape"] = options.shape;
  said["snr"] = options.snr >= 0 ? nlohmann::ordered_json(options.snr) : nlohmann::ordered_json(nullptr);
  truth["version"] = version;
  return json_text(truth, 2);
}

}  // namespace

SimulateOptions completed(SimulateOptions options) {
  const bool sensing = options.design == Design::sensing;
  const bool gamma = options.design == Design::gamma;
  if (options.dim_x < 0) options.dim_x = sensing || gamma ? 0 : 2;
  if (options.dim_z < 0) options.dim_z = sensing ? 5 : gamma ? 4 : 3;
  if (options.shuffle < 0) options.shuffle = sensing ? 0.5 : 1.0;
  require(options.rows >= 2, "n", static_cast<double>(options.rows), "at least 2");
  require(options.dim_z >= 1, "dim-z", static_cast<double>(options.dim_z), "at least 1");
  require(!(sensing || gamma) || options.dim_x == 0, "dim-x", static_cast<double>(options.dim_x),
          "0 for sensing and gamma");
  require(std::isfinite(options.shape) && options.shape >= 0, "shape", options.shape, "at least 0");
  require(gamma || options.shape == 0, "shape", options.shape, "left out except for gamma");
  require(options.shuffle <= 1, "shuffle", options.shuffle, "between 0 and 1");
  require(std::isfinite(options.noise) && options.noise >= 0, "noise", options.noise, "a variance of at least 0");
  require(options.snr < 0 || (options.snr > 0 && std::isfinite(options.snr)), "snr", options.snr, "> 0");
  require(options.snr < 0 || options.design != Design::nonlinear, "snr", options.snr,
          "left out for nonlinear; say the noise variance with --noise");
  require(std::isfinite(options.mean), "mean", options.mean, "finite");
  return options;
}

namespace {

/// One of many samples with the same coefficients; the first is the one that simulate() draws.
Simulation draw_sample(const SimulateOptions& options, std::uint64_t number) {
  Simulation simulation;
  simulation.options = completed(options);
  SimulateOptions& chosen = simulation.options;
  Random random(chosen.seed);
  simulation.coefficients = random.gaussian(chosen.dim_x + chosen.dim_z, 1, 0).col(0);
  if (chosen.snr >= 0) chosen.noise = simulation.coefficients.squaredNorm() / chosen.snr;
  if (number > 0) random = Random(chosen.seed + number * 0x9e3779b97f4a7c15ULL);
  simulation.problem = draw(random, chosen, simulation.coefficients);
  simulation.permutation = draw_permutation(random, chosen);
  const Matrix linked_z = simulation.problem.z;
  for (Index row = 0; row < chosen.rows; ++row) {
    simulation.problem.z.row(simulation.permutation[static_cast<std::size_t>(row)]) = linked_z.row(row);
  }
  simulation.test = draw(random, chosen, simulation.coefficients);
  return simulation;
}

}  // namespace

Simulation simulate(const SimulateOptions& options) { return draw_sample(options, 0); }

double least_squares_test_error(const ShuffledSample& sample, bool linked) {
  const Problem& train = sample.problem;
  Matrix z = train.z;
  if (linked) {
    for (Index row = 0; row < z.rows(); ++row) {
      z.row(row) = train.z.row(sample.permutation[static_cast<std::size_t>(row)]);
    }
  }
  const Vector w = design_matrix(train, z).colPivHouseholderQr().solve(train.y.col(0));
  const Vector y = sample.test.y.col(0);
  const Vector residual = design_matrix(sample.test, sample.test.z) * w - y;
  return residual.squaredNorm() / (y.array() - y.mean()).matrix().squaredNorm();
}

void write_simulation(const Simulation& simulation, const std::string& directory) {
  write_sample(simulation, "", truth_json(simulation, simulation.options.rows, 1), directory);
}

void write_shards(const SimulateOptions& options, Index shards, const std::string& directory) {
  const SimulateOptions chosen = completed(options);
  require(shards >= 1 && 2 * shards <= chosen.rows, "shards", static_cast<double>(shards),
          "at least 1, with two rows or more in each");
  make_folder(directory);
  const std::filesystem::path folder(directory);
  in_parallel(static_cast<std::size_t>(shards), [&](std::size_t k) {
    SimulateOptions part = chosen;
    const auto number = static_cast<Index>(k);
    part.rows = chosen.rows * (number + 1) / shards - chosen.rows * number / shards;
    const Simulation simulation = draw_sample(part, k);
    const Tables tables = tables_of(simulation, "");
    write_whole_file((folder / fmt::format("responses-{:04}.csv", k + 1)).string(), to_csv(tables.responses));
    write_whole_file((folder / fmt::format("features-{:04}.csv", k + 1)).string(), to_csv(tables.features));
    if (k > 0) return;
    write_whole_file((folder / "test.csv").string(), to_csv(tables.test));
    write_whole_file((folder / "truth.json").string(), truth_json(simulation, chosen.rows, shards));
  });
}

void write_sample(const ShuffledSample& sample, const std::string& group_name, const std::string& truth,
                  const std::string& directory) {
  make_folder(directory);
  const Tables tables = tables_of(sample, group_name);
  const std::filesystem::path folder(directory);
  write_whole_file((folder / "responses.csv").string(), to_csv(tables.responses));
  write_whole_file((folder / "features.csv").string(), to_csv(tables.features));
  write_whole_file((folder / "test.csv").string(), to_csv(tables.test));
  write_whole_file((folder / "truth.json").string(), truth);
}

}  // namespace unshuffle
