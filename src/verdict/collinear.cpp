#include "verdict/collinear.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>

#include "core/gram.hpp"
#include "links/linked.hpp"

namespace unshuffle {

namespace {

/// Columns of ∂f/∂w over all rows, or over a sample of very many; how rows are paired does not matter.
Matrix columns_of(const Problem& problem, const Model& bound) {
  constexpr Index enough = 200'000;
  const Index rows = std::max(problem.responses(), problem.features());
  const Index used = std::min(rows, std::max<Index>(1, enough / problem.outputs()));
  std::vector<Index> responses, features;
  for (Index k = 0; k < used; ++k) {
    const Index row = k * rows / used;
    responses.push_back(row % problem.responses());
    features.push_back(row % problem.features());
  }
  return linked_jacobian(bound, link(problem, bound, responses, features), Vector::Zero(bound.parameters()));
}

}  // namespace

// With an intercept, a combination of columns that is constant over rows is already explained, so columns are centred,
// output by output. They are linearly dependent where their correlation matrix has a zero eigenvalue; the eigenvector
// shows which columns are involved.
std::vector<std::string> collinear_parameters(const Problem& problem, const Model& bound) {
  constexpr double nothing = 1e-10, a_part = 1e-3;
  if (!bound.linear_in_parameters()) return {};
  const std::vector<std::string> names = bound.parameter_names();
  Matrix columns = columns_of(problem, bound);
  const Index rows = columns.rows() / problem.outputs();
  const Vector squares = columns.colwise().squaredNorm();
  if (std::any_of(names.begin(), names.end(), is_intercept)) {
    for (Index k = 0; k < problem.outputs(); ++k) {
      auto part = columns.middleRows(k * rows, rows);
      part.rowwise() -= part.colwise().mean().eval();
    }
  }
  std::vector<Index> varying;
  for (Index k = 0; k < columns.cols(); ++k) {
    const double square = columns.col(k).squaredNorm();
    if (!(square > 1e-24 * squares(k))) continue;  // constant, as far as rounding tells
    columns.col(k) /= std::sqrt(square);
    varying.push_back(k);
  }
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(gram(Matrix(columns(Eigen::all, varying))));
  std::vector<std::string> found;
  for (std::size_t k = 0; k < varying.size(); ++k) {
    const Index at = Index(k);
    bool takes_part = false;
    for (Index v = 0; v < eigen.eigenvalues().size() && eigen.eigenvalues()(v) < nothing; ++v)
      takes_part = takes_part || std::abs(eigen.eigenvectors()(at, v)) > a_part;
    if (takes_part) found.push_back(names[std::size_t(varying[k])]);
  }
  return found;
}

}  // namespace unshuffle
