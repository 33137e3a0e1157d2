#include "likelihood/row_likelihood.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "core/gram.hpp"
#include "core/in_parallel.hpp"

namespace unshuffle {

namespace {

constexpr Index tile_rows = 2048;

std::size_t tiles(Index rows) { return static_cast<std::size_t>((rows + tile_rows - 1) / tile_rows); }

/// Aᵀ diag(v) B.
Matrix weighted_product(const Matrix& a, const VectorRef& v, const Matrix& b) {
  return a.transpose().lazyProduct(v.asDiagonal() * b);
}

}  // namespace

/// Some rows at one θ.
struct RowLikelihood::Tile {
  std::vector<Matrix> designs;
  Vector weights;
  Vector values;
  Matrix gradients;  ///< A column per coordinate.
  Matrix hessians;   ///< Columns 4a + b.
};

RowLikelihood::RowLikelihood(std::vector<Coordinate> coordinates, Vector weights, Row row)
    : coordinates_(std::move(coordinates)), weights_(std::move(weights)), row_(std::move(row)) {
  Index next = 0;
  for (const Coordinate& one : coordinates_) {
    first_.push_back(next);
    next += one.parameters();
  }
  first_.push_back(next);
}

Index RowLikelihood::parameters() const { return first_.back(); }

Matrix RowLikelihood::design(Index k, Index begin, Index count) const {
  const Coordinate& one = coordinates_[std::size_t(k)];
  return one.design.rows() > 0 ? Matrix(one.design.middleRows(begin, count)) : Matrix(Matrix::Ones(count, 1));
}

Vector RowLikelihood::part(Index k, Index begin, Index count, const Vector& theta) const {
  const Coordinate& one = coordinates_[std::size_t(k)];
  const auto own = theta.segment(first_[std::size_t(k)], one.parameters());
  Vector made = one.design.rows() > 0 ? Vector(one.design.middleRows(begin, count) * own)
                                      : Vector(Vector::Constant(count, own(0)));
  if (one.offset.size() > 0) made += one.offset.segment(begin, count);
  return made;
}

Vector RowLikelihood::coordinate(Index k, const Vector& theta) const { return part(k, 0, rows(), theta); }

RowLikelihood::Tile RowLikelihood::tile(Index begin, const Vector& theta) const {
  const Index count = std::min(tile_rows, rows() - begin), q = Index(coordinates_.size());
  Tile made;
  Matrix at = Matrix::Zero(count, 4);
  for (Index k = 0; k < q; ++k) {
    made.designs.push_back(design(k, begin, count));
    at.col(k) = part(k, begin, count, theta);
  }
  made.weights = weights_.segment(begin, count);
  made.values.resize(count);
  made.gradients.resize(count, 4);
  made.hessians.resize(count, 16);
  for (Index i = 0; i < count; ++i) {
    const RowTerm term = row_(begin + i, at.row(i).transpose());
    made.values(i) = term.value;
    made.gradients.row(i) = term.gradient.transpose();
    made.hessians.row(i) = term.hessian.reshaped().transpose();
  }
  return made;
}

void RowLikelihood::add_tile(Index begin, const Vector& theta, bool with_hessian, Sample& sum) const {
  const Tile here = tile(begin, theta);
  const Index q = Index(coordinates_.size());
  sum.value = -here.weights.dot(here.values);
  sum.gradient = Vector::Zero(parameters());
  if (with_hessian) sum.hessian = Matrix::Zero(parameters(), parameters());
  for (Index a = 0; a < q; ++a) {
    const Matrix& left = here.designs[std::size_t(a)];
    const Index from = first_[std::size_t(a)];
    sum.gradient.segment(from, left.cols()) = -left.transpose() * here.weights.cwiseProduct(here.gradients.col(a));
    for (Index b = 0; with_hessian && b <= a; ++b) {
      const Matrix& right = here.designs[std::size_t(b)];
      const Index to = first_[std::size_t(b)];
      const Matrix block = -weighted_product(left, here.weights.cwiseProduct(here.hessians.col(4 * a + b)), right);
      sum.hessian.block(from, to, left.cols(), right.cols()) = block;
      if (b < a) sum.hessian.block(to, from, right.cols(), left.cols()) = block.transpose();
    }
  }
}

// Tiles are added in order, so that the sum is the same for any number of threads.
Sample RowLikelihood::at(const Vector& theta, bool with_hessian) const {
  std::vector<Sample> parts(tiles(rows()));
  in_parallel(parts.size(), [&](std::size_t k) { add_tile(Index(k) * tile_rows, theta, with_hessian, parts[k]); });
  Sample sum;
  sum.gradient = Vector::Zero(parameters());
  if (with_hessian) sum.hessian = Matrix::Zero(parameters(), parameters());
  for (const Sample& one : parts) {
    sum.value += one.value;
    sum.gradient += one.gradient;
    if (with_hessian) sum.hessian += one.hessian;
  }
  for (const SmoothFunction& one : known_) {
    const Sample more = one(theta, with_hessian);
    sum.value += more.value;
    sum.gradient += more.gradient;
    if (with_hessian) sum.hessian += more.hessian;
  }
  return sum;
}

Matrix RowLikelihood::scores(const Vector& theta) const {
  Matrix sum = Matrix::Zero(parameters(), parameters());
  for (std::size_t k = 0; k < tiles(rows()); ++k) {
    const Tile here = tile(Index(k) * tile_rows, theta);
    Matrix s(here.weights.size(), parameters());
    for (std::size_t a = 0; a < coordinates_.size(); ++a) {
      s.middleCols(first_[a], here.designs[a].cols()) =
          here.designs[a].array().colwise() * here.gradients.col(Index(a)).array();
    }
    sum += weighted_gram(s, here.weights.cwiseAbs2());
  }
  // What was learned elsewhere varies as much as its curvature says.
  for (const SmoothFunction& one : known_) sum += one(theta, true).hessian;
  return sum;
}

namespace {

/// In steps of this length each parameter alone changes the likelihood of a row by about one half.
Vector natural_units(const Matrix& hessian, double weight) {
  return hessian.diagonal().unaryExpr([&](double h) { return h != 0 ? std::sqrt(weight / std::abs(h)) : 1.0; });
}

double smallest_curvature(const Matrix& hessian, const Vector& unit) {
  const Matrix scaled = unit.asDiagonal() * hessian * unit.asDiagonal();
  return Eigen::SelfAdjointEigenSolver<Matrix>(scaled, Eigen::EigenvaluesOnly).eigenvalues()(0);
}

}  // namespace

Minimum minimise_in_natural_units(const SmoothFunction& f, const Vector& start, double weight, const StopRule& stop) {
  const Vector unit = natural_units(f(start, true).hessian, weight);
  const SmoothFunction scaled = [&](const Vector& u, bool with_hessian) {
    Sample sample = f(start + unit.cwiseProduct(u), with_hessian);
    sample.gradient.array() *= unit.array();
    if (with_hessian) sample.hessian = unit.asDiagonal() * sample.hessian * unit.asDiagonal();
    return sample;
  };
  Minimum found =
      trust_region(scaled, Vector::Zero(start.size()), stop, [](int, const Sample&, double) { return true; });
  found.at = start + unit.cwiseProduct(found.at);
  return found;
}

RowOptimum most_likely(const RowLikelihood& likelihood, const Vector& start, int max_iterations) {
  return most_likely([&](const Vector& theta, bool with_hessian) { return likelihood.at(theta, with_hessian); },
                     likelihood.weight(), start, max_iterations);
}

RowOptimum most_likely(const SmoothFunction& minus, double weight, const Vector& start, int max_iterations) {
  StopRule stop;
  stop.max_iterations = max_iterations;
  stop.gradient_tolerance = 1e-9 * weight;
  stop.noise = 1e-13;
  const Minimum found = minimise_in_natural_units(minus, start, weight, stop);
  RowOptimum made;
  made.theta = found.at;
  made.converged = found.converged;
  made.iterations = found.iterations;
  const Matrix first = minus(start, true).hessian;
  const Vector unit = natural_units(first, weight);
  Sample last = minus(made.theta, true);
  // The last step of Newton's method costs little and takes what rounding of the value hides.
  const Eigen::LLT<Matrix> factor(last.hessian);
  if (factor.info() == Eigen::Success) {
    const Vector tried = made.theta - factor.solve(last.gradient);
    Sample there = minus(tried, true);
    const auto size = [&](const Sample& one) { return unit.cwiseProduct(one.gradient).norm(); };
    if (there.gradient.allFinite() && size(there) < size(last)) {
      made.theta = tried;
      last = std::move(there);
    }
  }
  made.log_likelihood = -last.value;
  made.information = last.hessian;
  constexpr double vanished = 1e-5;
  const double before = smallest_curvature(first, unit);
  made.unbounded = before > 0 && smallest_curvature(last.hessian, unit) < vanished * before;
  return made;
}

}  // namespace unshuffle
