// Forward, l = 1 .. L, from ζ⁰ = 0:
//   ξˡ_i = ε(log a_i - LSE_j((ζˡ⁻¹_j - C_ij)/ε)),     ζˡ_j = ε(log b_j - LSE_i((ξˡ_i - C_ij)/ε)),
//   Γ_ij = exp((ξᴸ_i + ζᴸ_j - C_ij)/ε),               F = Σ Γ_ij C_ij.
// Reverse. The last line gives C̄ = Γ(1 - C/ε), ξ̄ᴸ = (ΓC/ε)1, ζ̄ᴸ = (ΓC/ε)ᵀ1. The derivative of a log-sum-exp is a
// softmax:
//   dζˡ_j = -Σ_i P_ij (dξˡ_i - dC_ij),  P_ij = exp((ξˡ_i + ζˡ_j - C_ij)/ε)/b_j,    columns of P sum to one,
//   dξˡ_i = -Σ_j Q_ij (dζˡ⁻¹_j - dC_ij), Q_ij = exp((ξˡ_i + ζˡ⁻¹_j - C_ij)/ε)/a_i,  rows of Q sum to one,
// so, going back,  C̄ += P diag(ζ̄), ξ̄ -= P ζ̄;  C̄ += diag(ξ̄) Q, ζ̄ = -Qᵀ ξ̄, ξ̄ = 0.
#include "unshuffle/objective/unrolled.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "unshuffle/core/error.hpp"

namespace unshuffle {

namespace {

// Below this many entries starting threads costs more than the exponentials.
constexpr Index worth_a_thread = 1 << 15;

/// ε LSE_i((potential_i - C_ij)/ε) of every column j.
Vector soft_maximum(const Matrix& cost, const Vector& potential, double epsilon) {
  Vector result(cost.cols());
#pragma omp parallel for schedule(static) if (cost.size() > worth_a_thread)
  for (Index j = 0; j < cost.cols(); ++j) {
    const Eigen::ArrayXd entry = (potential - cost.col(j)).array() / epsilon;
    const double largest = entry.maxCoeff();
    result(j) = epsilon * (largest + std::log((entry - largest).exp().sum()));
  }
  return result;
}

/// exp((ξ_i + ζ_j - C_ij)/ε)/scale_j: the softmax behind a half step.
Matrix softmax(const Matrix& cost, const Vector& xi, const Vector& zeta, const Vector& scale, double epsilon) {
  Matrix result(cost.rows(), cost.cols());
#pragma omp parallel for schedule(static) if (cost.size() > worth_a_thread)
  for (Index j = 0; j < cost.cols(); ++j) {
    result.col(j) = ((xi - cost.col(j)).array() / epsilon + zeta(j) / epsilon).exp() / scale(j);
  }
  return result;
}

Vector checked(const VectorRef& weights, Index size, const char* side) {
  if (weights.size() != size) {
    throw InvalidInput(fmt::format("{} {} weights were given for {} {}s", weights.size(), side, size, side));
  }
  if (!(weights.minCoeff() > 0) || !weights.allFinite()) {
    throw InvalidInput(fmt::format("{} weights must be finite and > 0", side));
  }
  return weights / weights.sum();
}

}  // namespace

UnrolledSinkhorn unrolled_sinkhorn(const MatrixRef& given, const VectorRef& row_weights,
                                   const VectorRef& column_weights, double epsilon, int iterations, Tape tape) {
  if (!(epsilon > 0) || !std::isfinite(epsilon)) throw InvalidInput(fmt::format("epsilon = {} must be > 0", epsilon));
  if (iterations < 1) throw InvalidInput(fmt::format("iterations = {} must be at least 1", iterations));
  if (given.size() == 0 || !given.allFinite()) throw InvalidInput("the cost must be finite and not empty");
  const Vector a = checked(row_weights, given.rows(), "row");
  const Vector b = checked(column_weights, given.cols(), "column");
  const Matrix cost = given;
  const Matrix transposed = cost.transpose();  // so that both half steps run along columns in memory

  const bool store = tape == Tape::stored;
  std::vector<Matrix> row_tape, column_tape;  // Qᵀ and P of every iteration
  Matrix xi(a.size(), iterations);
  Matrix zeta = Matrix::Zero(b.size(), iterations + 1);
  auto row_softmax = [&](int l) { return softmax(transposed, zeta.col(l), xi.col(l), a, epsilon); };
  auto column_softmax = [&](int l) { return softmax(cost, xi.col(l), zeta.col(l + 1), b, epsilon); };
  for (int l = 0; l < iterations; ++l) {
    xi.col(l) = epsilon * a.array().log().matrix() - soft_maximum(transposed, zeta.col(l), epsilon);
    if (store) row_tape.push_back(row_softmax(l));
    zeta.col(l + 1) = epsilon * b.array().log().matrix() - soft_maximum(cost, xi.col(l), epsilon);
    if (store) column_tape.push_back(column_softmax(l));
  }

  UnrolledSinkhorn made;
  const Matrix plan = softmax(cost, xi.col(iterations - 1), zeta.col(iterations), Vector::Ones(b.size()), epsilon);
  made.transport_cost = plan.cwiseProduct(cost).sum();
  made.marginal_error = (plan.rowwise().sum() - a).lpNorm<1>() + (plan.colwise().sum().transpose() - b).lpNorm<1>();
  made.weights = plan.cwiseProduct((1 - cost.array() / epsilon).matrix());
  Vector xi_bar = plan.cwiseProduct(cost).rowwise().sum() / epsilon;
  Vector zeta_bar = plan.cwiseProduct(cost).colwise().sum().transpose() / epsilon;
  for (int l = iterations; l-- > 0;) {
    const auto step = static_cast<std::size_t>(l);
    const Matrix p = store ? std::move(column_tape[step]) : column_softmax(l);
    made.weights += p * zeta_bar.asDiagonal();
    xi_bar -= p * zeta_bar;
    const Matrix q = store ? std::move(row_tape[step]) : row_softmax(l);  // transposed
    made.weights += (q * xi_bar.asDiagonal()).transpose();
    zeta_bar = -(q * xi_bar);
    xi_bar.setZero();
  }
  return made;
}

}  // namespace unshuffle
