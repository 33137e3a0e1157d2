// A literal implementation of the paper, for comparison: 200 log-domain Sinkhorn iterations, then the gradient of its
// theorem through the dense inverse of K = I - S̄ᵀS̄, S̄ being S without its last column. Two departures, neither of which
// costs time: the theorem's (1 - C) reads (ε - C), without which it is not the gradient, and the n×n×n tensors P and Q
// are contracted with C∘S as they arise, without which memory would be O(n³).
//
// Written as one would with Eigen: array expressions, so exponentials are vectorised, and every pass runs along
// columns in memory. Equal weights, n = m.
#pragma once

#include <Eigen/Dense>

#include <cmath>

namespace literal {

struct Answer {
  Eigen::MatrixXd weighted_plan;  ///< W = dF/dC.
  double transport_cost = 0;      ///< <C, S>, mass one.
  double marginal_error = 0;      ///< Σ|sums - 1/n| over rows and columns.
};

/// ε log Σ_i exp((a_i - C_ij)/ε) for every column j.
inline Eigen::ArrayXd soft_maximum(const Eigen::MatrixXd& cost, const Eigen::ArrayXd& a, double epsilon) {
  Eigen::ArrayXd result(cost.cols()), entry;
  for (Eigen::Index j = 0; j < cost.cols(); ++j) {
    entry = (a - cost.col(j).array()) / epsilon;
    const double largest = entry.maxCoeff();
    result[j] = epsilon * (largest + std::log((entry - largest).exp().sum()));
  }
  return result;
}

inline Answer hypergradient(const Eigen::MatrixXd& cost, double epsilon, int iterations = 200) {
  const Eigen::Index n = cost.rows();
  // S has mass n inside: all its sums are one, as in the paper.
  const Eigen::MatrixXd transposed = cost.transpose();
  Eigen::ArrayXd a = Eigen::ArrayXd::Zero(n), b = Eigen::ArrayXd::Zero(n);
  for (int k = 0; k < iterations; ++k) {
    a = -soft_maximum(transposed, b, epsilon);
    b = -soft_maximum(cost, a, epsilon);
  }
  Eigen::MatrixXd s(n, n);
  for (Eigen::Index j = 0; j < n; ++j) s.col(j) = ((a + b[j] - cost.col(j).array()) / epsilon).exp();

  const auto n_real = static_cast<double>(n);
  Answer answer;
  answer.transport_cost = cost.cwiseProduct(s).sum() / n_real;
  answer.marginal_error =
      ((s.rowwise().sum().array() - 1).abs().sum() + (s.colwise().sum().array() - 1).abs().sum()) / n_real;

  const auto bar = s.leftCols(n - 1);
  const Eigen::MatrixXd k = Eigen::MatrixXd::Identity(n - 1, n - 1) - bar.transpose() * bar;
  const Eigen::MatrixXd inverse = k.inverse();
  const Eigen::VectorXd by_row = cost.cwiseProduct(s).rowwise().sum();
  const Eigen::VectorXd by_column = cost.cwiseProduct(s).colwise().sum().head(n - 1).transpose();
  Eigen::ArrayXd q = Eigen::ArrayXd::Zero(n);
  q.head(n - 1) = (inverse * (by_column - bar.transpose() * by_row)).array();
  const Eigen::ArrayXd p = by_row.array() - (bar * q.head(n - 1).matrix()).array();

  for (Eigen::Index j = 0; j < n; ++j)
    s.col(j).array() *= (epsilon - cost.col(j).array() + p + q[j]) / (epsilon * n_real);
  answer.weighted_plan = std::move(s);
  return answer;
}

}  // namespace literal
