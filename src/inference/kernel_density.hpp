// What responses look like when the features say nothing of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "fit/random.hpp"

namespace unshuffle {

/// A Gaussian kernel estimate on at most a few hundred centres, with Silverman's bandwidth per output.
class KernelDensity {
 public:
  KernelDensity(const Matrix& values, std::uint64_t seed) {
    constexpr Index most_centres = 400;
    RandomStream random(seed, 1ULL << 47U);
    const std::vector<Index> chosen = sample_rows(values.rows(), std::min(most_centres, values.rows()), random);
    const auto o = static_cast<double>(values.cols());
    const double shrink = std::pow(4 / ((o + 2) * double(chosen.size())), 1 / (o + 4));
    bandwidth_ = ((values.rowwise() - values.colwise().mean()).colwise().squaredNorm() / double(values.rows()))
                     .cwiseSqrt()
                     .transpose() *
                 shrink;
    bandwidth_ = bandwidth_.unaryExpr([](double h) { return h > 0 ? h : 1.0; });
    centres_ = values(chosen, Eigen::all) * bandwidth_.cwiseInverse().asDiagonal();
    log_unit_ =
        -0.5 * o * std::log(2 * std::numbers::pi) - bandwidth_.array().log().sum() - std::log(double(chosen.size()));
  }

  [[nodiscard]] Vector log_at(const Matrix& values) const {
    const Matrix scaled = values * bandwidth_.cwiseInverse().asDiagonal();
    Vector logs(values.rows());
#pragma omp parallel for schedule(static)
    for (Index i = 0; i < values.rows(); ++i) {
      const Vector squares = (centres_.rowwise() - scaled.row(i)).rowwise().squaredNorm();
      const double least = squares.minCoeff();
      logs(i) = log_unit_ - 0.5 * least + std::log((-0.5 * (squares.array() - least)).exp().sum());
    }
    return logs;
  }

 private:
  Matrix centres_;
  Vector bandwidth_;
  double log_unit_ = 0;
};

}  // namespace unshuffle
