// Laws on the whole line: Gaussian and Student's t. η is the mean.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/special.hpp"
#include "families/laws.hpp"

namespace unshuffle {

namespace {

double mean_square(const VectorRef& residual) {
  return std::max(residual.squaredNorm() / double(residual.size()), 1e-300);
}

class OnTheLine : public Family {
 public:
  [[nodiscard]] double mean(double eta) const override { return eta; }
  [[nodiscard]] double mean_slope(double) const override { return 1; }
  [[nodiscard]] double linked(double y, double) const override { return y; }
  [[nodiscard]] bool takes_offset() const override { return false; }
  [[nodiscard]] std::string expects() const override { return "numbers"; }
  [[nodiscard]] bool allows(double y, double) const override { return std::isfinite(y); }
};

/// τ = log σ².
class Gaussian final : public OnTheLine {
 public:
  [[nodiscard]] FamilyKind kind() const override { return FamilyKind::gaussian; }
  [[nodiscard]] std::vector<std::string> shape_names() const override { return {"variance"}; }
  [[nodiscard]] Shape first_shape(const VectorRef& y, const VectorRef& eta) const override {
    return {std::log(mean_square(y - eta)), 0};
  }

  [[nodiscard]] LogDensity log_density(const Observation& at, const Shape& shape) const override {
    const double precision = std::exp(-shape(0)), r = at.y - at.eta, half = 0.5 * r * r * precision;
    LogDensity made;
    made.value = -0.5 * (std::log(2 * std::numbers::pi) + shape(0)) - half;
    made.gradient << r * precision, half - 0.5, 0;
    made.hessian(0, 0) = -precision;
    made.hessian(0, 1) = made.hessian(1, 0) = -r * precision;
    made.hessian(1, 1) = -half;
    return made;
  }
  [[nodiscard]] double information(const Observation&, const Shape& shape) const override {
    return std::exp(-shape(0));
  }
  [[nodiscard]] double deviance(const Observation& at, const Shape&) const override {
    return (at.y - at.eta) * (at.y - at.eta);
  }
  [[nodiscard]] double variance(double, double, const Shape& shape) const override { return std::exp(shape(0)); }
  [[nodiscard]] double cumulative(const Observation& at, const Shape& shape) const override {
    return normal_cumulative((at.y - at.eta) * std::exp(-0.5 * shape(0)));
  }
  [[nodiscard]] double quantile(double share, double eta, double, const Shape& shape) const override {
    return eta + std::exp(0.5 * shape(0)) * normal_score(share);
  }
  [[nodiscard]] bool canonical() const override { return true; }
};

/// τ = (log s², log ν): (y - η)/s has Student's distribution with ν degrees of freedom.
class Student final : public OnTheLine {
 public:
  [[nodiscard]] FamilyKind kind() const override { return FamilyKind::student; }
  [[nodiscard]] std::vector<std::string> shape_names() const override {
    return {"squared scale", "degrees of freedom"};
  }
  /// The scale from the median, which a few large residuals do not move.
  [[nodiscard]] Shape first_shape(const VectorRef& y, const VectorRef& eta) const override {
    Vector size = (y - eta).cwiseAbs();
    const auto middle = size.begin() + size.size() / 2;
    std::nth_element(size.begin(), middle, size.end());
    constexpr double quartile = 0.6745, few_degrees = 5;
    const double scale = *middle / quartile;
    return {std::log(std::max(scale * scale, 1e-6 * mean_square(y - eta))), std::log(few_degrees)};
  }

  [[nodiscard]] LogDensity log_density(const Observation& at, const Shape& shape) const override {
    const double v = std::exp(shape(0)), nu = std::exp(shape(1)), r = at.y - at.eta, r2 = r * r;
    const double whole = nu * v + r2, upper = 0.5 * (nu + 1), logarithm = std::log1p(r2 / (nu * v));
    LogDensity made;
    made.value =
        log_gamma(upper) - log_gamma(0.5 * nu) - 0.5 * (std::log(nu * std::numbers::pi) + shape(0)) - upper * logarithm;
    // In ν itself, then in log ν.
    const double by_nu = 0.5 * (digamma(upper) - digamma(0.5 * nu) - 1 / nu - logarithm) + upper * r2 / (nu * whole);
    const double twice = 0.25 * (trigamma(upper) - trigamma(0.5 * nu)) + 0.5 / (nu * nu) + r2 / (nu * whole) -
                         upper * r2 * (whole + nu * v) / (nu * nu * whole * whole);
    made.gradient << (nu + 1) * r / whole, upper * r2 / whole - 0.5, nu * by_nu;
    Eigen::Matrix3d& h = made.hessian;
    h(0, 0) = (nu + 1) * (r2 - nu * v) / (whole * whole);
    h(0, 1) = h(1, 0) = -(nu + 1) * r * nu * v / (whole * whole);
    h(0, 2) = h(2, 0) = nu * (r / whole - (nu + 1) * r * v / (whole * whole));
    h(1, 1) = -upper * r2 * nu * v / (whole * whole);
    h(1, 2) = h(2, 1) = nu * (0.5 * r2 / whole - upper * r2 * v / (whole * whole));
    h(2, 2) = nu * by_nu + nu * nu * twice;
    return made;
  }
  [[nodiscard]] double information(const Observation&, const Shape& shape) const override {
    const double nu = std::exp(shape(1));
    return (nu + 1) / (nu + 3) * std::exp(-shape(0));
  }
  [[nodiscard]] double deviance(const Observation& at, const Shape& shape) const override {
    const double nu = std::exp(shape(1)), r = at.y - at.eta;
    return (nu + 1) * std::log1p(r * r / (nu * std::exp(shape(0))));
  }
  [[nodiscard]] double variance(double, double, const Shape& shape) const override {
    const double nu = std::exp(shape(1));
    return nu > 2 ? std::exp(shape(0)) * nu / (nu - 2) : HUGE_VAL;
  }
  [[nodiscard]] double cumulative(const Observation& at, const Shape& shape) const override {
    return student_cumulative((at.y - at.eta) * std::exp(-0.5 * shape(0)), std::exp(shape(1)));
  }
  [[nodiscard]] double quantile(double share, double eta, double, const Shape& shape) const override {
    return eta + std::exp(0.5 * shape(0)) * student_quantile(share, std::exp(shape(1)));
  }
};

}  // namespace

const Family& gaussian_family() {
  static const Gaussian only;
  return only;
}

const Family& student_family() {
  static const Student only;
  return only;
}

}  // namespace unshuffle
