#include "starts/distance.hpp"

#include <cmath>

#include "core/random.hpp"
#include "core/squares.hpp"

namespace unshuffle {

PredictiveDistance::PredictiveDistance(const Problem& problem, const Model& bound) : bound_(bound) {
  constexpr Index most_rows = 1000;
  const Index rows = std::min(most_rows, std::max(problem.responses(), problem.features()));
  RandomStream random(0, Stream::predictive_distance);
  std::vector<Index> responses;
  std::vector<Index> features;
  for (Index k = 0; k < rows; ++k) {
    responses.push_back(random.below(problem.responses()));
    features.push_back(random.below(problem.features()));
  }
  if (problem.x.cols() > 0) x_ = bound.basis(Side::response, problem.x(responses, Eigen::all));
  z_ = bound.basis(Side::feature, problem.z(features, Eigen::all));
  unit_ = std::sqrt(squares_about_mean(problem.y)) / std::sqrt(double(problem.responses()));
  if (!(unit_ > 0)) unit_ = 1;
}

double PredictiveDistance::operator()(const VectorRef& a, const VectorRef& b) const {
  const Matrix difference = predict_pairs(bound_, x_, z_, a) - predict_pairs(bound_, x_, z_, b);
  return difference.norm() / std::sqrt(double(difference.rows())) / unit_;
}

}  // namespace unshuffle
