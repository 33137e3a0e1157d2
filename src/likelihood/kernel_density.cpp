#include "likelihood/kernel_density.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/random.hpp"

namespace unshuffle {
namespace {

constexpr double margin_in_bandwidths = 6;  // of a table beyond the values

/// Silverman's factor for that many rows and outputs.
double shrinkage(Index rows, Index outputs) {
  const auto o = static_cast<double>(outputs);
  return std::pow(4 / ((o + 2) * static_cast<double>(rows)), 1 / (o + 4));
}

Vector spread_of(const Matrix& values) {
  const Vector spread =
      ((values.rowwise() - values.colwise().mean()).colwise().squaredNorm() / double(values.rows())).cwiseSqrt();
  return spread.unaryExpr([](double s) { return s > 0 ? s : 1.0; });
}

}  // namespace

double TabulatedDensity::log_at(double value) const {
  const double at = std::clamp((value - low) / step, 0.0, static_cast<double>(logs.size() - 1));
  const Index k = std::min(static_cast<Index>(at), logs.size() - 2);
  const double part = at - static_cast<double>(k);
  return (1 - part) * logs[k] + part * logs[k + 1];
}

KernelDensity::KernelDensity(const Matrix& values, std::uint64_t seed) {
  constexpr Index most_centres = 400;
  const Vector spread = spread_of(values);
  if (values.cols() == 1 && values.rows() > most_centres) {
    bandwidth_ = spread * shrinkage(values.rows(), 1);
    tabulate(values);
    if (table_.logs.size() > 0) return;
  }
  RandomStream random(seed, Stream::kernel_centres);
  const std::vector<Index> chosen = sample_rows(values.rows(), std::min(most_centres, values.rows()), random);
  bandwidth_ = spread * shrinkage(static_cast<Index>(chosen.size()), values.cols());
  centres_ = values(chosen, Eigen::all) * bandwidth_.cwiseInverse().asDiagonal();
  log_unit_ = -0.5 * double(values.cols()) * std::log(2 * std::numbers::pi) - bandwidth_.array().log().sum() -
              std::log(double(chosen.size()));
}

// Each row is split between its two neighbouring grid points, which preserves the mean, and the grid is smoothed.
void KernelDensity::tabulate(const Matrix& values) {
  constexpr double points_per_bandwidth = 8, most_points = 16384;
  const double h = bandwidth_(0), margin = margin_in_bandwidths * h;
  const double low = values.minCoeff() - margin, high = values.maxCoeff() + margin;
  const double points = std::ceil((high - low) / h * points_per_bandwidth) + 1;
  if (!(points <= most_points)) return;
  const auto count = static_cast<Index>(points);
  const double step = (high - low) / (points - 1);
  Vector mass = Vector::Zero(count);
  for (Index i = 0; i < values.rows(); ++i) {
    const double at = (values(i, 0) - low) / step;
    const Index k = std::min(static_cast<Index>(at), count - 2);
    const double part = at - static_cast<double>(k);
    mass[k] += 1 - part;
    mass[k + 1] += part;
  }
  std::vector<Index> occupied;
  for (Index k = 0; k < count; ++k)
    if (mass[k] > 0) occupied.push_back(k);
  const double log_unit = -0.5 * std::log(2 * std::numbers::pi) - std::log(h * double(values.rows()));
  const double squares = 0.5 * step * step / (h * h);
  Vector logs(count);
#pragma omp parallel for schedule(static)
  for (Index k = 0; k < count; ++k) {
    const auto next = std::lower_bound(occupied.begin(), occupied.end(), k);
    const double right = next != occupied.end() ? double(*next - k) : HUGE_VAL;
    const double left = next != occupied.begin() ? double(k - *(next - 1)) : HUGE_VAL;
    const double least = squares * std::pow(std::min(left, right), 2);
    double sum = 0;
    for (const Index j : occupied) sum += mass[j] * std::exp(least - squares * double((j - k) * (j - k)));
    logs[k] = log_unit - least + std::log(sum);
  }
  table_ = {low, step, std::move(logs)};
}

Vector KernelDensity::log_at(const Matrix& values) const {
  if (table_.logs.size() > 0) return values.col(0).unaryExpr([&](double value) { return table_.log_at(value); });
  const Matrix scaled = values * bandwidth_.cwiseInverse().asDiagonal();
  Vector logs(values.rows());
  Matrix squares_of_thread(centres_.rows(),
                           omp_get_max_threads());  // allocated here because the parallel loop must not throw
#pragma omp parallel for schedule(static)
  for (Index i = 0; i < values.rows(); ++i) {
    auto squares = squares_of_thread.col(omp_get_thread_num());
    squares = (centres_.rowwise() - scaled.row(i)).rowwise().squaredNorm();
    const double least = squares.minCoeff();
    logs(i) = log_unit_ - 0.5 * least + std::log((-0.5 * (squares.array() - least)).exp().sum());
  }
  return logs;
}

TabulatedDensity KernelDensity::tabulated() const {
  if (table_.logs.size() > 0) return table_;
  constexpr Index points = 4096;
  const Vector centres = centres_.col(0) * bandwidth_(0);
  const double margin = margin_in_bandwidths * bandwidth_(0);
  const double low = centres.minCoeff() - margin, high = centres.maxCoeff() + margin;
  const Vector grid = Vector::LinSpaced(points, low, high);
  return {low, (high - low) / double(points - 1), log_at(grid)};
}

}  // namespace unshuffle
