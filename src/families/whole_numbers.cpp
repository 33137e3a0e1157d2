// Laws of counts: binomial (logit link), Poisson and negative binomial (log link).
#include <algorithm>
#include <cmath>

#include "core/special.hpp"
#include "families/laws.hpp"

namespace unshuffle {

namespace {

/// log(1 + e^η) without overflow.
double softplus(double eta) { return eta > 0 ? eta + std::log1p(std::exp(-eta)) : std::log1p(std::exp(eta)); }

double logistic(double eta) { return eta > 0 ? 1 / (1 + std::exp(-eta)) : std::exp(eta) / (1 + std::exp(eta)); }

bool is_count(double y) { return y >= 0 && std::isfinite(y) && y == std::floor(y); }

/// y log(y/m), which is 0 at y = 0.
double times_log_ratio(double y, double m) { return y > 0 ? y * std::log(y / m) : 0; }

class Counts : public Family {
 public:
  [[nodiscard]] bool whole_numbers() const override { return true; }

  /// By doubling the distance from the mean, then halving.
  [[nodiscard]] double quantile(double share, double eta, double trials, const Shape& shape) const override {
    const double spread = std::sqrt(variance(eta, trials, shape)) + 1;
    const auto reached = [&](double y) { return cumulative({y, eta, trials}, shape) >= share; };
    constexpr double beyond = 1e15;  // whole numbers are no longer exact
    double low = -1, high = std::floor(trials * mean(eta));
    if (!std::isfinite(high) || high > beyond) return HUGE_VAL;
    for (double step = spread; !reached(high) && high < beyond; step *= 2) {
      low = high;
      high = std::ceil(high + step);
    }
    while (high - low > 1) {
      const double middle = std::floor(0.5 * (low + high));
      (reached(middle) ? high : low) = middle;
    }
    return high;
  }
};

/// y successes of m trials.
class Binomial final : public Counts {
 public:
  [[nodiscard]] FamilyKind kind() const override { return FamilyKind::binomial; }
  [[nodiscard]] LogDensity log_density(const Observation& at, const Shape&) const override {
    const double p = logistic(at.eta), m = at.trials;
    LogDensity made;
    made.value = at.y * at.eta - m * softplus(at.eta);
    if (m != 1) made.value += log_gamma(m + 1) - log_gamma(at.y + 1) - log_gamma(m - at.y + 1);
    made.gradient(0) = at.y - m * p;
    made.hessian(0, 0) = -m * p * (1 - p);
    return made;
  }
  [[nodiscard]] double information(const Observation& at, const Shape& shape) const override {
    return variance(at.eta, at.trials, shape);
  }
  [[nodiscard]] double deviance(const Observation& at, const Shape&) const override {
    const double p = logistic(at.eta), m = at.trials;
    return 2 * (times_log_ratio(at.y, m * p) + times_log_ratio(m - at.y, m * logistic(-at.eta)));
  }
  [[nodiscard]] double mean(double eta) const override { return logistic(eta); }
  [[nodiscard]] double mean_slope(double eta) const override { return logistic(eta) * logistic(-eta); }
  [[nodiscard]] double variance(double eta, double trials, const Shape&) const override {
    return trials * logistic(eta) * logistic(-eta);
  }
  [[nodiscard]] double cumulative(const Observation& at, const Shape&) const override {
    if (at.y < 0) return 0;
    if (at.y >= at.trials) return 1;
    const double y = std::floor(at.y);
    return beta_cumulative(logistic(-at.eta), at.trials - y, y + 1);
  }
  [[nodiscard]] double linked(double y, double trials) const override {
    return std::log((y + 0.5) / (trials - y + 0.5));
  }
  [[nodiscard]] std::string expects() const override {
    return "0 or 1, or whole numbers of successes up to those of the trials";
  }
  [[nodiscard]] bool allows(double y, double trials) const override { return is_count(y) && y <= trials; }
  [[nodiscard]] bool canonical() const override { return true; }
  [[nodiscard]] CanonicalPoint canonical_point(double eta) const override { return {eta, 1, 0, softplus(eta)}; }
};

class Poisson final : public Counts {
 public:
  [[nodiscard]] FamilyKind kind() const override { return FamilyKind::poisson; }
  [[nodiscard]] LogDensity log_density(const Observation& at, const Shape&) const override {
    const double mu = std::exp(at.eta);
    LogDensity made;
    made.value = at.y * at.eta - mu - log_gamma(at.y + 1);
    made.gradient(0) = at.y - mu;
    made.hessian(0, 0) = -mu;
    return made;
  }
  [[nodiscard]] double information(const Observation& at, const Shape&) const override { return std::exp(at.eta); }
  [[nodiscard]] double deviance(const Observation& at, const Shape&) const override {
    const double mu = std::exp(at.eta);
    return 2 * (times_log_ratio(at.y, mu) - (at.y - mu));
  }
  [[nodiscard]] double mean(double eta) const override { return std::exp(eta); }
  [[nodiscard]] double mean_slope(double eta) const override { return std::exp(eta); }
  [[nodiscard]] double variance(double eta, double, const Shape&) const override { return std::exp(eta); }
  [[nodiscard]] double cumulative(const Observation& at, const Shape&) const override {
    return at.y < 0 ? 0 : 1 - gamma_cumulative(std::exp(at.eta), std::floor(at.y) + 1);
  }
  [[nodiscard]] double linked(double y, double) const override { return std::log(y + 0.5); }
  [[nodiscard]] std::string expects() const override { return "whole numbers of at least 0"; }
  [[nodiscard]] bool allows(double y, double) const override { return is_count(y); }
  [[nodiscard]] bool canonical() const override { return true; }
  [[nodiscard]] CanonicalPoint canonical_point(double eta) const override { return {eta, 1, 0, std::exp(eta)}; }
};

/// τ = log α, with the variance μ + αμ²; r = 1/α.
class NegativeBinomial final : public Counts {
 public:
  [[nodiscard]] FamilyKind kind() const override { return FamilyKind::negative_binomial; }
  [[nodiscard]] std::vector<std::string> shape_names() const override { return {"overdispersion"}; }
  [[nodiscard]] Shape first_shape(const VectorRef& y, const VectorRef& eta) const override {
    const Eigen::ArrayXd mu = eta.array().exp();
    const double alpha = (((y.array() - mu).square() - mu) / mu.square()).mean();
    return {std::log(std::clamp(alpha, 0.05, 10.0)), 0};
  }

  [[nodiscard]] LogDensity log_density(const Observation& at, const Shape& shape) const override {
    const double r = std::exp(-shape(0)), y = at.y, mu = std::exp(at.eta), whole = r + mu;
    LogDensity made;
    made.value =
        log_gamma(y + r) - log_gamma(r) - log_gamma(y + 1) - r * std::log1p(mu / r) + y * (at.eta - std::log(whole));
    const double by_r = digamma(y + r) - digamma(r) - std::log1p(mu / r) + (mu - y) / whole;
    const double twice = trigamma(y + r) - trigamma(r) + mu / (r * whole) + (y - mu) / (whole * whole);
    made.gradient << (y - mu) * r / whole, -r * by_r, 0;
    made.hessian(0, 0) = -mu * r * (r + y) / (whole * whole);
    made.hessian(0, 1) = made.hessian(1, 0) = -r * (y - mu) * mu / (whole * whole);
    made.hessian(1, 1) = r * by_r + r * r * twice;
    return made;
  }
  [[nodiscard]] double information(const Observation& at, const Shape& shape) const override {
    const double mu = std::exp(at.eta);
    return mu / (1 + mu * std::exp(shape(0)));
  }
  [[nodiscard]] double deviance(const Observation& at, const Shape& shape) const override {
    const double r = std::exp(-shape(0)), mu = std::exp(at.eta);
    return 2 * (times_log_ratio(at.y, mu) - (at.y + r) * std::log((at.y + r) / (mu + r)));
  }
  [[nodiscard]] double mean(double eta) const override { return std::exp(eta); }
  [[nodiscard]] double mean_slope(double eta) const override { return std::exp(eta); }
  [[nodiscard]] double variance(double eta, double, const Shape& shape) const override {
    const double mu = std::exp(eta);
    return mu + std::exp(shape(0)) * mu * mu;
  }
  [[nodiscard]] double cumulative(const Observation& at, const Shape& shape) const override {
    const double r = std::exp(-shape(0));
    return at.y < 0 ? 0 : beta_cumulative(r / (r + std::exp(at.eta)), r, std::floor(at.y) + 1);
  }
  [[nodiscard]] double linked(double y, double) const override { return std::log(y + 0.5); }
  [[nodiscard]] std::string expects() const override { return "whole numbers of at least 0"; }
  [[nodiscard]] bool allows(double y, double) const override { return is_count(y); }
};

}  // namespace

const Family& binomial_family() {
  static const Binomial only;
  return only;
}

const Family& poisson_family() {
  static const Poisson only;
  return only;
}

const Family& negative_binomial_family() {
  static const NegativeBinomial only;
  return only;
}

}  // namespace unshuffle
