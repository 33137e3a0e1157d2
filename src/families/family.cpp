#include "unshuffle/families/family.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "families/laws.hpp"

namespace unshuffle {

Shape Family::first_shape(const VectorRef&, const VectorRef&) const { return Shape::Zero(); }

double Family::draw(double eta, double trials, const Shape& shape, const std::function<double()>& uniform) const {
  return quantile(uniform(), eta, trials, shape);
}

CanonicalPoint Family::canonical_point(double eta) const { return {eta, 1, 0, 0.5 * eta * eta}; }

const Family& family_of(FamilyKind kind) {
  switch (kind) {
    case FamilyKind::binomial:
      return binomial_family();
    case FamilyKind::poisson:
      return poisson_family();
    case FamilyKind::gamma:
      return gamma_family();
    case FamilyKind::negative_binomial:
      return negative_binomial_family();
    case FamilyKind::student:
      return student_family();
    case FamilyKind::cox:
      return cox_family();
    case FamilyKind::gaussian:
      break;
  }
  return gaussian_family();
}

FamilyKind family_suggested_by(const VectorRef& y) {
  // Ages or years are whole numbers, too; counts are small, and most of them occur more than once.
  constexpr double largest_count = 1000;
  constexpr double ties = 0.5;
  constexpr Index few_rows = 20;
  if (y.size() < few_rows || y.minCoeff() < 0) return FamilyKind::gaussian;
  if ((y.array() == 0 || y.array() == 1).all()) return FamilyKind::binomial;
  if ((y.array() != y.array().floor()).any() || y.maxCoeff() > largest_count) return FamilyKind::gaussian;
  const std::set<double> values(y.begin(), y.end());
  const bool tied = static_cast<double>(values.size()) < ties * static_cast<double>(y.size());
  // Counts reach down to zero; a scale from 1 to 5 or an age of adults does not.
  return tied && y.minCoeff() == 0 ? FamilyKind::poisson : FamilyKind::gaussian;
}

}  // namespace unshuffle
