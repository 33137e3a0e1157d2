#include "starts/distance.hpp"

#include <cmath>

#include "core/squares.hpp"
#include "links/linked.hpp"

namespace unshuffle {

PredictiveDistance::PredictiveDistance(const Problem& problem, const Model& bound) : bound_(bound) {
  constexpr Index most_rows = 1000;
  const Index rows = std::min(most_rows, std::max(problem.responses(), problem.features()));
  const Links drawn = links_at_random(problem, rows, Stream::predictive_distance);
  if (problem.x.cols() > 0) x_ = bound.basis(Side::response, problem.x(drawn.responses, Eigen::all));
  z_ = bound.basis(Side::feature, problem.z(drawn.features, Eigen::all));
  unit_ = std::sqrt(squares_about_mean(problem.y)) / std::sqrt(double(problem.responses()));
  if (!(unit_ > 0)) unit_ = 1;
}

double PredictiveDistance::operator()(const VectorRef& a, const VectorRef& b) const {
  const Matrix difference = predict_pairs(bound_, x_, z_, a) - predict_pairs(bound_, x_, z_, b);
  return difference.norm() / std::sqrt(double(difference.rows())) / unit_;
}

}  // namespace unshuffle
