// Starts for fully shuffled data: coefficients that give the predictions the moments of the responses.
#pragma once

#include <cstdint>
#include <vector>

#include "unshuffle/model/model.hpp"
#include "unshuffle/tables/problem.hpp"

namespace unshuffle {

/// Moments E[(c·v)^k] of a random vector v as polynomials in c, from its sample moments; k up to a given order.
class MomentPolynomials {
 public:
  /// Rows of `sample` are draws of v.
  MomentPolynomials(const Matrix& sample, int order);

  /// Monomials of degree ≤ order in so many variables.
  [[nodiscard]] static double count(Index variables, int order);

  /// E[(c·v)^k] for k = 0..order, and their derivatives in c, (order+1) × variables.
  void evaluate(const Vector& c, Vector& moments, Matrix& derivatives) const;

 private:
  struct Monomial {
    int degree = 0;
    Index parent = 0;        ///< This one without its last variable,
    Index variable = 0;      ///< which is this.
    double coefficient = 0;  ///< Multinomial coefficient times sample moment.
    std::vector<int> exponents{};
    std::vector<Index> without_one{};  ///< Place of the monomial with one factor of variable a fewer; -1: has none.
  };
  int order_;
  std::vector<Monomial> monomials_;
};

struct MomentStart {
  Vector parameters;
  double noise_variance = 0;
  double misfit = 0;  ///< Approximately χ² with one degree of freedom per moment at the truth.
};

/// Distinct solutions of the moment equations, best first, from `tries` random points. Empty for models that are not
/// linear in w, several outputs, or too many columns for moments of useful order.
[[nodiscard]] std::vector<MomentStart> moment_starts(const Problem& problem, const Model& bound, int tries,
                                                     std::uint64_t seed);

}  // namespace unshuffle
