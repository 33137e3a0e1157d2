// Scales for cytometry data (docs/mathematics.md §16). Intensities span decades and fall below zero after compensation,
// so besides the logarithm there are scales that are linear around zero and logarithmic beyond.
//
// The parametrised scales are those of Gating-ML 2.0: T is the top of the scale (mapped to 1), M the number of decades,
// W the width of the linear part in decades, A the number of additional negative decades.
#pragma once

#include <string>
#include <variant>

#include "unshuffle/core/export.hpp"

namespace unshuffle {
namespace cytometry UNSHUFFLE_EXPORT {

struct Identity {
  double operator()(double x) const { return x; }
};

/// log₁₀ x, -∞ at and below 0.
struct Log10 {
  double operator()(double x) const;
};

/// asinh(x / cofactor).
struct Asinh {
  double cofactor = 150;
  double operator()(double x) const;
};

/// (x + A) / (T + A).
struct ParametrizedLinear {
  double t;
  double a = 0;
  double operator()(double x) const;
};

/// log₁₀(x / T) / M + 1, -∞ at and below 0.
struct ParametrizedLog {
  double t;
  double m;
  double operator()(double x) const;
};

/// (asinh(x·sinh(M ln 10) / T) + A ln 10) / ((M + A) ln 10).
struct ParametrizedAsinh {
  double t;
  double m;
  double a = 0;
  double operator()(double x) const;
};

struct LogicleParameters {
  double t = 262144;
  double w = 0.5;
  double m = 4.5;
  double a = 0;
};

/// Moore and Parks, Cytometry A 81 (2012): a biexponential scale, linear at zero, odd around it.
class Logicle {
 public:
  /// Throws InvalidInput unless T > 0, M > 0, 0 ≤ W ≤ M/2 and -W ≤ A ≤ M - 2W.
  explicit Logicle(const LogicleParameters& parameters);
  double operator()(double x) const;
  /// The intensity at this position of the scale.
  [[nodiscard]] double inverse(double y) const;

 private:
  [[nodiscard]] double above_zero(double u) const;

  double zero_;     // Place of intensity 0.
  double rise_;     // b
  double fall_;     // d
  double weight_;   // a·e^(b·x₁)
  double counter_;  // c·e^(-d·x₁)
};

/// Bagwell's hyperlog as in Gating-ML 2.0: an exponential plus a line, odd around zero.
class Hyperlog {
 public:
  /// As Logicle, and W > 0.
  explicit Hyperlog(const LogicleParameters& parameters);
  double operator()(double x) const;
  [[nodiscard]] double inverse(double y) const;

 private:
  [[nodiscard]] double above_zero(double u) const;

  double zero_;
  double rise_;    // b
  double weight_;  // a·e^(b·x₁)
  double slope_;   // c
};

using Scale =
    std::variant<Identity, Log10, Asinh, ParametrizedLinear, ParametrizedLog, ParametrizedAsinh, Logicle, Hyperlog>;

[[nodiscard]] double scaled(const Scale& scale, double x);

/// linear, log, asinh, asinh:COFACTOR, logicle or logicle:T,W,M,A; the T of a plain logicle is the channel's range.
/// Throws InvalidInput saying what was expected.
[[nodiscard]] Scale parse_scale(const std::string& text, double range);

}  // namespace cytometry
}  // namespace unshuffle
