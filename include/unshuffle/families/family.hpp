// The law of a response around its linear predictor η: everything a method needs to know of it.
//
// A family gives log p(y | η, τ) with its derivatives, where τ holds the parameters of its shape on the whole real line
// (their logarithms), the mean, and draws. docs/families.md says which laws there are; the formulas are in
// docs/mathematics.md §18.
#pragma once

#include <Eigen/Core>
#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/options.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

enum class FamilyKind { gaussian, binomial, poisson, gamma, negative_binomial, student, cox };
inline constexpr std::array family_words{Word<FamilyKind>{"gaussian", FamilyKind::gaussian},
                                         Word<FamilyKind>{"binomial", FamilyKind::binomial},
                                         Word<FamilyKind>{"poisson", FamilyKind::poisson},
                                         Word<FamilyKind>{"gamma", FamilyKind::gamma},
                                         Word<FamilyKind>{"negative-binomial", FamilyKind::negative_binomial},
                                         Word<FamilyKind>{"student", FamilyKind::student},
                                         Word<FamilyKind>{"cox", FamilyKind::cox}};
constexpr std::span<const Word<FamilyKind>> words_of(FamilyKind) { return family_words; }

/// Parameters of a law's shape, as logarithms; at most two.
using Shape = Eigen::Vector2d;

/// A response with its linear predictor.
struct Observation {
  double y;
  double eta;         ///< Offset included.
  double trials = 1;  ///< Of a binomial response.
};

/// log p and its derivatives in (η, τ₁, τ₂); zero for shapes the family does not have.
struct LogDensity {
  double value = 0;
  Eigen::Vector3d gradient = Eigen::Vector3d::Zero();
  Eigen::Matrix3d hessian = Eigen::Matrix3d::Zero();
};

/// log p = (y θ(η) - b(θ(η)))/φ + c(y, φ), of one response given η.
struct CanonicalPoint {
  double theta;
  double theta_slope;  ///< dθ/dη.
  double theta_bend;   ///< d²θ/dη².
  double cumulant;     ///< b.
};

class Family {
 public:
  virtual ~Family() = default;

  [[nodiscard]] virtual FamilyKind kind() const = 0;
  [[nodiscard]] std::string name() const { return name_of(kind()); }

  /// What exp(τ) are called, in order; none: the law has no shape to estimate.
  [[nodiscard]] virtual std::vector<std::string> shape_names() const { return {}; }
  [[nodiscard]] Index shapes() const { return static_cast<Index>(shape_names().size()); }
  /// Where a search for τ begins, given responses and their predictors.
  [[nodiscard]] virtual Shape first_shape(const VectorRef& y, const VectorRef& eta) const;

  [[nodiscard]] virtual LogDensity log_density(const Observation& at, const Shape& shape) const = 0;
  /// The expected second derivative of -log p in η.
  [[nodiscard]] virtual double information(const Observation& at, const Shape& shape) const = 0;
  /// 2 (log p of the best η - log p), in units of the dispersion.
  [[nodiscard]] virtual double deviance(const Observation& at, const Shape& shape) const = 0;

  /// Of one trial.
  [[nodiscard]] virtual double mean(double eta) const = 0;
  [[nodiscard]] virtual double mean_slope(double eta) const = 0;
  /// Of the whole response.
  [[nodiscard]] virtual double variance(double eta, double trials, const Shape& shape) const = 0;
  /// P(Y ≤ y).
  [[nodiscard]] virtual double cumulative(const Observation& at, const Shape& shape) const = 0;
  /// The smallest y with P(Y ≤ y) ≥ share.
  [[nodiscard]] virtual double quantile(double share, double eta, double trials, const Shape& shape) const = 0;
  /// One draw, from numbers that are uniform on (0, 1).
  [[nodiscard]] virtual double draw(double eta, double trials, const Shape& shape,
                                    const std::function<double()>& uniform) const;

  /// A rough η for one response alone, finite for every response the family allows.
  [[nodiscard]] virtual double linked(double y, double trials) const = 0;
  [[nodiscard]] virtual bool whole_numbers() const { return false; }
  /// η is that of a logarithm or a logit, so an offset in it has a meaning of its own.
  [[nodiscard]] virtual bool takes_offset() const { return true; }
  /// Completes "the family ... needs responses that are".
  [[nodiscard]] virtual std::string expects() const = 0;
  [[nodiscard]] virtual bool allows(double y, double trials) const = 0;

  /// Whether log p is that of an exponential family whose natural parameter is a function of η: CanonicalPoint.
  [[nodiscard]] virtual bool canonical() const { return false; }
  [[nodiscard]] virtual CanonicalPoint canonical_point(double eta) const;
};

/// The family of that kind; it lives as long as the program.
[[nodiscard]] const Family& family_of(FamilyKind kind);

/// The family that values as these plainly ask for, where it is not the Gaussian one: only 0 and 1; whole numbers with
/// many ties. Gaussian: nothing speaks against it.
[[nodiscard]] FamilyKind family_suggested_by(const VectorRef& y);

}  // namespace unshuffle
