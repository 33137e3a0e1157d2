#include "likelihood/family_fit.hpp"

#include <Eigen/QR>
#include <cmath>

#include "core/balanced_inverse.hpp"
#include "core/gram.hpp"

namespace unshuffle {

FamilyRows family_rows(const Problem& problem, const Model& bound, const Links& links,
                       const CandidateLinks& candidates) {
  const RowFacts& facts = problem.facts;
  FamilyRows rows;
  rows.design = linked_jacobian(bound, candidates.rows, Vector::Zero(bound.parameters()));
  rows.y = candidates.rows.y.col(0);
  rows.offset = Vector::Zero(rows.size());
  if (facts.response_offset.size() > 0) rows.offset += facts.response_offset(links.responses);
  if (facts.feature_offset.size() > 0) rows.offset += facts.feature_offset(links.features);
  rows.trials = facts.trials.size() > 0 ? Vector(facts.trials(links.responses)) : Vector::Ones(rows.size());
  rows.weights = candidates.weights_or_one();
  rows.known = candidates.known;
  return rows;
}

Shape shape_in(const Family& family, const Vector& theta, Index parameters) {
  Shape shape = Shape::Zero();
  for (Index k = 0; k < family.shapes(); ++k) shape(k) = theta(parameters + k);
  return shape;
}

RowLikelihood family_likelihood(const Family& family, const FamilyRows& rows, const Vector& weights) {
  std::vector<Coordinate> coordinates{{rows.design, rows.offset}};
  for (Index k = 0; k < family.shapes(); ++k) coordinates.emplace_back();
  return {std::move(coordinates), weights, [&family, &rows](Index row, const Eigen::Vector4d& at) {
            const LogDensity here = family.log_density(rows.at(row, at(0)), at.segment<2>(1));
            RowTerm term;
            term.value = here.value;
            term.gradient.head<3>() = here.gradient;
            term.hessian.topLeftCorner<3, 3>() = here.hessian;
            return term;
          }};
}

Vector first_guess(const Family& family, const FamilyRows& rows, const Vector& weights) {
  Vector target(rows.size());
  for (Index i = 0; i < rows.size(); ++i) target(i) = family.linked(rows.y(i), rows.trials(i)) - rows.offset(i);
  const Matrix matrix = weighted_gram(rows.design, weights);
  const Vector right = rows.design.transpose() * weights.cwiseProduct(target);
  const Index p = rows.design.cols();
  Vector theta(p + family.shapes());
  theta.head(p) = balanced_inverse(matrix) * right;
  const Shape shape = family.first_shape(rows.y, rows.design * theta.head(p) + rows.offset);
  for (Index k = 0; k < family.shapes(); ++k) theta(p + k) = shape(k);
  return theta;
}

double deviance_of(const Family& family, const FamilyRows& rows, const Vector& eta, const Shape& shape) {
  double sum = 0;
  for (Index i = 0; i < rows.size(); ++i) sum += rows.weights(i) * family.deviance(rows.at(i, eta(i)), shape);
  return sum;
}

Matrix expected_information(const Family& family, const FamilyRows& rows, const Vector& eta, const Shape& shape) {
  Vector each(rows.size());
  for (Index i = 0; i < rows.size(); ++i) each(i) = rows.weights(i) * family.information(rows.at(i, eta(i)), shape);
  return weighted_gram(rows.design, each);
}

namespace {

/// log of Σ v (y-μ)²/V(μ) over the degrees of freedom, with V at φ = 1.
double pearson_dispersion(const Family& family, const FamilyRows& rows, const Vector& eta) {
  double sum = 0;
  for (Index i = 0; i < rows.size(); ++i) {
    const double off = rows.y(i) - rows.trials(i) * family.mean(eta(i));
    sum += rows.weights(i) * off * off / family.variance(eta(i), rows.trials(i), Shape::Zero());
  }
  return std::log(sum / std::max(1.0, double(rows.size() - rows.design.cols())));
}

}  // namespace

FamilyFit fit_family(const Family& family, const FamilyRows& rows) {
  const Index p = rows.design.cols();
  const RowLikelihood likelihood = family_likelihood(family, rows, rows.weights);
  const RowOptimum found = most_likely(likelihood, first_guess(family, rows, rows.weights));
  FamilyFit fit;
  fit.parameters = found.theta.head(p);
  fit.shape = shape_in(family, found.theta, p);
  fit.converged = found.converged;
  fit.unbounded = found.unbounded;
  fit.iterations = found.iterations;
  fit.log_likelihood = found.log_likelihood;
  const Vector eta = rows.design * fit.parameters + rows.offset;
  const Matrix inverse = balanced_inverse(found.information);
  fit.shape_errors = inverse.diagonal().tail(family.shapes()).cwiseMax(0).cwiseSqrt();
  if (family.canonical()) {
    if (family.shapes() > 0) fit.shape(0) = pearson_dispersion(family, rows, eta);
    fit.covariance = balanced_inverse(expected_information(family, rows, eta, fit.shape));
  } else {
    fit.covariance = inverse.topLeftCorner(p, p);
  }
  fit.deviance = deviance_of(family, rows, eta, fit.shape);
  return fit;
}

}  // namespace unshuffle
