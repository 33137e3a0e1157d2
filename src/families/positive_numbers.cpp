// Laws of numbers above 0: gamma with log link (costs, amounts whose standard deviation grows with the mean), and times
// whose hazard is proportional to e^η.
#include <algorithm>
#include <cmath>

#include "core/special.hpp"
#include "families/laws.hpp"

namespace unshuffle {

namespace {

/// τ = log φ, with the variance φ μ²; k = 1/φ is the shape of the gamma distribution.
class Gamma final : public Family {
 public:
  [[nodiscard]] FamilyKind kind() const override { return FamilyKind::gamma; }
  [[nodiscard]] std::vector<std::string> shape_names() const override { return {"dispersion"}; }
  [[nodiscard]] Shape first_shape(const VectorRef& y, const VectorRef& eta) const override {
    const double pearson = (y.array() * (-eta.array()).exp() - 1).square().mean();
    return {std::log(std::clamp(pearson, 1e-8, 1e4)), 0};
  }

  [[nodiscard]] LogDensity log_density(const Observation& at, const Shape& shape) const override {
    const double k = std::exp(-shape(0)), ratio = at.y * std::exp(-at.eta), log_y = std::log(at.y);
    LogDensity made;
    made.value = k * (std::log(k) - at.eta - ratio) - log_gamma(k) + (k - 1) * log_y;
    const double by_k = std::log(k) + 1 - at.eta - digamma(k) + log_y - ratio;
    made.gradient << k * (ratio - 1), -k * by_k, 0;
    made.hessian(0, 0) = -k * ratio;
    made.hessian(0, 1) = made.hessian(1, 0) = -k * (ratio - 1);
    made.hessian(1, 1) = k * by_k + k * k * (1 / k - trigamma(k));
    return made;
  }
  [[nodiscard]] double information(const Observation&, const Shape& shape) const override {
    return std::exp(-shape(0));
  }
  [[nodiscard]] double deviance(const Observation& at, const Shape&) const override {
    const double ratio = at.y * std::exp(-at.eta);
    return 2 * (ratio - 1 - std::log(ratio));
  }
  [[nodiscard]] double mean(double eta) const override { return std::exp(eta); }
  [[nodiscard]] double mean_slope(double eta) const override { return std::exp(eta); }
  [[nodiscard]] double variance(double eta, double, const Shape& shape) const override {
    return std::exp(shape(0) + 2 * eta);
  }
  [[nodiscard]] double cumulative(const Observation& at, const Shape& shape) const override {
    const double k = std::exp(-shape(0));
    return at.y > 0 ? gamma_cumulative(k * at.y * std::exp(-at.eta), k) : 0;
  }
  [[nodiscard]] double quantile(double share, double eta, double, const Shape& shape) const override {
    const double k = std::exp(-shape(0));
    return gamma_quantile(share, k) / k * std::exp(eta);
  }
  [[nodiscard]] double linked(double y, double) const override { return std::log(y); }
  [[nodiscard]] std::string expects() const override { return "above 0"; }
  [[nodiscard]] bool allows(double y, double) const override { return y > 0 && std::isfinite(y); }
  /// θ = -1/μ and b = log μ.
  [[nodiscard]] bool canonical() const override { return true; }
  [[nodiscard]] CanonicalPoint canonical_point(double eta) const override {
    const double inverse = std::exp(-eta);
    return {-inverse, inverse, -inverse, eta};
  }
};

/// Of the cumulative hazard H = Λ₀(t) e^η up to a response, with d events: d log H - H. The baseline Λ₀ is no parameter
/// of it, so likelihood/cox.hpp puts log Λ₀ into the predictors. What needs it here, such as a quantile, is NaN.
class Cox final : public Family {
 public:
  [[nodiscard]] FamilyKind kind() const override { return FamilyKind::cox; }
  [[nodiscard]] LogDensity log_density(const Observation& at, const Shape&) const override {
    const double hazard = std::exp(at.eta);
    LogDensity made;
    made.value = at.y * at.eta - hazard;
    made.gradient(0) = at.y - hazard;
    made.hessian(0, 0) = -hazard;
    return made;
  }
  [[nodiscard]] double information(const Observation& at, const Shape&) const override { return std::exp(at.eta); }
  [[nodiscard]] double deviance(const Observation& at, const Shape&) const override {
    const double residual = at.y - std::exp(at.eta);
    return -2 * (residual + (at.y > 0 ? at.y * (at.eta - std::log(at.y)) : 0));
  }
  /// The hazard relative to that where η = 0.
  [[nodiscard]] double mean(double eta) const override { return std::exp(eta); }
  [[nodiscard]] double mean_slope(double eta) const override { return std::exp(eta); }
  [[nodiscard]] double variance(double, double, const Shape&) const override { return std::nan(""); }
  [[nodiscard]] double cumulative(const Observation&, const Shape&) const override { return std::nan(""); }
  [[nodiscard]] double quantile(double, double, double, const Shape&) const override { return std::nan(""); }
  /// Of a time: the longer, the smaller the hazard.
  [[nodiscard]] double linked(double y, double) const override { return -std::log(y); }
  [[nodiscard]] std::string expects() const override { return "times above 0"; }
  [[nodiscard]] bool allows(double y, double) const override { return y > 0 && std::isfinite(y); }
};

}  // namespace

const Family& gamma_family() {
  static const Gamma only;
  return only;
}

const Family& cox_family() {
  static const Cox only;
  return only;
}

}  // namespace unshuffle
