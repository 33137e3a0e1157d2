// The numbers behind the pictures of docs/fast-path.md, as CSV files in the folder given:
//   points.csv, nodes.csv, boxes.csv, grid.csv   a small measure and its compression
//   accuracy.csv                                 error against the uncompressed solve by box width and order
// docs/fast_path_figures.py draws them.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <cmath>
#include <fstream>
#include <random>
#include <stdexcept>

#include "transport/compress.hpp"
#include "transport/node_problem.hpp"

namespace {

using namespace unshuffle;
using namespace unshuffle::transport;

std::ofstream open(const std::string& folder, const std::string& name, const std::string& header) {
  std::ofstream file(folder + "/" + name);
  if (!file) throw std::runtime_error("cannot write " + folder + "/" + name);
  file << header << '\n';
  return file;
}

CompressionRule rule_of(double box_width, double cell_width, int order) {
  CompressionRule rule;
  rule.box_width = box_width;
  rule.cell_width = cell_width;
  rule.order = order;
  return rule;
}

/// Two bumps of different width and a thin tail: some boxes are full, some hold fewer points than a rule has nodes.
Vector example_points(Index n) {
  std::mt19937_64 generator(5);
  std::normal_distribution<double> normal;
  Vector points(n);
  for (Index k = 0; k < n; ++k) {
    const double x = normal(generator);
    points[k] = k % 3 == 0 ? 2.2 + 0.35 * x : 0.9 * x;
  }
  std::sort(points.begin(), points.end());
  return points;
}

void write_example(const std::string& folder) {
  constexpr double root_epsilon = 0.25;
  const Vector points = example_points(600);
  const CompressedMeasure measure(points, Vector(), rule_of(2 * root_epsilon, 0.5 * root_epsilon, 12));
  auto point_file = open(folder, "points.csv", "position");
  for (double x : points) fmt::print(point_file, "{}\n", x);
  auto node_file = open(folder, "nodes.csv", "position,weight");
  for (Index k = 0; k < measure.nodes().size(); ++k)
    fmt::print(node_file, "{},{}\n", measure.nodes().position[k], measure.nodes().weight[k]);
  auto grid_file = open(folder, "grid.csv", "position");
  for (double x : measure.grid()) fmt::print(grid_file, "{}\n", x);
  // A box holds as many of the sorted points as its nodes weigh.
  auto box_file = open(folder, "boxes.csv", "low,high,points,nodes,compressed");
  Index begin = 0;
  for (const Box& box : measure.boxes()) {
    const double mass = measure.nodes().weight.segment(box.first, box.last - box.first).sum();
    const auto count = static_cast<Index>(std::lround(mass * static_cast<double>(points.size())));
    fmt::print(box_file, "{},{},{},{},{}\n", points[begin], points[begin + count - 1], count, box.last - box.first,
               box.width > 0 ? 1 : 0);
    begin += count;
  }
}

struct Solution {
  double objective, estimate = 0;
  Vector gradient;
};

Solution solve(const Vector& t, const Vector& s, const CompressionRule& rule, double epsilon) {
  const CompressedMeasure rows(t, Vector(), rule), columns(s, Vector(), rule);
  NodeProblem problem(rows.nodes(), columns.nodes(), Exact{}, Exact{}, epsilon);
  problem.begin(monotone_potentials(rows.nodes(), columns.nodes(), epsilon));
  problem.solve({.tolerance = 1e-13});
  Solution solution;
  solution.objective = problem.transport_cost();
  solution.gradient =
      columns.interpolate(problem.evaluate(Side::feature, columns.grid(), Objective::transport).gradient);
  if (!columns.exact())
    solution.estimate = std::max(problem.quadrature_error(Side::response, rows.boxes(), rule.order).maxCoeff(),
                                 problem.quadrature_error(Side::feature, columns.boxes(), rule.order).maxCoeff());
  return solution;
}

void write_accuracy(const std::string& folder) {
  constexpr Index n = 3000;
  std::mt19937_64 generator(7);
  std::normal_distribution<double> normal;
  const Vector t = Vector::NullaryExpr(n, [&] { return normal(generator); });
  const Vector s = Vector::NullaryExpr(n, [&] { return 0.8 * normal(generator) + 0.1; });
  const double apart = std::max(t.maxCoeff() - s.minCoeff(), s.maxCoeff() - t.minCoeff());
  const double epsilon = 1e-4 * apart * apart, root = std::sqrt(epsilon);
  const Solution reference = solve(t, s, {}, epsilon);
  auto file = open(folder, "accuracy.csv", "width,order,objective,gradient,estimate");
  for (int order : {4, 6, 8, 12})
    for (double width : {0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0}) {
      // Cells as the library makes them, a quarter of a box, but never wider than its own: the error of interpolation
      // stays below what is shown.
      const Solution found = solve(t, s, rule_of(width * root, std::min(0.25 * width, 0.5) * root, order), epsilon);
      fmt::print(file, "{},{},{},{},{}\n", width, order, std::abs(found.objective / reference.objective - 1),
                 (found.gradient - reference.gradient).norm() / reference.gradient.norm(), found.estimate);
    }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    fmt::print(stderr, "usage: {} FOLDER\n", argv[0]);
    return 2;
  }
  write_example(argv[1]);
  write_accuracy(argv[1]);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
