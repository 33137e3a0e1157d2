// Likelihoods that are sums over rows, and where they are largest.
//
// Row i contributes v_i ℓ_i(c_i), a function of a few coordinates c_i1, c_i2, ..., each linear in parameters of its
// own: c_ik = offset_ik + D_k(i, :)·θ_k. A regression has the linear predictor and the logarithms of its shape; a
// mixture also the log odds that link i is right. Value, gradient and Hessian of every such sum are assembled here, and
// here its maximum is found, so that a likelihood is no more than the function of one row.
#pragma once

#include <functional>
#include <vector>

#include "optimise/optimiser.hpp"

namespace unshuffle {

/// ℓ and its derivatives in the coordinates; at most four.
struct RowTerm {
  double value = 0;
  Eigen::Vector4d gradient = Eigen::Vector4d::Zero();
  Eigen::Matrix4d hessian = Eigen::Matrix4d::Zero();
};

/// One coordinate of every row. A design without rows: the same parameter in all of them.
struct Coordinate {
  Matrix design{};
  Vector offset{};  ///< Empty: none.

  [[nodiscard]] Index parameters() const { return design.rows() > 0 ? design.cols() : 1; }
};

class RowLikelihood {
 public:
  using Row = std::function<RowTerm(Index row, const Eigen::Vector4d& at)>;

  /// `weights` has an entry per row.
  RowLikelihood(std::vector<Coordinate> coordinates, Vector weights, Row row);

  [[nodiscard]] Index parameters() const;
  [[nodiscard]] Index rows() const { return weights_.size(); }
  [[nodiscard]] double weight() const { return weights_.sum(); }

  /// Minus the log-likelihood.
  [[nodiscard]] Sample at(const Vector& theta, bool with_hessian) const;
  /// Σ v² s sᵀ with s the gradient of a row.
  [[nodiscard]] Matrix scores(const Vector& theta) const;
  /// The k-th coordinate of every row.
  [[nodiscard]] Vector coordinate(Index k, const Vector& theta) const;

  /// Adds what is known of the parameters apart from the rows, as minus a log-likelihood of its own.
  void add_knowledge(SmoothFunction knowledge) { known_.push_back(std::move(knowledge)); }

 private:
  struct Tile;
  [[nodiscard]] Tile tile(Index begin, const Vector& theta) const;
  void add_tile(Index begin, const Vector& theta, bool with_hessian, Sample& sum) const;
  [[nodiscard]] Vector part(Index k, Index begin, Index count, const Vector& theta) const;
  [[nodiscard]] Matrix design(Index k, Index begin, Index count) const;

  std::vector<Coordinate> coordinates_;
  std::vector<Index> first_;  ///< Parameter of every coordinate.
  Vector weights_;
  Row row_;
  std::vector<SmoothFunction> known_;
};

struct RowOptimum {
  Vector theta;
  double log_likelihood = 0;
  Matrix information;  ///< Minus the Hessian of the log-likelihood.
  bool converged = false;
  bool unbounded = false;  ///< The likelihood still grows: a combination of features tells some responses for certain.
  int iterations = 0;
};

/// Damped Newton in units in which every parameter alone changes the likelihood of one of `weight` rows by about one
/// half; `stop` is in these units.
[[nodiscard]] Minimum minimise_in_natural_units(const SmoothFunction& f, const Vector& start, double weight,
                                                const StopRule& stop);

/// Damped Newton from `start`, of minus the log-likelihood of `weight` rows.
[[nodiscard]] RowOptimum most_likely(const SmoothFunction& minus, double weight, const Vector& start,
                                     int max_iterations = 200);
[[nodiscard]] RowOptimum most_likely(const RowLikelihood& likelihood, const Vector& start, int max_iterations = 200);

}  // namespace unshuffle
