#include "starts/alignment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "unshuffle/links/assignment.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle {

namespace {

Matrix centred(const MatrixRef& rows) { return rows.rowwise() - rows.colwise().mean(); }

// With a_i = |u_i|², b_i = |v_i|² of centred rows,
//   Σ_ik |u_i - u_k|² |v_i - v_k|² = 2n Σ a_i b_i + 2 Σa Σb + 4 |Uᵀ V|²,
// the mixed terms vanish with the means. The rest of the cost does not depend on the matching (docs/mathematics.md
// §11.5).
double agreement(const Matrix& u, const Matrix& v) {
  const Vector a = u.rowwise().squaredNorm();
  const Vector b = v.rowwise().squaredNorm();
  return 2 * double(u.rows()) * a.dot(b) + 2 * a.sum() * b.sum() + 4 * (u.transpose() * v).squaredNorm();
}

std::vector<Index> ascending(const Vector& value) {
  std::vector<Index> order(static_cast<std::size_t>(value.size()));
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return value(a) < value(b); });
  return order;
}

/// Squared distances between rows, D_ik = a_i + a_k - 2 u_i·u_k, as a product left·rightᵀ of rank d + 2.
struct SquaredDistances {
  Matrix left, right;

  explicit SquaredDistances(const MatrixRef& rows) : left(rows.rows(), rows.cols() + 2), right(left) {
    const Matrix middle = centred(rows);
    const Vector size = middle.rowwise().squaredNorm();
    left << size, Vector::Ones(rows.rows()), -2 * middle;
    right << Vector::Ones(rows.rows()), size, middle;
  }
  /// Σ_k D_ik² weight_k.
  [[nodiscard]] Vector squares_times(const Vector& weight) const {
    return (left * (right.transpose() * weight.asDiagonal() * right)).cwiseProduct(left).rowwise().sum();
  }
};

/// Rows in units in which their squared distances have the mean one: the shape of the cloud without its size.
Matrix of_unit_size(const MatrixRef& rows) {
  const Matrix middle = centred(rows);
  const double mean = 2 * middle.squaredNorm() / double(rows.rows());
  return mean > 0 ? Matrix(middle / std::sqrt(mean)) : middle;
}

}  // namespace

double gromov_wasserstein_cost(const MatrixRef& u, const MatrixRef& v) {
  const Matrix cu = centred(u);
  const Matrix cv = centred(v);
  const double n = double(u.rows());
  return (agreement(cu, cu) + agreement(cv, cv) - 2 * agreement(cu, cv)) / (n * n);
}

std::vector<Index> sliced_alignment(const MatrixRef& u, const MatrixRef& v, int slices, RandomStream random) {
  const Matrix cu = centred(u);
  const Matrix cv = centred(v);
  const Index dimension = std::max(cu.cols(), cv.cols());
  std::vector<Index> best;
  double most = -1;
  for (int slice = 0; slice < slices; ++slice) {
    const Vector direction = Vector::NullaryExpr(dimension, [&] { return random.normal(); });
    const std::vector<Index> u_order = ascending(cu * direction.head(cu.cols()));
    std::vector<Index> v_order = ascending(cv * direction.head(cv.cols()));
    for (int way = 0; way < 2; ++way) {
      std::vector<Index> partner(u_order.size());
      for (std::size_t k = 0; k < u_order.size(); ++k) partner[std::size_t(u_order[k])] = v_order[k];
      const double value = agreement(cu, cv(partner, Eigen::all));
      if (value > most) {
        most = value;
        best = std::move(partner);
      }
      std::reverse(v_order.begin(), v_order.end());
    }
  }
  return best;
}

// d/dΓ_ij of Σ (D_ik - E_jl)² Γ_ij Γ_kl = 2 Σ_kl (D_ik - E_jl)² Γ_kl, with Γ's sums being the weights.
Matrix linearised_cost(const MatrixRef& u, const MatrixRef& v, const MatrixRef& plan) {
  const SquaredDistances d(u), e(v);
  Matrix result = (d.left * (-2 * (d.right.transpose() * plan * e.left))) * e.right.transpose();
  result.colwise() += d.squares_times(plan.rowwise().sum());
  result.rowwise() += e.squares_times(plan.colwise().sum()).transpose();
  return 2 * result;
}

SoftAlignment entropic_alignment(const MatrixRef& u, const MatrixRef& v, double epsilon, int max_iterations) {
  const Index n = u.rows();
  const Index m = v.rows();
  constexpr double exact = 1e-8, settled = 1e-6;
  transport::SolverOptions options{.epsilon = epsilon, .relative = false, .tolerance = 1e-2};
  transport::Solver solver(options);
  SoftAlignment result;
  result.plan = Matrix::Constant(n, m, 1.0 / double(n * m));
  result.message = "all iterations taken before the plan settled";
  while (result.iterations < max_iterations && !result.converged) {
    const transport::Solution next = solver.solve(linearised_cost(u, v, result.plan));
    ++result.iterations;
    if (!next.converged()) {
      result.message = fmt::format("the transport problem did not converge: {}", next.message());
      break;
    }
    const double movement = (next.plan() - result.plan).lpNorm<1>();
    result.converged = movement <= settled && options.tolerance <= settled;
    result.plan = next.plan();
    // While the plan changes, its marginals need not be more accurate: Newton steps are left for the end.
    options.tolerance = std::clamp(0.1 * movement, exact, options.tolerance);
    solver.set_options(options);
  }
  if (result.converged) result.message = "the plan repeats";
  return result;
}

Alignment aligned(const MatrixRef& u, const MatrixRef& v, double epsilon) {
  const Matrix left = of_unit_size(u), right = of_unit_size(v);
  const Matrix product = Matrix::Constant(left.rows(), right.rows(), 1.0 / double(left.rows() * right.rows()));
  const double unit = linearised_cost(left, right, product).maxCoeff();
  const SoftAlignment soft = entropic_alignment(left, right, epsilon * (unit > 0 ? unit : 1));
  Alignment result{{}, soft.iterations, soft.converged, soft.message};
  const std::vector<Index> partner = assign(-soft.plan).column_of_row;
  for (std::size_t k = 0; k < partner.size(); ++k) {
    if (partner[k] < 0) continue;
    result.links.responses.push_back(Index(k));
    result.links.features.push_back(partner[k]);
  }
  return result;
}

Matrix response_columns(const Problem& problem) {
  Matrix result(problem.responses(), problem.x.cols() + problem.outputs());
  result << problem.x, problem.y;
  return result;
}

}  // namespace unshuffle
