#include "transport/line_transport.hpp"

#include "transport/gram.hpp"

namespace unshuffle::transport {
namespace {

Vector weighted(const VectorRef& x, const VectorRef& weights) {
  return weights.size() > 0 ? Vector(x.cwiseProduct(weights)) : Vector(x / static_cast<double>(x.size()));
}

class PointsInMemory final : public LinePoints {
 public:
  /// `measure` is kept where the same points are compressed by the same rule again.
  PointsInMemory(const VectorRef& position, const VectorRef& weight, CompressedMeasure& measure)
      : position_(position), weight_(weight), measure_(measure) {}

  [[nodiscard]] Range range() const override { return {position_.minCoeff(), position_.maxCoeff()}; }
  void compress(const CompressionRule& rule) override {
    // Without response-side parameters t is the same at every w.
    if (measure_.is_of(position_, weight_, rule)) return;
    measure_ = {};  // give its memory back before taking as much again
    measure_ = CompressedMeasure(position_, weight_, rule);
  }
  [[nodiscard]] const CompressedMeasure& measure() const override { return measure_; }
  [[nodiscard]] bool exact() const override { return measure_.exact(); }
  [[nodiscard]] Vector interpolated_width() const override { return measure_.interpolated_width(); }

 private:
  const VectorRef &position_, &weight_;
  CompressedMeasure& measure_;
};

}  // namespace

LineReport LineTransport::solve(const VectorRef& t, const VectorRef& row_weights, const VectorRef& s,
                                const VectorRef& column_weights, double epsilon) {
  PointsInMemory rows(t, row_weights, rows_), columns(s, column_weights, columns_);
  return solver_.solve(rows, columns, epsilon);
}

void LineTransport::forget() {
  solver_.forget();
  rows_ = {};
  columns_ = {};
}

Vector LineTransport::gradient(Side side, Objective objective) {
  return measure(side).interpolate(solver_.nodes().evaluate(side, measure(side).grid(), objective).gradient);
}

Vector LineTransport::potential(Side side) {
  return measure(side).interpolate(solver_.nodes().evaluate(side, measure(side).grid(), Objective::entropic).potential);
}

Vector LineTransport::log_ratio(Side side) {
  return measure(side).interpolate(solver_.nodes().evaluate(side, measure(side).grid(), Objective::entropic).log_ratio);
}

Matrix LineTransport::hessian(const MatrixRef& t_jacobian, const VectorRef& row_weights, const MatrixRef& s_jacobian,
                              const VectorRef& column_weights, Objective objective) {
  auto spread = [&](Side side, const MatrixRef& jacobian, const VectorRef& weights) {
    Matrix on_grid = Matrix::Zero(measure(side).grid().size(), jacobian.cols());
    for (Index k = 0; k < jacobian.cols(); ++k)
      if (!jacobian.col(k).isZero(0)) on_grid.col(k) = measure(side).spread(weighted(jacobian.col(k), weights));
    return on_grid;
  };
  const Momentum momentum{spread(Side::response, t_jacobian, row_weights),
                          spread(Side::feature, s_jacobian, column_weights)};
  LineCurvature curvature(solver_, objective);
  Matrix hessian = curvature.reaction(rows_.grid(), columns_.grid(), momentum);
  auto add_own = [&](Side side, const MatrixRef& jacobian, const VectorRef& weights) {
    const Vector slope = measure(side).interpolate(curvature.slope(side, measure(side).grid()));
    hessian += weighted_gram(jacobian, weighted(slope, weights));
  };
  if (!t_jacobian.isZero(0)) add_own(Side::response, t_jacobian, row_weights);
  add_own(Side::feature, s_jacobian, column_weights);
  return hessian;
}

}  // namespace unshuffle::transport
