#include "objective/single_pairs.hpp"

#include "core/gram.hpp"
#include "unshuffle/model/model.hpp"

namespace unshuffle {
namespace {

void pull_back_pairs(const Model& model, const Matrix& x, const Matrix& z, const VectorRef& w, const Matrix& cotangent,
                     Vector& gradient) {
  if (const AdditiveModel* sum = model.additive()) {
    sum->pull_back_part(Side::feature, z, w, cotangent, gradient);
    if (x.cols() > 0) sum->pull_back_part(Side::response, x, w, cotangent, gradient);
    return;
  }
  for (Index k = 0; k < z.rows(); ++k)
    model.pull_back(Matrix(x.row(k)), Matrix(z.row(k)), w, Matrix(cotangent.row(k)), gradient);
}

}  // namespace

bool SinglePairs::can_be_told(const EvaluatorOptions& options) {
  const auto [rows, columns] = transport::of_sizes(options.response_side, options.feature_side, 1, 1);
  const bool exact =
      std::holds_alternative<transport::Exact>(rows) && std::holds_alternative<transport::Exact>(columns);
  const auto keeps_mass = [](const transport::MarginalPolicy& policy) {
    return std::holds_alternative<transport::Exact>(policy) || std::holds_alternative<transport::Ball>(policy);
  };
  return exact || (options.objective == Objective::transport && keeps_mass(rows) && keeps_mass(columns));
}

void SinglePairs::add(Index response_row, Index feature_row, double scale) {
  responses_.push_back(response_row);
  features_.push_back(feature_row);
  scales_.push_back(scale);
}

void SinglePairs::evaluate(const PairTables& tables, const VectorRef& w) {
  if (size() == 0) return;
  const Matrix x = tables.x.cols() > 0 ? Matrix(tables.x(responses_, Eigen::all)) : Matrix(Index(size()), 0);
  residual_ =
      tables.y(responses_, Eigen::all) - predict_pairs(tables.model, x, Matrix(tables.z(features_, Eigen::all)), w);
  cost_ = residual_.rowwise().squaredNorm();
}

void SinglePairs::add_to(Evaluation& evaluation, Objective objective, double epsilon) const {
  if (size() == 0) return;
  const Eigen::Map<const Vector> scale(scales_.data(), Index(size()));
  const double cost = scale.dot(cost_);
  evaluation.transport_cost += cost;
  // Of one entry that is one, Γ(log Γ - 1) is -1.
  evaluation.objective += objective == Objective::entropic ? cost - epsilon * scale.sum() : cost;
}

void SinglePairs::pull_back(const PairTables& tables, const VectorRef& w, Vector& gradient) const {
  if (size() == 0) return;
  const Eigen::Map<const Vector> scale(scales_.data(), Index(size()));
  const Matrix x = tables.x.cols() > 0 ? Matrix(tables.x(responses_, Eigen::all)) : Matrix(Index(size()), 0);
  pull_back_pairs(tables.model, x, Matrix(tables.z(features_, Eigen::all)), w,
                  Matrix(-2 * (scale.asDiagonal() * residual_)), gradient);
}

void SinglePairs::add_slopes(Matrix& on_t, Matrix& on_s) const {
  for (std::size_t k = 0; k < size(); ++k) {
    const double slope = 2 * scales_[k] * residual_(Index(k), 0);
    on_t(responses_[k], 0) += slope;
    on_s(features_[k], 0) -= slope;
  }
}

Matrix SinglePairs::hessian(const Matrix& t_jacobian, const Matrix& s_jacobian) const {
  const Eigen::Map<const Vector> scale(scales_.data(), Index(size()));
  return weighted_gram(t_jacobian(responses_, Eigen::all) - s_jacobian(features_, Eigen::all), 2 * scale);
}

void SinglePairs::link(SoftLinks& links) const {
  for (std::size_t k = 0; k < size(); ++k) links.response_mass[responses_[k]] = links.feature_mass[features_[k]] = 1;
}

}  // namespace unshuffle
