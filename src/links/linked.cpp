#include "links/linked.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>

namespace unshuffle {

namespace {

constexpr Index chunk_rows = 4096;

Matrix gathered(const Matrix& table, const std::vector<Index>& rows) {
  Matrix chosen(static_cast<Index>(rows.size()), table.cols());
  for (Index k = 0; k < table.cols(); ++k) {
    for (std::size_t i = 0; i < rows.size(); ++i) chosen(Index(i), k) = table(rows[i], k);
  }
  return chosen;
}

/// ∂f(x_i, z_i; w)/∂w of the rows begin .. begin+size-1, output by output below one another: (size·o)×p.
Matrix jacobian_of(const Model& bound, const LinkedRows& rows, Index begin, Index size, const VectorRef& w) {
  const Index outputs = rows.y.cols();
  if (const AdditiveModel* additive = bound.additive(); additive != nullptr && outputs == 1) {
    Matrix jacobian = additive->jacobian_part(Side::feature, rows.z.middleRows(begin, size), w);
    if (rows.x.cols() > 0) jacobian += additive->jacobian_part(Side::response, rows.x.middleRows(begin, size), w);
    return jacobian;
  }
  Matrix jacobian(size * outputs, w.size());
  Vector gradient(w.size());
  for (Index i = 0; i < size; ++i) {
    const Matrix x_row = rows.x.middleRows(rows.x.cols() > 0 ? begin + i : 0, rows.x.cols() > 0 ? 1 : 0);
    const Matrix z_row = rows.z.row(begin + i);
    for (Index k = 0; k < outputs; ++k) {
      gradient.setZero();
      bound.pull_back(x_row, z_row, w, Matrix::Identity(outputs, outputs).row(k), gradient);
      jacobian.row(k * size + i) = gradient;
    }
  }
  return jacobian;
}

/// Solves (A + λ diag A) s = b in the scale of the diagonal; null directions of A get no step.
Vector damped_step(const NormalEquations& equations, double damping) {
  const Vector scale = equations.matrix.diagonal().cwiseSqrt().unaryExpr([](double s) { return s > 0 ? 1 / s : 0.0; });
  Matrix scaled = scale.asDiagonal() * equations.matrix * scale.asDiagonal();
  scaled.diagonal().array() += damping;
  Eigen::CompleteOrthogonalDecomposition<Matrix> solver;
  solver.setThreshold(1e-13);
  solver.compute(scaled);
  return scale.cwiseProduct(solver.solve(scale.cwiseProduct(equations.right)));
}

}  // namespace

Links links_at_random(const Problem& problem, Index count, Stream stream) {
  RandomStream random(0, stream);
  Links links;
  for (Index k = 0; k < count; ++k) {
    links.responses.push_back(random.below(problem.responses()));
    links.features.push_back(random.below(problem.features()));
  }
  return links;
}

Links links_in_order(const Problem& problem) {
  std::vector<char> response_known(std::size_t(problem.responses()), 0);
  std::vector<char> feature_known(std::size_t(problem.features()), 0);
  Links links;
  for (const KnownPair& pair : problem.known) {
    response_known[std::size_t(pair.response_row)] = 1;
    feature_known[std::size_t(pair.feature_row)] = 1;
    links.responses.push_back(pair.response_row);
    links.features.push_back(pair.feature_row);
  }
  const Index both = std::min(problem.responses(), problem.features());
  for (Index i = 0; i < both; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (response_known[at] != 0 || feature_known[at] != 0) continue;
    if (!problem.response_groups.empty() && problem.response_groups[at] != problem.feature_groups[at]) continue;
    links.responses.push_back(i);
    links.features.push_back(i);
  }
  return links;
}

LinkedRows link(const Problem& problem, const Model& bound, const std::vector<Index>& response_rows,
                const std::vector<Index>& feature_rows) {
  LinkedRows rows;
  if (problem.x.cols() > 0) rows.x = bound.basis(Side::response, gathered(problem.x, response_rows));
  rows.z = bound.basis(Side::feature, gathered(problem.z, feature_rows));
  rows.y = gathered(problem.y, response_rows);
  return rows;
}

LinkedRows subset(const LinkedRows& rows, const std::vector<Index>& chosen) {
  LinkedRows part;
  if (rows.x.cols() > 0) part.x = gathered(rows.x, chosen);
  part.z = gathered(rows.z, chosen);
  part.y = gathered(rows.y, chosen);
  return part;
}

Matrix residuals(const Model& bound, const LinkedRows& rows, const VectorRef& w) {
  return rows.y - predict_pairs(bound, rows.x, rows.z, w);
}

Matrix linked_jacobian(const Model& bound, const LinkedRows& rows, const VectorRef& w) {
  return jacobian_of(bound, rows, 0, rows.size(), w);
}

NormalEquations normal_equations(const Model& bound, const LinkedRows& rows, const VectorRef& w,
                                 const Vector& row_weights) {
  const Matrix residual = residuals(bound, rows, w);
  NormalEquations sum{Matrix::Zero(w.size(), w.size()), Vector::Zero(w.size()), 0};
  for (Index begin = 0; begin < rows.size(); begin += chunk_rows) {
    const Index size = std::min(chunk_rows, rows.size() - begin);
    Matrix jacobian = jacobian_of(bound, rows, begin, size, w);
    Vector chunk = residual.middleRows(begin, size).reshaped();
    if (row_weights.size() > 0) {
      const Vector root = row_weights.segment(begin, size).cwiseSqrt().replicate(rows.y.cols(), 1);
      chunk.array() *= root.array();
      jacobian.array().colwise() *= root.array();
    }
    // A rank update runs on one thread, so that the sum is the same for any number of them.
    sum.matrix.selfadjointView<Eigen::Lower>().rankUpdate(jacobian.transpose());
    sum.right.noalias() += jacobian.transpose() * chunk;
    sum.squares += chunk.squaredNorm();
  }
  sum.matrix.triangularView<Eigen::StrictlyUpper>() = sum.matrix.transpose();
  return sum;
}

LeastSquares least_squares(const Model& bound, const LinkedRows& rows, const VectorRef& start,
                           const Vector& row_weights, int max_steps) {
  LeastSquares best{start, 0, {}};
  NormalEquations here = normal_equations(bound, rows, start, row_weights);
  double damping = bound.linear_in_parameters() ? 0.0 : 1e-3;
  if (bound.linear_in_parameters()) max_steps = std::min(max_steps, 2);
  for (int step = 0; step < max_steps && damping < 1e8; ++step) {
    const Vector move = damped_step(here, damping);
    const double expected = move.dot(here.right);
    if (!(expected > 1e-14 * here.squares)) break;
    const Vector tried = best.parameters + move;
    NormalEquations there = normal_equations(bound, rows, tried, row_weights);
    if (there.squares < here.squares) {
      best.parameters = tried;
      here = std::move(there);
      damping /= 10;
    } else {
      damping = std::max(damping, 1e-6) * 10;
    }
  }
  best.squares = here.squares;
  best.matrix = std::move(here.matrix);
  return best;
}

}  // namespace unshuffle
