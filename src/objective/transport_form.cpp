#include "objective/transport_form.hpp"

#include "objective/whitened.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle {

namespace {

/// The model with its feature side η, plus an offset in the last column, put through θ.
class ThroughTheta final : public AdditiveModel {
 public:
  ThroughTheta(std::shared_ptr<const Model> inner, const Family* family)
      : owner_(std::move(inner)), inner_(*owner_->additive()), family_(family) {}

  [[nodiscard]] std::string name() const override { return inner_.name(); }
  [[nodiscard]] std::unique_ptr<Model> bound_to(const Problem&) const override {
    return std::make_unique<ThroughTheta>(owner_, family_);
  }
  [[nodiscard]] Index parameters() const override { return inner_.parameters(); }
  [[nodiscard]] std::vector<std::string> parameter_names() const override { return inner_.parameter_names(); }

  [[nodiscard]] Matrix basis(Side side, const MatrixRef& rows) const override {
    if (side == Side::response) return inner_.basis(side, rows);
    const Matrix inside = inner_.basis(side, rows.leftCols(rows.cols() - 1));
    Matrix made(rows.rows(), inside.cols() + 1);
    made << inside, rows.rightCols(1);
    return made;
  }

  [[nodiscard]] Matrix part(Side side, const MatrixRef& rows, const VectorRef& w) const override {
    if (side == Side::response) return inner_.part(side, rows, w);
    Matrix eta = predictor(rows, w);
    if (family_ != nullptr) eta = eta.unaryExpr([&](double one) { return family_->canonical_point(one).theta; });
    return eta;
  }
  void pull_back_part(Side side, const MatrixRef& rows, const VectorRef& w, const MatrixRef& cotangent,
                      Vector& gradient) const override {
    if (side == Side::response) return inner_.pull_back_part(side, rows, w, cotangent, gradient);
    const Matrix through = cotangent.cwiseProduct(slope(rows, w));
    inner_.pull_back_part(side, inside(rows), w, through, gradient);
  }
  [[nodiscard]] Matrix jacobian_part(Side side, const MatrixRef& rows, const VectorRef& w) const override {
    if (side == Side::response) return inner_.jacobian_part(side, rows, w);
    return inner_.jacobian_part(side, inside(rows), w).array().colwise() * slope(rows, w).array();
  }
  void add_curvature_part(Side side, const MatrixRef& rows, const VectorRef& w, const VectorRef& cotangent,
                          Matrix& hessian) const override {
    if (side == Side::response || family_ == nullptr) return;
    const Vector bend =
        predictor(rows, w).unaryExpr([&](double one) { return family_->canonical_point(one).theta_bend; });
    if (bend.isZero(0)) return;
    const Matrix jacobian = inner_.jacobian_part(side, inside(rows), w);
    hessian += jacobian.transpose() * cotangent.cwiseProduct(bend).asDiagonal() * jacobian;
  }

 private:
  [[nodiscard]] static Matrix inside(const MatrixRef& rows) { return rows.leftCols(rows.cols() - 1); }
  [[nodiscard]] Matrix predictor(const MatrixRef& rows, const VectorRef& w) const {
    return inner_.part(Side::feature, inside(rows), w) + rows.rightCols(1);
  }
  [[nodiscard]] Vector slope(const MatrixRef& rows, const VectorRef& w) const {
    if (family_ == nullptr) return Vector::Ones(rows.rows());
    return predictor(rows, w).unaryExpr([&](double one) { return family_->canonical_point(one).theta_slope; });
  }

  std::shared_ptr<const Model> owner_;
  const AdditiveModel& inner_;
  const Family* family_;  ///< Null: η itself.
};

}  // namespace

namespace {

template <class Value>
std::shared_ptr<const Value> borrowed(const Value& value) {
  return {std::shared_ptr<void>(), &value};
}

}  // namespace

TransportForm transport_form(const Problem& problem, const Model& bound, const Family& family) {
  return transport_form(borrowed(problem), borrowed(bound), family);
}

TransportForm transport_form(const Problem& problem, const Model& bound, const FittedLaw& law) {
  return transport_form(borrowed(problem), borrowed(bound), law);
}

TransportForm transport_form(std::shared_ptr<const Problem> problem, std::shared_ptr<const Model> bound,
                             const FittedLaw& law) {
  if (law.noise_covariance.size() == 0)
    return transport_form(std::move(problem), std::move(bound), family_of(law.family));
  WhitenedProblem made = whitened(*problem, std::move(bound), whitening(law.noise_covariance));
  return {std::move(made.problem), std::move(made.model), true};
}

TransportForm transport_form(std::shared_ptr<const Problem> given, std::shared_ptr<const Model> bound,
                             const Family& family) {
  if (family.kind() == FamilyKind::gaussian) return {std::move(given), std::move(bound), true};
  const Problem& problem = *given;
  const RowFacts& facts = problem.facts;
  const bool exact =
      family.canonical() && problem.x.cols() == 0 && facts.trials.size() == 0 && facts.response_offset.size() == 0;
  auto form = std::make_shared<Problem>(problem);
  form->z.conservativeResize(Eigen::NoChange, problem.z.cols() + 1);
  form->z.rightCols(1).setZero();
  if (facts.feature_offset.size() > 0) form->z.rightCols(1) = facts.feature_offset;
  form->z_names.emplace_back("offset");
  form->facts = {};
  if (!exact) {
    for (Index i = 0; i < problem.responses(); ++i)
      form->y(i, 0) = family.linked(problem.y(i, 0), facts.trials.size() > 0 ? facts.trials(i) : 1);
    if (facts.response_offset.size() > 0) form->y.col(0) -= facts.response_offset;
  }
  return {form, std::make_shared<ThroughTheta>(std::move(bound), exact ? &family : nullptr), exact};
}

}  // namespace unshuffle
