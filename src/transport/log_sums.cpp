#include "transport/log_sums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "transport/cloud_tiles.hpp"

namespace unshuffle::transport {
namespace {

class Summation {
 public:
  Summation(const PointCloud& at, const PointCloud& of, const Vector& v, double epsilon)
      : at_(at),
        of_(of),
        exponents_(v.array() + of.weights().array().log()),
        largest_(of.largest_in_boxes(exponents_)),
        inverse_epsilon_(1 / epsilon),
        log_negligible_(std::log(1e-12 / static_cast<double>(of.size()))) {}

  [[nodiscard]] Eigen::ArrayXd of_leaf(Index leaf) const {
    const RowPanel rows_here(at_, at_.boxes()[at(leaf)]);
    const std::vector<Index> boxes = boxes_that_matter(leaf);
    RowNumbers largest, sums, exponent;
    auto most = largest.first(rows_here.padded), sum = sums.first(rows_here.padded);
    auto here = exponent.first(rows_here.padded);
    most.setConstant(minus_infinity);
    for (const bool summing : {false, true}) {
      for (const Index b : boxes) {
        const CloudBox& box = of_.boxes()[at(b)];
        for (Index j = box.first; j < box.first + box.count; ++j) {
          squared_distances(rows_here, of_, j, exponent);
          here = exponents_[j] - here * inverse_epsilon_;
          if (summing)
            sum += (here - most).exp();
          else
            most = most.max(here);
        }
      }
    }
    return (most + sum.log()).head(rows_here.count);
  }

 private:
  [[nodiscard]] std::vector<Index> boxes_that_matter(Index leaf) const {
    // Some point of every box has its largest exponent.
    double least = minus_infinity;
    const auto most_of = [&](Index b) {
      return largest_[b] - least_squared_distance(at_, leaf, of_, b) * inverse_epsilon_;
    };
    std::vector<Index> open{0}, found;
    while (!open.empty()) {
      const Index b = open.back();
      open.pop_back();
      if (most_of(b) < least) continue;
      least = std::max(least, largest_[b] - largest_squared_distance(at_, leaf, of_, b) * inverse_epsilon_);
      const CloudBox& box = of_.boxes()[at(b)];
      if (box.is_leaf()) continue;
      const bool left_first = most_of(box.left) > most_of(box.right);
      open.push_back(left_first ? box.right : box.left);
      open.push_back(left_first ? box.left : box.right);
    }
    open.push_back(0);
    while (!open.empty()) {
      const Index b = open.back();
      open.pop_back();
      if (most_of(b) < least + log_negligible_) continue;
      const CloudBox& box = of_.boxes()[at(b)];
      if (box.is_leaf()) {
        found.push_back(b);
      } else {
        open.push_back(box.right);
        open.push_back(box.left);
      }
    }
    return found;
  }

  const PointCloud &at_, &of_;
  Vector exponents_, largest_;
  double inverse_epsilon_, log_negligible_;
};

}  // namespace

Vector log_sums(const PointCloud& targets, const PointCloud& of, const Vector& v, double epsilon) {
  const Summation summation(targets, of, v, epsilon);
  Vector sums(targets.size());
  const auto leaves = static_cast<Index>(targets.leaves().size());
  constexpr double worth_threads = 50000;
  const double pairs = static_cast<double>(targets.size()) * static_cast<double>(of.size());
#pragma omp parallel for schedule(dynamic, 4) if (pairs > worth_threads)
  for (Index k = 0; k < leaves; ++k) {
    const CloudBox& box = targets.leaf(k);
    sums.segment(box.first, box.count) = summation.of_leaf(targets.leaves()[at(k)]);
  }
  return sums;
}

}  // namespace unshuffle::transport
