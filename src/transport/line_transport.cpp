#include "transport/line_transport.hpp"

#include <stdexcept>

#include "core/gram.hpp"

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
    measure_ = {};  // free its memory before allocating as much again
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

LineTransport::LineTransport(const LineOptions& options)
    : turned_(std::holds_alternative<Sampled>(options.column_policy)), solver_([&] {
        validate(options.row_policy, options.column_policy);
        LineOptions laid_out = options;
        if (turned_ && options.row_cost) throw std::logic_error("rows that pay cannot be laid out as columns");
        if (turned_) std::swap(laid_out.row_policy, laid_out.column_policy);
        return laid_out;
      }()) {}

LineReport LineTransport::solve(const VectorRef& t, const VectorRef& row_weights, const VectorRef& s,
                                const VectorRef& column_weights, double epsilon) {
  PointsInMemory rows(t, row_weights, t_), columns(s, column_weights, s_);
  return turned_ ? solver_.solve(columns, rows, epsilon) : solver_.solve(rows, columns, epsilon);
}

void LineTransport::forget() {
  solver_.forget();
  t_ = {};
  s_ = {};
}

Vector LineTransport::gradient(Side side, Objective objective) {
  return measure(side).interpolate(solver_.nodes().evaluate(laid(side), measure(side).grid(), objective).gradient);
}

Vector LineTransport::potential(Side side) {
  return measure(side).interpolate(
      solver_.nodes().evaluate(laid(side), measure(side).grid(), Objective::entropic).potential);
}

Vector LineTransport::log_ratio(Side side) {
  return measure(side).interpolate(
      solver_.nodes().evaluate(laid(side), measure(side).grid(), Objective::entropic).log_ratio);
}

Matrix LineTransport::hessian(const MatrixRef& t_jacobian, const VectorRef& row_weights, const MatrixRef& s_jacobian,
                              const VectorRef& column_weights, Objective objective) {
  auto spread = [&](Side side, const MatrixRef& jacobian, const VectorRef& weights) {
    Matrix on_grid = Matrix::Zero(measure(side).grid().size(), jacobian.cols());
    for (Index k = 0; k < jacobian.cols(); ++k)
      if (!jacobian.col(k).isZero(0)) on_grid.col(k) = measure(side).spread(weighted(jacobian.col(k), weights));
    return on_grid;
  };
  Momentum momentum{spread(Side::response, t_jacobian, row_weights), spread(Side::feature, s_jacobian, column_weights)};
  if (turned_) std::swap(momentum.rows, momentum.columns);
  LineCurvature curvature(solver_, objective);
  Matrix hessian =
      curvature.reaction(measure(laid(Side::response)).grid(), measure(laid(Side::feature)).grid(), momentum);
  auto add_own = [&](Side side, const MatrixRef& jacobian, const VectorRef& weights) {
    const Vector slope = measure(side).interpolate(curvature.slope(laid(side), measure(side).grid()));
    hessian += weighted_gram(jacobian, weighted(slope, weights));
  };
  if (!t_jacobian.isZero(0)) add_own(Side::response, t_jacobian, row_weights);
  add_own(Side::feature, s_jacobian, column_weights);
  return hessian;
}

}  // namespace unshuffle::transport
