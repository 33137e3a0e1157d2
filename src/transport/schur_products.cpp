#include "transport/schur_products.hpp"

#include <algorithm>

#include "transport/conjugate_gradients.hpp"
#include "transport/dense_products.hpp"

namespace unshuffle::transport {
namespace {

/// Entries of Γ below this share of their row are left out where the others are few. A Newton step does not need them,
/// and the adjoint is refined with all of Γ.
constexpr double least_share_of_row = 1e-12;
/// Time of a multiplication and addition in a product with a vector, in a product with a list of entries and in a
/// scattered product of S's large entries, relative to one inside a matrix product. bench_product_times measured 2.9 to
/// 5.3, 15 to 22 and 22 to 72 for 300 to 2000 columns; what matters is where the products are small enough to compete.
constexpr double in_vector_product = 3, in_list = 20, scattered = 20;
/// Fewer of the entries than this are kept as a list: from there on a product with a matrix is faster.
constexpr double few_entries = 0.12;  // somewhat below in_vector_product / in_list

}  // namespace

SchurProducts::SchurProducts(const ScaledPlan& plan, const Vector& inverse_a1, const Vector& a2)
    : k_(plan.k),
      weight_(plan.scale.cwiseAbs2().cwiseProduct(inverse_a1)),
      a2_((a2.array() > 0).select(a2.array(), 1.0)) {
  const Eigen::ArrayXd floor =
      (plan.scale.array() > 0).select(least_share_of_row * plan.row_sums.array() / plan.scale.array(), 1.0);
  Vector diagonal(k_.cols());
#pragma omp parallel for schedule(static) if (k_.size() > 100000)
  for (Index j = 0; j < k_.cols(); ++j) diagonal[j] = a2_[j] - (k_.col(j).array().square() * weight_.array()).sum();
  // S is singular; where a column has a partner of its own, its diagonal is rounding.
  inverse_diagonal_ = diagonal.cwiseMax(1e-12 * a2_).cwiseInverse();
  constexpr Index every = 8;
  double kept = 0;
  for (Index j = 0; j < k_.cols(); j += every) kept += static_cast<double>((k_.col(j).array() > floor).count());
  kept *= static_cast<double>(k_.cols()) / static_cast<double>((k_.cols() + every - 1) / every);
  const double n = static_cast<double>(k_.rows()), m = static_cast<double>(k_.cols());
  const bool sparse = kept < few_entries * n * m;
  if (sparse) keep_large_entries(floor, kept);
  const double product = 2 * (sparse ? in_list * kept : in_vector_product * n * m);
  const double factor = m * m * m / 6 + std::min(n * m * m, scattered * kept * kept / n) / 2;
  most_ = static_cast<Index>(factor / product);
}

void SchurProducts::keep_large_entries(const Eigen::ArrayXd& floor, double expected) {
  large_.resize(k_.rows(), k_.cols());
  large_.reserve(static_cast<Index>(1.2 * expected) + k_.rows());
  for (Index j = 0; j < k_.cols(); ++j) {
    large_.startVec(j);
    for (Index i = 0; i < k_.rows(); ++i)
      if (k_(i, j) > floor[i]) large_.insertBack(i, j) = k_(i, j);
  }
  large_.finalize();
}

Vector SchurProducts::times(const Vector& y) const {
  if (large_.nonZeros() > 0) {
    const Vector by_row = weight_.cwiseProduct(large_ * y);
    return a2_.cwiseProduct(y) - large_.transpose() * by_row;
  }
  const Vector by_row = weight_.cwiseProduct(dense_times(k_, y));
  return a2_.cwiseProduct(y) - dense_transposed_times(k_, by_row);
}

bool SchurProducts::solve(Vector& b, double share) const {
  const auto product = [&](const Vector& y) { return times(y); };
  const auto approximately = [&](const Vector& r) -> Vector { return inverse_diagonal_.cwiseProduct(r); };
  // Convergence speeds up on the way, so this is less than a quarter.
  constexpr double least_progress = 0.15;
  Iterated found = conjugate_gradients(product, approximately, b, {share, most_, least_progress});
  b = std::move(found.x);
  return found.reached;
}

}  // namespace unshuffle::transport
