#include "methods/gw.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "methods/unlinked.hpp"
#include "unshuffle/error.hpp"
#include "unshuffle/fit/assignment.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle {

namespace {

Matrix centred(const MatrixRef& rows) { return rows.rowwise() - rows.colwise().mean(); }

// With a_i = |u_i|², b_i = |v_i|² of centred rows,
//   Σ_ik |u_i - u_k|² |v_i - v_k|² = 2n Σ a_i b_i + 2 Σa Σb + 4 |Uᵀ V|²,
// the mixed terms vanish with the means. The rest of the cost does not depend on the matching.
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

/// Everything known beside the response, and the response: the side of D1.
Matrix response_side(const Problem& problem, const std::vector<Index>& rows) {
  Matrix made(Index(rows.size()), problem.x.cols() + problem.outputs());
  made << problem.x(rows, Eigen::all), problem.y(rows, Eigen::all);
  return made;
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
  Matrix made = (d.left * (-2 * (d.right.transpose() * plan * e.left))) * e.right.transpose();
  made.colwise() += d.squares_times(plan.rowwise().sum());
  made.rowwise() += e.squares_times(plan.colwise().sum()).transpose();
  return 2 * made;
}

SoftAlignment entropic_alignment(const MatrixRef& u, const MatrixRef& v, double epsilon, int max_iterations) {
  const Index n = u.rows();
  const Index m = v.rows();
  constexpr double exact = 1e-8, settled = 1e-6;
  transport::SolverOptions options{.epsilon = epsilon, .relative = false, .tolerance = 1e-2};
  transport::Solver solver(options);
  SoftAlignment made;
  made.plan = Matrix::Constant(n, m, 1.0 / double(n * m));
  made.message = "all iterations taken before the plan settled";
  while (made.iterations < max_iterations && !made.converged) {
    const transport::Plan next = solver.solve(linearised_cost(u, v, made.plan));
    ++made.iterations;
    if (!next.converged) {
      made.message = fmt::format("the transport problem did not converge: {}", next.message);
      break;
    }
    const double movement = (next.coupling - made.plan).lpNorm<1>();
    made.converged = movement <= settled && options.tolerance <= settled;
    made.plan = next.coupling;
    // While the plan moves, its marginals need not be better than that: Newton's steps come at the end only.
    options.tolerance = std::clamp(0.1 * movement, exact, options.tolerance);
    solver.set_options(options);
  }
  if (made.converged) made.message = "the plan repeats";
  return made;
}

Estimate estimate_sliced_gw(const MethodInput& input) {
  const UnlinkedRows rows(input.problem, input.bound);
  Links links;
  double distortion = 0;
  std::uint64_t stream = 1ULL << 46U;
  for (const Block& block : rows.blocks()) {
    if (block.response_rows.size() != block.feature_rows.size()) {
      throw InvalidInput(
          fmt::format("sliced-gw needs as many responses as features in every group; {} and {} were given",
                      block.response_rows.size(), block.feature_rows.size()));
    }
    const Matrix u = response_side(input.problem, block.response_rows);
    const Matrix v = input.problem.z(block.feature_rows, Eigen::all);
    const std::vector<Index> partner =
        sliced_alignment(u, v, input.options.gw_slices, RandomStream(input.options.seed, stream++));
    distortion += gromov_wasserstein_cost(u, v(partner, Eigen::all)) * double(partner.size());
    for (std::size_t k = 0; k < partner.size(); ++k) {
      append(links, {{block.response_rows[k]}, {block.feature_rows[std::size_t(partner[k])]}});
    }
  }
  Estimate estimate = regression_on(input, rows, links, "alignment");
  forget_std_errors(estimate);
  estimate.candidates.front().message +=
      fmt::format(" that distort squared distances by {:.4g}", std::sqrt(distortion / double(links.size())));
  return estimate;
}

Estimate estimate_sinkhorn_gw(const MethodInput& input) {
  const UnlinkedRows rows(input.problem, input.bound);
  Links links;
  Candidate told;
  told.converged = true;
  for (const Block& block : rows.blocks()) {
    const Matrix u = of_unit_size(response_side(input.problem, block.response_rows));
    const Matrix v = of_unit_size(input.problem.z(block.feature_rows, Eigen::all));
    const Matrix product = Matrix::Constant(u.rows(), v.rows(), 1.0 / double(u.rows() * v.rows()));
    const double unit = linearised_cost(u, v, product).maxCoeff();
    const SoftAlignment soft = entropic_alignment(u, v, input.options.gw_epsilon * (unit > 0 ? unit : 1));
    const std::vector<Index> partner = assign(-soft.plan).column_of_row;
    for (std::size_t k = 0; k < partner.size(); ++k) {
      if (partner[k] < 0) continue;
      append(links, {{block.response_rows[k]}, {block.feature_rows[std::size_t(partner[k])]}});
    }
    told.iterations = std::max(told.iterations, soft.iterations);
    if (soft.converged) continue;
    told.converged = false;
    told.message = soft.message;
  }
  Estimate estimate = regression_on(input, rows, links, "alignment");
  Candidate& answer = estimate.candidates.front();
  answer.converged = told.converged;
  answer.iterations = told.iterations;
  if (!told.converged) answer.message = told.message;
  forget_std_errors(estimate);
  return estimate;
}

}  // namespace unshuffle
