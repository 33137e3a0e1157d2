#include "unshuffle/cytometry/transform.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "cytometry/fcs_text.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle::cytometry {
namespace {

using std::numbers::ln10;

double log10_or_below_everything(double x) {
  return x > 0 ? std::log10(x) : (x <= 0 ? -std::numeric_limits<double>::infinity() : x);
}

void require(bool holds, std::string_view scale, std::string_view name, double value, std::string_view expected) {
  if (!holds) throw InvalidInput(fmt::format("{}: {} = {} must be {}", scale, name, value, expected));
}

void require_logicle(const LogicleParameters& p, std::string_view scale) {
  require(p.t > 0 && std::isfinite(p.t), scale, "T", p.t, "> 0");
  require(p.m > 0 && std::isfinite(p.m), scale, "M", p.m, "> 0");
  require(p.w >= 0 && p.w <= p.m / 2, scale, "W", p.w, fmt::format("between 0 and M/2 = {}", p.m / 2));
  require(p.a >= -p.w && p.a <= p.m - 2 * p.w, scale, "A", p.a,
          fmt::format("between -W = {} and M - 2W = {}", -p.w, p.m - 2 * p.w));
  require(p.m + p.a > 0, scale, "M + A", p.m + p.a, "> 0");
  // e^b has to be a number.
  require((p.m + p.a) * ln10 < 700, scale, "M + A", p.m + p.a, "below 300");
}

/// The d with 2(ln d - ln b) + w(d + b) = 0: it makes the second derivative vanish at zero. The left side rises in d
/// from -∞ to 2bw at d = b, so the root is in (0, b].
double falling_rate(double b, double w) {
  double low = 0;
  double high = b;
  // Newton from the right works for small w; bisection to the last double needs no conditions.
  for (int step = 0; step < 200 && low < high; ++step) {
    const double d = 0.5 * (low + high);
    if (d <= low || d >= high) break;
    (2 * (std::log(d) - std::log(b)) + w * (d + b) > 0 ? high : low) = d;
  }
  return w == 0 ? b : high;
}

/// The root u ≥ 0 of value(u) = x for an increasing convex function, by Newton from above: every step stays above the
/// root, so the first one that does not go down ends the search.
template <class Function, class Slope>
double root_from_above(double u, double x, Function value, Slope slope) {
  for (int step = 0; step < 100; ++step) {
    const double next = u - (value(u) - x) / slope(u);
    if (!(next < u)) break;
    u = std::max(next, 0.0);
  }
  return u;
}

/// Odd around `zero`, as the published implementations are: what `positive` does above zero is mirrored below.
template <class Positive>
double mirrored(double x, double zero, Positive positive) {
  if (std::isnan(x)) return x;
  if (x == 0) return zero;
  return x > 0 ? zero + positive(x) : zero - positive(-x);
}

}  // namespace

double Log10::operator()(double x) const { return log10_or_below_everything(x); }

double Asinh::operator()(double x) const { return std::asinh(x / cofactor); }

double ParametrizedLinear::operator()(double x) const { return (x + a) / (t + a); }

double ParametrizedLog::operator()(double x) const { return log10_or_below_everything(x / t) / m + 1; }

double ParametrizedAsinh::operator()(double x) const {
  return (std::asinh(x * std::sinh(m * ln10) / t) + a * ln10) / ((m + a) * ln10);
}

// The scale is the inverse of  S(y) = a·e^(by) - c·e^(-dy) - f  with S(x₁) = 0, S″(x₁) = 0, S(1) = T. With u = y - x₁,
// P = a·e^(b·x₁) and Q = c·e^(-d·x₁) the constant f drops out,
//   S = P·(e^(bu) - 1) - Q·(e^(-du) - 1),
// which expm1 evaluates without cancellation near zero, where the published code needs a Taylor series. c/a is
// e^(x₀(b+d)) with x₀ the upper end of the linear part, so Q/P = e^((x₀-x₁)(b+d)) = e^(w(b+d)).
Logicle::Logicle(const LogicleParameters& parameters) {
  require_logicle(parameters, "logicle");
  const double decades = parameters.m + parameters.a;
  const double w = parameters.w / decades;
  zero_ = parameters.a / decades + w;
  rise_ = decades * ln10;
  fall_ = falling_rate(rise_, w);
  const double ratio = std::exp(w * (rise_ + fall_));
  const double top = 1 - zero_;
  weight_ = parameters.t / (std::expm1(rise_ * top) - ratio * std::expm1(-fall_ * top));
  counter_ = weight_ * ratio;
}

double Logicle::above_zero(double u) const {
  return weight_ * std::expm1(rise_ * u) - counter_ * std::expm1(-fall_ * u);
}

double Logicle::inverse(double y) const {
  return mirrored(y - zero_, 0, [&](double u) { return above_zero(u); });
}

double Logicle::operator()(double x) const {
  return mirrored(x, zero_, [&](double positive) {
    // Both terms of S are positive for u > 0: either one alone bounds the root from above.
    const double start = std::log1p(positive / weight_) / rise_;
    return root_from_above(
        start, positive, [&](double u) { return above_zero(u); },
        [&](double u) { return weight_ * rise_ * std::exp(rise_ * u) + counter_ * fall_ * std::exp(-fall_ * u); });
  });
}

// The scale is the inverse of  H(y) = a·e^(by) + cy - f  with H(x₁) = 0 and H(1) = T; c/a = e^(b·x₀)/w. With u = y -
// x₁:
//   H = P·(e^(bu) - 1) + c·u,   P = a·e^(b·x₁),   c/P = e^(bw)/w.
Hyperlog::Hyperlog(const LogicleParameters& parameters) {
  require_logicle(parameters, "hyperlog");
  require(parameters.w > 0, "hyperlog", "W", parameters.w, "> 0");
  const double decades = parameters.m + parameters.a;
  const double w = parameters.w / decades;
  zero_ = parameters.a / decades + w;
  rise_ = decades * ln10;
  const double ratio = std::exp(rise_ * w) / w;
  const double top = 1 - zero_;
  weight_ = parameters.t / (std::expm1(rise_ * top) + ratio * top);
  slope_ = weight_ * ratio;
}

double Hyperlog::above_zero(double u) const { return weight_ * std::expm1(rise_ * u) + slope_ * u; }

double Hyperlog::inverse(double y) const {
  return mirrored(y - zero_, 0, [&](double u) { return above_zero(u); });
}

double Hyperlog::operator()(double x) const {
  return mirrored(x, zero_, [&](double positive) {
    const double start = std::min(std::log1p(positive / weight_) / rise_, positive / slope_);
    return root_from_above(
        start, positive, [&](double u) { return above_zero(u); },
        [&](double u) { return weight_ * rise_ * std::exp(rise_ * u) + slope_; });
  });
}

double scaled(const Scale& scale, double x) {
  return std::visit([x](const auto& chosen) { return chosen(x); }, scale);
}

Scale parse_scale(const std::string& text, double range) {
  const auto colon = text.find(':');
  const std::string name = text.substr(0, colon);
  std::vector<double> numbers;
  bool readable = true;
  if (colon != std::string::npos) {
    for (const std::string& part : split_at_commas(text.substr(colon + 1))) {
      const auto number = to_number(part);
      readable = readable && number.has_value();
      numbers.push_back(number.value_or(0));
    }
  }
  if (readable && numbers.empty()) {
    if (name == "linear") return Identity{};
    if (name == "log") return Log10{};
    if (name == "asinh") return Asinh{};
    if (name == "logicle") return Logicle({.t = range > 0 ? range : LogicleParameters{}.t});
  }
  if (readable && name == "asinh" && numbers.size() == 1) {
    require(numbers[0] > 0, text, "cofactor", numbers[0], "> 0");
    return Asinh{numbers[0]};
  }
  if (readable && name == "logicle" && numbers.size() == 4) {
    return Logicle({.t = numbers[0], .w = numbers[1], .m = numbers[2], .a = numbers[3]});
  }
  throw InvalidInput(fmt::format(
      "\"{}\" is not a scale; linear, log, asinh, asinh:COFACTOR, logicle or logicle:T,W,M,A was expected", text));
}

}  // namespace unshuffle::cytometry
