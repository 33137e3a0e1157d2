#include <Eigen/Eigenvalues>

#include "transport/compress.hpp"

namespace unshuffle::transport {

// The monic polynomials orthogonal under the measure satisfy π_{k+1} = (y - α_k) π_k - β_k π_{k-1} with
//   α_k = <yπ_k, π_k>/<π_k, π_k>,   β_k = <π_k, π_k>/<π_{k-1}, π_{k-1}>.
// Nodes are the eigenvalues of the symmetric tridiagonal matrix (α; √β), weights the squared first components of its
// eigenvectors times the total mass (Golub & Welsch 1969; docs/mathematics.md §4.2). When β_k vanishes the measure has
// k points and the k-point rule is the measure itself.
Quadrature gauss_quadrature(const VectorRef& position, const VectorRef& weight, int order) {
  const auto y = position.array();
  const auto w = weight.array();
  const double mass = w.sum();
  Vector diagonal(order), off_diagonal(order);
  Eigen::ArrayXd previous = Eigen::ArrayXd::Zero(y.size()), current = Eigen::ArrayXd::Ones(y.size()), weighted;
  double norm = mass, beta = 0;
  int found = 0;
  for (int k = 0; k < order; ++k) {
    weighted = w * current.square();
    const double next_norm = k == 0 ? mass : weighted.sum();
    if (k > 0) {
      beta = next_norm / norm;
      if (!(beta > 1e-20)) break;  // points within 1e-10 of the nodes found so far: second-order small
      off_diagonal[k - 1] = std::sqrt(beta);
    }
    norm = next_norm;
    diagonal[k] = (weighted * y).sum() / norm;
    found = k + 1;
    previous = (y - diagonal[k]) * current - beta * previous;
    previous.swap(current);
  }
  Eigen::SelfAdjointEigenSolver<Matrix> solver;
  solver.computeFromTridiagonal(diagonal.head(found), off_diagonal.head(std::max(found - 1, 0)));
  return {solver.eigenvalues(), mass * solver.eigenvectors().row(0).array().square().matrix().transpose()};
}

}  // namespace unshuffle::transport
