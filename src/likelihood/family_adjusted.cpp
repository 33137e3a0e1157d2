#include "likelihood/family_adjusted.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>

#include "core/gram.hpp"
#include "likelihood/cox.hpp"

namespace unshuffle {

namespace {

constexpr int newton_steps = 200;

/// Open links of a block, within which wrong ones point elsewhere.
class Blocks {
 public:
  explicit Blocks(const StatedRate& wrong) : wrong_(wrong), share_(wrong.rate) {
    Index count = 1;
    for (const Index b : wrong.block) count = std::max(count, b + 1);
    size_ = Vector::Zero(count);
    for (Index i = 0; i < share_.size(); ++i)
      if (open(i)) ++size_(block(i));
    for (Index i = 0; i < share_.size(); ++i) share_(i) *= excess(i);
  }

  /// a of every link.
  [[nodiscard]] const Vector& share() const { return share_; }
  /// ∂a/∂α.
  [[nodiscard]] double excess(Index i) const {
    const double n = size_(block(i));
    return open(i) && n > 1 ? n / (n - 1) : 0;
  }
  [[nodiscard]] Index block(Index i) const { return wrong_.block.empty() ? 0 : wrong_.block[std::size_t(i)]; }
  [[nodiscard]] double size(Index i) const { return std::max(1.0, size_(block(i))); }

  /// Means over the open links of its block, of every link.
  [[nodiscard]] Matrix means(const Matrix& values) const {
    Matrix sums = Matrix::Zero(size_.size(), values.cols());
    for (Index i = 0; i < values.rows(); ++i)
      if (open(i)) sums.row(block(i)) += values.row(i);
    Matrix made = values;
    for (Index i = 0; i < values.rows(); ++i)
      if (open(i)) made.row(i) = sums.row(block(i)) / size(i);
    return made;
  }
  /// (1 - a) v + a v̄.
  [[nodiscard]] Matrix mixed(const Matrix& values) const {
    return values + share_.asDiagonal() * (means(values) - values);
  }

 private:
  [[nodiscard]] bool open(Index i) const { return wrong_.rate(i) > 0; }

  const StatedRate& wrong_;
  Vector share_;
  Vector size_;
};

/// Everything about the mean responses at some coefficients.
struct Means {
  Vector mean, variance;  ///< Of a response with the right link.
  Vector expected;        ///< μ̃.
  Matrix slope;           ///< ∂μ/∂w.
  Matrix expected_slope;  ///< ∂μ̃/∂w.
  Shape shape = Shape::Zero();
};

class Equations {
 public:
  Equations(const Family& family, const FamilyRows& rows, const StatedRate& wrong, Weighting weighting)
      : family_(family), rows_(rows), wrong_(wrong), blocks_(wrong), weighting_(weighting) {}

  [[nodiscard]] Means at(const Vector& w) const {
    const Vector eta = rows_.design * w + rows_.offset;
    Means made;
    made.mean.resize(rows_.size());
    Vector slope(rows_.size());
    for (Index i = 0; i < rows_.size(); ++i) {
      made.mean(i) = rows_.trials(i) * family_.mean(eta(i));
      slope(i) = rows_.trials(i) * family_.mean_slope(eta(i));
    }
    made.slope = slope.asDiagonal() * rows_.design;
    made.expected = blocks_.mixed(made.mean);
    made.expected_slope = blocks_.mixed(made.slope);
    if (family_.shapes() > 0) made.shape(0) = std::log(dispersion(made.mean));
    made.variance.resize(rows_.size());
    for (Index i = 0; i < rows_.size(); ++i) made.variance(i) = family_.variance(eta(i), rows_.trials(i), made.shape);
    return made;
  }

  /// G of every link, with its weight.
  [[nodiscard]] Matrix weights(const Means& here) const {
    Matrix made = weighting_ == Weighting::ratio ? rows_.design : blocks_.mixed(rows_.design);
    if (weighting_ == Weighting::blue) made = variance(here).cwiseInverse().asDiagonal() * here.expected_slope;
    return rows_.weights.asDiagonal() * made;
  }

  /// ∂μ̃/∂α of a rate all links have in common.
  [[nodiscard]] Vector by_rate(const Means& here) const {
    Vector made = blocks_.means(here.mean) - here.mean;
    for (Index i = 0; i < made.size(); ++i) made(i) *= blocks_.excess(i);
    return made;
  }

 private:
  /// From the squares of y - μ, which wrong links enlarge: E (y - μ)² = V + 2 a μ(μ - μ̄) summed over a block.
  [[nodiscard]] double dispersion(const Vector& mean) const {
    const Vector off = rows_.y - mean;
    const Vector by_links = 2 * blocks_.share().array() * mean.array() * (mean - blocks_.means(mean)).array();
    const double squares = rows_.weights.dot(off.cwiseAbs2()), corrected = squares - rows_.weights.dot(by_links);
    const bool relative = family_.kind() == FamilyKind::gamma;
    const double unit = relative ? rows_.weights.dot(mean.cwiseAbs2()) : rows_.weights.sum();
    constexpr double smallest_share = 1e-3;
    return std::max(corrected, smallest_share * squares) / unit;
  }

  /// Of y_i over what its link may point to.
  [[nodiscard]] Vector variance(const Means& here) const {
    const Vector mean = blocks_.means(here.mean), squares = blocks_.means(here.mean.cwiseAbs2());
    const Vector within = blocks_.mixed(here.variance);
    Vector made(rows_.size());
    for (Index i = 0; i < made.size(); ++i) {
      const double rate = wrong_.rate(i), off = here.mean(i) - mean(i);
      made(i) = within(i) + rate * ((1 - rate) * off * off + squares(i) - mean(i) * mean(i));
    }
    return made;
  }

  const Family& family_;
  const FamilyRows& rows_;
  const StatedRate& wrong_;
  Blocks blocks_;
  Weighting weighting_;
};

double variance_of_rate(const StatedRate& wrong) {
  if (wrong.audit == 0) return 0;
  const double open = double((wrong.rate.array() > 0).count()), mean = open > 0 ? wrong.rate.sum() / open : 0;
  return mean * (1 - mean) / wrong.audit;
}

/// Newton's method for equations F(w) = 0, with steps halved while |F| in units of its first size grows.
struct Root {
  Vector at;
  bool converged = false;
  int iterations = 0;
};
template <class Evaluate>
Root root_of(const Vector& start, const Evaluate& evaluate) {
  constexpr double still = 1e-12;
  Root root{start};
  Matrix jacobian;
  Vector value = evaluate(root.at, jacobian);
  for (; root.iterations < newton_steps; ++root.iterations) {
    const Vector unit = jacobian.diagonal().cwiseAbs().cwiseSqrt().cwiseInverse();
    const auto size = [&](const Vector& f) { return unit.cwiseProduct(f).norm(); };
    Vector step = jacobian.fullPivLu().solve(value);
    if (!step.allFinite()) return root;
    Matrix next_jacobian;
    Vector next = evaluate(root.at - step, next_jacobian);
    for (int halved = 0; halved < 30 && !(size(next) <= size(value)); ++halved) {
      step *= 0.5;
      next = evaluate(root.at - step, next_jacobian);
    }
    root.at -= step;
    const bool stands = step.norm() <= still * (1 + root.at.norm());
    value = next;
    jacobian = next_jacobian;
    if (stands) {
      root.converged = true;
      return root;
    }
  }
  return root;
}

}  // namespace

StatedRate stated_rate(const RowFacts& facts, const Links& links, const CandidateLinks& candidates) {
  StatedRate made{facts.wrong_rate(links.responses), facts.audit, candidates.blocks};
  made.rate.head(candidates.known).setZero();
  return made;
}

FamilyAdjustedFit fit_family_adjusted(const Family& family, const FamilyRows& rows, const StatedRate& wrong,
                                      Weighting weighting) {
  // Not all weights let the search begin anywhere, but those of the ratio do.
  const auto solve = [&](Weighting by, const Vector& start) {
    const Equations equations(family, rows, wrong, by);
    return root_of(start, [&](const Vector& w, Matrix& jacobian) -> Vector {
      const Means here = equations.at(w);
      const Matrix weights = equations.weights(here);
      jacobian = -weights.transpose() * here.expected_slope;
      return weights.transpose() * (rows.y - here.expected);
    });
  };
  const Vector naive = fit_family(family, rows).parameters;
  const Vector first = weighting == Weighting::blue ? solve(Weighting::lahiri_larsen, naive).at : naive;
  const Root root = solve(weighting, first);
  const Equations equations(family, rows, wrong, weighting);
  const Means here = equations.at(root.at);
  const Matrix weights = equations.weights(here);
  const Matrix inverse = (weights.transpose() * here.expected_slope).inverse();
  Matrix meat = gram((rows.y - here.expected).asDiagonal() * weights);
  const Vector by_rate = weights.transpose() * equations.by_rate(here);
  meat += variance_of_rate(wrong) * by_rate * by_rate.transpose();
  return {root.at, here.shape, inverse * meat * inverse.transpose(), root.converged, root.iterations};
}

// With λ = 1 - a, a linked row stands for v* = v/λ - (1/λ - 1) v̄, whose mean over wrong and right links is that of the
// right row: x* for the feature of an event, and r*, (r x)*, (r x xᵀ)* in the sums over the rows at risk.
namespace {

class CoxEquations {
 public:
  CoxEquations(const FamilyRows& rows, const Vector& event, const StatedRate& wrong)
      : rows_(rows), wrong_(wrong), blocks_(wrong), risk_(rows.y, event) {}

  struct Value {
    CoxSums sums;
    Matrix of_rows;  ///< Every row's share of the equations.
    Vector total;
  };

  [[nodiscard]] Value at(const Vector& w) const {
    const Index n = rows_.size(), p = w.size();
    Vector r = rows_.design * w + rows_.offset;
    r = (r.array() - r.maxCoeff()).exp();
    const Matrix first = r.asDiagonal() * rows_.design;
    Matrix second(n, p * p);
    for (Index i = 0; i < n; ++i)
      second.row(i) = (first.row(i).transpose() * rows_.design.row(i)).reshaped().transpose();
    const Vector zero = starred(r);
    const Matrix one = starred(first), two = starred(second);
    Value made{cox_sums(risk_, rows_.weights, p,
                        [&](Index row, RiskSum& sum) {
                          const double weight = rows_.weights(row);
                          sum.zero += weight * zero(row);
                          sum.one += weight * one.row(row).transpose();
                          sum.two += weight * two.row(row).transpose().reshaped(p, p);
                        }),
               Matrix::Zero(n, p), Vector::Zero(p)};
    const CoxSums& sums = made.sums;
    const Matrix features = starred(rows_.design);
    made.of_rows = parts_of_rows(sums, {zero, one, features}) + parts_in_means(sums, r);
    for (const std::vector<Index>& events : risk_.events)
      for (const Index row : events) made.total += rows_.weights(row) * features.row(row).transpose();
    made.total -= sums.mean;
    return made;
  }

 private:
  struct Starred {
    const Vector& zero;
    const Matrix& one;
    const Matrix& features;
  };

  /// δ (x* - E) - Σ_k h_k ((r x)* - E_k r*) over the event times a row is at risk at.
  [[nodiscard]] Matrix parts_of_rows(const CoxSums& sums, const Starred& star) const {
    const Vector cumulative = exposed(risk_, sums.own, sums.hazard);
    Matrix made(rows_.size(), star.one.cols());
    for (Index k = 0; k < made.cols(); ++k) {
      const Vector weighted = exposed(risk_, sums.own, sums.hazard.cwiseProduct(sums.means.col(k)));
      made.col(k) = weighted.cwiseProduct(star.zero) - cumulative.cwiseProduct(star.one.col(k));
    }
    for (Index i = 0; i < made.rows(); ++i) {
      const Index k = risk_.at[std::size_t(i)];
      if (k >= 0) made.row(i) += star.features.row(i) - sums.means.row(k);
    }
    return rows_.weights.asDiagonal() * made;
  }

  /// What every row contributes by being part of the means of its block, apart from what all of it do.
  [[nodiscard]] Matrix parts_in_means(const CoxSums& sums, const Vector& r) const {
    const Vector beyond = rows_.weights.cwiseProduct(excess_share());
    const Vector cumulative = blocks_.means(beyond.cwiseProduct(exposed(risk_, sums.own, sums.hazard)));
    Vector at_event = beyond;
    for (Index i = 0; i < at_event.size(); ++i)
      if (risk_.at[std::size_t(i)] < 0) at_event(i) = 0;
    at_event = blocks_.means(at_event);
    Matrix made(rows_.size(), rows_.design.cols());
    for (Index k = 0; k < made.cols(); ++k) {
      const Vector weighted =
          blocks_.means(beyond.cwiseProduct(exposed(risk_, sums.own, sums.hazard.cwiseProduct(sums.means.col(k)))));
      made.col(k) =
          (cumulative.cwiseProduct(r) - at_event).cwiseProduct(rows_.design.col(k)) - weighted.cwiseProduct(r);
    }
    return made - blocks_.means(made);
  }

  [[nodiscard]] Vector excess_share() const {
    return blocks_.share().unaryExpr([](double a) { return a / (1 - a); });
  }

  [[nodiscard]] Matrix starred(const Matrix& values) const {
    return values + excess_share().asDiagonal() * (values - blocks_.means(values));
  }

  const FamilyRows& rows_;
  const StatedRate& wrong_;
  Blocks blocks_;
  RiskSets risk_;
};

}  // namespace

FamilyAdjustedFit fit_cox_adjusted(const FamilyRows& rows, const Vector& event, const StatedRate& wrong) {
  const CoxEquations equations(rows, event, wrong);
  const Root root = root_of(fit_cox(rows, event).parameters, [&](const Vector& w, Matrix& jacobian) -> Vector {
    const CoxEquations::Value here = equations.at(w);
    jacobian = -here.sums.information;
    return here.total;
  });
  const CoxEquations::Value here = equations.at(root.at);
  const Matrix inverse = here.sums.information.inverse();
  Matrix meat = gram(here.of_rows);
  if (wrong.audit > 0) {
    constexpr double step = 1e-5;
    const auto shifted = [&](double by) {
      StatedRate moved = wrong;
      moved.rate = (wrong.rate.array() > 0).select(wrong.rate.array() + by, 0.0);
      return CoxEquations(rows, event, moved).at(root.at).total;
    };
    const Vector by_rate = (shifted(step) - shifted(-step)) / (2 * step);
    meat += variance_of_rate(wrong) * by_rate * by_rate.transpose();
  }
  return {root.at, Shape::Zero(), inverse * meat * inverse.transpose(), root.converged, root.iterations};
}

}  // namespace unshuffle
